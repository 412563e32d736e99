// block.cpp: runs a launch: block after block, the threads of a block as fibers. A fiber takes one new thread after another until one
// really waits; then the next thread gets another fiber. Kernels without barriers never switch. Once all threads have begun, warp
// exchanges are released when all lanes of the mask have come, then the barrier when all threads have.
#include "sim.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
#error "the double switches fibers with x86-64 instructions"
#endif

extern "C" {
struct cs_index {
    unsigned x, y, z;
};
struct cs_place {
    cs_index thread, block, block_size, grid_size;
};
__attribute__((visibility("default"))) cs_place cs_here;
}

namespace sim
{
bool in_kernel, fenced;
Thread running_thread;
void poison_shared(); // hooks.cpp

namespace
{
constexpr unsigned max_threads = 1024;
constexpr size_t stack_bytes = 256 << 10;
enum class Wait { none, barrier, warp };

struct Fiber {
    void *saved = nullptr;
    char *stack = nullptr;
    bool used = false, runnable = false;
    unsigned thread = 0, mask = 0;
    Wait wait = Wait::none;
};
Fiber fibers[max_threads];
void *scheduler;
int running;                     // fiber
int fiber_of[max_threads];       // of a thread; -1
bool finished[max_threads];      // threads
uint64_t passed[2][max_threads]; // values of warp exchanges, two turns: a lane runs to its next wait only
uint8_t turn[max_threads];
unsigned total, begun, done;
uint32_t block_number;
uint16_t epoch, warp_epoch[max_threads / lanes];
bool reversed; // threads and blocks, in this launch
const Kernel *kernel;
const unsigned char *kernel_arguments;

__attribute__((naked, noinline)) void switch_to(void **, void *)
{
    __asm__ volatile("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
                     "movq %rsp,(%rdi)\n movq %rsi,%rsp\n"
                     "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
}

unsigned in_order(unsigned i)
{
    return settings.reverse_threads ? total - 1 - i : i;
}

void be(unsigned thread)
{
    cs_here.thread = {thread % cs_here.block_size.x, thread / cs_here.block_size.x % cs_here.block_size.y,
                      thread / cs_here.block_size.x / cs_here.block_size.y};
    running_thread = {block_number, uint16_t(thread), epoch, warp_epoch[thread / lanes], 0xf};
}

void fiber_main()
{
    int me = running;
    while (begun < total && fibers[me].wait == Wait::none) {
        unsigned thread = in_order(begun++);
        fibers[me].thread = thread;
        fiber_of[thread] = me;
        be(thread);
        kernel->invoke(kernel->function, kernel_arguments);
        finished[thread] = true;
        done++;
        if (fibers[me].wait != Wait::none) // it has waited: others wait for the scheduler
            break;
    }
    fibers[me].used = false;
    switch_to(&fibers[me].saved, scheduler);
    abort();
}

void begin_fiber()
{
    int free = 0;
    while (fibers[free].used)
        free++;
    Fiber &fiber = fibers[free];
    if (!fiber.stack) {
        void *mapped =
            mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            perror("cudasim: no memory for the threads of a block");
            _exit(2);
        }
        fiber.stack = (char *)mapped;
    }
    void **top = (void **)(fiber.stack + stack_bytes - 16);
    *--top = nullptr;
    *--top = (void *)fiber_main;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    fiber.saved = top;
    fiber.used = true;
    fiber.runnable = false;
    fiber.wait = Wait::none;
    running = free;
    switch_to(&scheduler, fiber.saved);
}

void wait_here(Wait why)
{
    running_code = nullptr;
    int me = running;
    fibers[me].wait = why;
    fibers[me].runnable = false;
    switch_to(&fibers[me].saved, scheduler);
    running = me;
    be(fibers[me].thread);
}

void complain(const char *key, const std::string &message)
{
    report(key + kernel->name, message);
}

// Has every lane of the mask of this waiting thread come to the same exchange?
bool exchange_complete(unsigned first, unsigned mask)
{
    for (unsigned lane = 0; lane < lanes && first + lane < total; lane++) {
        if (!(mask >> lane & 1))
            continue;
        unsigned thread = first + lane;
        if (finished[thread]) {
            complain("exchange ", text("warp exchange of lanes %08x: lane %u has left the kernel", mask, lane));
            continue;
        }
        const Fiber &other = fibers[fiber_of[thread]];
        if (other.runnable || other.wait != Wait::warp || other.mask != mask)
            return false;
    }
    return true;
}

void release_exchanges()
{
    for (unsigned thread = 0; thread < total; thread++) {
        if (finished[thread])
            continue;
        const Fiber &fiber = fibers[fiber_of[thread]];
        unsigned first = thread / lanes * lanes, mask = fiber.mask;
        if (fiber.runnable || fiber.wait != Wait::warp || !exchange_complete(first, mask))
            continue;
        warp_epoch[first / lanes]++;
        for (unsigned lane = 0; lane < lanes && first + lane < total; lane++)
            if (mask >> lane & 1 && !finished[first + lane])
                fibers[fiber_of[first + lane]].runnable = true;
    }
}

void release_barrier()
{
    unsigned alive = 0, waiting = 0;
    for (unsigned thread = 0; thread < total; thread++) {
        alive += !finished[thread];
        waiting += !finished[thread] && fibers[fiber_of[thread]].wait == Wait::barrier;
    }
    if (waiting != alive) {
        complain("stuck ",
                 text("the block is stuck: %u threads wait at __syncthreads, %u in warp exchanges, %u have left",
                      waiting, alive - waiting, total - alive));
        end_now(98);
    }
    if (alive != total)
        complain("barrier ",
                 text("__syncthreads is reached by %u threads of %u; the others have left the kernel", alive, total));
    epoch++;
    for (unsigned thread = 0; thread < total; thread++)
        if (!finished[thread])
            fibers[fiber_of[thread]].runnable = true;
}

void run_block()
{
    begun = done = 0;
    memset(finished, 0, sizeof finished);
    memset(turn, 0, sizeof turn);
    epoch = 1;
    for (uint16_t &one : warp_epoch)
        one = 1;
    poison_shared();
    while (done < total) {
        if (begun < total) {
            begin_fiber();
            continue;
        }
        release_exchanges();
        bool ran = false;
        for (unsigned i = 0; i < total; i++) {
            unsigned thread = in_order(i);
            if (finished[thread] || !fibers[fiber_of[thread]].runnable)
                continue;
            running = fiber_of[thread];
            ran = true;
            switch_to(&scheduler, fibers[running].saved);
        }
        if (!ran && done < total)
            release_barrier();
    }
}
} // namespace

void run_launch(const Launch &launch)
{
    kernel = launch.kernel;
    kernel_arguments = launch.arguments.data();
    total = launch.block.x * launch.block.y * launch.block.z;
    cs_here.block_size = {launch.block.x, launch.block.y, launch.block.z};
    cs_here.grid_size = {launch.grid.x, launch.grid.y, launch.grid.z};
    reversed = settings.reverse_threads != (settings.order == Order::random && random_number() % 2);
    fenced = false;
    in_kernel = true;
    const uint32_t plane = launch.grid.x * launch.grid.y, blocks = plane * launch.grid.z;
    for (uint32_t i = 0; i < blocks; i++) {
        block_number = reversed ? blocks - 1 - i : i;
        cs_here.block = {block_number % launch.grid.x, block_number % plane / launch.grid.x, block_number / plane};
        run_block();
    }
    in_kernel = false;
}

std::string running_place()
{
    const cs_place &here = cs_here;
    return text("block (%u,%u,%u) thread (%u,%u,%u)", here.block.x, here.block.y, here.block.z, here.thread.x,
                here.thread.y, here.thread.z);
}

} // namespace sim

