/* Dense linear algebra on row-major matrices: a pointer and the strides of rows and of columns.

   Most work is handed to gemm; what is written out here are small triangles, which LAPACK and BLAS
   are slow at, and copies between triangles. Routines that return an int return 0, or 1 where the
   caller has to do it another way or to raise an error. */

#include <float.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define EPSILON (sizeof(real) == sizeof(double) ? (real)DBL_EPSILON : (real)FLT_EPSILON)

/* Rows of a triangle that is solved without products, more of them for a single column; columns
   that are solved at a time, and as few as that with a loop of fixed length. */
enum { SMALL = 16, COLUMN = 32, WIDE = 64, NARROW = 16 };
/* Rows of general matrices that are factored here; LAPACK is faster for more. */
enum { MATRIX = 32 };
/* Entries of a contiguous column that are looked at together. */
enum { LANES = 16 };
/* Rows of a block that is copied to the other side of the diagonal at a time. */
enum { TILE = 32 };
/* Most multiplications for which calling gemm takes longer than doing them, and for which syrk
   takes longer than gemm. */
enum { TINY = 64, FEW = 1000000 };

/* Rows of which all pieces go before others, so that they stay in cache. */
enum { TALL = 1000 };

static void scaled(real beta, real *out, long ldo, long m, long n)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            out[i * ldo + j] = beta == 0 ? 0 : beta * out[i * ldo + j];
}

static void tiny_product(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                         long yc, real *out, long ldo, long m, long k, long n)
{
    for (long i = 0; i < m; i++)
        for (long p = 0; p < k; p++) {
            real c = alpha * x[i * xr + p * xc];
            for (long j = 0; j < n; j++)
                out[i * ldo + j] += c * y[p * yr + j * yc];
        }
}

/* out = alpha x y + beta out, where x is m by k and y is k by n; `out` is not read if beta is 0. */
static void product(real alpha, const real *x, long xr, long xc, const real *y, long yr, long yc,
                    real beta, real *out, long ldo, long m, long k, long n)
{
    if (m <= 0 || n <= 0)
        return;
    double work = (double)m * n * k;
    int tiny = work <= TINY, vector = m == 1 || n == 1;
    if (tiny || vector || k <= 0) {
        if (beta != 1)
            scaled(beta, out, ldo, m, n);
        beta = 1;
    }
    if (tiny) {
        tiny_product(alpha, x, xr, xc, y, yr, yc, out, ldo, m, k, n);
        return;
    }
    if (work > pieces_until && m > TALL && (double)TALL * k * n <= pieces_until) {
        for (long i = 0; i < m; i += TALL)
            product(alpha, x + i * xr, xr, xc, y, yr, yc, beta, out + i * ldo, ldo,
                    smaller(TALL, m - i), k, n);
        return;
    }
    int mi = (int)m, ki = (int)k, ni = (int)n, ldx, ldy, one = 1;
    char fx = flag(m, k, xr, xc, &ldx), fy = flag(k, n, yr, yc, &ldy);
    if (m == 1 && !small_times(alpha, y, yc, yr, x, xc, out, 1, n, k))
        return;
    if (n == 1 && !small_times(alpha, x, xr, xc, y, yr, out, ldo, m, k))
        return;
    if (m == 1) {
        int step = (int)xc;
        gemv_(&fy, fy == 'N' ? &ni : &ki, fy == 'N' ? &ki : &ni, &alpha, y, &ldy, x, &step, &beta,
              out, &one);
    } else if (n == 1) {
        int step = (int)yr, to = (int)ldo;
        char turned = fx == 'N' ? 'T' : 'N';
        gemv_(&turned, fx == 'N' ? &ki : &mi, fx == 'N' ? &mi : &ki, &alpha, x, &ldx, y, &step,
              &beta, out, &to);
    } else {
        int copied = work <= pieces_until && in_pieces(work, fx == 'N' && fy == 'T', m);
        (copied ? pieces : whole)(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n);
    }
}

/* Subnormal numbers take a processor a hundred times as long: cotangents that vanish over many steps
   are such. In products of steps they count as 0, an error of at most 2.3e-308 a term; what was set
   before comes back in the end. */
