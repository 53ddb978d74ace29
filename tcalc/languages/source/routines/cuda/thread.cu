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

/* x = l^-1 x for a lower triangle l, with ones on its diagonal if `unit`: r columns. Rows of l are li
   apart and columns lj. */
FUNCTION void solve_lower(ptrdiff_t n, ptrdiff_t r, const real *l, ptrdiff_t li, ptrdiff_t lj, real *x,
                          ptrdiff_t xi, int unit)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < r; j++) {
            real left = x[i * xi + j];
            for (ptrdiff_t k = 0; k < i; k++)
                left -= l[i * li + k * lj] * x[k * xi + j];
            x[i * xi + j] = unit ? left : left / l[i * (li + lj)];
        }
}

/* x = u^-1 x for an upper triangle u: r columns of x. */
FUNCTION void solve_upper(ptrdiff_t n, ptrdiff_t r, const real *u, ptrdiff_t ui, real *x, ptrdiff_t xi)
{
    for (ptrdiff_t i = n; i-- > 0;)
        for (ptrdiff_t j = 0; j < r; j++) {
            real left = x[i * xi + j];
            for (ptrdiff_t k = i + 1; k < n; k++)
                left -= u[i * ui + k] * x[k * xi + j];
            x[i * xi + j] = left / u[i * (ui + 1)];
        }
}

/* Columns from `first` to `last` of l u = a with rows exchanged, in place of a. */
FUNCTION void eliminate(ptrdiff_t n, ptrdiff_t first, ptrdiff_t last, real *a, real *pivots)
{
    eliminate_each(n, first, last, a, pivots);
}
