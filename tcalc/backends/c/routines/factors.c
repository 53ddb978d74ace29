/* Factorisations by LAPACK, which sees row-major memory as the transpose. Works on what products.c
   has. Routines return 1 where the caller has to do it another way or to raise an error. */

static void (*geqrf_)(const int *, const int *, real *, const int *, real *, real *, const int *,
                      int *);
static void (*orgqr_)(const int *, const int *, const int *, real *, const int *, const real *,
                      real *, const int *, int *);
static void (*syevd_)(const char *, const char *, const int *, real *, const int *, real *, real *,
                      const int *, int *, const int *, int *);
static void (*getrf_)(const int *, const int *, real *, const int *, int *, int *);
static void (*getrs_)(const char *, const int *, const int *, const real *, const int *,
                      const int *, real *, const int *, int *);
static void (*gesdd_)(const char *, const int *, const int *, real *, const int *, real *, real *,
                      const int *, real *, const int *, real *, const int *, int *, int *);
static void (*getri_)(const int *, real *, const int *, const int *, real *, const int *, int *);

/* Functions of the precision of `real`, in the order in which the library is given them. */
void tcalc_give_lapack(void **found)
{
    memcpy(&geqrf_, found + 0, sizeof geqrf_);
    memcpy(&orgqr_, found + 1, sizeof orgqr_);
    memcpy(&syevd_, found + 2, sizeof syevd_);
    memcpy(&getrf_, found + 3, sizeof getrf_);
    memcpy(&getrs_, found + 4, sizeof getrs_);
    memcpy(&getri_, found + 5, sizeof getri_);
    memcpy(&gesdd_, found + 6, sizeof gesdd_);
}

/* Eigenvalues w and, as columns of v, eigenvectors of (A + A')/2. */
static int eigh(const real *a, long ar, long ac, real *w, real *v, long n)
{
    int ni = (int)n, info = 0, few = 3 + 5 * ni, more = 1 + 6 * ni + 2 * ni * ni, finite = 1;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            v[i * n + j] = (a[i * ar + j * ac] + a[j * ar + i * ac]) / 2;
            finite &= isfinite(v[i * n + j]) != 0;
        }
    real *work = finite ? malloc((size_t)more * sizeof(real)) : 0;
    int *places = finite ? malloc((size_t)few * sizeof(int)) : 0;
    if (work && places)
        syevd_("V", "L", &ni, v, &ni, w, work, &more, places, &few, &info);
    int failed = !work || !places || info;
    free(work);
    free(places);
    for (long i = 0; i < n && !failed; i++)
        for (long j = 0; j < i; j++) {
            real held = v[i * n + j];
            v[i * n + j] = v[j * n + i];
            v[j * n + i] = held;
        }
    return failed;
}

/* A = L Q, where L has a positive diagonal and Q orthonormal rows, of m rows and n columns; 1 where
   rows are dependent but for rounding. */
static int lq(const real *a, long ar, long ac, real *l, real *q, long m, long n)
{
    int mi = (int)m, ni = (int)n, info = 0, more = 32 * (mi > 0 ? mi : 1);
    if (m > n)
        return 1;
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            q[i * n + j] = a[i * ar + j * ac];
    real *work = malloc((size_t)(more + mi) * sizeof(real)), *scales = work + more;
    if (!work)
        return 1;
    geqrf_(&ni, &mi, q, &ni, scales, work, &more, &info);
    for (long i = 0; i < m; i++)
        for (long j = 0; j < m; j++)
            l[i * m + j] = j <= i ? q[i * n + j] : 0;
    if (!info)
        orgqr_(&ni, &mi, &mi, q, &ni, scales, work, &more, &info);
    free(work);
    int failed = info != 0;
    for (long i = 0; i < m && !failed; i++) {
        real sum = 0;
        for (long j = 0; j < n; j++)
            sum += a[i * ar + j * ac] * a[i * ar + j * ac];
        failed |= !(F(fabs)(l[i * (m + 1)]) > n * EPSILON * F(sqrt)(sum));
    }
    for (long k = 0; k < m && !failed; k++)
        if (l[k * (m + 1)] < 0) {
            for (long i = 0; i < m; i++)
                l[i * m + k] = -l[i * m + k];
            for (long j = 0; j < n; j++)
                q[k * n + j] = -q[k * n + j];
        }
    return failed;
}

/* A = U diag(s) V', of m rows and n columns, with as many columns of U and rows of V' as the lesser of
   these. LAPACK is given columns, as NumPy does it: other memory would have vectors of other signs. */
static int svd(const real *a, long ar, long ac, real *u, real *s, real *v, long m, long n)
{
    long k = smaller(m, n), held = m * n + m * k + k * n;
    int mi = (int)m, ni = (int)n, ki = (int)k, info = 0, more = -1, finite = 1;
    real asked, *columns = 0;
    gesdd_("S", &mi, &ni, 0, &mi, 0, 0, &mi, 0, &ki, &asked, &more, 0, &info);
    if (!info) {
        more = (int)asked;
        columns = malloc((size_t)(held + more) * sizeof(real) + (size_t)(8 * k) * sizeof(int));
    }
    if (!columns)
        return 1;
    real *left = columns + m * n, *right = left + m * k, *work = columns + held;
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            columns[j * m + i] = a[i * ar + j * ac];
            finite &= isfinite(columns[j * m + i]) != 0;
        }
    if (finite)
        gesdd_("S", &mi, &ni, columns, &mi, s, left, &mi, right, &ki, work, &more,
               (int *)(work + more), &info);
    for (long i = 0; i < m; i++)
        for (long j = 0; j < k; j++)
            u[i * k + j] = left[j * m + i];
    for (long i = 0; i < k; i++)
        for (long j = 0; j < n; j++)
            v[i * n + j] = right[j * k + i];
    free(columns);
    return !finite || info;
}