enum { FLUSHED = 4096 };
#ifdef __SSE2__
static unsigned flushing(void)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
}
static void restored(unsigned before) { _mm_setcsr((_mm_getcsr() & ~0x8040u) | (before & 0x8040u)); }
#else
static unsigned flushing(void) { return 0; }
static void restored(unsigned before) { (void)before; }
#endif

/* The same in a step of a loop, and with what steps left. */
static void product_of_step(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                            long yc, real beta, real *out, long ldo, long m, long k, long n)
{
    int flushed = (double)m * n * k >= FLUSHED;
    unsigned before = flushed ? flushing() : 0;
    product(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n);
    if (flushed)
        restored(before);
}

/* b = a', contiguous, for a of m rows and n columns. */
static void columns_of(const real *a, long apart, real *b, long m, long n)
{
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            b[j * m + i] = a[i * apart + j];
}

/* A square product of either kind, for the caller to measure. */
void tcalc_try(const real *x, const real *y, real *out, long n, int by_pieces)
{
    (by_pieces ? pieces : whole)(1, x, n, 1, y, n, 1, 0, out, n, n, n, n);
}

/* Rows of a panel: fewer leave out more of the other half, more are quicker to multiply. */
static long panel_of(long n) { return n < 400 ? 32 : n < 800 ? 48 : 128; }

/* The n by n product, in panels of rows and no further from the diagonal than these need: up to it
   or, if `upper`, from it on. With `shorter` sums run over those columns only. */
static void panels(real alpha, const real *x, long xr, long xc, const real *y, long yr, long yc,
                   real beta, real *out, long ldo, long n, long k, int upper, int shorter)
{
    long panel = panel_of(n);
    for (long low = 0; low < n; low += panel) {
        long high = smaller(low + panel, n);
        long from = upper ? low : 0, to = upper ? n : high;
        long first = shorter ? from : 0, last = shorter ? to : k;
        product(alpha, x + low * xr + first * xc, xr, xc, y + first * yr + from * yc, yr, yc, beta,
                out + low * ldo + from, ldo, high - low, last - first, to - from);
    }
}

/* b = a', of which m rows and n columns, by tiles that stay in cache. */
static void transposed_copy(const real *a, real *b, long ld, long m, long n)
{
    for (long low = 0; low < m; low += TILE)
        for (long first = 0; first < n; first += TILE)
            for (long i = low; i < smaller(low + TILE, m); i++)
                for (long j = first; j < smaller(first + TILE, n); j++)
                    b[i * ld + j] = a[j * ld + i];
}

/* Copy the lower triangle over the upper one. */
static void mirrored(real *a, long lda, long n)
{
    for (long low = 0; low < n; low += TILE) {
        long high = smaller(low + TILE, n);
        for (long i = low; i < high; i++)
            for (long j = i + 1; j < high; j++)
                a[i * lda + j] = a[j * lda + i];
        transposed_copy(a + high * lda + low, a + low * lda + high, lda, high - low, n - high);
    }
}

/* The half of a square product that is wanted: 1 lower, 2 upper, 3 lower and mirrored. In the
   blocks of the diagonal all entries are there. */
static void product_half(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                         long yc, real beta, real *out, long ldo, long n, long k, int half,
                         int shorter)
{
    long panel = panel_of(n);
    panels(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, n, k, half == 2, shorter);
    for (long i = 0; i < n && half < 3; i++) {
        long low = i / panel * panel, high = smaller(low + panel, n);
        long from = half == 1 ? high : 0, to = half == 1 ? n : low;
        memset(out + i * ldo + from, 0, (size_t)(to - from) * sizeof(real));
    }
    if (half == 3)
        mirrored(out, ldo, n);
}

/* out = x x', contiguous. */
static void symmetric_square(const real *x, long xr, long xc, real *out, long n, long k)
{
    if (n <= 0)
        return;
    if ((double)n * n * k <= FEW)
        panels(1, x, xr, xc, x, xc, xr, 0, out, n, n, k, 0, 0);
    else {
        int ni = (int)n, ki = (int)k, ld;
        real zero = 0, one = 1;
        char other = flag(n, k, xr, xc, &ld) == 'N' ? 'T' : 'N';
        syrk_("U", &other, &ni, &ki, &one, x, &ld, &zero, out, &ni);
    }
    mirrored(out, n, n);
}
