/* Dense linear algebra on row-major matrices: a pointer and the strides of rows and of columns.

   Most work is handed to gemm; what is written out, here and in the triangles that programs share,
   is what LAPACK and BLAS are slow at, small triangles and copies between them. Routines that return
   an int return 0, or 1 where the caller has to do it another way or to raise an error. */

#include <float.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define EPSILON (sizeof(real) == sizeof(double) ? (real)DBL_EPSILON : (real)FLT_EPSILON)

/* Rows of general matrices that are factored here; LAPACK is faster for more. */
enum { MATRIX = 32 };
/* Entries of a contiguous column that are looked at together. */
enum { LANES = 16 };
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
static void product_alone(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                          long yc, real beta, real *out, long ldo, long m, long k, long n)
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
            product_alone(alpha, x + i * xr, xr, xc, y, yr, yc, beta, out + i * ldo, ldo,
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
