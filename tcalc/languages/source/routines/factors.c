/* x = l^-1 x for a lower triangle l, with ones on its diagonal if `unit`: r columns, by halves. Rows
   of l are li apart and columns lj. */
static void solve_lower(ptrdiff_t n, ptrdiff_t r, const real *l, ptrdiff_t li, ptrdiff_t lj, real *x,
                        ptrdiff_t xi, int unit)
{
    ptrdiff_t h = n / 2;
    if (n > 16) {
        solve_lower(h, r, l, li, lj, x, xi, unit);
        multiply(n - h, r, h, -1, l + h * li, li, lj, x, xi, 1, 1, x + h * xi, xi);
        solve_lower(n - h, r, l + h * (li + lj), li, lj, x + h * xi, xi, unit);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t k = 0; k < i; k++) {
            const real factor = l[i * li + k * lj];
            for (ptrdiff_t j = 0; j < r; j++)
                x[i * xi + j] -= factor * x[k * xi + j];
        }
        for (ptrdiff_t j = 0; !unit && j < r; j++)
            x[i * xi + j] /= l[i * (li + lj)];
    }
}

/* The factor u of a = u' u in place of an upper triangle, by halves; 1: not positive definite. */
static int factor_upper(ptrdiff_t n, real *a, ptrdiff_t ai)
{
    ptrdiff_t h = n / 2;
    if (n > 16) {
        real *right = a + h, *last = a + h * (ai + 1);
        if (factor_upper(h, a, ai))
            return 1;
        solve_lower(h, n - h, a, 1, ai, right, ai, 0);
        multiply_half(n - h, h, -1, right, 1, ai, right, ai, 1, 1, last, ai, 1);
        return factor_upper(n - h, last, ai);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        real *row = a + i * ai;
        if (!(row[i] > 0))
            return 1;
        row[i] = sqrt(row[i]);
        for (ptrdiff_t j = i + 1; j < n; j++)
            row[j] /= row[i];
        for (ptrdiff_t k = i + 1; k < n; k++)
            for (ptrdiff_t j = k; j < n; j++)
                a[k * ai + j] -= row[k] * row[j];
    }
    return 0;
}

/* The lower triangle of a, zeros above. */
static void lower_triangle(ptrdiff_t n, const real *a, real *l)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(l + i * n, a + i * n, (size_t)(i + 1) * sizeof(real));
        memset(l + i * (n + 1) + 1, 0, (size_t)(n - 1 - i) * sizeof(real));
    }
}

/* l l' = a; 1: not positive definite. */
static int cholesky(ptrdiff_t n, const real *a, real *l)
{
    memset(l, 0, (size_t)(n * n) * sizeof(real));
    mirror(n, a, n, 1, l, n, 1);
    int failed = factor_upper(n, l, n);
    mirror(n, l, 1, n, l, 1, n);
    for (ptrdiff_t i = 0; i < n; i++)
        memset(l + i * (n + 1) + 1, 0, (size_t)(n - 1 - i) * sizeof(real));
    return failed;
}

/* x = l^-1 for a lower triangle l, by halves: the block below is -x22 l21 x11, of which the last two
   factors wait where zeros will be. */