// ---- what kernel.h calls ----
EXPORT void cs_barrier(void)
{
    sim::wait_here(sim::Wait::barrier);
}
EXPORT void cs_fence(void)
{
    sim::fenced = true;
}
EXPORT void cs_warp(unsigned mask)
{
    sim::fibers[sim::running].mask = mask;
    sim::wait_here(sim::Wait::warp);
}

EXPORT uint64_t cs_shuffle(unsigned mask, uint64_t value, int mode, int argument, int width)
{
    using namespace sim;
    unsigned thread = fibers[running].thread;
    int lane = int(thread % lanes), first = lane / width * width, source = lane;
    if (!(mask >> lane & 1))
        complain("mask ", text("shuffle: lane %d is not in its own mask %08x", lane, mask));
    uint64_t *values = passed[turn[thread] ^= 1];
    values[thread] = value;
    cs_warp(mask);
    if (mode == 0)
        source = first + (argument & (width - 1));
    else if (mode == 1)
        source = lane - argument < first ? lane : lane - argument;
    else if (mode == 2)
        source = lane + argument >= first + width ? lane : lane + argument;
    else
        source = (lane ^ argument) >= first + width ? lane : lane ^ argument;
    if (!(mask >> source & 1) || thread - unsigned(lane) + unsigned(source) >= total)
        complain("source ", text("shuffle: source lane %d is not in mask %08x, or is no thread", source, mask));
    return values[thread - unsigned(lane) + unsigned(source)];
}

EXPORT unsigned cs_ballot(unsigned mask, int predicate)
{
    using namespace sim;
    unsigned thread = fibers[running].thread, first = thread / lanes * lanes, result = 0;
    uint64_t *values = passed[turn[thread] ^= 1];
    values[thread] = predicate != 0;
    cs_warp(mask);
    for (unsigned lane = 0; lane < lanes && first + lane < total; lane++)
        if (mask >> lane & 1 && values[first + lane])
            result |= 1u << lane;
    return result;
}
