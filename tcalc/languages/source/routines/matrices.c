/* Functions of matrices. A sum a + e1 a1 + ... + eq aq with ei^2 = 0 is 2^q matrices one after
   another, the one behind e1 e3 at place 5: what a function of it has behind e1 ... eq is the q-th
   derivative along a1 ... aq (Higham and Relton 2014, without the zeros of their block triangles). */

/* c = alpha a b + beta c for such sums. */
static void jet_product(ptrdiff_t n, int q, real alpha, const real *a, const real *b, real beta, real *c)
{
    for (int whole = 0; whole < 1 << q; whole++)
        for (int part = whole;; part = (part - 1) & whole) {
            multiply(n, n, n, alpha, a + part * n * n, n, 1, b + (whole ^ part) * n * n, n, 1,
                     part == whole ? beta : 1, c + whole * n * n, n);
            if (!part)
                break;
        }
}

/* x = a^-1 x for such sums, a is destroyed; 1: singular. `pivots` holds n numbers. */
static int jet_solve(ptrdiff_t n, int q, real *a, real *x, real *pivots)
{
    eliminate(n, 0, n, a, pivots);
    for (ptrdiff_t i = 0; i < n; i++)
        if (a[i * (n + 1)] == 0)
            return 1;
    for (int whole = 0; whole < 1 << q; whole++) {
        for (int part = whole; part; part = (part - 1) & whole)
            multiply(n, n, n, -1, a + part * n * n, n, 1, x + (whole ^ part) * n * n, n, 1, 1,
                     x + whole * n * n, n);
        eliminated(n, n, a, pivots, 0, x + whole * n * n);
    }
    return 0;
}

/* The sum a + e1 a1 + ...; 1: there are entries that are no numbers. */
static int jet_of(ptrdiff_t n, int q, const real *a, const real *const *directions, real *x)
{
    int finite = 1;
    memset(x, 0, (size_t)(n * n << q) * sizeof(real));
    memcpy(x, a, (size_t)(n * n) * sizeof(real));
    for (int k = 0; k < q; k++)
        memcpy(x + (n * n << k), directions[k], (size_t)(n * n) * sizeof(real));
    for (ptrdiff_t i = 0; i < n * n; i++)
        finite = finite && isfinite(a[i]);
    return !finite;
}

/* The largest sum of a column's absolute values. */
static real norm_1(ptrdiff_t n, const real *a)
{
    real found = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        real sum = 0;
        for (ptrdiff_t i = 0; i < n; i++)
            sum += fabs(a[i * n + j]);
        found = sum > found ? sum : found;
    }
    return found;
}

/* The exponential's derivative along q directions, itself where q is 0: scaling and squaring of the
   [13/13] Pade approximant (Al-Mohy and Higham 2009). `space` holds 7 sums and n numbers. */
static int expm_frechet(ptrdiff_t n, int q, const real *a, const real *const *directions, real *out,
                        real *space)
{
    static const double b[] = {64764752532480000.0, 32382376266240000.0, 7771770303897600.0,
                               1187353796428800.0, 129060195264000.0, 10559470521600.0,
                               670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0,
                               16380.0, 182.0, 1.0};
    const ptrdiff_t size = n * n << q;
    real *x = space, *p2 = x + size, *p4 = p2 + size, *p6 = p4 + size, *odd = p6 + size;
    real *even = odd + size, *inner = even + size;
    int times = 0;
    if (jet_of(n, q, a, directions, x))
        return 1;
    frexp(norm_1(n, a) / 4.74, &times);
    times = times > 0 ? times : 0;
    for (ptrdiff_t i = 0; i < size; i++)
        x[i] *= ldexp((real)1, -times);
    jet_product(n, q, 1, x, x, 0, p2);
    jet_product(n, q, 1, p2, p2, 0, p4);
    jet_product(n, q, 1, p2, p4, 0, p6);
    for (ptrdiff_t i = 0; i < size; i++) {
        inner[i] = b[13] * p6[i] + b[11] * p4[i] + b[9] * p2[i];
        even[i] = b[7] * p6[i] + b[5] * p4[i] + b[3] * p2[i];
    }
    for (ptrdiff_t i = 0; i < n; i++)
        even[i * (n + 1)] += b[1];
    jet_product(n, q, 1, p6, inner, 1, even);
    jet_product(n, q, 1, x, even, 0, odd);
    for (ptrdiff_t i = 0; i < size; i++) {
        inner[i] = b[12] * p6[i] + b[10] * p4[i] + b[8] * p2[i];
        even[i] = b[6] * p6[i] + b[4] * p4[i] + b[2] * p2[i];
    }
    for (ptrdiff_t i = 0; i < n; i++)
        even[i * (n + 1)] += b[0];
    jet_product(n, q, 1, p6, inner, 1, even);
    for (ptrdiff_t i = 0; i < size; i++) {
        x[i] = even[i] + odd[i];
        even[i] -= odd[i];
    }
    if (jet_solve(n, q, even, x, inner + size))
        return 1;
    for (; times > 0; times--) {
        jet_product(n, q, 1, x, x, 0, p2);
        memcpy(x, p2, (size_t)size * sizeof(real));
    }
    memcpy(out, x + size - n * n, (size_t)(n * n) * sizeof(real));
    return 0;
}
