/* Triangles: solves, Cholesky factors and their pullbacks, inverses. Works on what products.c has. */

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

/* So many matrices, one behind the other, become identities. */
static void identities(real *a, long count, long n)
{
    for (long k = 0; k < count; k++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++)
                a[(k * n + i) * n + j] = i == j;
}
