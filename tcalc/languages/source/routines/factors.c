/* 2 sum(log(diag(l))) */
static void logdet_of_factor(ptrdiff_t n, const real *l, real *found)
{
    *found = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        *found += 2 * log(l[i * (n + 1)]);
}

/* x = (l l')^-1 x, r columns; 1: a zero on the diagonal. */
static int solve_definite(const real *l, real *x, ptrdiff_t n, ptrdiff_t r)
{
    return solve_lower(l, n, 1, 0, x, r, n, r) || solve_lower(l, n, 1, TRANSPOSED, x, r, n, r);
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
    solve_triangle(a + first * (n + 1), n, 1, UNIT, a + first * n + middle, n, middle - first,
                   last - middle);
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

/* x = a^-1 x for what `eliminate` made of a, or of the transposed matrix: r columns of x. */
static void eliminated(ptrdiff_t n, ptrdiff_t r, const real *a, const real *pivots, int transposed,
                       real *x)
{
    if (transposed) {
        solve_triangle(a, 1, n, 0, x, r, n, r);
        solve_triangle(a, n, 1, TRANSPOSED | UNIT, x, r, n, r);
    }
    for (ptrdiff_t step = 0; step < n; step++) {
        const ptrdiff_t k = transposed ? n - 1 - step : step;
        swap_rows(r, x + k * r, x + (ptrdiff_t)pivots[k] * r);
    }
    if (!transposed) {
        solve_triangle(a, n, 1, UNIT, x, r, n, r);
        solve_triangle(a, 1, n, TRANSPOSED, x, r, n, r);
    }
}

/* l u = a over a, rows exchanged as `pivots` say; 1: singular. */
static int lu(real *a, ptrdiff_t n, real *pivots)
{
    eliminate(n, 0, n, a, pivots);
    for (ptrdiff_t i = 0; i < n; i++)
        if (a[i * (n + 1)] == 0)
            return 1;
    return 0;
}

/* x = a^-1; 1: singular. `space` holds n (n + 1) numbers. */
static int inv(ptrdiff_t n, const real *a, real *x, real *space)
{
    memcpy(space, a, (size_t)(n * n) * sizeof(real));
    if (lu(space, n, space + n * n))
        return 1;
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            x[i * n + j] = i == j;
    eliminated(n, n, space, space + n * n, 0, x);
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
