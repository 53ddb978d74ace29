/* c = alpha a b + beta c for a of m rows and k columns, whose rows are ai and columns ak apart, and b
   alike. Rows of c are ci apart. */
FUNCTION void multiply(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha, const real *a, ptrdiff_t ai,
                       ptrdiff_t ak, const real *b, ptrdiff_t bk, ptrdiff_t bj, real beta, real *c,
                       ptrdiff_t ci)
{
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            real sum = 0;
            for (ptrdiff_t l = 0; l < k; l++)
                sum += a[i * ai + l * ak] * b[l * bk + j * bj];
            c[i * ci + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ci + j]);
        }
}

/* x = l^-1 x for a lower triangle l, r columns: or with the TRANSPOSED one, or a UNIT one, which has
   ones on its diagonal. */
enum { TRANSPOSED = 1, UNIT = 2 };
FUNCTION void solve_triangle(const real *l, ptrdiff_t lr, ptrdiff_t lc, int how, real *x,
                             ptrdiff_t ldx, ptrdiff_t n, ptrdiff_t r)
{
    for (ptrdiff_t step = 0; step < n; step++)
        for (ptrdiff_t j = 0; j < r; j++) {
            const ptrdiff_t i = how & TRANSPOSED ? n - 1 - step : step;
            const ptrdiff_t first = how & TRANSPOSED ? i + 1 : 0, last = how & TRANSPOSED ? n : i;
            real left = x[i * ldx + j];
            for (ptrdiff_t k = first; k < last; k++)
                left -= (how & TRANSPOSED ? l[k * lr + i * lc] : l[i * lr + k * lc]) * x[k * ldx + j];
            x[i * ldx + j] = how & UNIT ? left : left / l[i * (lr + lc)];
        }
}

/* Columns from `first` to `last` of l u = a with rows exchanged, in place of a. */
FUNCTION void eliminate(ptrdiff_t n, ptrdiff_t first, ptrdiff_t last, real *a, real *pivots)
{
    eliminate_each(n, first, last, a, pivots);
}

/* Halves of products, and factors of definite matrices, without the recursion by halves. */
FUNCTION void multiply_half(ptrdiff_t n, ptrdiff_t k, real alpha, const real *a, ptrdiff_t ai,
                            ptrdiff_t ak, const real *b, ptrdiff_t bk, ptrdiff_t bj, real beta, real *c,
                            ptrdiff_t ci, int)
{
    multiply(n, n, k, alpha, a, ai, ak, b, bk, bj, beta, c, ci);
}

/* The upper factor of A = U'U over the upper triangle. */
FUNCTION int factor_upper(real *a, ptrdiff_t lda, ptrdiff_t n)
{
    return factor_upper_small(a, lda, n);
}

/* S = l^-t M l^-1 over U, M being symmetric with the upper triangle of U l. */
FUNCTION void pull_factor(const real *l, real *u, ptrdiff_t ld, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = i; j < n; j++) {
            real sum = 0;
            for (ptrdiff_t k = j; k < n; k++)
                sum += u[i * ld + k] * l[k * ld + j];
            u[i * ld + j] = u[j * ld + i] = sum;
        }
    solve_triangle(l, ld, 1, TRANSPOSED, u, ld, n, n);
    for (ptrdiff_t i = 0; i < n; i++)
        solve_triangle(l, ld, 1, TRANSPOSED, u + i * ld, 1, n, 1);
}

/* The inverse of a lower triangle over it. */
FUNCTION void invert_lower(real *l, ptrdiff_t ld, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const real diagonal = l[i * (ld + 1)];
        for (ptrdiff_t j = 0; j < i; j++) {
            real sum = 0;
            for (ptrdiff_t k = j; k < i; k++)
                sum += l[i * ld + k] * l[k * ld + j];
            l[i * ld + j] = -sum / diagonal;
        }
        l[i * (ld + 1)] = 1 / diagonal;
    }
}

/* The lower half of X'X over the lower triangle X. */
FUNCTION void square_lower(real *x, ptrdiff_t ld, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j <= i; j++) {
            real sum = 0;
            for (ptrdiff_t k = i; k < n; k++)
                sum += x[k * ld + i] * x[k * ld + j];
            x[i * ld + j] = sum;
        }
}

/* X B X' over B, which its upper half gives, for X = l^-1. */
FUNCTION void congruent(const real *l, ptrdiff_t lr, ptrdiff_t lc, real *b, ptrdiff_t ldb, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < i; j++)
            b[i * ldb + j] = b[j * ldb + i];
    solve_triangle(l, lr, lc, 0, b, ldb, n, n);
    for (ptrdiff_t i = 0; i < n; i++)
        solve_triangle(l, lr, lc, 0, b + i * ldb, 1, n, 1);
}
