// world.cpp: NCCL between processes, each with a double of its own: --world=FOLDER. What an exchange sends and where it receives are
// files of the folder, named by communicator, ranks and number: the k-th send from a to b meets the k-th receive of b from a. A send is
// done when its receive has been posted, so nothing is buffered here either. Memory of two processes has nothing in common: only their
// counts, types and captures are compared.
#include "nccl.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <list>
#include <unistd.h>

namespace sim
{
namespace
{
struct Header {
    uint64_t count;
    int32_t type, captured;
};
struct Pending {
    Op *op;
    ncclComm *comm;
    Transfer transfer;
    std::string own, other; // files
};
struct State {
    std::list<Pending> pending;
    std::map<const Op *, size_t> left;
    std::map<std::string, uint64_t> numbers;
};
State &state()
{
    static State *one = new State;
    return *one;
}

// Whole or not at all.
void write_file(const std::string &name, const void *a, size_t bytes, const void *b, size_t more)
{
    std::string draft = name + text(".%d", getpid());
    std::ofstream file(draft, std::ios::binary);
    file.write((const char *)a, std::streamsize(bytes));
    file.write((const char *)b, std::streamsize(more));
    file.close();
    if (!file || rename(draft.c_str(), name.c_str())) {
        report("world", text("cannot write %s", name.c_str()));
        end_now(2);
    }
}

std::string path(const ncclComm *comm, const std::string &name)
{
    return settings.world + "/" + comm->clique->id.internal + "." + name;
}

void part_done(Op *op)
{
    if (--state().left[op])
        return;
    state().left.erase(op);
    finish(*op);
}

void compare(const Pending &one, const Header &other)
{
    const Transfer &t = one.transfer;
    const char *verb = t.part == Part::send ? "send to" : "receive from";
    if (t.count != other.count || t.type != other.type)
        report("mismatch " + one.op->work.label,
               text("NCCL: %s rank %d of %zu elements (type %d) meets %zu elements (type %d)", verb, t.peer, t.count,
                    int(t.type), size_t(other.count), other.type));
    if (one.op->from_graph != (other.captured != 0))
        report("captured " + one.op->work.label,
               text("NCCL: %s rank %d: one of the two comes from a graph: both must be captured, or neither", verb,
                    t.peer));
}

// Meets its peer, if that is there.
bool meet(const Pending &one)
{
    const Transfer &t = one.transfer;
    std::ifstream file(one.other, std::ios::binary);
    Header header;
    if (!file || !file.read((char *)&header, sizeof header))
        return false;
    Op *before = current;
    current = one.op;
    compare(one, header);
    size_t bytes = std::min(t.count, size_t(header.count)) * bytes_of(t.type);
    if (t.part == Part::receive && use(t.to, bytes, Access::write, "ncclRecv"))
        file.read((char *)alias(t.to), std::streamsize(bytes));
    current = before;
    unlink(one.other.c_str());
    return true;
}
} // namespace

bool worldwide()
{
    return !settings.world.empty();
}

bool world_poll()
{
    bool found = false;
    auto &pending = state().pending;
    for (auto one = pending.begin(); one != pending.end();) {
        if (meet(*one)) {
            Op *op = one->op;
            one = pending.erase(one);
            part_done(op);
            found = true;
        } else {
            ++one;
        }
    }
    return found;
}

void world_begin(Op &op, const Exchange &exchange)
{
    ncclComm *comm = exchange.comm;
    state().left[&op] = exchange.transfers.size();
    for (const Transfer &t : exchange.transfers) {
        bool sends = t.part == Part::send;
        if (!sends && t.part != Part::receive) {
            report("world collective", "between processes the double only has sends and receives");
            end_now(2);
        }
        std::string way = sends ? text("%d-%d", comm->rank, t.peer) : text("%d-%d", t.peer, comm->rank);
        uint64_t number = state().numbers[path(comm, way) + (sends ? "s" : "r")]++;
        std::string send = path(comm, text("%s.%llu.send", way.c_str(), (unsigned long long)number));
        std::string receive = path(comm, text("%s.%llu.receive", way.c_str(), (unsigned long long)number));
        Header header = {t.count, t.type, op.from_graph};
        size_t bytes = sends ? t.count * bytes_of(t.type) : 0;
        bool readable = !sends || use(t.from, bytes, Access::read, "ncclSend");
        state().pending.push_back({&op, comm, t, sends ? send : receive, sends ? receive : send});
        write_file(sends ? send : receive, &header, sizeof header, readable && sends ? alias(t.from) : "",
                   readable ? bytes : 0);
    }
    world_poll();
}

void world_abort(ncclComm *comm)
{
    std::vector<Op *> ended;
    auto &pending = state().pending;
    for (auto one = pending.begin(); one != pending.end();) {
        if (one->comm == comm) {
            unlink(one->own.c_str());
            ended.push_back(one->op);
            one = pending.erase(one);
        } else {
            ++one;
        }
    }
    for (Op *op : ended)
        part_done(op);
}

std::string world_waits_for(const Op &op)
{
    std::string all;
    for (const Pending &one : state().pending)
        if (one.op == &op)
            all += text("%s%s rank %d", all.empty() ? "" : "; ",
                        one.transfer.part == Part::send ? "send to" : "receive from", one.transfer.peer);
    return all;
}

// All ranks must come. Each says its size and its GPU.
ncclResult_t world_join(ncclComm *comm)
{
    int size = comm->clique->size;
    int32_t own[2] = {size, comm->device};
    write_file(path(comm, text("rank%d", comm->rank)), own, sizeof own, "", 0);
    double waited = 0;
    for (int rank = 0; rank < size; rank++) {
        int32_t other[2];
        for (;;) {
            std::ifstream file(path(comm, text("rank%d", rank)), std::ios::binary);
            if (file && file.read((char *)other, sizeof other))
                break;
            if (waited > 6 * settings.patience) {
                report("ranks", text("ncclCommInitRank: rank %d of %d has not come", rank, size));
                end_now(98);
            }
            std::unique_lock<std::mutex> held(lock, std::adopt_lock);
            changed.wait_for(held, std::chrono::milliseconds(10));
            held.release();
            waited += 0.01;
        }
        if (other[0] != size)
            report("rank size",
                   text("ncclCommInitRank: rank %d has %d ranks, rank %d has %d", comm->rank, size, rank, other[0]));
        if (rank != comm->rank && other[1] == comm->device) {
            report("duplicate", text("NCCL: ranks %d and %d of a communicator are on the same GPU %d",
                                     std::min(rank, comm->rank), std::max(rank, comm->rank), comm->device));
            return ncclInvalidUsage;
        }
    }
    return ncclSuccess;
}
} // namespace sim
