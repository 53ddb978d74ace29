/* Dense linear algebra on row-major matrices: a pointer and the strides of rows and of columns.

   `real` and F(name) come from a prelude. Most work is handed to gemm; what is written out here are
   small triangles, which LAPACK and BLAS are slow at, and copies between triangles. Routines that
   return an int return 0, or 1 where the caller has to do it another way or to raise an error. */

#include <float.h>
#include <string.h>

#define EPSILON (sizeof(real) == sizeof(double) ? (real)DBL_EPSILON : (real)FLT_EPSILON)

/* Rows of a triangle that is solved without products, more of them for a single column; columns
   that are solved at a time, and as few as that with a loop of fixed length. */
enum { SMALL = 16, COLUMN = 32, WIDE = 64, NARROW = 16 };
/* Entries of a contiguous column that are looked at together. */
enum { LANES = 16 };
/* Rows of a block that is copied to the other side of the diagonal at a time. */
enum { TILE = 32 };
/* Most multiplications for which calling gemm takes longer than doing them, and for which syrk
   takes longer than gemm. */
enum { TINY = 64, FEW = 1000000 };

/* Most multiplications of a piece of a product, its extents, and rows of which all pieces go
   before others, so that they stay in cache. */
enum { PIECE = 1000000, DEEP = 128, THIN = 32, TALL = 1000 };

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

static void whole(real alpha, const real *x, long xr, long xc, const real *y, long yr, long yc,
                  real beta, real *out, long ldo, long m, long k, long n)
{
    int mi = (int)m, ki = (int)k, ni = (int)n, ldx, ldy, ld = (int)larger(ldo, n);
    char fx = flag(m, k, xr, xc, &ldx), fy = flag(k, n, yr, yc, &ldy);
    gemm_(&fy, &fx, &ni, &mi, &ki, &alpha, y, &ldy, x, &ldx, &beta, out, &ld);
}

/* One of the fewest parts of equal length that are not longer than `most`. */
static long part(long extent, long most)
{
    long count = (extent + most - 1) / most;
    return (extent + count - 1) / count;
}

/* The product by pieces that OpenBLAS multiplies as they lie: its way of rearranging larger ones
   first costs more. Only those of y, a few columns each, are copied. */
