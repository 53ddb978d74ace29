static inline ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static inline real dot(ptrdiff_t n, const real *x, const real *y)
{
    real sum = 0;
#pragma omp simd reduction(+: sum)
    for (ptrdiff_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* y = a x for m rows of n entries, four rows at a time; of short ones more, whose sums are side by
   side. */
static void multiply_rows(ptrdiff_t m, ptrdiff_t n, const real *a, const real *x, real *y)
{
    enum { SHORT = 12, SIDES = 16 };
    ptrdiff_t i = 0;
    for (; n <= SHORT && i + SIDES <= m; i += SIDES) {
        real sums[SIDES] = {0};
        for (ptrdiff_t j = 0; j < n; j++)
#pragma omp simd
            for (ptrdiff_t r = 0; r < SIDES; r++)
                sums[r] += a[(i + r) * n + j] * x[j];
        memcpy(y + i, sums, sizeof sums);
    }
    for (; i + 4 <= m; i += 4) {
        const real *a0 = a + i * n, *a1 = a0 + n, *a2 = a1 + n, *a3 = a2 + n;
        real y0 = 0, y1 = 0, y2 = 0, y3 = 0;
#pragma omp simd reduction(+: y0, y1, y2, y3)
        for (ptrdiff_t j = 0; j < n; j++) {
            y0 += a0[j] * x[j];
            y1 += a1[j] * x[j];
            y2 += a2[j] * x[j];
            y3 += a3[j] * x[j];
        }
        y[i] = y0;
        y[i + 1] = y1;
        y[i + 2] = y2;
        y[i + 3] = y3;
    }
    for (; i < m; i++)
        y[i] = dot(n, a + i * n, x);
}

/* y = a' x for m rows of n entries: a few entries of y at a time, held while two rows pass by. */
static void multiply_columns(ptrdiff_t m, ptrdiff_t n, const real *restrict a,
                             const real *restrict x, real *restrict y)
{
    enum { HELD = 16 };
    ptrdiff_t i = 0, j;
    for (; i + HELD <= n; i += HELD) {
        real even[HELD] = {0}, odd[HELD] = {0};
        for (j = 0; j + 2 <= m; j += 2) {
            const real *a0 = a + j * n + i, *a1 = a0 + n;
#pragma omp simd
            for (ptrdiff_t q = 0; q < HELD; q++) {
                even[q] = add_product(a0[q], x[j], even[q]);
                odd[q] = add_product(a1[q], x[j + 1], odd[q]);
            }
        }
        for (; j < m; j++)
            for (ptrdiff_t q = 0; q < HELD; q++)
                even[q] += a[j * n + i + q] * x[j];
        for (ptrdiff_t q = 0; q < HELD; q++)
            y[i + q] = even[q] + odd[q];
    }
    for (ptrdiff_t q = i; q < n; q++)
        y[q] = 0;
    for (j = 0; i < n && j < m; j++)
        for (ptrdiff_t q = i; q < n; q++)
            y[q] += a[j * n + q] * x[j];
}

/* y += a' x for m rows of n entries, four rows at a time. */
static void add_rows(ptrdiff_t m, ptrdiff_t n, const real *restrict a, const real *restrict x,
                     real *restrict y)
{
    ptrdiff_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const real *a0 = a + i * n, *a1 = a0 + n, *a2 = a1 + n, *a3 = a2 + n;
        for (ptrdiff_t j = 0; j < n; j++)
            y[j] += a0[j] * x[i] + a1[j] * x[i + 1] + a2[j] * x[i + 2] + a3[j] * x[i + 3];
    }
    for (; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            y[j] += a[i * n + j] * x[i];
}

/* `multiply` of so few terms that calling a library, or copying b, takes longer than adding them. */
static inline void multiply_few(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha, const real *a,
                                ptrdiff_t ai, ptrdiff_t ak, const real *b, ptrdiff_t bk,
                                ptrdiff_t bj, real beta, real *c, ptrdiff_t ci)
{
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            real sum = 0;
            for (ptrdiff_t l = 0; l < k; l++)
                sum += a[i * ai + l * ak] * b[l * bk + j * bj];
            c[i * ci + j] = beta == 0 ? alpha * sum : alpha * sum + beta * c[i * ci + j];
        }
}

/* c = alpha a b + beta c for a of m rows and k columns, whose rows are ai and columns ak apart, and b
   alike; one of each two distances is 1. Rows of c are ci apart. */
static void multiply(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha, const real *a, ptrdiff_t ai,
                     ptrdiff_t ak, const real *b, ptrdiff_t bk, ptrdiff_t bj, real beta, real *c,
                     ptrdiff_t ci)
{
    enum { FEW = 64, MANY = 40000000 };
    if (m * n * k <= FEW) {
        multiply_few(m, n, k, alpha, a, ai, ak, b, bk, bj, beta, c, ci);
        return;
    }
#ifdef CBLAS
    const double work = (double)m * n * k;
    if (work <= MANY && in_pieces(work, ak == 1 && bj != 1, m)) {
        pieces(alpha, a, ai, ak, b, bk, bj, beta, c, ci, m, k, n);
        return;
    }
#endif
    whole(alpha, a, ai, ak, b, bk, bj, beta, c, ci, m, k, n);
}

/* c = a b, rows of c next to each other. */
static void product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const real *a, ptrdiff_t ai, ptrdiff_t ak,
                    const real *b, ptrdiff_t bk, ptrdiff_t bj, real *c)
{
    multiply(m, n, k, 1, a, ai, ak, b, bk, bj, 0, c, n);
}

