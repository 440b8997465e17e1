/* What a replay cannot repeat is noted while recording, once. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Notes also go to a small file: the launcher shows them without reading the whole log. */
void
note_in_file(const char *kind, const char *text)
{
    char path[4200];
    if (core.is_future) /* they are in its log, and it has no directory */
        return;
    snprintf(path, sizeof path, "%s/notes", core.live_dir);
    int saved = errno, fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        Buf b = {0};
        buf_bytes(&b, kind, strlen(kind));
        buf_byte(&b, '\t');
        for (; *text; text++)
            buf_byte(&b, *text == '\n' ? '\v' : (uint8_t)*text); /* one line each */
        buf_byte(&b, '\n');
        report_send(fd, &b);
        close(fd);
    }
    errno = saved;
}

void
note(const char *kind, const char *text)
{
    static IdMap said;
    uint64_t key = hash_bytes(text, strlen(text), hash_bytes(kind, strlen(kind), 1));
    uint32_t *slot = idmap_slot(&said, key);
    if (*slot || core.mode != RECORD)
        return;
    *slot = 1;
    Buf b = {0};
    buf_varint(&b, CONTROL_NOTE << 2 | 2u);
    buf_byte(&b, TAG_TUPLE);
    buf_byte(&b, 2);
    buf_byte(&b, TAG_STR);
    buf_str(&b, kind, strlen(kind));
    buf_byte(&b, TAG_STR);
    buf_str(&b, text, strlen(text));
    uint8_t *p = log_room(&event_log, b.used);
    if (p) {
        memcpy(p, b.data, b.used);
        log_commit(&event_log, p + b.used);
    }
    free(b.data);
    note_in_file(kind, text);
}
