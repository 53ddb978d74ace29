/* Callers of the pool at once, jobs in jobs, failing chunks, workspaces of workers, and what these find
   of a BLAS; prints "done". */
#include <stdio.h>
#include <string.h>

enum { CHUNKS = 40, TIMES = 200 };

static int filled(char **given, long chunk, long worker)
{
    long *out = (long *)given[0], *own = (long *)given[1] + worker * 8;
    for (long k = 0; k < 8; k++)
        own[k] = chunk + k;
    for (long k = out[chunk] = 0; k < 8; k++)
        out[chunk] += own[k];
    return chunk % 7 == 6 && given[2] != 0;
}

static int nested(char **given, long chunk, long worker)
{
    long out[CHUNKS], own[8 * 3];
    (void)worker;
    ((long *)given[0])[chunk] = tcalc_spread(filled, (char *[]){(char *)out, (char *)own, "x"},
                                             CHUNKS, 3, 0);
    return out[CHUNKS - 1] != 8 * (CHUNKS - 1) + 28 && 0;
}

static atomic_int of_blas = 3;

static int threads_of_blas(void) { return atomic_load(&of_blas); }
static void set_threads_of_blas(int threads) { atomic_store(&of_blas, threads); }

/* Fails where BLAS has more than one thread, and in its tenth chunk. */
static int with_blas(char **given, long chunk, long worker)
{
    long out[CHUNKS], own[8 * 3];
    (void)given, (void)worker;
    int several = threads_of_blas() != 1 || tcalc_pool_of_blas() != 1;
    several |= tcalc_spread(filled, (char *[]){(char *)out, (char *)own, 0}, CHUNKS, 3, 1) != 0;
    return several || threads_of_blas() != 1 || chunk == 9;
}

static void *caller(void *bad)
{
    for (long k = 0; k < TIMES; k++) {
        long out[CHUNKS] = {0}, own[8 * 3], found;
        found = tcalc_spread(filled, (char *[]){(char *)out, (char *)own, 0}, CHUNKS, 3, 0);
        for (long c = 0; c < CHUNKS; c++)
            *(int *)bad |= found || out[c] != 8 * c + 28;
        *(int *)bad |= tcalc_spread(filled, (char *[]){(char *)out, (char *)own, "x"}, CHUNKS,
                                    1 + k % 3, 0) != 7;
        *(int *)bad |= tcalc_spread(nested, (char *[]){(char *)out}, CHUNKS, 2, 0) != 0;
        for (long c = 0; c < CHUNKS; c++)
            *(int *)bad |= out[c] != 7;
        *(int *)bad |= tcalc_spread(with_blas, 0, 9, 2, 1) != 0;
        *(int *)bad |= tcalc_spread(with_blas, 0, 1, 2, 1) != 0;
        *(int *)bad |= tcalc_spread(with_blas, 0, CHUNKS, 3, 1) != 10;
        tcalc_pool_single(1);
        *(int *)bad |= threads_of_blas() != 1;
        tcalc_pool_single(-1);
    }
    return 0;
}

int main(void)
{
    pthread_t others[3];
    int bad[4] = {0};
    tcalc_pool_blas(threads_of_blas, set_threads_of_blas, 0, 0);
    for (int k = 0; k < 3; k++)
        pthread_create(others + k, 0, caller, bad + k);
    caller(bad + 3);
    for (int k = 0; k < 3; k++)
        pthread_join(others[k], 0);
    long counts[3];
    tcalc_pool_counts(counts);
    int whole = counts[0] + counts[1] >= 4 * 5 * TIMES && counts[2] == 2;
    whole &= threads_of_blas() == 3 && tcalc_pool_of_blas() == 3;
    puts(bad[0] | bad[1] | bad[2] | bad[3] ? "wrong" : whole ? "done" : "miscounted");
    return 0;
}
