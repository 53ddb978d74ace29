/* Triangles of row-major matrices: solves, Cholesky factors and their pullbacks, inverses; most of
   their work is products of blocks.

   What stands before has `block_product`: out = alpha x y + beta out, where x is m by k and y is k by
   n, with the strides of rows and of columns of both. Routines that
   return an int return 0, or 1 for what they cannot do. */

/* Where two halves meet: the last one a multiple of SMALL, which suits solves with its columns.

   Triangles of SMALL rows are solved without products, those of COLUMN for a single column; WIDE
   columns are solved at a time, and NARROW ones, which few are copied to. Solves may be with the
   TRANSPOSED triangle, and one that has ones on its diagonal, which are not stored: a UNIT one. */
enum { SMALL = 16, COLUMN = 32, WIDE = 64, NARROW = 16 };
enum { TRANSPOSED = 1, UNIT = 2 };
static inline ptrdiff_t middle_row(ptrdiff_t n) { return n - (n / 2 + SMALL - 1) / SMALL * SMALL; }

/* Rows of a panel: fewer leave out more of the other half, more are quicker to multiply. */
static inline ptrdiff_t panel_rows(ptrdiff_t n) { return n < 400 ? 32 : n < 800 ? 48 : 128; }

/* The n by n product, in panels of rows and no further from the diagonal than these need: up to it
   or, if `upper`, from it on. With `shorter` sums run over those columns only. */
static void multiply_panels(real alpha, const real *x, ptrdiff_t xr, ptrdiff_t xc, const real *y,
                            ptrdiff_t yr, ptrdiff_t yc, real beta, real *out, ptrdiff_t ldo,
                            ptrdiff_t n, ptrdiff_t k, int upper, int shorter)
{
    ptrdiff_t panel = panel_rows(n);
    for (ptrdiff_t low = 0; low < n; low += panel) {
        ptrdiff_t high = smaller(low + panel, n);
        ptrdiff_t from = upper ? low : 0, to = upper ? n : high;
        ptrdiff_t first = shorter ? from : 0, last = shorter ? to : k;
        block_product(alpha, x + low * xr + first * xc, xr, xc, y + first * yr + from * yc, yr, yc,
                      beta, out + low * ldo + from, ldo, high - low, last - first, to - from);
    }
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

/* x := l^-1 x or l^-t x, of which r columns; 1 if there is a zero on the diagonal. */
static int solve_lower(const real *l, ptrdiff_t lr, ptrdiff_t lc, int transposed, real *x,
                       ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t r)
{
    for (ptrdiff_t i = 0; i < n; i++)
        if (l[i * (lr + lc)] == 0)
            return 1;
    if (r > 0)
        solve_triangle(l, lr, lc, transposed, x, ldx, n, r);
    return 0;
}

/* The upper factor of A = U'U over the upper triangle, row by row. */
static int factor_upper_small(real *a, ptrdiff_t lda, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        real *row = a + i * lda;
        if (!(row[i] > 0))
            return 1;
        real root = (real)sqrt(row[i]);
        row[i] = root;
        for (ptrdiff_t j = i + 1; j < n; j++)
            row[j] /= root;
        for (ptrdiff_t k = i + 1; k < n; k++) {
            real c = row[k], *below = a + k * lda;
            for (ptrdiff_t j = k; j < n; j++)
                below[j] -= c * row[j];
        }
    }
    return 0;
}

/* The same by halves: the first rows, then what these leave of the last ones. */
static int factor_upper(real *a, ptrdiff_t lda, ptrdiff_t n)
{
    if (n <= SMALL)
        return factor_upper_small(a, lda, n);
    ptrdiff_t h = middle_row(n);
    real *right = a + h, *last = a + h * (lda + 1);
    if (factor_upper(a, lda, h))
        return 1;
    solve_triangle(a, 1, lda, 0, right, lda, h, n - h);
    multiply_panels(-1, right, 1, lda, right, lda, 1, 1, last, lda, n - h, h, 1, 0);
    return factor_upper(last, lda, n - h);
}

