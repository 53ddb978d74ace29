/* Exponentials of small square matrices and their derivatives along directions: by scaling, Padé's
   approximant of degree 13 (Higham 2005, algorithm 2.3, for which theta_13 is 5.37) and squaring.
   Works on what general.c has. The derivative along E is the upper right block of exp of the matrix
   with A twice on its diagonal and E above (Higham 2008, equation 10.43); further directions double
   that again. Routines return 1 where the caller has to do it another way. */

/* Rows, and halvings: beyond these other ways are faster, or lose fewer digits. */
enum { EXPONENTIAL = 16, HALVINGS = 4 };

static const double pade[] = {
    64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000.,
    10559470521600., 670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.,
};

/* The largest sum of magnitudes in a column; INFINITY where an entry is not finite. */
static real norm_one(const real *a, long ar, long ac, long n)
{
    real most = 0, total = 0;
    for (long j = 0; j < n; j++) {
        real sum = 0;
        for (long i = 0; i < n; i++)
            sum += F(fabs)(a[i * ar + j * ac]);
        most = sum <= most ? most : sum;
        total += sum;
    }
    return total < INFINITY ? most : INFINITY;
}

static void times(const real *x, const real *y, real *out, long n)
{
    product(1, x, n, 1, y, n, 1, 0, out, n, n, n, n);
}

/* a := exp(a), of n rows, with room for five such matrices. */
static int exponential(real *a, real *room, long n)
{
    long size = n * n;
    real *two = room, *four = two + size, *six = four + size, *odd = six + size, *even = odd + size;
    int halvings = 0;
    real norm = norm_one(a, n, 1, n);
    if (!(norm < INFINITY))
        return 1;
    for (; norm > (real)5.37; norm /= 2)
        halvings++;
    if (halvings > HALVINGS)
        return 1;
    for (long i = 0; i < size; i++)
        a[i] = F(ldexp)(a[i], -halvings);
    times(a, a, two, n);
    times(two, two, four, n);
    times(two, four, six, n);
    for (long i = 0; i < size; i++)
        odd[i] = (real)pade[13] * six[i] + (real)pade[11] * four[i] + (real)pade[9] * two[i];
    times(six, odd, even, n);
    for (long i = 0; i < size; i++) {
        real one = i % (n + 1) == 0;
        even[i] += (real)pade[7] * six[i] + (real)pade[5] * four[i] + (real)pade[3] * two[i]
                   + (real)pade[1] * one;
    }
    times(a, even, odd, n);
    for (long i = 0; i < size; i++)
        a[i] = (real)pade[12] * six[i] + (real)pade[10] * four[i] + (real)pade[8] * two[i];
    times(six, a, even, n);
    for (long i = 0; i < size; i++) {
        real one = i % (n + 1) == 0;
        even[i] += (real)pade[6] * six[i] + (real)pade[4] * four[i] + (real)pade[2] * two[i]
                   + (real)pade[0] * one;
        two[i] = even[i] - odd[i];
        a[i] = even[i] + odd[i];
    }
    if (solve_general(two, n, 1, a, n, n))
        return 1;
    for (; halvings; halvings--) {
        times(a, a, two, n);
        memcpy(a, two, (size_t)size * sizeof(real));
    }
    return 0;
}

/* The derivative along `count` directions, 0 to 2 of them, which lie as their strides say. */
static int derived_exponential(const real *a, long ar, long ac, const real *const *directions,
                               const long *lie, int count, real *out, long n)
{
    long blocks = 1L << count, whole = blocks * n;
    real scale = 1, sizes[2] = {1, 1};
    if (n > EXPONENTIAL || !(norm_one(a, ar, ac, n) < INFINITY))
        return 1;
    for (int k = 0; k < count; k++) {
        sizes[k] = norm_one(directions[k], lie[2 * k], lie[2 * k + 1], n);
        if (!(sizes[k] < INFINITY))
            return 1;
        if (sizes[k] == 0) {
            memset(out, 0, (size_t)(n * n) * sizeof(real));
            return 0;
        }
        scale *= sizes[k];
    }
    if (!isnormal(scale))
        return 1;
    real *held = calloc((size_t)(6 * whole * whole), sizeof(real));
    if (!held)
        return 1;
    for (long b = 0; b < blocks; b++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                real *row = held + (b * n + i) * whole + j;
                row[b * n] = a[i * ar + j * ac];
                for (int k = 0; k < count; k++)
                    if (!(b >> k & 1))
                        row[(b | 1L << k) * n] =
                            directions[k][i * lie[2 * k] + j * lie[2 * k + 1]] / sizes[k];
            }
    int failed = exponential(held, held + whole * whole, whole);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            out[i * n + j] = scale * held[i * whole + (blocks - 1) * n + j];
    free(held);
    return failed;
}

static int expm(const real *a, long ar, long ac, real *out, long m, long n)
{
    return m != n || derived_exponential(a, ar, ac, 0, 0, 0, out, n);
}

static int expm_frechet(const real *a, long ar, long ac, const real *e, long er, long ec, real *out,
                        long m, long n)
{
    const real *directions[] = {e};
    const long lie[] = {er, ec};
    return m != n || derived_exponential(a, ar, ac, directions, lie, 1, out, n);
}

static int expm_frechet2(const real *a, long ar, long ac, const real *e, long er, long ec,
                         const real *d, long dr, long dc, real *out, long m, long n)
{
    const real *directions[] = {e, d};
    const long lie[] = {er, ec, dr, dc};
    return m != n || derived_exponential(a, ar, ac, directions, lie, 2, out, n);
}
