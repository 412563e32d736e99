// nccl.h: communicators and exchanges: nccl.cpp has the calls, exchange.cpp what they do at their turn.
#pragma once
#include "sim.h"

#include <deque>
#include <nccl.h>

namespace sim
{
enum class Part { send, receive, all_reduce, broadcast };
struct Transfer {
    Part part;
    int peer; // of a broadcast: the root
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t reduction;
};
struct Posted {
    Op *op;
    const Transfer *transfer;
};
struct Clique {
    ncclUniqueId id;
    int size = 0;
    std::vector<ncclComm *> members;
    std::map<std::pair<int, int>, std::deque<Posted>> sends, receives; // (from, to)
    std::vector<std::deque<Posted>> collectives;                       // by rank
    int joined() const
    {
        int count = 0;
        for (ncclComm *one : members)
            count += one != nullptr;
        return count;
    }
};
std::vector<Clique *> &cliques();
size_t bytes_of(ncclDataType_t type);
void begin_exchange(Op &op, const Exchange &exchange); // posts its parts; what meets its peer is done
// What the aborted communicator has posted is taken back; its exchanges end as they are.
void abort_exchanges(ncclComm *comm);
// world.cpp: the same between processes
void world_begin(Op &op, const Exchange &exchange);
void world_abort(ncclComm *comm);
ncclResult_t world_join(ncclComm *comm);
std::string world_waits_for(const Op &op);
} // namespace sim

struct ncclComm {
    sim::Clique *clique = nullptr;
    int rank = 0, device = 0;
    bool aborted = false;
    sim::OpRef tail;
};

namespace sim
{
struct Exchange {
    ncclComm *comm;
    std::vector<Transfer> transfers;
};
} // namespace sim
