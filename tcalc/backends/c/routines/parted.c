/* Large solves and halves of products in parts, which threads of the pool take. Works on what
   triangles.c has; what stands behind calls these in its place. */

/* Multiplications that are worth a part. */
enum { PART_TRIANGLE = 400000 };

/* How many threads share so much work. */
static long threads_for(double work)
{
    return work >= 2 * PART_TRIANGLE && threads_of_blas ? threads_of_blas() : 1;
}

typedef struct {
    const real *l;
    long lr, lc;
    int how;
    real *x;
    long ldx, n, r, length;
} columns;

static int part_of_solve(char **given, long chunk, long worker)
{
    columns f = *(const columns *)given[0];
    long first = chunk * f.length;
    (void)worker;
    solve_triangle(f.l, f.lr, f.lc, f.how, f.x + first, f.ldx, f.n, smaller(f.length, f.r - first));
    return 0;
}

/* x := l^-1 x or l^-t x: columns are solved apart from each other. */
static void solve_parted(const real *l, long lr, long lc, int how, real *x, long ldx, long n,
                         long r)
{
    double work = (double)n * n * r / 2;
    long threads = threads_for(work);
    long parts = smaller(smaller(2 * threads, (long)(work / PART_TRIANGLE)), r / WIDE);
    if (threads < 2 || parts < 2) {
        solve_triangle(l, lr, lc, how, x, ldx, n, r);
        return;
    }
    long length = ((r + parts - 1) / parts + EVEN - 1) / EVEN * EVEN;
    columns f = {l, lr, lc, how, x, ldx, n, r, length};
    spread_parts(part_of_solve, (char *[]){(char *)&f}, (r + length - 1) / length, threads, 1);
}

/* Half of a product, of n rows and columns. */
typedef struct {
    multiplied of;
    int upper, shorter;
    long count;
} panels;

/* One panel; the longest ones come first. */
static int part_of_panels(char **given, long chunk, long worker)
{
    panels f = *(const panels *)given[0];
    multiplied g = f.of;
    long low = (f.upper ? chunk : f.count - 1 - chunk) * panel_rows(g.n);
    (void)worker;
    multiply_panel(g.alpha, g.x, g.xr, g.xc, g.y, g.yr, g.yc, g.beta, g.out, g.ldo, g.n, g.k,
                   f.upper, f.shorter, low);
    return 0;
}

/* Half of a product, panel by panel. */
static void panels_parted(real alpha, const real *x, long xr, long xc, const real *y, long yr,
                          long yc, real beta, real *out, long ldo, long n, long k, int upper,
                          int shorter)
{
    long threads = threads_for((double)n * n * k / 2), rows = panel_rows(n);
    long count = (n + rows - 1) / rows;
    multiplied of = {alpha, x, xr, xc, y, yr, yc, beta, out, ldo, n, k, n, rows, 1, 0};
    panels f = {of, upper, shorter, count};
    if (threads < 2 || count < 2 * threads)
        multiply_panels(alpha, x, xr, xc, y, yr, yc, beta, out, ldo, n, k, upper, shorter);
    else
        spread_parts(part_of_panels, (char *[]){(char *)&f}, count, threads, 1);
}

#define solve_triangle solve_parted
#define multiply_panels panels_parted
