// hooks.cpp: what each load and store of a kernel is checked for: it stays within the buffer of the pointer parameter it came from, reads
// only what was written, and is ordered with others (race.cpp; here for __shared__ memory). g++ -fsanitize=thread
// calls the __tsan_ functions below; libtsan itself is not linked.
#include "window.h"

#include <cstring>

namespace sim
{
Window windows[window_count];
const void *running_code;
void poison_shared();

namespace
{
struct SharedCell { // of 4 bytes of __shared__ memory
    uint32_t serial = 0;
    uint8_t written = 0;
    bool was_written = false, was_read = false;
    Thread wrote, read;
};
uintptr_t shared_begin, shared_end;
std::vector<SharedCell> *shared_cells;
uint32_t serial; // of the block

constexpr uintptr_t alias_span = uintptr_t(space_count) * window_count * span;

void shared_conflict(uintptr_t p, const Thread &then, const char *now)
{
    std::string who = then.thread == thread_any ? "several threads" : text("thread %u", then.thread);
    report("shared " + current->work.label,
           text("race in __shared__ memory, byte %lu: %s, which %s of the block touched with no barrier between",
                (unsigned long)(p - shared_begin), now, who.c_str()));
}

void check_shared(uintptr_t p, size_t bytes, Access access)
{
    Thread me = running_thread;
    for (uintptr_t i = (p - shared_begin) / 4; i <= (p - shared_begin + bytes - 1) / 4; i++) {
        SharedCell &cell = (*shared_cells)[i];
        uintptr_t first = shared_begin + 4 * i;
        uintptr_t from = p > first ? p - first : 0, to = p + bytes < first + 4 ? p + bytes - first : 4;
        me.bytes = uint8_t((0xfu << from) & (0xfu >> (4 - to)));
        if (cell.serial != serial)
            cell = SharedCell();
        cell.serial = serial;
        if (access != Access::write && (cell.written & me.bytes) != me.bytes)
            report("shared uninitialised " + current->work.label,
                   text("uninitialised read of __shared__ memory, byte %lu",
                        (unsigned long)(first + from - shared_begin)));
        bool both_atomic = access == Access::atomic && cell.wrote.block == block_atomic;
        if (cell.was_written && !both_atomic && same_launch_conflict(cell.wrote, me))
            shared_conflict(p, cell.wrote, access == Access::read ? "a read" : "a write");
        if (access == Access::read) {
            Thread before = cell.read;
            cell.read = me;
            if (cell.was_read && before.epoch == me.epoch) {
                cell.read.bytes |= before.bytes;
                if (before.thread != me.thread)
                    cell.read.thread = thread_any;
            }
            cell.was_read = true;
        } else {
            if (cell.was_read && same_launch_conflict(cell.read, me))
                shared_conflict(p, cell.read, "a write");
            cell.wrote = me;
            if (access == Access::atomic)
                cell.wrote.block = block_atomic;
            cell.was_written = true;
            cell.was_read = false;
            cell.written |= me.bytes;
        }
    }
}

std::string who(const Window &window)
{
    return window.parameter < 0 ? std::string() : text(", through parameter %d", window.parameter);
}

void check_device(uintptr_t address, size_t bytes, Access access)
{
    uintptr_t index = (address - alias_base) / span, offset = (address - alias_base) % span;
    const Window &window = windows[index % window_count];
    int space = int(index / window_count);
    uintptr_t p = handed_out + uintptr_t(space) * span + offset;
    const char *what = access == Access::read ? "read" : access == Access::write ? "write" : "atomic update";
    if (!window.bounds.buffer || p < window.bounds.low || p + bytes > window.bounds.high ||
        window.bounds.buffer->freed) {
        const char *kind = !window.bounds.buffer         ? "wild access"
                           : window.bounds.buffer->freed ? "use after free"
                           : p < window.bounds.low       ? "underrun"
                                                         : "overrun";
        report(std::string("bounds ") + current->work.label + window.bounds.name,
               text("%s: %s of %zu bytes at %s%s", kind, what, bytes, place(p, &window.bounds).c_str(),
                    who(window).c_str()));
        const Buffer *whole = window.bounds.buffer;
        if (!whole || whole->freed || p < whole->begin || p + bytes > whole->begin + whole->bytes)
            end_now(99); // a GPU stops here too: an illegal address
        return;
    }
    uint8_t *flags = written_flags(space) + offset;
    if (access != Access::write && space != host_space) {
        for (size_t i = 0; i < bytes; i++)
            if (!flags[i]) {
                report("uninitialised " + current->work.label + window.bounds.name,
                       text("uninitialised read: nothing has written %s%s", place(p + i, &window.bounds).c_str(),
                            who(window).c_str()));
                break;
            }
    }
    if (access != Access::read)
        memset(flags, 1, bytes);
    check_order(p, bytes, access, &window.bounds);
}

inline void seen(const void *address, size_t bytes, Access access, const void *code)
{
    running_code = code;
    uintptr_t a = uintptr_t(address);
    if (!in_kernel || !settings.check || bytes == 0)
        return;
    if (a - shared_begin < shared_end - shared_begin)
        check_shared(a, bytes, access);
    else if (a - alias_base < alias_span)
        check_device(a, bytes, access);
}
} // namespace

// Before a block: NaN, and nothing is known to be written.
void poison_shared()
{
    serial++;
    if (shared_begin)
        memset((void *)shared_begin, 0xff, shared_end - shared_begin);
}
} // namespace sim