/* Transpose the upper triangle in place, with zeros where it was. */
static void turned_upper(real *a, ptrdiff_t n)
{
    for (ptrdiff_t low = 0; low < n; low += TILE) {
        ptrdiff_t high = smaller(low + TILE, n);
        for (ptrdiff_t i = low; i < high; i++)
            for (ptrdiff_t j = low; j < i; j++) {
                a[i * n + j] = a[j * n + i];
                a[j * n + i] = 0;
            }
        transposed_copy(a + low * n + high, a + high * n + low, n, n - high, high - low);
        for (ptrdiff_t i = low; i < high; i++)
            memset(a + i * n + high, 0, (size_t)(n - high) * sizeof(real));
    }
}

/* A symmetric matrix becomes its lower factor; 1 if it is not positive definite, and then what is
   left of it is certain not to be either. */
static int cholesky(real *a, ptrdiff_t n)
{
    if (factor_upper(a, n, n)) {
        a[0] = -1;
        return 1;
    }
    turned_upper(a, n);
    return 0;
}

/* The pullback of a small block, S = l^-t M l^-1 with M from the upper triangle of U L, in rows of
   fixed length. */
static void pull_factor_small(const real *l, real *u, ptrdiff_t ld, ptrdiff_t n)
{
    real factor[SMALL * SMALL] = {0}, m[SMALL * SMALL] = {0}, s[SMALL * SMALL];
    for (ptrdiff_t i = 0; i < n; i++)
        memcpy(factor + i * SMALL, l + i * ld, (size_t)(i + 1) * sizeof(real));
    for (ptrdiff_t i = 0; i < n; i++) {
        real sum[SMALL] = {0};
        for (ptrdiff_t k = i; k < n; k++) {
            real c = u[i * ld + k];
#pragma omp simd
            for (ptrdiff_t j = 0; j < SMALL; j++)
                sum[j] += c * factor[k * SMALL + j];
        }
        for (ptrdiff_t j = 0; j < SMALL; j++)
            m[i * SMALL + j] = sum[j];
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < i; j++)
            m[i * SMALL + j] = m[j * SMALL + i];
    solve_small(l, ld, 1, 1, m, SMALL, n, SMALL);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < SMALL; j++)
            s[i * SMALL + j] = m[j * SMALL + i];
    solve_small(l, ld, 1, 1, s, SMALL, n, SMALL);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = i; j < n; j++)
            u[i * ld + j] = u[j * ld + i] = s[i * SMALL + j];
}

/* The gradient S by a matrix over U, the upper triangle of the transposed gradient by its factor:
   a reverse sweep over the factor by halves, the last one first. */
static void pull_factor(const real *l, real *u, ptrdiff_t ld, ptrdiff_t n)
{
    if (n <= SMALL) {
        pull_factor_small(l, u, ld, n);
        return;
    }
    ptrdiff_t h = middle_row(n), m = n - h;
    const real *below = l + h * ld;
    real *right = u + h, *left = u + h * ld, *last = u + h * (ld + 1);
    pull_factor(l + h * (ld + 1), last, ld, m);
    block_product(-1, below, 1, ld, last, ld, 1, 1, right, ld, h, m, m);
    solve_triangle(l, ld, 1, 1, right, ld, h, m);
    transposed_copy(right, left, ld, m, h);
    multiply_panels(-1, below, 1, ld, left, ld, 1, 1, u, ld, h, m, 1, 0);
    pull_factor(l, u, ld, h);
}

/* out = l^-t (T + T' - diag T) l^-1 / 2 for T the lower triangle of l' bar; 1 if l is no contiguous
   matrix. */
static int cholesky_pullback(const real *l, ptrdiff_t lr, ptrdiff_t lc, const real *bar,
                             ptrdiff_t br, ptrdiff_t bc, real *out, ptrdiff_t m, ptrdiff_t n)
{
    if (m != n || (n > 1 && (lr != n || lc != 1)))
        return 1;
    for (ptrdiff_t low = 0; low < n; low += TILE)
        for (ptrdiff_t first = 0; first <= low; first += TILE)
            for (ptrdiff_t j = first; j < smaller(first + TILE, n); j++)
                for (ptrdiff_t i = larger(low, j); i < smaller(low + TILE, n); i++)
                    out[j * n + i] = bar[i * br + j * bc] / 2;
    pull_factor(l, out, n, n);
    return 0;
}

