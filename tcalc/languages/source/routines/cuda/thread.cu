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
