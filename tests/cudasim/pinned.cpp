// pinned.cpp: pinned memory that a copy reads must not be written by the host, and pinned memory that a copy writes must not be
// touched, until the host has waited for the copy. The pages are protected meanwhile; simulated code uses other mappings of them. A
// fault within the bytes is reported; one beside them, in the same page, opens the page (what follows there is not seen).
// The same handler names device memory that the host dereferences.
#include "sim.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace sim
{
namespace
{
constexpr uintptr_t page = 4096;

struct Held {
    Pin pin;
    OpRef op;
};
struct State {
    std::vector<Held> held;
    struct sigaction before = {};
};
State &state()
{
    static State *one = new State;
    return *one;
}

// The protection of a range's pages from all that is held there.
void protect(const Pin &pin)
{
    for (uintptr_t p = pin.begin / page * page; p < pin.begin + pin.bytes; p += page) {
        int protection = PROT_READ | PROT_WRITE;
        for (const Held &one : state().held)
            if (one.pin.begin < p + page && p < one.pin.begin + one.pin.bytes)
                protection &= one.pin.written ? PROT_NONE : PROT_READ;
        mprotect((void *)p, page, protection);
    }
}

void open(size_t index)
{
    Pin pin = state().held[index].pin;
    state().held.erase(state().held.begin() + long(index));
    protect(pin);
}

void say_touch(const Held &held, uintptr_t p, bool write)
{
    report("pinned " + held.op->work.label + place(held.pin.begin),
           text("host code %s %s, but has not waited for %s (%s), which %s it", write ? "writes" : "reads",
                place(p).c_str(), held.op->work.label.c_str(), held.op->where.c_str(),
                held.pin.written ? "writes" : "reads"));
}

void on_fault(int number, siginfo_t *information, void *context)
{
    uintptr_t p = uintptr_t(information->si_addr);
    bool write = false;
#if defined(__x86_64__)
    write = (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
#endif
    if (!is_handed_out(p)) {
        sigaction(number, &state().before, nullptr);
        return; // the instruction faults again, as it would have
    }
    // Host code faults with the lock free: the double itself reads through other mappings.
    std::lock_guard<std::mutex> guard(lock);
    if (space_of(p) == host_space) {
        bool covered = false;
        for (size_t i = state().held.size(); i-- > 0;) {
            const Held &one = state().held[i];
            if (one.pin.begin / page * page > p || (one.pin.begin + one.pin.bytes + page - 1) / page * page <= p)
                continue;
            covered = true;
            if (p >= one.pin.begin && p < one.pin.begin + one.pin.bytes && (write || one.pin.written))
                say_touch(one, p, write);
            open(i);
        }
        if (covered)
            return;
    }
    current = nullptr;
    report("dereference", text("host code %s %s memory: %s", write ? "writes" : "reads",
                               space_of(p) == host_space ? "freed pinned" : "device", place(p).c_str()));
    end_now(99);
}
} // namespace

void pin(const Pin &pin, const OpRef &op)
{
    if (!settings.check)
        return;
    state().held.push_back({pin, op});
    protect(pin);
}

void release_pins()
{
    auto &held = state().held;
    for (size_t i = held.size(); i-- > 0;)
        if (held[i].op->phase == Phase::done && ordered_before_host(held[i].op->record))
            open(i);
}

void catch_faults()
{
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &state().before);
}
} // namespace sim
