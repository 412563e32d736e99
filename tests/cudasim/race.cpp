// race.cpp: two accesses to the same bytes, one of them a write, must be ordered: by streams, events, graph edges, waits of the host,
// or, within one kernel, by barriers. Each operation has a vector clock over timelines (a stream, a lane of a graph); each 4 bytes
// remember the last writer and the readers since, so an unordered pair is found whatever order was run (as FastTrack does: Flanagan
// and Freund, PLDI 2009, with sets of readers shared between cells).
#include "sim.h"

#include <algorithm>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

namespace sim
{
namespace
{
struct Cell {
    uint32_t writer, readers; // a record, a set of records; 0: none
    Thread wrote, read;       // who did so within the writer's or a reader's kernel
};
struct Record {
    int timeline;
    uint32_t mark;
    std::string label;
};
struct State {
    Clock host;
    int timelines = 0;
    std::vector<uint32_t> marks; // last mark of each timeline
    std::vector<Record> records{{0, 0, "nothing"}};
    std::vector<std::vector<uint32_t>> sets{{}};
    std::unordered_map<uint64_t, uint32_t>
        grown; // (set, record) -> set with the record, without those ordered before it
    Cell *cells[space_count] = {};
    uint32_t good_writer = 0, good_readers = 0, of = 0; // last ones found ordered before record `of`
    struct {
        uint64_t key;
        uint32_t to;
    } recent[64] = {}; // of `grown`
};
State &state()
{
    static State *one = new State;
    return *one;
}

Cell *cells_of(int space)
{
    Cell *&cells = state().cells[space];
    if (!cells) {
        void *mapped = mmap(nullptr, span / 4 * sizeof(Cell), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            perror("cudasim: cannot map memory for the check of races");
            _exit(2);
        }
        cells = (Cell *)mapped;
    }
    return cells;
}

bool ordered(uint32_t record, const Clock &now)
{
    const Record &one = state().records[record];
    return size_t(one.timeline) < now.size() && now[one.timeline] >= one.mark;
}

void conflict(uintptr_t p, const char *now, const char *then, const std::string &other, const Bounds *given)
{
    Bounds bounds = given ? *given : bounds_of(p);
    report("race " + current->work.label + other + bounds.name,
           text("race: %s %s is not ordered after the %s by %s", now, place(p, &bounds).c_str(), then, other.c_str()));
}

void thread_conflict(uintptr_t p, const char *now, const Thread &then, const Bounds *given)
{
    Bounds bounds = given ? *given : bounds_of(p);
    std::string other = then.block == block_any     ? "several blocks"
                        : then.thread == thread_any ? text("several threads of block %u", then.block)
                                                    : text("thread %u of block %u", then.thread, then.block);
    report("blocks " + current->work.label + bounds.name,
           text("race within the kernel: %s %s, which %s has touched with no barrier between", now,
                place(p, &bounds).c_str(), other.c_str()));
}

uint32_t with_reader(uint32_t set, uint32_t record, const Clock &now)
{
    State &s = state();
    if (!s.sets[set].empty() && s.sets[set].back() == record) // it has read these before
        return set;
    uint64_t key = uint64_t(set) << 32 | record;
    auto &recent = s.recent[set % 64];
    if (recent.key == key)
        return recent.to;
    uint32_t &to = s.grown[key];
    if (!to) {
        std::vector<uint32_t> grown;
        for (uint32_t one : s.sets[set])
            if (!ordered(one, now))
                grown.push_back(one);
        grown.push_back(record);
        s.sets.push_back(grown);
        to = uint32_t(s.sets.size() - 1);
    }
    recent = {key, to};
    return to;
}

inline void check_cell(Cell &cell, uintptr_t p, Access access, const Thread &me, const Bounds *bounds)
{
    State &s = state();
    uint32_t record = current->record;
    bool writes = access != Access::read;
    const char *now = access == Access::read    ? "the read of"
                      : access == Access::write ? "the write to"
                                                : "the atomic update of";
    if (cell.writer == record) {
        if (in_kernel && !fenced && !(access == Access::atomic && cell.wrote.block == block_atomic) &&
            same_launch_conflict(cell.wrote, me))
            thread_conflict(p, now, cell.wrote, bounds);
    } else if (cell.writer && cell.writer != s.good_writer) {
        if (ordered(cell.writer, current->clock))
            s.good_writer = cell.writer;
        else
            conflict(p, now, "write", s.records[cell.writer].label, bounds);
    }
    if (!writes) {
        uint32_t set = with_reader(cell.readers, record, current->clock);
        Thread before = cell.read;
        bool first = set != cell.readers; // by this operation
        cell.read = me;
        if (!first && before.block != me.block)
            cell.read.block = block_any;
        else if (!first && before.thread != me.thread && before.epoch == me.epoch)
            cell.read.thread = thread_any;
        if (!first && (before.block != me.block || before.epoch == me.epoch))
            cell.read.bytes |= before.bytes;
        cell.readers = set;
        return;
    }
    if (cell.readers && cell.readers != s.good_readers) {
        bool all = true;
        for (uint32_t one : s.sets[cell.readers]) {
            if (one == record) {
                all = false;
                if (in_kernel && !fenced && same_launch_conflict(cell.read, me))
                    thread_conflict(p, now, cell.read, bounds);
            } else if (!ordered(one, current->clock)) {
                all = false;
                conflict(p, now, "read", s.records[one].label, bounds);
            }
        }
        if (all)
            s.good_readers = cell.readers;
    }
    cell.writer = record;
    cell.readers = 0;
    cell.wrote = me;
    if (access == Access::atomic)
        cell.wrote.block = block_atomic;
}
} // namespace

Clock &host_clock()
{
    return state().host;
}

int new_timeline()
{
    state().marks.push_back(0);
    return state().timelines++;
}

void join(Clock &into, const Clock &from)
{
    if (into.size() < from.size())
        into.resize(from.size());
    for (size_t i = 0; i < from.size(); i++)
        into[i] = std::max(into[i], from[i]);
}

void begin_record(Op &op)
{
    State &s = state();
    op.mark = ++s.marks[op.timeline];
    for (Clock *clock : {&op.clock, &op.strict}) {
        if (clock->size() <= size_t(op.timeline))
            clock->resize(size_t(op.timeline) + 1);
        (*clock)[size_t(op.timeline)] = op.mark;
    }
    op.record = uint32_t(s.records.size());
    s.records.push_back({op.timeline, op.mark, op.work.label + " (" + op.where + ")"});
}

bool ordered_before_host(uint32_t record)
{
    return ordered(record, state().host);
}
bool ordered_before(uint32_t record, const Op &op)
{
    return ordered(record, op.clock);
}
const std::string &record_label(uint32_t record)
{
    return state().records[record].label;
}

void check_order(uintptr_t p, size_t bytes, Access access, const Bounds *given)
{
    State &s = state();
    if (s.of != current->record) { // what was found ordered holds for one operation
        s.of = current->record;
        s.good_writer = s.good_readers = 0;
    }
    Buffer *buffer = given && given->buffer ? given->buffer : buffer_at(p);
    if (buffer && buffer->last_record != current->record) {
        buffer->last_record = current->record;
        buffer->touched[current->timeline] = current->record;
    }
    int space = space_of(p);
    uintptr_t offset = p - (handed_out + uintptr_t(space) * span);
    Cell *cells = cells_of(space);
    Thread me = in_kernel ? running_thread : Thread();
    for (uintptr_t i = offset / 4; i <= (offset + bytes - 1) / 4; i++) {
        uintptr_t from = std::max(offset, i * 4) - i * 4, to = std::min(offset + bytes, i * 4 + 4) - i * 4;
        me.bytes = uint8_t((0xfu << from) & (0xfu >> (4 - to)));
        check_cell(cells[i], p - offset + i * 4 + from, access, me, given);
    }
}
} // namespace sim
