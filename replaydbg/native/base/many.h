/* One C function for each of many numbers, written by pasting octal digits, so that they count without gaps: m(1000),
 * m(1001) ... In `m(n)` the number is 0##n - 01000. */
#ifndef REPLAYDBG_MANY_H
#define REPLAYDBG_MANY_H

/* clang-format off */
#define MANY_8(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7)
#define MANY_64(m, n) MANY_8(m, n##0) MANY_8(m, n##1) MANY_8(m, n##2) MANY_8(m, n##3) \
    MANY_8(m, n##4) MANY_8(m, n##5) MANY_8(m, n##6) MANY_8(m, n##7)
#define MANY_256(m) MANY_64(m, 10) MANY_64(m, 11) MANY_64(m, 12) MANY_64(m, 13)
#define MANY_512(m) MANY_256(m) MANY_64(m, 14) MANY_64(m, 15) MANY_64(m, 16) MANY_64(m, 17)
#define MANY_1024(m) MANY_512(m) MANY_64(m, 20) MANY_64(m, 21) MANY_64(m, 22) MANY_64(m, 23) \
    MANY_64(m, 24) MANY_64(m, 25) MANY_64(m, 26) MANY_64(m, 27)
/* clang-format on */

#endif
