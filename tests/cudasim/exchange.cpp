// exchange.cpp: NCCL's exchanges. An exchange (a call, or all calls of a group on one communicator and stream) is one operation; it
// starts at its turn in the stream and is done when every part has met its peer: the k-th send from a to b meets the k-th receive of
// b from a. Nothing is buffered, so a cycle of waits never ends and is reported. Exchanges of one communicator follow each other, as
// NCCL has them; the program must order them, too.
#include "nccl.h"

#include <algorithm>
#include <cstring>

namespace sim
{
namespace
{
struct State {
    std::vector<Clique *> cliques;
    std::map<const Op *, size_t> left; // parts that have not met their peer
};
State &state()
{
    static State *one = new State;
    return *one;
}

std::string describe(const Transfer &t)
{
    static const char *const names[] = {"send", "receive", "all-reduce", "broadcast"};
    std::string with = t.part == Part::send      ? text(" to rank %d", t.peer)
                       : t.part == Part::receive ? text(" from rank %d", t.peer)
                                                 : "";
    const void *buffer = t.part == Part::receive ? t.to : t.from;
    return text("%s of %zu elements%s, %s", names[int(t.part)], t.count, with.c_str(),
                place(uintptr_t(buffer)).c_str());
}

// The double as the operation: what it reports is said of this one.
struct As {
    explicit As(Op *op) : before(current) { current = op; }
    ~As() { current = before; }
    Op *before;
};

void met(Op *op)
{
    if (--state().left[op] == 0) {
        state().left.erase(op);
        finish(*op);
    }
}

void compare(const Posted &a, const Posted &b)
{
    const Transfer &x = *a.transfer, &y = *b.transfer;
    As as(b.op);
    bool pair = x.part == Part::send && y.part == Part::receive, alike = x.part == y.part && x.reduction == y.reduction;
    if (x.count != y.count || x.type != y.type || !(pair || alike))
        report("mismatch " + a.op->work.label + b.op->work.label,
               text("NCCL: %s (type %d) of %s meets %s (type %d)", describe(x).c_str(), int(x.type),
                    a.op->work.label.c_str(), describe(y).c_str(), int(y.type)));
    if (a.op->from_graph != b.op->from_graph)
        report("captured " + a.op->work.label + b.op->work.label,
               text("NCCL: %s comes from a graph, its peer %s does not: both must be captured, or neither",
                    (a.op->from_graph ? a : b).op->work.label.c_str(),
                    (a.op->from_graph ? b : a).op->work.label.c_str()));
}

void match(Clique &clique, int from, int to)
{
    auto &sends = clique.sends[{from, to}], &receives = clique.receives[{from, to}];
    while (!sends.empty() && !receives.empty()) {
        Posted send = sends.front(), receive = receives.front();
        sends.pop_front();
        receives.pop_front();
        compare(send, receive);
        const Transfer &s = *send.transfer, &r = *receive.transfer;
        size_t bytes = std::min(s.count * bytes_of(s.type), r.count * bytes_of(r.type));
        bool readable, writable;
        {
            As as(send.op);
            readable = use(s.from, s.count * bytes_of(s.type), Access::read, "ncclSend");
        }
        join(receive.op->clock, send.op->strict);
        join(receive.op->strict, send.op->strict);
        {
            As as(receive.op);
            writable = use(r.to, bytes, Access::write, "ncclRecv");
        }
        if (readable && writable)
            memmove(alias(r.to), alias(s.from), bytes);
        met(send.op);
        met(receive.op);
    }
}

void combine(const std::vector<Posted> &all)
{
    const Transfer &first = *all[0].transfer;
    size_t bytes = first.count * bytes_of(first.type);
    bool good = first.type == ncclFloat32 || first.part == Part::broadcast;
    if (!good)
        report("all-reduce type", "the double only has all-reduce of f32");
    std::vector<float> sum(first.part == Part::all_reduce ? first.count : 0);
    const void *root = nullptr;
    for (size_t rank = 0; rank < all.size(); rank++) {
        As as(all[rank].op);
        const Transfer &t = *all[rank].transfer;
        bool reads = t.part == Part::all_reduce || int(rank) == t.peer;
        good = good && (!reads || use(t.from, bytes, Access::read, "source of a collective"));
        if (int(rank) == t.peer)
            root = t.from;
        for (size_t i = 0; good && i < sum.size(); i++)
            sum[i] += ((const float *)alias(t.from))[i];
    }
    for (float &one : sum)
        one = first.reduction == ncclAvg ? one / float(all.size()) : one;
    std::vector<char> data(good && root ? (const char *)alias(root) : nullptr,
                           good && root ? (const char *)alias(root) + bytes : nullptr);
    for (const Posted &one : all)
        for (const Posted &other : all) {
            join(one.op->clock, other.op->strict);
            join(one.op->strict, other.op->strict);
        }
    for (const Posted &one : all) {
        As as(one.op);
        if (use(one.transfer->to, bytes, Access::write, "result of a collective") && good)
            memcpy(alias(one.transfer->to), first.part == Part::all_reduce ? (const void *)sum.data() : data.data(),
                   bytes);
    }
    for (const Posted &one : all)
        met(one.op);
}

void match_collectives(Clique &clique)
{
    std::vector<Posted> all;
    for (auto &waiting : clique.collectives) {
        if (waiting.empty())
            return;
        all.push_back(waiting.front());
    }
    for (auto &waiting : clique.collectives)
        waiting.pop_front();
    for (size_t rank = 1; rank < all.size(); rank++)
        compare(all[0], all[rank]);
    combine(all);
}

} // namespace

std::vector<Clique *> &cliques()
{
    return state().cliques;
}

size_t bytes_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    default:
        return 4;
    }
}

