/* CUDA's runtime on the host, for tests: a block's threads are fibers that meet at barriers, in an
   order that is another one for every seed, so that what is not synchronised is seen. */
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __managed__
#define __shared__ static

struct Index {
    unsigned x;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

typedef int cudaError_t;
typedef struct Stream *cudaStream_t;
enum { cudaSuccess = 0 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

/* What tests read: the seed of the order, launches and waits so far, blocks whose threads did not all
   meet. */
extern "C" {
unsigned shim_seed = 0;
long shim_launches = 0, shim_waits = 0, shim_broken = 0;
}

namespace shim {
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done, waits;
};
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline unsigned at;
inline void (*body)(void *);
inline void *given;

inline void entered()
{
    body(given);
    fibers[at].done = true;
    swapcontext(&fibers[at].context, &scheduler);
}

inline unsigned drawn(unsigned &state)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

inline std::vector<unsigned> order(unsigned n, unsigned &state)
{
    std::vector<unsigned> found(n);
    for (unsigned k = 0; k < n; k++)
        found[k] = k;
    for (unsigned k = n; shim_seed && k > 1; k--)
        std::swap(found[k - 1], found[drawn(state) % k]);
    return found;
}

/* One block: all threads up to a barrier, then all of them on. */
inline void run_block(unsigned threads, unsigned &state)
{
    if (fibers.size() < threads)
        fibers.resize(threads);
    for (unsigned k = 0; k < threads; k++) {
        Fiber &fiber = fibers[k];
        if (fiber.stack.empty())
            fiber.stack.resize(1 << 17);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, entered, 0);
        fiber.done = fiber.waits = false;
    }
    for (unsigned left = threads; left > 0;) {
        unsigned waiting = 0, ended = 0;
        for (unsigned k : order(threads, state)) {
            if (fibers[k].done)
                continue;
            at = k;
            threadIdx.x = k;
            fibers[k].waits = false;
            swapcontext(&scheduler, &fibers[k].context);
            waiting += fibers[k].waits;
            ended += fibers[k].done;
        }
        left -= ended;
        if (waiting && left != threads)
            shim_broken++; /* some left while others wait */
    }
}

template <typename F> void launch(unsigned blocks, unsigned threads, F f)
{
    unsigned state = shim_seed * 2654435769u;
    shim_launches++;
    if (blocks == 0)
        shim_broken++;
    gridDim.x = blocks;
    blockDim.x = threads;
    given = &f;
    body = [](void *found) { (*(F *)found)(); };
    for (unsigned block : order(blocks, state)) {
        blockIdx.x = block;
        if (threads == 1) {
            threadIdx.x = 0;
            f();
        } else
            run_block(threads, state);
    }
}
} // namespace shim

inline void __syncthreads()
{
    if (blockDim.x == 1)
        return;
    const unsigned mine = shim::at;
    shim::fibers[mine].waits = true;
    swapcontext(&shim::fibers[mine].context, &shim::scheduler);
}

#define LAUNCH(kernel, blocks, threads, stream, ...) \
    ((void)(stream), shim::launch(blocks, threads, [&] { kernel(__VA_ARGS__); }))

inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, size);
    return cudaSuccess;
}

inline cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind)
{
    memcpy(to, from, size);
    return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t)
{
    memset(to, value, size);
    return cudaSuccess;
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    shim_waits++;
    return cudaSuccess;
}

inline cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}

template <typename T> cudaError_t cudaMalloc(T **to, size_t size)
{
    *to = (T *)malloc(size + 1);
    return cudaSuccess;
}

template <typename T> cudaError_t cudaMallocManaged(T **to, size_t size)
{
    return cudaMalloc(to, size);
}

inline cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}
