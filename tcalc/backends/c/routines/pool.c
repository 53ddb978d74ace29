/* Threads that share the chunks of one job: who comes while they are at work does his own alone.

   What a chunk computes depends on its number only, not on who takes it, so that results are the
   same bits for any number of threads. A worker that has nothing to do sleeps; a job never waits
   for one that has not begun. */

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* 0 unless the chunk failed; `worker` is a number below that of the threads, another one for all
   that are at work at a time. */
typedef int (*Body)(char **given, long chunk, long worker);

/* Bytes of a worker's stack, and looks at the next job that are worth more than going to sleep. */
enum { STACK = 1 << 21, LOOKS = 20000 };

/* `owner` is held by the one whose job it is, `lock` whenever anything below is changed. */
static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t posted = PTHREAD_COND_INITIALIZER, left = PTHREAD_COND_INITIALIZER;
static struct {
    Body body;
    char **given;
    long chunks, wanted, joined;
} job;
static long workers;
static atomic_long next, failed, active, number;
static atomic_long jobs, alone;
static _Thread_local int inside;

/* How BLAS is told its number of threads, 0 where nobody knows; how many want it to have one now,
   and how many it had before the first of them said so. */
static struct {
    pthread_mutex_t lock;
    int (*asked)(void);
    void (*told)(int);
    long count;
    int before;
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* So many want it to have one already. */
void tcalc_pool_blas(int (*asked)(void), void (*told)(int), long count, int before)
{
    blas.asked = asked, blas.told = told;
    blas.count = count, blas.before = before;
}

/* One more (1) or one less (-1) wants BLAS to have one thread: the last takes back what the first
   said. */
void tcalc_pool_single(int more)
{
    if (!blas.asked)
        return;
    pthread_mutex_lock(&blas.lock);
    if (more > 0 && !blas.count) {
        blas.before = blas.asked();
        if (blas.before > 1)
            blas.told(1);
    }
    blas.count += more;
    if (more < 0 && !blas.count && blas.before > 1)
        blas.told(blas.before);
    pthread_mutex_unlock(&blas.lock);
}

/* How many threads BLAS would use here. */
long tcalc_pool_of_blas(void) { return inside || !blas.asked ? 1 : blas.asked(); }

/* How many jobs were shared, and how many done alone. */
void tcalc_pool_counts(long *found)
{
    found[0] = atomic_load(&jobs);
    found[1] = atomic_load(&alone);
    pthread_mutex_lock(&lock);
    found[2] = workers;
    pthread_mutex_unlock(&lock);
}

static void rest(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void work(Body body, char **given, long chunks, long worker)
{
    for (long k; (k = atomic_fetch_add(&next, 1)) < chunks;)
        if (body(given, k, worker)) {
            long before = atomic_load(&failed);
            while (k < before && !atomic_compare_exchange_weak(&failed, &before, k))
                ;
        }
}

static void *worker(void *nothing)
{
    long seen = 0;
    inside = 1;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (atomic_load(&number) == seen || job.joined >= job.wanted) {
            seen = atomic_load(&number);
            pthread_cond_wait(&posted, &lock);
        }
        seen = atomic_load(&number);
        long own = ++job.joined, chunks = job.chunks;
        Body body = job.body;
        char **given = job.given;
        atomic_fetch_add(&active, 1);
        pthread_mutex_unlock(&lock);
        work(body, given, chunks, own);
        if (atomic_fetch_sub(&active, 1) == 1) {
            pthread_mutex_lock(&lock);
            pthread_cond_signal(&left);
            pthread_mutex_unlock(&lock);
        }
        for (int k = 0; k < LOOKS && atomic_load(&number) == seen; k++)
            rest();
        pthread_mutex_lock(&lock);
    }
    return nothing;
}

/* The child of a fork has none of the threads, and nobody at work. */
static void of_child(void)
{
    pthread_mutex_init(&owner, 0);
    pthread_mutex_init(&lock, 0);
    pthread_cond_init(&posted, 0);
    pthread_cond_init(&left, 0);
    pthread_mutex_init(&blas.lock, 0);
    workers = job.wanted = 0;
    atomic_store(&active, 0);
    if (blas.count && blas.before > 1)
        blas.told(blas.before);
    blas.count = 0;
}

__attribute__((constructor)) static void begun(void) { pthread_atfork(0, 0, of_child); }

/* As many workers as are wanted, or as the system has; signals are for other threads. */
static void grow(long wanted)
{
    pthread_attr_t own;
    sigset_t all, before;
    if (workers >= wanted || pthread_attr_init(&own))
        return;
    pthread_attr_setdetachstate(&own, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&own, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t made; workers < wanted && !pthread_create(&made, &own, worker, 0); workers++)
        ;
    pthread_sigmask(SIG_SETMASK, &before, 0);
    pthread_attr_destroy(&own);
}

static long by_itself(Body body, char **given, long chunks)
{
    atomic_fetch_add(&alone, chunks > 1);
    for (long k = 0; k < chunks; k++)
        if (body(given, k, 0))
            return k + 1;
    return 0;
}

static long shared(Body body, char **given, long chunks, long threads)
{
    if (threads < 2 || chunks < 2 || inside || pthread_mutex_trylock(&owner))
        return by_itself(body, given, chunks);
    threads = threads < chunks ? threads : chunks;
    atomic_fetch_add(&jobs, 1);
    pthread_mutex_lock(&lock);
    grow(threads - 1);
    job.body = body, job.given = given, job.chunks = chunks;
    job.wanted = threads - 1, job.joined = 0;
    atomic_store(&next, 0);
    atomic_store(&failed, LONG_MAX);
    atomic_fetch_add(&number, 1);
    pthread_cond_broadcast(&posted);
    pthread_mutex_unlock(&lock);
    inside = 1;
    work(body, given, chunks, 0);
    inside = 0;
    pthread_mutex_lock(&lock);
    job.wanted = 0;
    pthread_mutex_unlock(&lock);
    for (int k = 0; k < LOOKS && atomic_load(&active); k++)
        rest();
    pthread_mutex_lock(&lock);
    while (atomic_load(&active))
        pthread_cond_wait(&left, &lock);
    long first = atomic_load(&failed);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&owner);
    return first == LONG_MAX ? 0 : first + 1;
}

/* Do all chunks, up to so many at a time; 0, or 1 and the number of the first that failed. Where
   they call BLAS it has one thread meanwhile, unless one of ours is all that may be used. */
long tcalc_spread(Body body, char **given, long chunks, long threads, int calls_blas)
{
    int single = calls_blas && threads > 1 && !inside;
    if (single)
        tcalc_pool_single(1);
    long found = shared(body, given, chunks, threads);
    if (single)
        tcalc_pool_single(-1);
    return found;
}