/* out += alpha x y for a column y, entries of out `step` apart: four rows, or columns, at a time. */
static inline void add_column(real alpha, const real *x, ptrdiff_t xr, ptrdiff_t xc, const real *y,
                       ptrdiff_t yr, real *out, ptrdiff_t step, ptrdiff_t m, ptrdiff_t k)
{
    ptrdiff_t i = 0, l = 0;
    for (; xc == 1 && i + 4 <= m; i += 4) {
        const real *x0 = x + i * xr, *x1 = x0 + xr, *x2 = x1 + xr, *x3 = x2 + xr;
        real y0 = 0, y1 = 0, y2 = 0, y3 = 0;
#pragma omp simd reduction(+: y0, y1, y2, y3)
        for (ptrdiff_t q = 0; q < k; q++) {
            y0 += x0[q] * y[q * yr];
            y1 += x1[q] * y[q * yr];
            y2 += x2[q] * y[q * yr];
            y3 += x3[q] * y[q * yr];
        }
        out[i * step] += alpha * y0;
        out[(i + 1) * step] += alpha * y1;
        out[(i + 2) * step] += alpha * y2;
        out[(i + 3) * step] += alpha * y3;
    }
    for (; xc != 1 && l + 4 <= k; l += 4) {
        const real *x0 = x + l * xc, *x1 = x0 + xc, *x2 = x1 + xc, *x3 = x2 + xc;
        const real y0 = alpha * y[l * yr], y1 = alpha * y[(l + 1) * yr];
        const real y2 = alpha * y[(l + 2) * yr], y3 = alpha * y[(l + 3) * yr];
#pragma omp simd
        for (ptrdiff_t q = 0; q < m; q++)
            out[q * step] += x0[q * xr] * y0 + x1[q * xr] * y1 + x2[q * xr] * y2 + x3[q * xr] * y3;
    }
    for (; i < m; i++)
        for (ptrdiff_t q = l; q < k; q++)
            out[i * step] += alpha * x[i * xr + q * xc] * y[q * yr];
}

/* out = alpha x y + beta out, as what is shared with plans calls it. */
static void block_product(real alpha, const real *x, ptrdiff_t xr, ptrdiff_t xc, const real *y,
                          ptrdiff_t yr, ptrdiff_t yc, real beta, real *out, ptrdiff_t ldo,
                          ptrdiff_t m, ptrdiff_t k, ptrdiff_t n)
{
    if (n != 1) {
        multiply(m, n, k, alpha, x, xr, xc, y, yr, yc, beta, out, ldo);
        return;
    }
    for (ptrdiff_t i = 0; beta != 1 && i < m; i++)
        out[i * ldo] = beta == 0 ? 0 : beta * out[i * ldo];
    if (ldo == 1 && yr == 1) /* as compilers make vectors of it */
        xc == 1 ? add_column(alpha, x, xr, 1, y, 1, out, 1, m, k)
                : add_column(alpha, x, 1, xc, y, 1, out, 1, m, k);
    else
        add_column(alpha, x, xr, xc, y, yr, out, ldo, m, k);
}

/* c = alpha a b + beta c on and below the diagonal alone, or on and above it, by halves. */
static void multiply_half(ptrdiff_t n, ptrdiff_t k, real alpha, const real *a, ptrdiff_t ai,
                          ptrdiff_t ak, const real *b, ptrdiff_t bk, ptrdiff_t bj, real beta,
                          real *c, ptrdiff_t ci, int upper)
{
    enum { FEW = 32, SOME = 192 }; /* rows from which half is less work, by a library or by loops */
    ptrdiff_t h = n / 2;
#ifdef CBLAS
    const int turned = ak != 1;
    if (n > FEW && a == b && ai == bj && ak == bk) {
        CBLAS_SYRK(CblasRowMajor, upper ? CblasUpper : CblasLower, turned ? CblasTrans : CblasNoTrans,
                   n, k, alpha, a, larger(larger(turned ? ak : ai, turned ? n : k), 1), beta, c, ci);
        return;
    }
#endif
    if (n <= SOME) {
        multiply(n, n, k, alpha, a, ai, ak, b, bk, bj, beta, c, ci);
        return;
    }
    multiply_half(h, k, alpha, a, ai, ak, b, bk, bj, beta, c, ci, upper);
    if (upper)
        multiply(h, n - h, k, alpha, a, ai, ak, b + h * bj, bk, bj, beta, c + h, ci);
    else
        multiply(n - h, h, k, alpha, a + h * ai, ai, ak, b, bk, bj, beta, c + h * ci, ci);
    multiply_half(n - h, k, alpha, a + h * ai, ai, ak, b + h * bj, bk, bj, beta, c + h * (ci + 1), ci,
                  upper);
}

/* c_ji = a_ij for j <= i, by tiles that stay in cache; rows of a are ai apart and columns aj. */
static void mirror(ptrdiff_t n, const real *a, ptrdiff_t ai, ptrdiff_t aj, real *c, ptrdiff_t ci,
                   ptrdiff_t cj)
{
    enum { TILE = 32 };
    for (ptrdiff_t low = 0; low < n; low += TILE)
        for (ptrdiff_t first = 0; first <= low; first += TILE)
            for (ptrdiff_t i = low; i < n && i < low + TILE; i++)
                for (ptrdiff_t j = first; j <= i && j < first + TILE; j++)
                    c[j * ci + i * cj] = a[i * ai + j * aj];
}

/* c = a b where that is symmetric: half of it is computed. */
static void symmetric_product(ptrdiff_t n, ptrdiff_t k, const real *a, ptrdiff_t ai, ptrdiff_t ak,
                              const real *b, ptrdiff_t bk, ptrdiff_t bj, real *c)
{
    multiply_half(n, k, 1, a, ai, ak, b, bk, bj, 0, c, n, 0);
    mirror(n, c, n, 1, c, n, 1);
}
