/* General matrices by LAPACK's LU factors, which several steps may share. Works on what factors.c has.
   Factors are those of A', as LAPACK sees row-major memory as the transpose: n rows of n entries, and
   behind these the numbers of n exchanged rows, and of the first zero on the diagonal of U, 0 if there
   is none. */

static int factor_lu(const real *a, long ar, long ac, real *held, long n)
{
    int ni = (int)n, *rows = (int *)(held + n * n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            held[i * n + j] = a[i * ar + j * ac];
    getrf_(&ni, &ni, held, &ni, rows, rows + n);
    return rows[n] < 0;
}

/* x := A⁻¹ x or A'⁻¹ x, of which r columns; 1 if A is singular. */
static int solve_lu(const real *held, int transposed, real *x, long n, long r)
{
    int ni = (int)n, ri = (int)r, info = 0;
    const int *rows = (const int *)(held + n * n);
    real *columns = rows[n] ? 0 : r > 1 ? malloc((size_t)(n * r) * sizeof(real)) : x;
    if (!columns)
        return 1;
    for (long i = 0; i < n && columns != x; i++)
        for (long j = 0; j < r; j++)
            columns[j * n + i] = x[i * r + j];
    getrs_(transposed ? "N" : "T", &ni, &ri, held, &ni, rows, columns, &ni, &info);
    if (columns != x) {
        for (long i = 0; i < n; i++)
            for (long j = 0; j < r; j++)
                x[i * r + j] = columns[j * n + i];
        free(columns);
    }
    return info != 0;
}

/* out = A⁻¹; 1 if A is singular. */
static int inv_lu(const real *held, real *out, long n)
{
    int ni = (int)n, info = 0, more = 32 * ni;
    const int *rows = (const int *)(held + n * n);
    real *work = rows[n] ? 0 : malloc((size_t)more * sizeof(real));
    if (!work)
        return 1;
    memcpy(out, held, (size_t)(n * n) * sizeof(real));
    getri_(&ni, out, &ni, rows, work, &more, &info);
    free(work);
    return info != 0;
}

/* What is asked of a determinant: its sign is a number where it is too large or too small for one. */
enum part { ALL, SIGN, LOGARITHM };

/* A part of a determinant from what is on the diagonal of U; of its logarithm that of |det A|,
   -INFINITY where that is 0. */
static real diagonal_part(const real *u, long n, int odd, enum part asked)
{
    real found = asked == LOGARITHM ? 0 : 1;
    for (long k = 0; k < n; k++) {
        real x = u[k * (n + 1)];
        if (asked == LOGARITHM)
            found += F(log)(F(fabs)(x));
        else
            found *= asked == ALL ? x : x > 0 ? 1 : x < 0 ? -1 : x;
    }
    return odd && asked != LOGARITHM ? -found : found;
}

static int determinant_lu(const real *held, real *out, long n, enum part asked)
{
    const int *rows = (const int *)(held + n * n);
    int odd = 0;
    for (long k = 0; k < n; k++)
        odd ^= rows[k] != k + 1;
    *out = diagonal_part(held, n, odd, asked);
    return 0;
}

static int det_lu(const real *held, real *out, long n)
{
    return determinant_lu(held, out, n, ALL);
}

static int det_sign_lu(const real *held, real *out, long n)
{
    return determinant_lu(held, out, n, SIGN);
}

static int logdet_lu(const real *held, real *out, long n)
{
    return determinant_lu(held, out, n, LOGARITHM);
}

/* The factors in memory of their own, which is freed by who asked; 0 where there are none. */
static real *new_lu(const real *a, long ar, long ac, long n)
{
    real *held = malloc((size_t)(n * n) * sizeof(real) + (size_t)(n + 1) * sizeof(int));
    if (held && factor_lu(a, ar, ac, held, n)) {
        free(held);
        held = 0;
    }
    return held;
}