static void pieces(real alpha, const real *x, long xr, long xc, const real *y, long yr, long yc,
                   real beta, real *out, long ldo, long m, long k, long n)
{
    real held[DEEP * THIN];
    long thin = THIN, deep = part(k, DEEP), high = part(m, PIECE / (deep * thin));
    for (long j = 0; j < n; j += thin)
        for (long p = 0; p < k; p += deep) {
            long columns = smaller(thin, n - j), depth = smaller(deep, k - p);
            const real *piece = y + p * yr + j * yc;
            for (long a = 0; a < depth && yc == 1; a++)
                memcpy(held + a * columns, piece + a * yr, (size_t)columns * sizeof(real));
            for (long b = 0; b < columns && yc != 1; b++)
                for (long a = 0; a < depth; a++)
                    held[a * columns + b] = piece[a * yr + b * yc];
            for (long i = 0; i < m; i += high)
                whole(alpha, x + i * xr + p * xc, xr, xc, held, columns, 1, p ? 1 : beta,
                      out + i * ldo + j, ldo, smaller(high, m - i), depth, columns);
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
    if (m == 1) {
        int step = (int)xc;
        gemv_(&fy, fy == 'N' ? &ni : &ki, fy == 'N' ? &ki : &ni, &alpha, y, &ldy, x, &step, &beta,
              out, &one);
    } else if (n == 1) {
        int step = (int)yr, to = (int)ldo;
        char turned = fx == 'N' ? 'T' : 'N';
        gemv_(&turned, fx == 'N' ? &ki : &mi, fx == 'N' ? &mi : &ki, &alpha, x, &ldx, y, &step,
              &beta, out, &to);
    } else if (work <= pieces_until && (work > PIECE || (fx == 'N' && fy == 'T' && m > THIN)))
        pieces(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n);
    else
        whole(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n);
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

/* Where two halves meet: the last one a multiple of SMALL, which suits solves with its columns. */
static long middle(long n) { return n - (n / 2 + SMALL - 1) / SMALL * SMALL; }

/* `width` columns of x := L⁻¹ x, or L⁻ᵀ x, each sum kept in registers as the width is a constant. */
static inline void solve_columns(const real *l, long lr, long lc, int transposed, real *x,
                                 long ldx, long n, const long width)
{
    for (long step = 0; step < n; step++) {
        long i = transposed ? n - 1 - step : step;
        long first = transposed ? i + 1 : 0, last = transposed ? n : i;
        long at = transposed ? i * lc : i * lr, stride = transposed ? lr : lc;
        real sum[WIDE];
        for (long j = 0; j < width; j++)
            sum[j] = x[i * ldx + j];
        for (long k = first; k < last; k++) {
            real c = l[at + k * stride];
#pragma omp simd
            for (long j = 0; j < width; j++)
                sum[j] -= c * x[k * ldx + j];
        }
        real diagonal = l[i * (lr + lc)];
        for (long j = 0; j < width; j++)
            x[i * ldx + j] = sum[j] / diagonal;
    }
}

/* Fewer columns than NARROW, by way of a copy with as many. */
static void solve_rest(const real *l, long lr, long lc, int transposed, real *x, long ldx, long n,
                       long r)
{
    real copy[SMALL * NARROW] = {0};
    for (long i = 0; i < n; i++)
        for (long j = 0; j < r; j++)
            copy[i * NARROW + j] = x[i * ldx + j];
    solve_columns(l, lr, lc, transposed, copy, NARROW, n, NARROW);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < r; j++)
            x[i * ldx + j] = copy[i * NARROW + j];
}

/* One column, of which each entry is subtracted from all that depend on it as soon as it is known. */
static void solve_column(const real *l, long lr, long lc, int transposed, real *x, long step,
                         long n)
{
    for (long at = 0; at < n; at++) {
        long i = transposed ? n - 1 - at : at;
        long first = transposed ? 0 : i + 1, last = transposed ? i : n;
        const real *c = transposed ? l + i * lr : l + i * lc;
        long stride = transposed ? lc : lr;
        real found = x[i * step] /= l[i * (lr + lc)];
        for (long k = first; k < last; k++)
            x[k * step] -= c[k * stride] * found;
    }
}

static void solve_small(const real *l, long lr, long lc, int transposed, real *x, long ldx, long n,
                        long r)
{
    if (r == 1) {
        solve_column(l, lr, lc, transposed, x, ldx, n);
        return;
    }
    for (; r >= WIDE; r -= WIDE, x += WIDE)
        solve_columns(l, lr, lc, transposed, x, ldx, n, WIDE);
    for (; r >= NARROW; r -= NARROW, x += NARROW)
        solve_columns(l, lr, lc, transposed, x, ldx, n, NARROW);
    if (r > 0)
        solve_rest(l, lr, lc, transposed, x, ldx, n, r);
}

/* x := L⁻¹ x or L⁻ᵀ x by halves: one half is solved, its share of the other one subtracted. */
static void solve(const real *l, long lr, long lc, int transposed, real *x, long ldx, long n,
                  long r)
{
    if (n <= SMALL || (r == 1 && n <= COLUMN)) {
        solve_small(l, lr, lc, transposed, x, ldx, n, r);
        return;
    }
    long h = middle(n);
    const real *below = l + h * lr, *last = l + h * (lr + lc);
    real *rest = x + h * ldx;
    if (transposed) {
        solve(last, lr, lc, 1, rest, ldx, n - h, r);
        product(-1, below, lc, lr, rest, ldx, 1, 1, x, ldx, h, n - h, r);
        solve(l, lr, lc, 1, x, ldx, h, r);
    } else {
        solve(l, lr, lc, 0, x, ldx, h, r);
        product(-1, below, lr, lc, x, ldx, 1, 1, rest, ldx, n - h, h, r);
        solve(last, lr, lc, 0, rest, ldx, n - h, r);
    }
}

/* x := L⁻¹ x or L⁻ᵀ x, of which r columns; 1 if there is a zero on the diagonal. */
static int solve_lower(const real *l, long lr, long lc, int transposed, real *x, long ldx, long n,
                       long r)
{
    for (long i = 0; i < n; i++)
        if (l[i * (lr + lc)] == 0)
            return 1;
    if (r > 0)
        solve(l, lr, lc, transposed, x, ldx, n, r);
    return 0;
}

/* The upper factor of A = U'U over the upper triangle, row by row. */
static int factor_small(real *a, long lda, long n)
{
    for (long i = 0; i < n; i++) {
        real *row = a + i * lda;
        if (!(row[i] > 0))
            return 1;
        real root = F(sqrt)(row[i]);
        row[i] = root;
        for (long j = i + 1; j < n; j++)
            row[j] /= root;
        for (long k = i + 1; k < n; k++) {
            real c = row[k], *below = a + k * lda;
            for (long j = k; j < n; j++)
                below[j] -= c * row[j];
        }
    }
    return 0;
}

/* The same by halves: the first rows, then what these leave of the last ones. */
static int factored(real *a, long lda, long n)
{
    if (n <= SMALL)
        return factor_small(a, lda, n);
    long h = middle(n);
    real *right = a + h, *last = a + h * (lda + 1);
    if (factored(a, lda, h))
        return 1;
    solve(a, 1, lda, 0, right, lda, h, n - h);
    panels(-1, right, 1, lda, right, lda, 1, 1, last, lda, n - h, h, 1, 0);
    return factored(last, lda, n - h);
}

/* Transpose the upper triangle in place, with zeros where it was. */
static void turned(real *a, long n)
{
    for (long low = 0; low < n; low += TILE) {
        long high = smaller(low + TILE, n);
        for (long i = low; i < high; i++)
            for (long j = low; j < i; j++) {
                a[i * n + j] = a[j * n + i];
                a[j * n + i] = 0;
            }
        transposed_copy(a + low * n + high, a + high * n + low, n, n - high, high - low);
        for (long i = low; i < high; i++)
            memset(a + i * n + high, 0, (size_t)(n - high) * sizeof(real));
    }
}

/* A symmetric matrix becomes its lower factor; 1 if it is not positive definite, and then what is
   left of it is certain not to be either. */
static int cholesky(real *a, long n)
{
    if (factored(a, n, n)) {
        a[0] = -1;
        return 1;
    }
    turned(a, n);
    return 0;
}

/* The pullback of a small block, S = L⁻ᵀ M L⁻¹ with M from the upper triangle of U L, in rows of
   fixed length. */
static void pull_small(const real *l, real *u, long ld, long n)
{
    real factor[SMALL * SMALL] = {0}, m[SMALL * SMALL] = {0}, s[SMALL * SMALL];
    for (long i = 0; i < n; i++)
        memcpy(factor + i * SMALL, l + i * ld, (size_t)(i + 1) * sizeof(real));
    for (long i = 0; i < n; i++) {
        real sum[SMALL] = {0};
        for (long k = i; k < n; k++) {
            real c = u[i * ld + k];
#pragma omp simd
            for (long j = 0; j < SMALL; j++)
                sum[j] += c * factor[k * SMALL + j];
        }
        for (long j = 0; j < SMALL; j++)
            m[i * SMALL + j] = sum[j];
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++)
            m[i * SMALL + j] = m[j * SMALL + i];
    solve_small(l, ld, 1, 1, m, SMALL, n, SMALL);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < SMALL; j++)
            s[i * SMALL + j] = m[j * SMALL + i];
    solve_small(l, ld, 1, 1, s, SMALL, n, SMALL);
    for (long i = 0; i < n; i++)
        for (long j = i; j < n; j++)
            u[i * ld + j] = u[j * ld + i] = s[i * SMALL + j];
}

