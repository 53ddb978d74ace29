/* Products by the BLAS that SciPy brings, on row-major matrices. `real` and F(name) come from a
   prelude. */

#include <string.h>

static void (*gemm_)(const char *, const char *, const int *, const int *, const int *,
                     const real *, const real *, const int *, const real *, const int *,
                     const real *, real *, const int *);
static void (*gemv_)(const char *, const int *, const int *, const real *, const real *,
                     const int *, const real *, const int *, const real *, real *, const int *);
static void (*syrk_)(const char *, const char *, const int *, const int *, const real *,
                     const real *, const int *, const real *, real *, const int *);

/* Multiplications up to which a product goes by pieces. */
static double pieces_until;

/* gemm, gemv and syrk of the precision of `real`, and what the caller measured. */
void tcalc_give(void **found, double until)
{
    memcpy(&gemm_, found + 0, sizeof gemm_);
    memcpy(&gemv_, found + 1, sizeof gemv_);
    memcpy(&syrk_, found + 2, sizeof syrk_);
    pieces_until = until;
}

static long smaller(long a, long b) { return a < b ? a : b; }
static long larger(long a, long b) { return a > b ? a : b; }

/* Fortran sees row-major memory as the transpose. 'N' if the rows of an operand are contiguous, so
   that it is the transpose, else 'T'; `lead` is the distance between what is contiguous. */
static char flag(long rows, long columns, long row, long column, int *lead)
{
    int by_rows = (column == 1 || columns == 1) && (row >= columns || rows == 1);
    *lead = (int)larger(1, by_rows ? larger(row, columns) : larger(column, rows));
    return by_rows ? 'N' : 'T';
}

static void whole(real alpha, const real *x, long xr, long xc, const real *y, long yr, long yc,
                  real beta, real *out, long ldo, long m, long k, long n)
{
    int mi = (int)m, ki = (int)k, ni = (int)n, ldx, ldy, ld = (int)larger(ldo, n);
    char fx = flag(m, k, xr, xc, &ldx), fy = flag(k, n, yr, yc, &ldy);
    gemm_(&fy, &fx, &ni, &mi, &ki, &alpha, y, &ldy, x, &ldx, &beta, out, &ld);
}
