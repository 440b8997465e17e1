/* Child processes that have the program's standard output or error: what they write there is not part of the recording.
 * Each is a line in the file of notes: `child`, which streams it has, and in a group its row, since it may be recorded
 * itself; who seals the recording counts them. Where a stream is a file its length says at the end whether they wrote
 * anything at all: from the first child on, what the program itself writes is counted. */
#include "base/core.h"
#include "files/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

bool stream_counts;
static struct {
    struct stat st;  /* when the first child was about to start */
    int64_t written; /* since then, by the program itself */
    bool is_file;
} counts[3];
static int given; /* bits of the streams that children have had */

static void
add_line(const char *kind, int streams, unsigned row)
{
    char path[4200], line[48];
    snprintf(path, sizeof path, "%s/notes", core.live_dir);
    int n = row ? snprintf(line, sizeof line, "%s\t%d\t%u\n", kind, streams, row)
                : snprintf(line, sizeof line, "%s\t%d\n", kind, streams),
        saved = errno;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* on a full disk the log ends with a sentence of its own */
    ssize_t done = fd >= 0 ? write(fd, line, (size_t)n) : 0;
    if (fd >= 0 && done <= n)
        close(fd);
    errno = saved;
}

/* Before a child can write anything. */
void
stream_child_starts(void)
{
    if (core.mode != RECORD || stream_counts)
        return;
    for (int i = 1; i <= 2; i++)
        counts[i].is_file = fd_stream(i) == i && fstat(i, &counts[i].st) == 0 && S_ISREG(counts[i].st.st_mode);
    stream_counts = counts[1].is_file || counts[2].is_file;
}

void
stream_child(unsigned row, bool has_out, bool has_err)
{
    if (core.mode != RECORD || (!has_out && !has_err))
        return;
    given |= has_out | has_err << 1;
    add_line("child", has_out | has_err << 1, row);
}

void
stream_children_forked(void)
{
    stream_counts = false;
    given = 0;
    memset(counts, 0, sizeof counts);
}

void
stream_counted(int fd, int64_t n)
{
    counts[fd_stream(fd)].written += n;
}

/* The file is as much longer as the program itself has written. */
static bool
is_own(int i, bool is_shared)
{
    struct stat now;
    int64_t written = is_shared ? counts[1].written + counts[2].written : counts[i].written;
    return counts[i].is_file && fd_stream(i) == i && fstat(i, &now) == 0 && now.st_ino == counts[i].st.st_ino &&
           now.st_size - counts[i].st.st_size == written;
}

void
stream_children_end(void)
{
    bool is_shared = counts[1].is_file && counts[2].is_file && counts[1].st.st_ino == counts[2].st.st_ino;
    int silent = is_own(1, is_shared) | is_own(2, is_shared) << 1;
    if (core.mode == RECORD && (given & silent))
        add_line("silent", silent, 0);
}