/* The gradient S by a matrix over U, the upper triangle of the transposed gradient by its factor:
   a reverse sweep over the factor by halves, the last one first. */
static void pull(const real *l, real *u, long ld, long n)
{
    if (n <= SMALL) {
        pull_small(l, u, ld, n);
        return;
    }
    long h = middle(n), m = n - h;
    const real *below = l + h * ld;
    real *right = u + h, *left = u + h * ld, *last = u + h * (ld + 1);
    pull(l + h * (ld + 1), last, ld, m);
    product(-1, below, 1, ld, last, ld, 1, 1, right, ld, h, m, m);
    solve(l, ld, 1, 1, right, ld, h, m);
    transposed_copy(right, left, ld, m, h);
    panels(-1, below, 1, ld, left, ld, 1, 1, u, ld, h, m, 1, 0);
    pull(l, u, ld, h);
}

/* out = ½ L⁻ᵀ (T + T' - diag T) L⁻¹ for T the lower triangle of L' bar; 1 if L is no contiguous
   matrix. */
static int cholesky_pullback(const real *l, long lr, long lc, const real *bar, long br, long bc,
                             real *out, long m, long n)
{
    if (m != n || (n > 1 && (lr != n || lc != 1)))
        return 1;
    for (long low = 0; low < n; low += TILE)
        for (long first = 0; first <= low; first += TILE)
            for (long j = first; j < smaller(first + TILE, n); j++)
                for (long i = larger(low, j); i < smaller(low + TILE, n); i++)
                    out[j * n + i] = bar[i * br + j * bc] / 2;
    pull(l, out, n, n);
    return 0;
}

