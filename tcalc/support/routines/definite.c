/* Cholesky factors, their pullbacks and inverses over the matrices themselves. Works on what
   triangles.c has. Routines that return an int return 0, or 1 for what they cannot do. */

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
