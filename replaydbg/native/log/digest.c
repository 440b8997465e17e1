/* A digest of bytes from which that of any stream of them follows: with P = 2^61 - 1 and a fixed K, that of b1 ... bn is
 * the sum of (b_i + 1) * K^(n - i) modulo P. So the digest of two pieces is digest(first) * K^length(second) +
 * digest(second), and whoever knows what a process sent piece by piece can compare it with what another one received in
 * other pieces. It is no protection against anybody: it finds what does not belong together. */
#include "base/core.h"
#include "log/log.h"

#define P (((uint64_t)1 << 61) - 1)
#define K ((uint64_t)0x9E3779B97F4A7C5)
#define STEP 32 /* bytes: their products are added up before they are reduced, and do not wait for each other */

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

#ifdef __SSE2__
#include <emmintrin.h>

/* The powers in parts of 13 bits, which are multiplied by bytes and added up, eight at a time, in 32 bits. */
#define PART 13
#define PARTS 5
static int16_t parts[PARTS][STEP] __attribute__((aligned(16)));

static void
prepare_step(void)
{
    for (int k = 0; k < PARTS; k++)
        for (int i = 0; i < STEP; i++)
            parts[k][i] = (int16_t)(powers[STEP - 1 - i] >> (PART * k) & ((1 << PART) - 1));
}

/* The sum of p[i] * K^(STEP - 1 - i). */
static inline Wide
products(const uint8_t *p)
{
    __m128i bytes[STEP / 8], sums[PARTS], zero = _mm_setzero_si128();
    for (int i = 0; i < STEP / 16; i++) {
        __m128i sixteen = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        bytes[2 * i] = _mm_unpacklo_epi8(sixteen, zero);
        bytes[2 * i + 1] = _mm_unpackhi_epi8(sixteen, zero);
    }
    for (int k = 0; k < PARTS; k++) {
        const __m128i *by = (const __m128i *)parts[k];
        sums[k] = _mm_madd_epi16(bytes[0], by[0]);
        for (int i = 1; i < STEP / 8; i++)
            sums[k] = _mm_add_epi32(sums[k], _mm_madd_epi16(bytes[i], by[i]));
    }
    __m128i first = _mm_add_epi32(_mm_unpacklo_epi32(sums[0], sums[1]), _mm_unpackhi_epi32(sums[0], sums[1]));
    __m128i second = _mm_add_epi32(_mm_unpacklo_epi32(sums[2], sums[3]), _mm_unpackhi_epi32(sums[2], sums[3]));
    __m128i four = _mm_add_epi32(_mm_unpacklo_epi64(first, second), _mm_unpackhi_epi64(first, second));
    __m128i last = _mm_add_epi32(sums[4], _mm_unpackhi_epi64(sums[4], sums[4]));
    last = _mm_add_epi32(last, _mm_shuffle_epi32(last, 1));
    uint32_t sum[4];
    _mm_storeu_si128((__m128i *)sum, four);
    uint64_t low = sum[0] + ((uint64_t)sum[1] << PART), middle = sum[2] + ((uint64_t)sum[3] << PART);
    return low + ((Wide)middle << 2 * PART) + ((Wide)(uint32_t)_mm_cvtsi128_si32(last) << 4 * PART);
}
#else
static void
prepare_step(void)
{
}

static inline Wide
products(const uint8_t *p)
{
    Wide one = 0, two = 0; /* two sums: the processor adds them at the same time */
    for (int i = 0; i < STEP; i += 2) {
        one += (Wide)p[i] * powers[STEP - 1 - i];
        two += (Wide)p[i + 1] * powers[STEP - 2 - i];
    }
    return one + two;
}
#endif

static void
prepare(void)
{
    powers[0] = 1;
    for (int i = 1; i <= STEP; i++)
        powers[i] = reduced((Wide)powers[i - 1] * K);
    prepare_step();
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
    for (; n >= STEP; n -= STEP, p += STEP)
        h = reduced((Wide)h * powers[STEP] + ones + products(p));
    if (n > 0) {
        Wide sum = (Wide)h * powers[n];
        for (size_t i = 0; i < n; i++)
            sum += (Wide)(p[i] + 1u) * powers[n - 1 - i];
        h = reduced(sum);
    }
    return h;
}
