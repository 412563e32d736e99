// space.cpp: the memory of each GPU, and pinned memory: allocations, named parts, windows, and what was written.
//
// The bytes of a space lie in one memory file. The program gets addresses of its own: unmapped for a GPU, mapped for pinned memory.
// Simulated code sees the same bytes through windows (further mappings); a kernel gets a window for each pointer parameter, so
// an access tells which parameter it came from. Addresses are never used twice. Allocations lie `gap` bytes apart.
#include "sim.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sim
{
namespace
{
constexpr size_t gap = 4096, alignment = 512, page = 4096;

struct Space {
    int file = -1;
    uint8_t *written = nullptr;
    bool window[window_count] = {};
    size_t next = gap, in_use = 0, peak = 0;
};
struct State {
    Space space[space_count];
    std::map<uintptr_t, Buffer> buffers; // by first address; freed ones stay, to name them
    int numbered = 0;
};
State &state()
{
    static State *one = new State;
    return *one;
}

uintptr_t base(int space)
{
    return handed_out + uintptr_t(space) * span;
}

void *map(uintptr_t where, size_t bytes, int protection, int flags, int file)
{
    void *mapped = mmap((void *)where, bytes, protection, flags, file, 0);
    if (mapped == MAP_FAILED) {
        perror("cudasim: cannot map memory for a simulated GPU");
        _exit(2);
    }
    return mapped;
}

Space &opened(int number)
{
    Space &space = state().space[number];
    if (space.file >= 0)
        return space;
    space.file = memfd_create("cudasim", 0);
    if (space.file < 0 || ftruncate(space.file, off_t(span)) != 0) {
        perror("cudasim: cannot make memory for a simulated GPU");
        _exit(2);
    }
    if (number == host_space)
        map(base(number), span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, space.file);
    else
        map(base(number), span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1);
    space.written = (uint8_t *)map(0, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    return space;
}
} // namespace

void *alias(const void *p, int window)
{
    if (!is_handed_out(uintptr_t(p)))
        return const_cast<void *>(p);
    int number = space_of(uintptr_t(p));
    Space &space = opened(number);
    uintptr_t begin = alias_base + uintptr_t(number * window_count + window) * span;
    if (!space.window[window])
        map(begin, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, space.file);
    space.window[window] = true;
    return (void *)(begin + (uintptr_t(p) - base(number)));
}

Buffer *allocate(int number, size_t bytes, const std::string &name)
{
    Space &space = opened(number);
    if (bytes == 0 || (number != host_space && space.in_use + bytes > settings.memory))
        return nullptr;
    size_t taken = (bytes + alignment - 1) / alignment * alignment + gap;
    if (number == host_space) // whole pages, which are protected while a copy uses them
        taken = (bytes + page - 1) / page * page + gap;
    if (space.next + taken > span) {
        fprintf(stderr, "cudasim: a simulated GPU has used up its addresses\n");
        return nullptr;
    }
    Buffer buffer;
    buffer.begin = base(number) + space.next;
    buffer.bytes = bytes;
    buffer.space = number;
    buffer.name = name.empty() ? text("allocation %d", ++state().numbered) : name;
    space.next += taken;
    space.in_use += bytes;
    space.peak = std::max(space.peak, space.in_use);
    Buffer *made = &(state().buffers[buffer.begin] = buffer);
    if (number != host_space && settings.check)
        memset(alias((void *)made->begin), 0xff, bytes); // NaN
    return made;
}

Buffer *buffer_at(uintptr_t p, bool near)
{
    auto &buffers = state().buffers;
    auto after = buffers.upper_bound(p);
    Buffer *below = after == buffers.begin() ? nullptr : &std::prev(after)->second;
    if (below && p < below->begin + below->bytes)
        return below;
    if (!near)
        return nullptr;
    if (below && p < below->begin + below->bytes + gap)
        return below;
    return after != buffers.end() && after->second.begin - p <= gap ? &after->second : nullptr;
}

Bounds bounds_of(uintptr_t p)
{
    Bounds bounds;
    Buffer *buffer = is_handed_out(p) ? buffer_at(p) : nullptr;
    if (!buffer)
        return bounds;
    bounds = {buffer, buffer->begin, buffer->begin + buffer->bytes, buffer->name};
    const Region *best = nullptr;
    for (const auto &entry : buffer->parts) {
        const Region &part = entry.second;
        if (part.begin > p)
            break;
        if (p >= part.begin + part.bytes)
            continue;
        bool starts = part.begin == p, best_starts = best && best->begin == p;
        if (!best || (starts && (!best_starts || part.bytes > best->bytes)) ||
            (!starts && !best_starts && part.bytes < best->bytes))
            best = &part;
    }
    if (best)
        bounds = {buffer, best->begin, best->begin + best->bytes, best->name};
    return bounds;
}

void release(Buffer *buffer)
{
    for (const auto &one : buffer->touched)
        if (!ordered_before_host(one.second))
            report("free " + buffer->name, text("buffer '%s' is freed, but nothing has waited for %s, which uses it",
                                                buffer->name.c_str(), record_label(one.second).c_str()));
    buffer->freed = true;
    Space &space = state().space[buffer->space];
    space.in_use -= buffer->bytes;
    memset(alias((void *)buffer->begin), 0xfe, buffer->bytes);
    if (buffer->space == host_space)
        mprotect((void *)buffer->begin, (buffer->bytes + page - 1) / page * page, PROT_NONE);
}

size_t in_use(int space)
{
    return state().space[space].in_use;
}
size_t peak(int space)
{
    return state().space[space].peak;
}
uint8_t *written_flags(int space)
{
    return opened(space).written;
}

std::string place(uintptr_t p, const Bounds *given)
{
    Bounds bounds = given && given->buffer ? *given : bounds_of(p);
    if (!bounds.buffer) {
        Buffer *near = is_handed_out(p) ? buffer_at(p, true) : nullptr;
        if (!near)
            return text("address %#lx, which is no buffer", (unsigned long)p);
        bounds = {near, near->begin, near->begin + near->bytes, near->name};
    }
    return text("buffer '%s' %+ld (of %lu bytes)%s", bounds.name.c_str(), long(p - bounds.low),
                (unsigned long)(bounds.high - bounds.low), bounds.buffer->freed ? ", which was freed" : "");
}

bool range_ok(const void *p, size_t bytes, const std::string &role)
{
    if (bytes == 0 || (!is_handed_out(uintptr_t(p)) && p))
        return true;
    Bounds bounds = bounds_of(uintptr_t(p));
    std::string who = current ? current->work.label + " " + role : role;
    if (!bounds.buffer)
        report("wild " + who, text("%s: %s", role.c_str(), p ? place(uintptr_t(p)).c_str() : "a null pointer"));
    else if (bounds.buffer->freed)
        report("freed " + who + bounds.name, text("%s: use of %s", role.c_str(), place(uintptr_t(p), &bounds).c_str()));
    else if (uintptr_t(p) + bytes > bounds.high)
        report("overrun " + who + bounds.name,
               text("%s: overrun: %zu bytes from %s", role.c_str(), bytes, place(uintptr_t(p), &bounds).c_str()));
    else
        return true;
    return bounds.buffer && !bounds.buffer->freed &&
           uintptr_t(p) + bytes <= bounds.buffer->begin + bounds.buffer->bytes;
}

bool use(const void *p, size_t bytes, Access access, const std::string &role)
{
    if (bytes == 0 || !is_handed_out(uintptr_t(p)))
        return true;
    if (!range_ok(p, bytes, role))
        return false;
    if (!settings.check)
        return true;
    Bounds bounds = bounds_of(uintptr_t(p));
    uint8_t *flags = written_flags(space_of(uintptr_t(p))) + (uintptr_t(p) - base(space_of(uintptr_t(p))));
    if (access == Access::write) {
        memset(flags, 1, bytes);
    } else if (is_device(p)) {
        const void *first = memchr(flags, 0, bytes);
        if (first)
            report("uninitialised " + current->work.label + bounds.name,
                   text("%s: uninitialised read: nothing has written %s", role.c_str(),
                        place(uintptr_t(p) + size_t((const uint8_t *)first - flags), &bounds).c_str()));
    }
    check_order(uintptr_t(p), bytes, access, &bounds);
    return true;
}
} // namespace sim

// A part of an allocation gets a name and bounds; a whole allocation just the name.
EXPORT void pn_sim_region(const void *start, size_t bytes, const char *name)
{
    sim::Call call("pn_sim_region");
    sim::Buffer *buffer = sim::buffer_at(uintptr_t(start));
    if (!buffer || uintptr_t(start) + bytes > buffer->begin + buffer->bytes)
        sim::report(std::string("region ") + name,
                    sim::text("region '%s' of %zu bytes: it does not lie in an allocation", name, bytes));
    else if (uintptr_t(start) == buffer->begin && bytes == buffer->bytes)
        buffer->name = name;
    else
        buffer->parts.insert({uintptr_t(start), {uintptr_t(start), bytes, name}});
}