static void invert_lower(ptrdiff_t n, const real *l, ptrdiff_t li, real *x, ptrdiff_t xi)
{
    ptrdiff_t h = n / 2;
    if (n > 32) {
        real *last = x + h * (xi + 1), *above = x + h;
        invert_lower(h, l, li, x, xi);
        invert_lower(n - h, l + h * (li + 1), li, last, xi);
        multiply_triangle(h, n - h, 1, x, 1, xi, 1, l + h * li, 1, li, above, xi);
        multiply_triangle(n - h, h, -1, last, xi, 1, 0, above, 1, xi, x + h * xi, xi);
        for (ptrdiff_t i = 0; i < h; i++)
            memset(above + i * xi, 0, (size_t)(n - h) * sizeof(real));
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            x[i * xi + j] = i == j;
    solve_lower(n, n, l, li, 1, x, xi, 0);
}

/* x = l^-1 for the lower triangle of a; 1: a zero on the diagonal. */
static int tri_inverse(ptrdiff_t n, const real *a, real *x)
{
    for (ptrdiff_t i = 0; i < n; i++)
        if (a[i * (n + 1)] == 0)
            return 1;
    invert_lower(n, a, n, x, n);
    return 0;
}

/* c = x' x on and below the diagonal for a lower triangle x, by halves. */
static void triangle_square(ptrdiff_t n, const real *x, ptrdiff_t xi, real *c, ptrdiff_t ci)
{
    ptrdiff_t h = n / 2;
    const real *below = x + h * xi, *last = below + h;
    if (n <= 64) {
        multiply_half(n, n, 1, x, 1, xi, x, xi, 1, 0, c, ci, 0);
        return;
    }
    triangle_square(h, x, xi, c, ci);
    multiply_half(h, n - h, 1, below, 1, xi, below, xi, 1, 1, c, ci, 0);
    multiply_triangle(n - h, h, 1, last, 1, xi, 1, below, xi, 1, c + h * ci, ci);
    triangle_square(n - h, last, xi, c + h * (ci + 1), ci);
}

/* x = (l l')^-1; 1: a zero on the diagonal. `space` holds a matrix. */
static int inverse_of_factor(ptrdiff_t n, const real *l, real *x, real *space)
{
    if (tri_inverse(n, l, space))
        return 1;
    triangle_square(n, space, n, x, n);
    mirror(n, x, n, 1, x, n, 1);
    return 0;
}

/* 2 sum(log(diag(l))) */
static void logdet_of_factor(ptrdiff_t n, const real *l, real *found)
{
    *found = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        *found += 2 * log(l[i * (n + 1)]);
}

/* x = (l l')^-1 x for a vector. */
static void solve_definite(ptrdiff_t n, const real *l, real *x)
{
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = (x[i] - dot(i, l + i * n, x)) / l[i * (n + 1)];
    for (ptrdiff_t i = n; i-- > 0;) {
        const real known = x[i] /= l[i * (n + 1)];
        for (ptrdiff_t k = 0; k < i; k++)
            x[k] -= l[i * n + k] * known;
    }
}

/* l^-T (lower half of l' g, made symmetric) l^-1 / 2; 1: a zero on the diagonal. */
static int cholesky_pullback(ptrdiff_t n, const real *l, const real *g, real *out, real *space)
{
    real *m = space, *x = space + n * n, *whole = x + n * n;
    lower_triangle(n, l, x);
    lower_triangle(n, g, whole);
    product(n, n, n, x, 1, n, g, n, 1, m);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = i + 1; j < n; j++)
            m[i * n + j] = m[j * n + i];
    if (tri_inverse(n, l, x))
        return 1;
    product(n, n, n, m, n, 1, x, n, 1, whole);
    multiply(n, n, n, 0.5, x, 1, n, whole, n, 1, 0, out, n);
    return 0;
}

/* x = u^-1 x for an upper triangle u: r columns of x, by halves. */
static void solve_upper(ptrdiff_t n, ptrdiff_t r, const real *u, ptrdiff_t ui, real *x, ptrdiff_t xi)
{
    ptrdiff_t h = n / 2;
    if (n > 32) {
        solve_upper(n - h, r, u + h * (ui + 1), ui, x + h * xi, xi);
        multiply(h, r, n - h, -1, u + h, ui, 1, x + h * xi, xi, 1, 1, x, xi);
        solve_upper(h, r, u, ui, x, xi);
        return;
    }
    for (ptrdiff_t i = n; i-- > 0;) {
        for (ptrdiff_t k = i + 1; k < n; k++) {
            const real factor = u[i * ui + k];
            for (ptrdiff_t j = 0; j < r; j++)
                x[i * xi + j] -= factor * x[k * xi + j];
        }
        for (ptrdiff_t j = 0; j < r; j++)
            x[i * xi + j] /= u[i * (ui + 1)];
    }
}

static void swap_rows(ptrdiff_t n, real *x, real *y)
{
    for (ptrdiff_t j = 0; x != y && j < n; j++) {
        const real moved = x[j];
        x[j] = y[j];
        y[j] = moved;
    }
}

/* Columns from `first` to `last` of l u = a with rows exchanged, in place of a, one after the other. Row
   k was exchanged with row pivots[k]; the ones on l's diagonal are not stored. */