/* The inverse of a small lower triangle over it, row by row. */
static void invert_small(real *l, long ld, long n)
{
    for (long i = 0; i < n; i++) {
        real row[SMALL], sum[SMALL] = {0}, diagonal = l[i * (ld + 1)];
        memcpy(row, l + i * ld, (size_t)i * sizeof(real));
        for (long k = 0; k < i; k++)
            for (long j = 0; j <= k; j++)
                sum[j] += row[k] * l[k * ld + j];
        for (long j = 0; j < i; j++)
            l[i * ld + j] = -sum[j] / diagonal;
        l[i * (ld + 1)] = 1 / diagonal;
    }
}

/* The inverse of a lower triangle over it, by halves; what is above the diagonal is lost. */
static void invert(real *l, long ld, long n)
{
    if (n <= SMALL) {
        invert_small(l, ld, n);
        return;
    }
    long h = middle(n), m = n - h;
    real *below = l + h * ld, *last = l + h * (ld + 1), *right = l + h;
    solve(last, ld, 1, 0, below, ld, m, h);
    transposed_copy(below, right, ld, h, m);
    solve(l, ld, 1, 1, right, ld, h, m);
    transposed_copy(right, below, ld, m, h);
    scaled(-1, below, ld, m, h);
    invert(l, ld, h);
    invert(last, ld, m);
}

/* The lower half of X'X over the small lower triangle X: a row needs those from it on. */
static void square_small(real *x, long ld, long n)
{
    for (long i = 0; i < n; i++) {
        real sum[SMALL] = {0};
        for (long k = i; k < n; k++)
            for (long j = 0; j <= i; j++)
                sum[j] += x[k * ld + i] * x[k * ld + j];
        memcpy(x + i * ld, sum, (size_t)(i + 1) * sizeof(real));
    }
}

/* The same by halves; what is above the diagonal is lost. */
static void square(real *x, long ld, long n)
{
    if (n <= SMALL) {
        square_small(x, ld, n);
        return;
    }
    long h = middle(n), m = n - h, panel = panel_of(m);
    real *below = x + h * ld, *last = x + h * (ld + 1), *right = x + h;
    square(x, ld, h);
    panels(1, below, 1, ld, below, ld, 1, 1, x, ld, h, m, 0, 0);
    transposed_copy(below, right, ld, h, m);
    for (long low = 0; low < m; low += panel) {
        long high = smaller(low + panel, m);
        for (long i = low; i < high; i++) /* what products with the panel would read */
            memset(last + i * (ld + 1) + 1, 0, (size_t)(high - 1 - i) * sizeof(real));
        product(1, last + low * (ld + 1), 1, ld, right + low, 1, ld, 0, below + low * ld, ld,
                high - low, m - low, h);
    }
    square(last, ld, m);
}