void begin_exchange(Op &op, const Exchange &exchange)
{
    Clique &clique = *exchange.comm->clique;
    int me = exchange.comm->rank;
    if (exchange.comm->aborted) {
        finish(op);
        return;
    }
    if (worldwide()) {
        world_begin(op, exchange);
        return;
    }
    state().left[&op] = exchange.transfers.size();
    std::vector<std::pair<int, int>> touched;
    bool collective = false;
    for (const Transfer &t : exchange.transfers) { // all are posted before any meets its peer: a group is one
        std::pair<int, int> way = t.part == Part::send ? std::make_pair(me, t.peer) : std::make_pair(t.peer, me);
        if (t.part == Part::send)
            clique.sends[way].push_back({&op, &t});
        else if (t.part == Part::receive)
            clique.receives[way].push_back({&op, &t});
        else
            clique.collectives[size_t(me)].push_back({&op, &t});
        collective |= t.part != Part::send && t.part != Part::receive;
        touched.push_back(way);
    }
    std::shared_ptr<Exchange> keep = op.work.exchange; // finish() may let it go
    for (const auto &way : touched)
        match(clique, way.first, way.second);
    if (collective)
        match_collectives(clique);
}

void abort_exchanges(ncclComm *comm)
{
    comm->aborted = true;
    if (worldwide()) {
        world_abort(comm);
        return;
    }
    std::vector<Op *> ended;
    auto withdraw = [&](std::deque<Posted> &queue) {
        std::deque<Posted> kept;
        for (const Posted &one : queue)
            if (one.op->work.exchange->comm == comm)
                ended.push_back(one.op);
            else
                kept.push_back(one);
        queue = kept;
    };
    for (auto &one : comm->clique->sends)
        withdraw(one.second);
    for (auto &one : comm->clique->receives)
        withdraw(one.second);
    for (auto &one : comm->clique->collectives)
        withdraw(one);
    for (Op *op : ended)
        met(op);
}
void order_exchange(const OpRef &op)
{
    ncclComm *comm = op->work.exchange->comm;
    queue_behind(op, comm->tail);
    comm->tail = op;
}

std::string exchange_waits_for(const Op &op)
{
    if (worldwide())
        return world_waits_for(op);
    std::string all;
    for (const Clique *clique : state().cliques)
        for (const auto *table : {&clique->sends, &clique->receives})
            for (const auto &way : *table)
                for (const Posted &one : way.second)
                    if (one.op == &op)
                        all += (all.empty() ? "" : "; ") + describe(*one.transfer);
    return all.empty() ? "a collective, for other ranks" : all;
}
} // namespace sim
