/* Triangles of row-major matrices: solves, halves of products and copies; most of their work is
   products of blocks.

   What stands before has `block_product`: out = alpha x y + beta out, where x is m by k and y is k by
   n, with the strides of rows and of columns of both. */

/* Where two halves meet: the last one a multiple of SMALL, which suits solves with its columns.

   Triangles of SMALL rows are solved without products, those of COLUMN for a single column; WIDE
   columns are solved at a time, and NARROW ones, which few are copied to. Solves may be with the
   TRANSPOSED triangle, and one that has ones on its diagonal, which are not stored: a UNIT one. */
enum { SMALL = 16, COLUMN = 32, WIDE = 64, NARROW = 16 };
enum { TRANSPOSED = 1, UNIT = 2 };
static inline ptrdiff_t middle_row(ptrdiff_t n) { return n - (n / 2 + SMALL - 1) / SMALL * SMALL; }

/* Rows of a panel: fewer leave out more of the other half, more are quicker to multiply. */
static inline ptrdiff_t panel_rows(ptrdiff_t n) { return n < 400 ? 32 : n < 800 ? 48 : 128; }

/* A panel of rows of the n by n product, no further from the diagonal than these need: up to it
   or, if `upper`, from it on. With `shorter` sums run over those columns only. */
static void multiply_panel(real alpha, const real *x, ptrdiff_t xr, ptrdiff_t xc, const real *y,
                           ptrdiff_t yr, ptrdiff_t yc, real beta, real *out, ptrdiff_t ldo,
                           ptrdiff_t n, ptrdiff_t k, int upper, int shorter, ptrdiff_t low)
{
    ptrdiff_t high = smaller(low + panel_rows(n), n);
    ptrdiff_t from = upper ? low : 0, to = upper ? n : high;
    ptrdiff_t first = shorter ? from : 0, last = shorter ? to : k;
    block_product(alpha, x + low * xr + first * xc, xr, xc, y + first * yr + from * yc, yr, yc,
                  beta, out + low * ldo + from, ldo, high - low, last - first, to - from);
}

/* All rows, in panels. */
static void multiply_panels(real alpha, const real *x, ptrdiff_t xr, ptrdiff_t xc, const real *y,
                            ptrdiff_t yr, ptrdiff_t yc, real beta, real *out, ptrdiff_t ldo,
                            ptrdiff_t n, ptrdiff_t k, int upper, int shorter)
{
    for (ptrdiff_t low = 0; low < n; low += panel_rows(n))
        multiply_panel(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, n, k, upper, shorter, low);
}

/* b = a', of which m rows and n columns, by tiles that stay in cache. */
enum { TILE = 32 };
static void transposed_copy(const real *a, real *b, ptrdiff_t ld, ptrdiff_t m, ptrdiff_t n)
{
    for (ptrdiff_t low = 0; low < m; low += TILE)
        for (ptrdiff_t first = 0; first < n; first += TILE)
            for (ptrdiff_t i = low; i < smaller(low + TILE, m); i++)
                for (ptrdiff_t j = first; j < smaller(first + TILE, n); j++)
                    b[i * ld + j] = a[j * ld + i];
}

/* Copy the lower triangle over the upper one. */
static void mirrored(real *a, ptrdiff_t lda, ptrdiff_t n)
{
    for (ptrdiff_t low = 0; low < n; low += TILE) {
        ptrdiff_t high = smaller(low + TILE, n);
        for (ptrdiff_t i = low; i < high; i++)
            for (ptrdiff_t j = i + 1; j < high; j++)
                a[i * lda + j] = a[j * lda + i];
        transposed_copy(a + high * lda + low, a + low * lda + high, lda, high - low, n - high);
    }
}