static void eliminate_each(ptrdiff_t n, ptrdiff_t first, ptrdiff_t last, real *a, real *pivots)
{
    for (ptrdiff_t k = first; k < last; k++) {
        ptrdiff_t top = k;
        for (ptrdiff_t i = k + 1; i < n; i++)
            top = fabs(a[i * n + k]) > fabs(a[top * n + k]) ? i : top;
        pivots[k] = top;
        swap_rows(n, a + k * n, a + top * n);
        for (ptrdiff_t i = k + 1; a[k * (n + 1)] != 0 && i < n; i++) {
            const real factor = a[i * n + k] /= a[k * (n + 1)];
            for (ptrdiff_t j = k + 1; j < last; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
}

/* The same by halves. */
static void eliminate(ptrdiff_t n, ptrdiff_t first, ptrdiff_t last, real *a, real *pivots)
{
    ptrdiff_t middle = first + (last - first) / 2;
    if (last - first <= 16) {
        eliminate_each(n, first, last, a, pivots);
        return;
    }
    eliminate(n, first, middle, a, pivots);
    solve_lower(middle - first, last - middle, a + first * (n + 1), n, 1, a + first * n + middle, n, 1);
    multiply(n - middle, last - middle, middle - first, -1, a + middle * n + first, n, 1,
             a + first * n + middle, n, 1, 1, a + middle * n + middle, n);
    eliminate(n, middle, last, a, pivots);
}

/* The sign and the logarithm of the absolute value of a determinant; `space` holds n (n + 1). */
static void slogdet(ptrdiff_t n, const real *a, real *sign, real *logarithm, real *space)
{
    real *pivots = space + n * n;
    *sign = 1;
    *logarithm = 0;
    memcpy(space, a, (size_t)(n * n) * sizeof(real));
    eliminate(n, 0, n, space, pivots);
    for (ptrdiff_t k = 0; k < n; k++) {
        const real pivot = space[k * (n + 1)];
        *sign *= (pivots[k] == k ? 1 : -1) * (pivot > 0 ? 1 : pivot < 0 ? -1 : pivot);
        *logarithm += log(fabs(pivot));
    }
    if (*sign == 0)
        *logarithm = -INFINITY;
}

static void logdet(ptrdiff_t n, const real *a, real *found, real *space)
{
    real sign;
    slogdet(n, a, &sign, found, space);
}

static void det_sign(ptrdiff_t n, const real *a, real *found, real *space)
{
    real logarithm;
    slogdet(n, a, found, &logarithm, space);
}

static void det(ptrdiff_t n, const real *a, real *found, real *space)
{
    real logarithm;
    slogdet(n, a, found, &logarithm, space);
    *found *= exp(logarithm);
}

/* x = a^-1 x for what `eliminate` made of a: r columns of x. */
static void eliminated(ptrdiff_t n, ptrdiff_t r, const real *a, const real *pivots, real *x)
{
    for (ptrdiff_t k = 0; k < n; k++)
        swap_rows(r, x + k * r, x + (ptrdiff_t)pivots[k] * r);
    solve_lower(n, r, a, n, 1, x, r, 1);
    solve_upper(n, r, a, n, x, r);
}

/* x = a^-1; 1: singular. `space` holds n (n + 1) numbers. */
static int inv(ptrdiff_t n, const real *a, real *x, real *space)
{
    real *pivots = space + n * n;
    memcpy(space, a, (size_t)(n * n) * sizeof(real));
    eliminate(n, 0, n, space, pivots);
    for (ptrdiff_t i = 0; i < n; i++) {
        if (space[i * (n + 1)] == 0)
            return 1;
        for (ptrdiff_t j = 0; j < n; j++)
            x[i * n + j] = i == j;
    }
    eliminated(n, n, space, pivots, x);
    return 0;
}

/* l q = a with orthonormal rows of q and a diagonal of l that is not negative (Gram and Schmidt,
   twice); l has n columns, or m where a has fewer rows. */
static void lq(ptrdiff_t m, ptrdiff_t n, const real *a, real *l, real *q)
{
    ptrdiff_t k = m < n ? m : n;
    for (ptrdiff_t i = 0; i < m; i++) {
        const real *row = a + i * n;
        for (ptrdiff_t j = 0; j < k; j++)
            l[i * k + j] = 0;
        if (i >= k) {
            for (ptrdiff_t j = 0; j < k; j++)
                l[i * k + j] = dot(n, row, q + j * n);
            continue;
        }
        real *found = q + i * n;
        memcpy(found, row, (size_t)n * sizeof(real));
        for (int turn = 0; turn < 2; turn++)
            for (ptrdiff_t j = 0; j < i; j++) {
                const real share = dot(n, found, q + j * n);
                l[i * k + j] += share;
                for (ptrdiff_t p = 0; p < n; p++)
                    found[p] -= share * q[j * n + p];
            }
        const real length = norm2(n, found);
        l[i * (k + 1)] = length;
        for (ptrdiff_t p = 0; p < n; p++)
            found[p] /= length;
    }
}
