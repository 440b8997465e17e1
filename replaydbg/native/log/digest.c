/* A digest of bytes from which that of any stream of them follows: with P = 2^61 - 1 and a fixed K, that of b1 ... bn is
 * the sum of (b_i + 1) * K^(n - i) modulo P. So the digest of two pieces is digest(first) * K^length(second) +
 * digest(second), and whoever knows what a process sent piece by piece can compare it with what another one received in
 * other pieces. It is no protection against anybody: it finds what does not belong together. */
#include "base/core.h"
#include "log/log.h"

#define P (((uint64_t)1 << 61) - 1)
#define K ((uint64_t)0x9E3779B97F4A7C5)
#define STEP 16 /* bytes: their products are added up before they are reduced, and do not wait for each other */

__extension__ typedef unsigned __int128 Wide;

/* Below P, of anything below 2^125. */
static inline uint64_t
reduced(Wide v)
{
    uint64_t r = ((uint64_t)v & P) + (uint64_t)(v >> 61);
    r = (r & P) + (r >> 61);
    return r >= P ? r - P : r;
}

static uint64_t powers[STEP + 1]; /* of K */
static uint64_t ones;             /* what a step adds since a byte counts as its value plus 1 */

static void
prepare(void)
{
    powers[0] = 1;
    for (int i = 1; i <= STEP; i++)
        powers[i] = reduced((Wide)powers[i - 1] * K);
    Wide sum = 0;
    for (int i = 0; i < STEP; i++)
        sum += powers[i];
    ones = reduced(sum);
}

uint64_t
stream_digest(uint64_t before, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = before;
    if (__builtin_expect(ones == 0, 0))
        prepare();
    for (; n >= STEP; n -= STEP, p += STEP) {
        Wide one = (Wide)h * powers[STEP] + ones, two = 0; /* two sums: the processor adds them at the same time */
        for (int i = 0; i < STEP; i += 2) {
            one += (Wide)p[i] * powers[STEP - 1 - i];
            two += (Wide)p[i + 1] * powers[STEP - 2 - i];
        }
        h = reduced(one + two);
    }
    if (n > 0) {
        Wide sum = (Wide)h * powers[n];
        for (size_t i = 0; i < n; i++)
            sum += (Wide)(p[i] + 1u) * powers[n - 1 - i];
        h = reduced(sum);
    }
    return h;
}