/* The inverse of A over its lower factor. */
static int inverse_definite(real *a, long n)
{
    invert(a, n, n);
    square(a, n, n);
    mirrored(a, n, n);
    return 0;
}

/* A lower triangle becomes its inverse, with zeros above; 1 if there is a zero on the diagonal. */
static int tri_inverse(real *a, long n)
{
    for (long i = 0; i < n; i++)
        if (a[i * (n + 1)] == 0)
            return 1;
    invert(a, n, n);
    for (long i = 0; i < n; i++)
        memset(a + i * n + i + 1, 0, (size_t)(n - 1 - i) * sizeof(real));
    return 0;
}

/* 1 unless every difference of consecutive values is larger than their rounding. */
static int eigen_gaps_close(const real *w, long n)
{
    real size = 0;
    for (long i = 0; i < n; i++)
        size = F(fabs)(w[i]) > size ? F(fabs)(w[i]) : size;
    real rounding = (real)larger(n, 16) * EPSILON * size;
    int close = 0;
    for (long i = 0; i + 1 < n; i++)
        close |= !(w[i + 1] - w[i] > rounding);
    return close;
}

/* The largest, the smallest and the sum of what is in each column of n > 0 rows. */
static inline void extremes(const real *v, long row, long n, long width, real *top, real *low,
                            real *sum)
{
    for (long j = 0; j < width; j++)
        top[j] = low[j] = sum[j] = v[j];
    for (long i = 1; i < n; i++)
#pragma omp simd
        for (long j = 0; j < width; j++) {
            real x = v[i * row + j];
            top[j] = x > top[j] ? x : top[j];
            low[j] = x < low[j] ? x : low[j];
            sum[j] += x;
        }
}

/* NaN, which comparisons pass over, is found in the sum. */
static int sign_of(real top, real low, real sum, real *out)
{
    *out = top < -low ? -1 : 1;
    return top == -low || sum != sum;
}

/* Of one column, which is read as rows of LANES entries where it is contiguous, and the rest. */
static int sign_along(const real *column, long step, long n, real *out)
{
    real top[LANES + 1] = {0}, low[LANES + 1] = {0}, sum[LANES + 1] = {0};
    long rows = step == 1 ? n / LANES : 0, rest = n - rows * LANES, found = 0;
    if (rows) {
        extremes(column, LANES, rows, LANES, top, low, sum);
        found = LANES;
    }
    if (rest) {
        extremes(column + rows * LANES, step, rest, 1, top + found, low + found, sum + found);
        found++;
    }
    for (long i = 1; i < found; i++) {
        top[0] = top[i] > top[0] ? top[i] : top[0];
        low[0] = low[i] < low[0] ? low[i] : low[0];
        sum[0] += sum[i];
    }
    return sign_of(top[0], low[0], sum[0], out);
}

/* out[j] = the sign of the entry of column j that is largest in magnitude; 1 for ties and NaN. */
static int column_signs(const real *v, long vr, long vc, real *out, long n, long m)
{
    int refused = 0;
    if (n <= 0)
        for (long j = 0; j < m; j++)
            out[j] = 1;
    else if (vc != 1)
        for (long j = 0; j < m; j++)
            refused |= sign_along(v + j * vc, vr, n, out + j);
    else
        for (long first = 0; first < m; first += WIDE) {
            long width = smaller(WIDE, m - first);
            real top[WIDE], low[WIDE], sum[WIDE];
            extremes(v + first, vr, n, width, top, low, sum);
            for (long j = 0; j < width; j++)
                refused |= sign_of(top[j], low[j], sum[j], out + first + j);
        }
    return refused;
}

/* What others call, in the order in which these are told apart. */
void *const tcalc_routines[] = {
    product, product_half, symmetric_square, solve_lower, cholesky, cholesky_pullback,
    eigen_gaps_close, column_signs, inverse_definite, tri_inverse,
};
