/* Digests of what was sent and received, computed anew by the replay of a copy whose secrets were replaced. The launcher
 * knows which transfers have one: their events, rising, and their lengths are in a file, into which the digests go. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    uint64_t event, length, digest; /* replaydbg/redaction/transfer_digests.py writes and reads them */
} Wanted;

static Wanted *wanted;
static size_t wanted_count, wanted_at;

int
redigest_open(int fd)
{
    struct stat st;
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) < 0)
        return -1;
    wanted_count = (size_t)st.st_size / sizeof *wanted;
    void *base = wanted_count ? mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    close(fd);
    if (base == MAP_FAILED)
        return -1;
    wanted = base;
    return 0;
}

bool
redigest_is_on(void)
{
    return wanted_count > 0;
}

/* Which event it will be is not known before it ends: others may end meanwhile. */
void
redigest_begins(Crossing *c)
{
    c->transfers[0].number = 1; /* so its bytes are digested as those of a transfer */
    c->given_digest = 0;
    c->given = 0;
}

void
redigest_ends(const Crossing *c, PyObject *result)
{
    while (wanted_at < wanted_count && wanted[wanted_at].event < core.crossings)
        wanted_at++;
    if (wanted_at < wanted_count && wanted[wanted_at].event == core.crossings)
        wanted[wanted_at].digest = channel_digest(c, result, wanted[wanted_at].length);
}
