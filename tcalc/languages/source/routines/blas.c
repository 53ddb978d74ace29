static inline ptrdiff_t larger(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

/* c = alpha a b + beta c, of any size; what is given is explained at `multiply`. */
static void whole(real alpha, const real *a, ptrdiff_t ai, ptrdiff_t ak, const real *b, ptrdiff_t bk,
                  ptrdiff_t bj, real beta, real *c, ptrdiff_t ci, ptrdiff_t m, ptrdiff_t k,
                  ptrdiff_t n)
{
#ifdef CBLAS
    const int turn_a = ak != 1, turn_b = bj != 1;
    const ptrdiff_t lda = larger(turn_a ? ak : ai, turn_a ? m : k);
    const ptrdiff_t ldb = larger(turn_b ? bj : bk, turn_b ? k : n);
    if (m && n)
        CBLAS_GEMM(CblasRowMajor, turn_a ? CblasTrans : CblasNoTrans,
                   turn_b ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, larger(lda, 1), b,
                   larger(ldb, 1), beta, c, ci);
#else
    enum { DEPTH = 64, WIDTH = 128 };
    real panel[DEPTH * WIDTH]; /* rows of b next to each other */
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++)
            c[i * ci + j] = beta == 0 ? 0 : beta * c[i * ci + j];
    for (ptrdiff_t j0 = 0; j0 < n; j0 += WIDTH) {
        ptrdiff_t w = n - j0 < WIDTH ? n - j0 : WIDTH;
        for (ptrdiff_t l0 = 0; l0 < k; l0 += DEPTH) {
            ptrdiff_t d = k - l0 < DEPTH ? k - l0 : DEPTH;
            for (ptrdiff_t l = 0; l < d; l++)
                for (ptrdiff_t j = 0; j < w; j++)
                    panel[l * WIDTH + j] = alpha * b[(l0 + l) * bk + (j0 + j) * bj];
            for (ptrdiff_t i = 0; i < m; i++) {
                real *row = c + i * ci + j0;
                for (ptrdiff_t l = 0; l < d; l++) {
                    const real factor = a[i * ai + (l0 + l) * ak], *other = panel + l * WIDTH;
                    for (ptrdiff_t j = 0; j < w; j++)
                        row[j] += factor * other[j];
                }
            }
        }
    }
#endif
}