/* `width` columns of x := l^-1 x, or l^-t x; as the width is constant, sums stay in registers. */
static inline void solve_columns(const real *l, ptrdiff_t lr, ptrdiff_t lc, int how, real *x,
                                 ptrdiff_t ldx, ptrdiff_t n, const ptrdiff_t width)
{
    const int transposed = how & TRANSPOSED;
    for (ptrdiff_t step = 0; step < n; step++) {
        ptrdiff_t i = transposed ? n - 1 - step : step;
        ptrdiff_t first = transposed ? i + 1 : 0, last = transposed ? n : i;
        ptrdiff_t at = transposed ? i * lc : i * lr, stride = transposed ? lr : lc;
        real sum[WIDE];
        for (ptrdiff_t j = 0; j < width; j++)
            sum[j] = x[i * ldx + j];
        for (ptrdiff_t k = first; k < last; k++) {
            real c = l[at + k * stride];
#pragma omp simd
            for (ptrdiff_t j = 0; j < width; j++)
                sum[j] -= c * x[k * ldx + j];
        }
        real diagonal = how & UNIT ? 1 : l[i * (lr + lc)];
        for (ptrdiff_t j = 0; j < width; j++)
            x[i * ldx + j] = sum[j] / diagonal;
    }
}

/* Fewer columns than NARROW, by way of a copy with as many. */
static void solve_few_columns(const real *l, ptrdiff_t lr, ptrdiff_t lc, int how, real *x,
                              ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t r)
{
    real copy[SMALL * NARROW] = {0};
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < r; j++)
            copy[i * NARROW + j] = x[i * ldx + j];
    solve_columns(l, lr, lc, how, copy, NARROW, n, NARROW);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < r; j++)
            x[i * ldx + j] = copy[i * NARROW + j];
}

/* One column: each entry, as soon as it is known, is subtracted from all that depend on it. */
static void solve_one_column(const real *l, ptrdiff_t lr, ptrdiff_t lc, int how, real *x,
                             ptrdiff_t step, ptrdiff_t n)
{
    const int transposed = how & TRANSPOSED;
    for (ptrdiff_t at = 0; at < n; at++) {
        ptrdiff_t i = transposed ? n - 1 - at : at;
        ptrdiff_t first = transposed ? 0 : i + 1, last = transposed ? i : n;
        const real *c = transposed ? l + i * lr : l + i * lc;
        ptrdiff_t stride = transposed ? lc : lr;
        real found = x[i * step] /= how & UNIT ? 1 : l[i * (lr + lc)];
        for (ptrdiff_t k = first; k < last; k++)
            x[k * step] -= c[k * stride] * found;
    }
}

static void solve_small(const real *l, ptrdiff_t lr, ptrdiff_t lc, int how, real *x, ptrdiff_t ldx,
                        ptrdiff_t n, ptrdiff_t r)
{
    if (r == 1) {
        solve_one_column(l, lr, lc, how, x, ldx, n);
        return;
    }
    for (; r >= WIDE; r -= WIDE, x += WIDE)
        solve_columns(l, lr, lc, how, x, ldx, n, WIDE);
    for (; r >= NARROW; r -= NARROW, x += NARROW)
        solve_columns(l, lr, lc, how, x, ldx, n, NARROW);
    if (r > 0)
        solve_few_columns(l, lr, lc, how, x, ldx, n, r);
}

/* x := l^-1 x or l^-t x by halves: one half is solved, its share of the other one subtracted. */
static void solve_triangle(const real *l, ptrdiff_t lr, ptrdiff_t lc, int how, real *x,
                           ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t r)
{
    if (n <= SMALL || (r == 1 && n <= COLUMN)) {
        solve_small(l, lr, lc, how, x, ldx, n, r);
        return;
    }
    ptrdiff_t h = middle_row(n);
    const real *below = l + h * lr, *last = l + h * (lr + lc);
    real *rest = x + h * ldx;
    if (how & TRANSPOSED) {
        solve_triangle(last, lr, lc, how, rest, ldx, n - h, r);
        block_product(-1, below, lc, lr, rest, ldx, 1, 1, x, ldx, h, n - h, r);
        solve_triangle(l, lr, lc, how, x, ldx, h, r);
    } else {
        solve_triangle(l, lr, lc, how, x, ldx, h, r);
        block_product(-1, below, lr, lc, x, ldx, 1, 1, rest, ldx, n - h, h, r);
        solve_triangle(last, lr, lc, how, rest, ldx, n - h, r);
    }
}
