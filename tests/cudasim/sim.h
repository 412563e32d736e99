// sim.h: what the parts of the double share. Contract: everything below is called with the one lock held (a Call holds it), kernels
// and copies run under it too, so at most one simulated operation runs at any time. Addresses are "handed out" (what the program
// holds, never mapped for device memory) unless a name says "alias" (where the bytes lie).
#pragma once
#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace sim
{
// ---- config.cpp: settings, reports, failures on demand, statistics ----
enum class Order { eager, lazy, random };
struct Settings {
    Order order = Order::eager;
    int devices = 1;
    size_t memory = size_t(8) << 30;
    bool check = true;
    bool reverse_threads = false;
    double patience = 10;
    std::string gpu, stats;
    std::string world; // folder that ranks in several processes share; empty: ranks are threads
};
extern Settings &settings;
uint64_t random_number();
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Says it once a key; the process then ends with 99.
void report(const std::string &key, const std::string &message);
[[noreturn]] void end_now(int code); // for what cannot go on: says the total and leaves at once
void count(const std::string &what, uint64_t times = 1);

// An API call: takes the lock, counts, fails when the user asked for it. CUDA calls from a host function are reported.
struct Call {
    explicit Call(const char *name);
    ~Call();
    const char *name;
    bool fails = false;
    bool dropped = false; // does nothing, answers success: a bug made on purpose
};
extern std::mutex lock;
extern std::condition_variable &changed;
extern thread_local bool in_host_function;

// ---- space.cpp: devices' memory and pinned memory ----
constexpr int max_devices = 8, host_space = max_devices, space_count = max_devices + 1, window_count = 64;
constexpr uintptr_t span = uintptr_t(1) << 34; // addresses of one space
constexpr uintptr_t handed_out = 0x3a5c00000000, alias_base = 0x3b0000000000;

struct Region {
    uintptr_t begin;
    size_t bytes;
    std::string name;
};
struct Buffer : Region {
    int space = 0;
    bool freed = false;
    std::multimap<uintptr_t, Region> parts;
    std::map<int, uint32_t> touched; // timeline -> last record
    uint32_t last_record = 0;
};
// What a pointer may reach: a region, or a whole allocation, or (buffer == nullptr) nothing.
struct Bounds {
    Buffer *buffer = nullptr;
    uintptr_t low = 0, high = 0;
    std::string name;
};
enum class Access { read, write, atomic };

inline bool is_handed_out(uintptr_t p)
{
    return p - handed_out < space_count * span;
}
inline int space_of(uintptr_t p)
{
    return int((p - handed_out) / span);
}
inline bool is_device(const void *p)
{
    return is_handed_out(uintptr_t(p)) && space_of(uintptr_t(p)) < max_devices;
}
inline bool is_pinned(const void *p)
{
    return is_handed_out(uintptr_t(p)) && space_of(uintptr_t(p)) == host_space;
}
// The address at which simulated code sees handed-out p through a window; a host address is its own alias.
void *alias(const void *p, int window = 0);
Buffer *allocate(int space, size_t bytes, const std::string &name); // nullptr: does not fit
Buffer *buffer_at(uintptr_t p, bool near = false);                  // near: the closest, for messages
Bounds bounds_of(uintptr_t p);
void release(Buffer *buffer);
size_t in_use(int space), peak(int space);
std::string place(uintptr_t p, const Bounds *given = nullptr); // "buffer 'x' + 12 (48 bytes)"
uint8_t *written_flags(int space);                             // a byte for each byte: 0 nothing was written yet
// A whole-range access by a copy or a library call: bounds by the pointer, then written flags and races. False when it must not run.
bool use(const void *p, size_t bytes, Access access, const std::string &role);
bool range_ok(const void *p, size_t bytes, const std::string &role); // bounds only, at the call

// ---- pinned.cpp: pages of pinned memory that the host must not touch yet ----
struct Pin {
    uintptr_t begin;
    size_t bytes;
    bool written; // by the device: the host may not even read it
};
struct Op;
void pin(const Pin &pin, const std::shared_ptr<Op> &op);
void release_pins(); // of operations that the host has waited for
void catch_faults(); // installs the handler that names what was touched

// ---- race.cpp: happens-before ----
using Clock = std::vector<uint32_t>;
Clock &host_clock(); // what any host thread has waited for
int new_timeline();
void join(Clock &into, const Clock &from);
void begin_record(Op &op);
bool ordered_before_host(uint32_t record);
bool ordered_before(uint32_t record, const Op &op);
const std::string &record_label(uint32_t record);
// One access of at most 16 bytes by a thread of a kernel, or of any length by a copy (then no thread is known).
void check_order(uintptr_t p, size_t bytes, Access access, const Bounds *given);

// ---- op.cpp: the dependency graph and its execution ----
enum class Kind { empty, kernel, copy, set, host, dnn, nccl };
enum class Phase { waiting, started, done };
struct Exchange; // nccl.cpp
struct Work {    // what a stream is asked to do; runs any number of times
    Kind kind = Kind::empty;
    std::string label;
    std::function<void(Op &)> run;
    std::vector<Pin> pins;
    std::shared_ptr<Exchange> exchange;
    uint64_t ticks = 1; // by which it moves the clock of events on
};
struct Op {
    uint64_t id = 0;
    Work work;
    int device = 0, timeline = 0;
    std::string where; // "stream 'stage 0'"
    bool from_graph = false;
    std::vector<std::shared_ptr<Op>> needs;
    std::shared_ptr<Op> behind; // the exchange before it: it begins later, but a program must order the two
    std::vector<Op *> dependents;
    size_t missing = 0;
    Phase phase = Phase::waiting;
    // What comes before it. A wait by any host thread is taken to be known to all threads that enqueue later: hand-overs between
    // threads are not seen. `strict` leaves that out, and is what an NCCL exchange passes on to the other rank: otherwise a
    // receive that was enqueued earlier would inherit what its own host did afterwards.
    Clock from_host, clock, from_own, strict;
    uint32_t mark = 0, record = 0;
};
using OpRef = std::shared_ptr<Op>;
extern Op *current; // the operation that runs now
OpRef make_op(const Work &work, int device, int timeline, const std::string &where);
uint64_t ticks();                                         // of all operations so far
void need(const OpRef &op, const OpRef &earlier);         // earlier may be null or done
void queue_behind(const OpRef &op, const OpRef &earlier); // in time only: not known to come before it
void submit(const OpRef &op);
void finish(Op &op); // of one that stayed `started`
void wait_for(OpRef op);
void wait_all(int device);
bool query(const OpRef &op); // true: done, and the host has seen it
size_t unfinished();
bool other_threads_sleep(); // all threads of the process but this one

// ---- nccl.cpp ----
void order_exchange(const OpRef &op);         // after its communicator's earlier ones
std::string exchange_waits_for(const Op &op); // of one that has begun
bool worldwide();                             // world.cpp: ranks are processes
bool world_poll();                            // ends what has met its peer in another process: true, if anything

// ---- stream.cpp, capture.cpp (their structures: stream.h) ----
struct Node { // of a graph
    Work work;
    int device;
    std::string where;
    std::vector<int> needs;
    int lane = 0;
};
cudaError_t enqueue(cudaStream_t stream, const Work &work, OpRef *made = nullptr);
CUstream_st *resolve(cudaStream_t stream); // nullptr: no such stream (reported)
int stream_device(cudaStream_t stream);
bool capturing(cudaStream_t stream);
// A call that capture forbids: reports, spoils this thread's captures, and answers true.
bool forbidden_in_capture(const char *name);
cudaError_t last(cudaError_t error); // remembers it for cudaGetLastError
int current_device();

// ---- block.cpp, hooks.cpp, kernel.cpp ----
struct Kernel {
    std::string name;
    void *function;
    void (*invoke)(void *function, const unsigned char *arguments);
    int count;
    const uint16_t *size, *align;
    const uint8_t *pointer;
};
struct Launch {
    const Kernel *kernel;
    dim3 grid, block;
    std::vector<unsigned char> arguments;
};
void run_launch(const Launch &launch);
struct Thread { // who makes an access, within a kernel
    uint32_t block = 0;
    uint16_t thread = 0, epoch = 0, warp_epoch = 0;
    uint8_t bytes = 0xf; // which of the four
};
extern bool in_kernel, fenced; // fenced: this launch has used __threadfence
extern Thread running_thread;
extern const void *running_code;                     // return address of the access that is checked
std::string source_line(const void *return_address); // source.cpp: ", kernels.cu:12", or empty
std::string running_place();                         // "block (1,0,0) thread (3,0,0)"
constexpr uint32_t block_any = 0xfffffffe, block_atomic = 0xffffffff;
constexpr uint16_t thread_any = 0xffff, lanes = 32;
// Did another thread of this launch make the earlier access with nothing in between?
inline bool same_launch_conflict(const Thread &earlier, const Thread &now)
{
    if (earlier.block == block_atomic || !(earlier.bytes & now.bytes))
        return false;
    if (earlier.block != now.block) // block_any too
        return true;
    if (earlier.thread == now.thread || earlier.epoch != now.epoch)
        return false;
    return earlier.thread == thread_any || earlier.thread / lanes != now.thread / lanes ||
           earlier.warp_epoch == now.warp_epoch;
}

// ---- cubin.cpp ----
struct CubinKernel {
    bool found = false;
    std::vector<int> offset, size;
    int max_threads = 0;
};
bool is_cubin(const void *image), is_ptx(const void *image);
int cubin_arch(const void *image); // 90 for sm_90
CubinKernel cubin_kernel(const void *image, const std::string &name);

// ---- device.cpp: the GPU that is played ----
struct Gpu {
    std::string json, name;
    int arch, multiprocessors;
};
const Gpu &gpu();
} // namespace sim
