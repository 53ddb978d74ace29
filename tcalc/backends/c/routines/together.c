/* Large products in parts, which threads of the pool multiply by a BLAS of one thread. Threads of its
   own would look for more work for a while after each product, on processors that ours need.

   Works on what products.c has. */

static long (*spread_parts)(Body, char **, long, long, int);
static long (*threads_of_blas)(void);

/* What has a job done by the pool, and how many threads BLAS would use now. */
void tcalc_give_pool(void **found)
{
    memcpy(&spread_parts, found + 0, sizeof spread_parts);
    memcpy(&threads_of_blas, found + 1, sizeof threads_of_blas);
}

/* Multiplications that BLAS itself leaves to one thread, with a vector and of two matrices; those
   that are worth a part. Rows, or columns, of the parts are multiples of EVEN; parts of fewer than
   BROAD are as many as threads, of others there are more, for whoever is done first. */
enum { LEFT_VECTOR = 9000, LEFT = 200000, PART_VECTOR = 200000, PART = 2000000 };
enum { EVEN = 8, BROAD = 48 };

/* Subnormal numbers take a processor a hundred times as long: cotangents that vanish over many steps
   are such. In products of steps they count as 0, an error of at most 2.3e-308 a term; what was set
   before comes back in the end. */
enum { FLUSHED = 4096 };
#ifdef __SSE2__
static unsigned flushing(void)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
}
static void restored(unsigned before) { _mm_setcsr((_mm_getcsr() & ~0x8040u) | (before & 0x8040u)); }
#else
static unsigned flushing(void) { return 0; }
static void restored(unsigned before) { (void)before; }
#endif

typedef struct {
    real alpha;
    const real *x;
    long xr, xc;
    const real *y;
    long yr, yc;
    real beta;
    real *out;
    long ldo, m, k, n;
    long length; /* of a part, in rows or in columns */
    int by_rows, flushed;
} multiplied;

static int part_of_product(char **given, long chunk, long worker)
{
    multiplied f = *(const multiplied *)given[0];
    long first = chunk * f.length;
    unsigned before = f.flushed ? flushing() : 0;
    (void)worker;
    if (f.by_rows)
        product_alone(f.alpha, f.x + first * f.xr, f.xr, f.xc, f.y, f.yr, f.yc, f.beta,
                      f.out + first * f.ldo, f.ldo, smaller(f.length, f.m - first), f.k, f.n);
    else
        product_alone(f.alpha, f.x, f.xr, f.xc, f.y + first * f.yc, f.yr, f.yc, f.beta,
                      f.out + first, f.ldo, f.m, f.k, smaller(f.length, f.n - first));
    if (f.flushed)
        restored(before);
    return 0;
}

/* The lower half of out = x x', whose rows are so far apart. */
static void square_alone(const real *x, long xr, long xc, real *out, long ldo, long n, long k)
{
    int ni = (int)n, ki = (int)k, ldi = (int)ldo, ld;
    real zero = 0, one = 1;
    char other = flag(n, k, xr, xc, &ld) == 'N' ? 'T' : 'N';
    syrk_("U", &other, &ni, &ki, &one, x, &ld, &zero, out, &ldi);
}

/* Products of many terms and few entries go by ranges of terms, whose sums are added up in their
   order: as many for any number of threads. Most rows or columns, and terms for each of them at
   least; most ranges; numbers between the sums of two, for threads that write at the same time. */
enum { SLIM = 2 * BROAD, TERMS = 16, RANGES = 16, APART = 16 };

typedef struct {
    multiplied of;
    real *sums;
    long apart;
    int square;
} ranges;

static int part_of_terms(char **given, long chunk, long worker)
{
    ranges g = *(const ranges *)given[0];
    multiplied f = g.of;
    long first = chunk * f.length, count = smaller(f.length, f.k - first);
    unsigned before = f.flushed ? flushing() : 0;
    (void)worker;
    if (g.square)
        square_alone(f.x + first * f.xc, f.xr, f.xc, g.sums + chunk * g.apart, f.n, f.n, count);
    else
        product_alone(f.alpha, f.x + first * f.xc, f.xr, f.xc, f.y + first * f.yr, f.yr, f.yc, 0,
                      g.sums + chunk * g.apart, f.n, f.m, count, f.n);
    if (f.flushed)
        restored(before);
    return 0;
}

/* Is this such a product, and done? Of a square the lower half. */
static int by_terms(multiplied f, int square)
{
    long side = larger(f.m, f.n);
    double worth = (double)f.m * f.n * f.k / (f.m == 1 || f.n == 1 ? PART_VECTOR : PART);
    long count = smaller(RANGES, (long)worth);
    if (side > SLIM || f.k < TERMS * side || count < 2)
        return 0;
    long apart = f.m * f.n + APART;
    real *sums = malloc((size_t)(count * apart) * sizeof(real));
    if (!sums)
        return 0;
    f.length = (f.k + count - 1) / count;
    count = (f.k + f.length - 1) / f.length;
    ranges g = {f, sums, apart, square};
    long threads = threads_of_blas ? threads_of_blas() : 1;
    char *given[] = {(char *)&g};
    if (threads > 1)
        spread_parts(part_of_terms, given, count, threads, 1);
    else
        for (long chunk = 0; chunk < count; chunk++)
            part_of_terms(given, chunk, 0);
    for (long i = 0; i < f.m; i++)
        for (long j = 0; j < (square ? i + 1 : f.n); j++) {
            wide s = 0;
            for (long chunk = 0; chunk < count; chunk++)
                s += sums[chunk * apart + i * f.n + j];
            real *to = f.out + i * f.ldo + j;
            *to = f.beta == 0 ? (real)s : (real)(f.beta * *to + s);
        }
    free(sums);
    return 1;
}

/* By as many threads as BLAS would use. */
static void in_parts(multiplied f)
{
    if (by_terms(f, 0))
        return;
    double work = (double)f.m * f.n * f.k;
    int vector = f.m == 1 || f.n == 1;
    long threads = work > (vector ? LEFT_VECTOR : LEFT) && threads_of_blas ? threads_of_blas() : 1;
    long extent = f.by_rows ? f.m : f.n, parts = 1;
    if (threads > 1) {
        double worth = work / (vector ? PART_VECTOR : PART);
        parts = smaller(smaller(2 * threads, larger(1, (long)worth)), larger(1, extent / EVEN));
        if (extent < parts * BROAD)
            parts = smaller(parts, threads);
    }
    f.length = ((extent + parts - 1) / parts + EVEN - 1) / EVEN * EVEN;
    char *given[] = {(char *)&f};
    if (threads > 1)
        spread_parts(part_of_product, given, (extent + f.length - 1) / f.length, threads, 1);
    else {
        f.length = extent;
        part_of_product(given, 0, 0);
    }
}

/* out = alpha x y + beta out, where x is m by k and y is k by n; `out` is not read if beta is 0. */
static void product(real alpha, const real *x, long xr, long xc, const real *y, long yr, long yc,
                    real beta, real *out, long ldo, long m, long k, long n)
{
    if ((double)m * n * k <= LEFT_VECTOR)
        product_alone(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n);
    else
        in_parts((multiplied){alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n, 0, m >= n, 0});
}

/* What triangles call it. */
#define block_product product

/* The same in a step of a loop, and with what steps left. */
static void product_of_step(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                            long yc, real beta, real *out, long ldo, long m, long k, long n)
{
    if ((double)m * n * k < FLUSHED)
        product_alone(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n);
    else
        in_parts((multiplied){alpha, x, xr, xc, y, yr, yc, beta, out, ldo, m, k, n, 0, m >= n, 1});
}