EXPORT void cs_shared(void *begin, void *end)
{
    sim::shared_begin = uintptr_t(begin);
    sim::shared_end = uintptr_t(end);
    sim::shared_cells = new std::vector<sim::SharedCell>((sim::shared_end - sim::shared_begin) / 4 + 4);
}
EXPORT void cs_atomic(const void *p, size_t bytes)
{
    sim::seen(p, bytes, sim::Access::atomic, __builtin_return_address(0));
}

#define SIZE(BYTES)                                                                                                    \
    EXPORT void __tsan_read##BYTES(void *p)                                                                            \
    {                                                                                                                  \
        sim::seen(p, BYTES, sim::Access::read, __builtin_return_address(0));                                           \
    }                                                                                                                  \
    EXPORT void __tsan_write##BYTES(void *p)                                                                           \
    {                                                                                                                  \
        sim::seen(p, BYTES, sim::Access::write, __builtin_return_address(0));                                          \
    }                                                                                                                  \
    EXPORT void __tsan_unaligned_read##BYTES(void *p)                                                                  \
    {                                                                                                                  \
        sim::seen(p, BYTES, sim::Access::read, __builtin_return_address(0));                                           \
    }                                                                                                                  \
    EXPORT void __tsan_unaligned_write##BYTES(void *p)                                                                 \
    {                                                                                                                  \
        sim::seen(p, BYTES, sim::Access::write, __builtin_return_address(0));                                          \
    }
SIZE(1)
SIZE(2)
SIZE(4)
SIZE(8)
SIZE(16)
EXPORT void __tsan_read_range(void *p, size_t bytes)
{
    sim::seen(p, bytes, sim::Access::read, __builtin_return_address(0));
}
EXPORT void __tsan_write_range(void *p, size_t bytes)
{
    sim::seen(p, bytes, sim::Access::write, __builtin_return_address(0));
}
EXPORT void __tsan_init(void) {}
EXPORT void __tsan_func_entry(void *) {}
EXPORT void __tsan_func_exit(void) {}
EXPORT void __tsan_vptr_update(void **, void *) {}
EXPORT void __tsan_vptr_read(void **) {}

// -fsanitize=alignment,bounds,signed-integer-overflow: called only when something is wrong. All data begin with the source's place.
struct SourcePlace {
    const char *file;
    uint32_t line, column;
};
static void wrong(const SourcePlace *at, const std::string &what)
{
    const char *name = strrchr(at->file, '/');
    sim::report(sim::text("%s:%u %s", at->file, at->line, sim::current ? sim::current->work.label.c_str() : ""),
                sim::text("%s, %s:%u", what.c_str(), name ? name + 1 : at->file, at->line));
}
struct TypeMismatch {
    SourcePlace at;
    const void *type;
    uint8_t log_alignment, kind;
};
EXPORT void __ubsan_handle_type_mismatch_v1(TypeMismatch *data, uintptr_t p)
{
    uintptr_t offset = (p - sim::alias_base) % sim::span, space = (p - sim::alias_base) / sim::span / sim::window_count;
    bool device = p - sim::alias_base < sim::alias_span;
    wrong(&data->at, sim::text("misaligned: an access that needs %d bytes of alignment to %s", 1 << data->log_alignment,
                               device ? sim::place(sim::handed_out + space * sim::span + offset).c_str()
                                      : "memory of the kernel"));
}
EXPORT void __ubsan_handle_out_of_bounds(SourcePlace *at, uintptr_t index)
{
    wrong(at, sim::text("index %ld is outside of the array", long(index)));
}
EXPORT void __ubsan_handle_add_overflow(SourcePlace *at, uintptr_t, uintptr_t)
{
    wrong(at, "a sum overflows int");
}
EXPORT void __ubsan_handle_sub_overflow(SourcePlace *at, uintptr_t, uintptr_t)
{
    wrong(at, "a difference overflows int");
}
EXPORT void __ubsan_handle_mul_overflow(SourcePlace *at, uintptr_t, uintptr_t)
{
    wrong(at, "a product overflows int");
}
EXPORT void __ubsan_handle_negate_overflow(SourcePlace *at, uintptr_t)
{
    wrong(at, "a negation overflows int");
}
