/* General matrices: LU factors with exchanged rows, and what is made of them. Works on what lu.c has.
   Small ones are factored here: for others LAPACK is faster. */

/* P A = L U over A, row by row; `rows` says which rows were exchanged, `odd` whether an odd number
   was. A column of zeros is passed over, so that U has a zero on its diagonal. */
static void lu_over(real *a, long n, long *rows, int *odd)
{
    *odd = 0;
    for (long k = 0; k < n; k++) {
        long best = k;
        for (long i = k + 1; i < n; i++)
            if (F(fabs)(a[i * n + k]) > F(fabs)(a[best * n + k]))
                best = i;
        rows[k] = best;
        if (best != k) {
            *odd ^= 1;
            for (long j = 0; j < n; j++) {
                real held = a[k * n + j];
                a[k * n + j] = a[best * n + j];
                a[best * n + j] = held;
            }
        }
        if (a[k * n + k] == 0)
            continue;
        for (long i = k + 1; i < n; i++) {
            real c = a[i * n + k] /= a[k * n + k];
            for (long j = k + 1; j < n; j++)
                a[i * n + j] -= c * a[k * n + j];
        }
    }
}

static void lu_of(const real *a, long ar, long ac, real *held, long n, long *rows, int *odd)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            held[i * n + j] = a[i * ar + j * ac];
    lu_over(held, n, rows, odd);
}

static int solve_by_lapack(const real *a, long ar, long ac, real *x, long n, long r)
{
    real *held = new_lu(a, ar, ac, n);
    int failed = !held || solve_lu(held, 0, x, n, r);
    free(held);
    return failed;
}

/* x := A⁻¹ x, of which r columns; 1 if A is singular. */
static int solve_general(const real *a, long ar, long ac, real *x, long n, long r)
{
    real lu[MATRIX * MATRIX];
    long rows[MATRIX];
    int odd;
    if (n > MATRIX)
        return solve_by_lapack(a, ar, ac, x, n, r);
    lu_of(a, ar, ac, lu, n, rows, &odd);
    for (long k = 0; k < n; k++)
        if (!(lu[k * (n + 1)] != 0))
            return 1;
    for (long k = 0; k < n; k++)
        for (long j = 0; j < r && rows[k] != k; j++) {
            real held = x[k * r + j];
            x[k * r + j] = x[rows[k] * r + j];
            x[rows[k] * r + j] = held;
        }
    for (long i = 0; i < n; i++)
        for (long k = 0; k < i; k++)
            for (long j = 0; j < r; j++)
                x[i * r + j] -= lu[i * n + k] * x[k * r + j];
    for (long i = n - 1; i >= 0; i--) {
        for (long k = i + 1; k < n; k++)
            for (long j = 0; j < r; j++)
                x[i * r + j] -= lu[i * n + k] * x[k * r + j];
        for (long j = 0; j < r; j++)
            x[i * r + j] /= lu[i * (n + 1)];
    }
    return 0;
}

