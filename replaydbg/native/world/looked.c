/* What a replay of edited code asked of today's disk: each path once, by the question. Whoever replays the same recording
 * with other code, all of whose answers to these questions are the same, gets the same result. */
#include "base/core.h"
#include "world/world.h"

#define MOST 20000 /* more are not told, which the launcher sees by their number */

static Buf kept;
static uint64_t count;
static IdMap known; /* by hash of question and path: 1 */

void
world_looked(const char *op, const char *path)
{
    if (core.mode != REPLAY || !core.lenient || count > MOST)
        return;
    uint32_t *slot = idmap_slot(&known, hash_bytes(path, strlen(path), hash_bytes(op, strlen(op), 29)));
    if (*slot)
        return;
    *slot = 1;
    if (count++ == MOST)
        return;
    report_list(&kept, 2);
    report_key(&kept, op);
    report_text(&kept, path, strlen(path));
}

/* A path that cannot be told in UTF-8: what was asked is unknown. */
void
world_looked_unnamed(void)
{
    if (core.mode == REPLAY && core.lenient)
        count = MOST + 1;
}

void
looked_report(Buf *b)
{
    report_key(b, "looked");
    report_list(b, count < MOST ? count : MOST);
    if (kept.used)
        buf_bytes(b, kept.data, kept.used);
    report_key(b, "looked_all");
    report_number(b, count <= MOST);
}
