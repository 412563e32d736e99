// op.cpp: every asynchronous call is an operation with those that must come before it. When they run is the order's choice:
//   eager   as soon as they may
//   lazy    only those that a wait of the host demands, and only then
//   random  some at each call, in any order that the dependencies allow, by seed
// A host thread that waits runs operations itself. An NCCL exchange may stay `started` until its peer comes.
#include "stream.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <set>
#include <unistd.h>

namespace sim
{
Op *current;

namespace
{
struct State {
    uint64_t numbered = 0, finished = 0, ticks = 0;
    std::map<uint64_t, OpRef> pending; // submitted, not done
    std::map<uint64_t, OpRef> ready;   // of these: nothing is missing, not begun
};
State &state()
{
    static State *one = new State;
    return *one;
}

thread_local Clock own_clock; // what this host thread has waited for

const char *kind_name(Kind kind)
{
    static const char *const names[] = {"empty", "kernel", "copy", "set", "host", "dnn", "nccl"};
    return names[int(kind)];
}

// NCCL lets exchanges of a communicator follow each other; on streams that nothing orders it is not said how.
void check_queue(Op &op)
{
    if (op.behind && !ordered_before(op.behind->record, op)) {
        Op *outer = current;
        current = &op;
        report("unordered " + op.where + op.behind->where,
               text("NCCL: nothing orders %s (%s) and the one before it (%s): they use one communicator",
                    op.work.label.c_str(), op.where.c_str(), op.behind->where.c_str()));
        current = outer;
    }
    op.behind = nullptr;
}

void run(const OpRef &op)
{
    state().ready.erase(op->id);
    op->clock = op->from_host;
    op->strict = op->from_own;
    for (const OpRef &earlier : op->needs) {
        join(op->clock, earlier->clock);
        join(op->strict, earlier->strict);
    }
    op->needs.clear();
    begin_record(*op);
    if (op->work.kind != Kind::empty) {
        count(std::string("ran ") + kind_name(op->work.kind));
        count("ran " + op->work.label);
    }
    op->phase = Phase::started;
    check_queue(*op);
    if (op->work.run) {
        Op *outer = current;
        current = op.get();
        std::function<void(Op &)> body = op->work.run; // finish() lets the operation's go
        body(*op);
        current = outer;
    }
    if (op->work.kind != Kind::nccl)
        finish(*op);
}

// What the target still needs, by number: its unfinished predecessors, and for exchanges that wait for a peer the peers' own.
void demanded(const OpRef &target, std::map<uint64_t, OpRef> &found)
{
    std::vector<OpRef> open{target};
    while (!open.empty()) {
        OpRef op = open.back();
        open.pop_back();
        if (op->phase == Phase::done || !found.insert({op->id, op}).second)
            continue;
        for (const OpRef &earlier : op->needs)
            open.push_back(earlier);
        if (op->behind)
            open.push_back(op->behind);
        if (op->phase == Phase::started)
            for (const auto &other : state().pending) // whichever peer operation may be the one
                if (other.second->work.kind == Kind::nccl && other.second->phase == Phase::waiting)
                    open.push_back(other.second);
    }
}

OpRef pick(const OpRef &target)
{
    auto &ready = state().ready;
    if (ready.empty())
        return nullptr;
    if (settings.order == Order::random)
        return std::next(ready.begin(), long(random_number() % ready.size()))->second;
    if (settings.order == Order::eager || !target)
        return ready.begin()->second;
    std::map<uint64_t, OpRef> wanted;
    demanded(target, wanted);
    for (const auto &one : wanted)
        if (ready.count(one.first))
            return one.second;
    return nullptr;
}

// After a submission.
void advance()
{
    if (worldwide())
        world_poll();
    if (settings.order == Order::eager)
        while (OpRef op = pick(nullptr))
            run(op);
    if (settings.order == Order::random)
        for (uint64_t times = random_number() % 3; times; times--)
            if (OpRef op = pick(nullptr))
                run(op);
    changed.notify_all();
}

[[noreturn]] void deadlock(const OpRef &target)
{
    current = nullptr;
    report("deadlock", text("deadlock: a host thread waits for %s (%s), and nothing can run. What waits:",
                            target->work.label.c_str(), target->where.c_str()));
    int lines = 0;
    for (const auto &entry : state().pending) {
        const Op &op = *entry.second;
        if (op.phase == Phase::started)
            fprintf(stderr, "cudasim:   #%llu %s (%s) waits for its peer: %s\n", (unsigned long long)op.id,
                    op.work.label.c_str(), op.where.c_str(), exchange_waits_for(op).c_str());
        else if (op.work.kind != Kind::empty && ++lines <= 20)
            fprintf(stderr, "cudasim:   #%llu %s (%s) waits for %zu operations before it\n", (unsigned long long)op.id,
                    op.work.label.c_str(), op.where.c_str(), op.missing);
    }
    end_now(98);
}

// Other threads may bring what is missing. Called without anything to run; returns after a while or a change.
void wait_for_others(const OpRef &target, uint64_t &seen, double &idle)
{
    const double slice = worldwide() ? 0.002 : 0.05;
    std::unique_lock<std::mutex> held(lock, std::adopt_lock);
    std::cv_status status = changed.wait_for(held, std::chrono::duration<double>(slice));
    held.release();
    uint64_t now = state().finished + state().numbered;
    if (status != std::cv_status::timeout || now != seen)
        idle = 0;
    else
        idle += slice;
    seen = now;
    if (worldwide()) {
        if (idle > 6 * settings.patience) // other processes may be busy with anything
            deadlock(target);
        return;
    }
    double limit = other_threads_sleep() ? settings.patience / 5 : settings.patience;
    if (idle > limit)
        deadlock(target);
}

void wait_until_done(const OpRef &op, const OpRef &earlier)
{
    if (earlier->phase == Phase::done)
        return;
    earlier->dependents.push_back(op.get());
    op->missing++;
}

void seen_by_host(const Op &op)
{
    join(host_clock(), op.clock);
    join(own_clock, op.strict);
    release_pins();
}
} // namespace

bool other_threads_sleep()
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return false;
    bool all = true;
    while (dirent *task = readdir(tasks)) {
        if (task->d_name[0] == '.' || atoi(task->d_name) == gettid())
            continue;
        FILE *file = fopen(text("/proc/self/task/%s/stat", task->d_name).c_str(), "r");
        char line[512] = "";
        if (file && fgets(line, sizeof line, file)) {
            const char *after = strrchr(line, ')');
            all &= after && after[1] && after[2] == 'S';
        }
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return all;
}

OpRef make_op(const Work &work, int device, int timeline, const std::string &where)
{
    OpRef op = std::make_shared<Op>();
    op->id = ++state().numbered;
    op->work = work;
    op->device = device;
    op->timeline = timeline;
    op->where = where;
    op->from_host = host_clock();
    op->from_own = own_clock;
    state().ticks += work.ticks;
    return op;
}

uint64_t ticks()
{
    return state().ticks;
}

void need(const OpRef &op, const OpRef &earlier)
{
    if (!earlier)
        return;
    op->needs.push_back(earlier); // kept when done: its clock counts
    wait_until_done(op, earlier);
}

void queue_behind(const OpRef &op, const OpRef &earlier)
{
    if (!earlier)
        return;
    op->behind = earlier;
    wait_until_done(op, earlier);
}

void submit(const OpRef &op)
{
    for (const Pin &one : op->work.pins)
        pin(one, op);
    state().pending[op->id] = op;
    if (!op->missing)
        state().ready[op->id] = op;
    advance();
}

void finish(Op &op)
{
    op.phase = Phase::done;
    state().finished++;
    for (Op *later : op.dependents)
        if (--later->missing == 0)
            state().ready[later->id] = state().pending[later->id];
    op.dependents.clear();
    op.work.run = nullptr;
    op.work.exchange = nullptr;
    state().pending.erase(op.id);
    changed.notify_all();
}

void wait_for(OpRef op)
{
    if (!op)
        return;
    uint64_t seen = 0;
    double idle = 0;
    while (op->phase != Phase::done) {
        if (OpRef next = pick(op))
            run(next);
        else if (!worldwide() || !world_poll())
            wait_for_others(op, seen, idle);
    }
    seen_by_host(*op);
}

void wait_all(int device)
{
    for (;;) {
        OpRef found;
        for (const auto &one : state().pending)
            if (one.second->device == device)
                found = one.second; // the last
        if (!found)
            break;
        wait_for(found);
    }
    for (CUstream_st *stream : streams()) // what was done before the call is now known to the host, too
        if (stream->device == device)
            wait_for(stream->tail);
}

bool query(const OpRef &op)
{
    if (worldwide())
        world_poll();
    if (op && op->phase != Phase::done) {
        if (settings.order == Order::lazy) { // a program that polls must get on
            if (OpRef next = pick(op))
                run(next);
        } else {
            advance();
        }
    }
    if (op && op->phase != Phase::done)
        return false;
    if (op)
        seen_by_host(*op);
    return true;
}

size_t unfinished()
{
    return state().pending.size();
}
} // namespace sim