/* out = A⁻¹. */
static int inv(const real *a, long ar, long ac, real *out, long n)
{
    if (n > MATRIX) {
        real *held = new_lu(a, ar, ac, n);
        int failed = !held || inv_lu(held, out, n);
        free(held);
        return failed;
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            out[i * n + j] = i == j;
    return solve_general(a, ar, ac, out, n, n);
}

static int determinant(const real *a, long ar, long ac, real *out, long n, enum part asked)
{
    real lu[MATRIX * MATRIX];
    long rows[MATRIX];
    int odd;
    if (n > MATRIX) {
        real *held = new_lu(a, ar, ac, n);
        int failed = !held || determinant_lu(held, out, n, asked);
        free(held);
        return failed;
    }
    lu_of(a, ar, ac, lu, n, rows, &odd);
    *out = diagonal_part(lu, n, odd, asked);
    return 0;
}

static int det(const real *a, long ar, long ac, real *out, long n)
{
    return determinant(a, ar, ac, out, n, ALL);
}

static int det_sign(const real *a, long ar, long ac, real *out, long n)
{
    return determinant(a, ar, ac, out, n, SIGN);
}

static int logdet(const real *a, long ar, long ac, real *out, long n)
{
    return determinant(a, ar, ac, out, n, LOGARITHM);
}

/* out = det(A) A⁻¹; 1 where rounding errors of the inverse, or a determinant that is no normal
   number, would be more than those of singular values: |A| |A⁻¹| is above INVERTED. */
#define INVERTED 1e4
static int adj(const real *a, long ar, long ac, real *out, long n)
{
    real number, size = 0, inverse = 0;
    if (n > MATRIX || determinant(a, ar, ac, &number, n, ALL) || !isnormal(number))
        return 1;
    if (inv(a, ar, ac, out, n))
        return 1;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            size += a[i * ar + j * ac] * a[i * ar + j * ac];
            inverse += out[i * n + j] * out[i * n + j];
        }
    for (long i = 0; i < n * n; i++)
        out[i] *= number;
    return !(size * inverse < (sizeof(real) == 8 ? INVERTED : 10) * INVERTED);
}

/* out = the derivative of adj along E, of two rows and three by the formulas of Cayley and Hamilton, of
   more det(A) (tr(A⁻¹ E) A⁻¹ - A⁻¹ E A⁻¹), in which digits cancel: |A| |A⁻¹| is small there. */
#define CANCELLED 1e2
static int adj_of_three(const real *a, long ar, long ac, const real *e, long er, long ec, real *out,
                        long n)
{
    real one = 0, other = 0, both = 0;
    for (long i = 0; i < n; i++) {
        one += a[i * (ar + ac)];
        other += e[i * (er + ec)];
        for (long j = 0; j < n; j++)
            both += a[i * ar + j * ac] * e[j * er + i * ec];
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            real sum = n < 2 ? 0 : n == 2 ? -e[i * er + j * ec]
                : -other * a[i * ar + j * ac] - one * e[i * er + j * ec];
            for (long k = 0; k < n && n == 3; k++)
                sum += a[i * ar + k * ac] * e[k * er + j * ec]
                       + e[i * er + k * ec] * a[k * ar + j * ac];
            if (i == j)
                sum += n < 2 ? 0 : n == 2 ? other : one * other - both;
            out[i * n + j] = sum;
        }
    return 0;
}

static int adj_frechet(const real *a, long ar, long ac, const real *e, long er, long ec, real *out,
                       long m, long n)
{
    real inverse[MATRIX * MATRIX], left[MATRIX * MATRIX];
    real number, size = 0, other = 0, trace = 0;
    if (m != n || n > MATRIX)
        return 1;
    if (n <= 3)
        return adj_of_three(a, ar, ac, e, er, ec, out, n);
    if (determinant(a, ar, ac, &number, n, ALL) || !isnormal(number)
        || inv(a, ar, ac, inverse, n))
        return 1;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            size += a[i * ar + j * ac] * a[i * ar + j * ac];
            other += inverse[i * n + j] * inverse[i * n + j];
            out[i * n + j] = e[i * er + j * ec];
        }
    if (!(size * other < CANCELLED * CANCELLED))
        return 1;
    product(1, inverse, n, 1, out, n, 1, 0, left, n, n, n, n);
    product(-number, left, n, 1, inverse, n, 1, 0, out, n, n, n, n);
    for (long i = 0; i < n; i++)
        trace += left[i * (n + 1)];
    for (long i = 0; i < n * n; i++)
        out[i] += number * trace * inverse[i];
    return 0;
}

/* *out = log det A from the lower factor of A. */
static int logdet_definite(const real *l, long lr, long lc, real *out, long n)
{
    real sum = 0;
    for (long k = 0; k < n; k++)
        sum += F(log)(l[k * (lr + lc)]);
    *out = 2 * sum;
    return 0;
}