/* The inverse of a small lower triangle over it, row by row. */
static void invert_lower_small(real *l, ptrdiff_t ld, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        real row[SMALL], sum[SMALL] = {0}, diagonal = l[i * (ld + 1)];
        memcpy(row, l + i * ld, (size_t)i * sizeof(real));
        for (ptrdiff_t k = 0; k < i; k++)
            for (ptrdiff_t j = 0; j <= k; j++)
                sum[j] += row[k] * l[k * ld + j];
        for (ptrdiff_t j = 0; j < i; j++)
            l[i * ld + j] = -sum[j] / diagonal;
        l[i * (ld + 1)] = 1 / diagonal;
    }
}

/* The inverse of a lower triangle over it, by halves; what is above the diagonal is lost. */
static void invert_lower(real *l, ptrdiff_t ld, ptrdiff_t n)
{
    if (n <= SMALL) {
        invert_lower_small(l, ld, n);
        return;
    }
    ptrdiff_t h = middle_row(n), m = n - h;
    real *below = l + h * ld, *last = l + h * (ld + 1), *right = l + h;
    solve_triangle(last, ld, 1, 0, below, ld, m, h);
    transposed_copy(below, right, ld, h, m);
    solve_triangle(l, ld, 1, 1, right, ld, h, m);
    transposed_copy(right, below, ld, m, h);
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < h; j++)
            below[i * ld + j] = -below[i * ld + j];
    invert_lower(l, ld, h);
    invert_lower(last, ld, m);
}

/* A lower triangle becomes its inverse, with zeros above; 1 if there is a zero on the diagonal. */
static int tri_inverse(real *a, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        if (a[i * (n + 1)] == 0)
            return 1;
    invert_lower(a, n, n);
    for (ptrdiff_t i = 0; i < n; i++)
        memset(a + i * n + i + 1, 0, (size_t)(n - 1 - i) * sizeof(real));
    return 0;
}

/* The lower half of X'X over the small lower triangle X: a row needs those from it on. */
static void square_lower_small(real *x, ptrdiff_t ld, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        real sum[SMALL] = {0};
        for (ptrdiff_t k = i; k < n; k++)
            for (ptrdiff_t j = 0; j <= i; j++)
                sum[j] += x[k * ld + i] * x[k * ld + j];
        memcpy(x + i * ld, sum, (size_t)(i + 1) * sizeof(real));
    }
}

/* The same by halves; what is above the diagonal is lost. */
static void square_lower(real *x, ptrdiff_t ld, ptrdiff_t n)
{
    if (n <= SMALL) {
        square_lower_small(x, ld, n);
        return;
    }
    ptrdiff_t h = middle_row(n), m = n - h, panel = panel_rows(m);
    real *below = x + h * ld, *last = x + h * (ld + 1), *right = x + h;
    square_lower(x, ld, h);
    multiply_panels(1, below, 1, ld, below, ld, 1, 1, x, ld, h, m, 0, 0);
    transposed_copy(below, right, ld, h, m);
    for (ptrdiff_t low = 0; low < m; low += panel) {
        ptrdiff_t high = smaller(low + panel, m);
        for (ptrdiff_t i = low; i < high; i++) /* what products with the panel would read */
            memset(last + i * (ld + 1) + 1, 0, (size_t)(high - 1 - i) * sizeof(real));
        block_product(1, last + low * (ld + 1), 1, ld, right + low, 1, ld, 0, below + low * ld, ld,
                      high - low, m - low, h);
    }
    square_lower(last, ld, m);
}

/* The inverse of A over its lower factor. */
static int inverse_definite(real *a, ptrdiff_t n)
{
    invert_lower(a, n, n);
    square_lower(a, n, n);
    mirrored(a, n, n);
    return 0;
}
