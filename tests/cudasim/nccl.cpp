// nccl.cpp: NCCL's calls, for ranks that are threads of one process, or processes (world.cpp).
#include "nccl.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace sim
{
namespace
{
struct Grouped {
    ncclComm *comm;
    cudaStream_t stream;
    Transfer transfer;
};
thread_local int depth; // of groups
thread_local std::vector<Grouped> grouped;
thread_local std::vector<ncclComm *> opened; // in this group

ncclResult_t enqueue_exchange(ncclComm *comm, cudaStream_t stream, std::vector<Transfer> transfers)
{
    if (stream_device(stream) != comm->device) {
        report(text("nccl device %d", comm->rank),
               text("NCCL: rank %d has GPU %d, but its exchange is put on a stream of GPU %d", comm->rank, comm->device,
                    stream_device(stream)));
        return ncclInvalidUsage;
    }
    Work work;
    work.kind = Kind::nccl;
    work.label = text("NCCL exchange of rank %d", comm->rank);
    auto exchange = std::make_shared<Exchange>();
    exchange->comm = comm;
    exchange->transfers = std::move(transfers);
    work.exchange = exchange;
    work.run = [exchange](Op &op) { begin_exchange(op, *exchange); };
    return enqueue(stream, work) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t add(const char *name, const Transfer &t, ncclComm *comm, cudaStream_t stream, bool fails)
{
    if (fails)
        return ncclSystemError;
    if (!comm || comm->aborted || t.peer < 0 || t.peer >= comm->clique->size)
        return ncclInvalidArgument;
    size_t bytes = t.count * bytes_of(t.type);
    for (const void *buffer : {t.from, (const void *)t.to}) {
        if (!buffer)
            continue;
        if (!is_device(buffer) || space_of(uintptr_t(buffer)) != comm->device) {
            report(std::string("nccl memory ") + name, text("%s, rank %d: %s is not memory of GPU %d", name, comm->rank,
                                                            place(uintptr_t(buffer)).c_str(), comm->device));
            return ncclInvalidArgument;
        }
        if (!range_ok(buffer, bytes, text("%s, rank %d", name, comm->rank)))
            return ncclInvalidArgument;
    }
    if (depth == 0)
        return enqueue_exchange(comm, stream, {t});
    grouped.push_back({comm, stream, t});
    return ncclSuccess;
}

// All ranks of the communicator must come.
ncclResult_t wait_for_ranks(ncclComm *comm)
{
    if (worldwide())
        return world_join(comm);
    Clique &clique = *comm->clique;
    double waited = 0;
    changed.notify_all();
    while (clique.joined() < clique.size && waited < settings.patience) {
        std::unique_lock<std::mutex> held(lock, std::adopt_lock);
        changed.wait_for(held, std::chrono::milliseconds(50));
        held.release();
        waited += other_threads_sleep() ? 0.05 : 0.005; // who works may still come
    }
    if (clique.joined() < clique.size) {
        report("ranks",
               text("ncclCommInitRank: only %d of %d ranks have come (the double's ranks are threads of one process)",
                    clique.joined(), clique.size));
        end_now(98);
    }
    for (ncclComm *one : clique.members)
        if (one != comm && one->device == comm->device) {
            report("duplicate", text("NCCL: ranks %d and %d of a communicator are on the same GPU %d",
                                     std::min(one->rank, comm->rank), std::max(one->rank, comm->rank), comm->device));
            return ncclInvalidUsage;
        }
    return ncclSuccess;
}

ncclResult_t open(ncclComm_t *result, int size, const ncclUniqueId &id, int rank, bool fails)
{
    if (fails || settings.devices == 0)
        return fails ? ncclSystemError : ncclUnhandledCudaError;
    Clique *clique = nullptr;
    for (Clique *one : cliques())
        if (!memcmp(&one->id, &id, sizeof id))
            clique = one;
    if (!clique) {
        clique = new Clique;
        clique->id = id;
        clique->size = size;
        clique->members.resize(size_t(size));
        clique->collectives.resize(size_t(size));
        cliques().push_back(clique);
    }
    if (size != clique->size || rank < 0 || rank >= size || clique->members[size_t(rank)]) {
        report(text("rank %d", rank),
               text("ncclCommInitRank: rank %d of %d does not fit a communicator of %d", rank, size, clique->size));
        return ncclInvalidArgument;
    }
    ncclComm *comm = new ncclComm;
    comm->clique = clique;
    comm->rank = rank;
    comm->device = current_device();
    clique->members[size_t(rank)] = comm;
    *result = comm;
    if (depth) {
        opened.push_back(comm);
        return ncclSuccess;
    }
    return wait_for_ranks(comm);
}

ncclResult_t end_group()
{
    ncclResult_t result = ncclSuccess;
    for (ncclComm *comm : opened)
        if (result == ncclSuccess)
            result = wait_for_ranks(comm);
    opened.clear();
    std::vector<Grouped> rest = std::move(grouped);
    grouped.clear();
    while (!rest.empty() && result == ncclSuccess) {
        std::vector<Transfer> together;
        std::vector<Grouped> others;
        for (const Grouped &one : rest) {
            bool same = one.comm == rest[0].comm && one.stream == rest[0].stream;
            if (same)
                together.push_back(one.transfer);
            else
                others.push_back(one);
        }
        result = enqueue_exchange(rest[0].comm, rest[0].stream, together);
        rest = std::move(others);
    }
    return result;
}
} // namespace
} // namespace sim

using namespace sim;

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    Call call("ncclGetUniqueId");
    static int ids;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "cudasim-%d-%d", getpid(), ++ids);
    return call.fails ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id, int rank)
{
    Call call("ncclCommInitRank");
    return open(comm, size, id, rank, call.fails);
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *)
{
    Call call("ncclCommInitRankConfig");
    return open(comm, size, id, rank, call.fails);
}

EXPORT ncclResult_t ncclGroupStart(void)
{
    Call call("ncclGroupStart");
    depth++;
    return call.fails ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
    Call call("ncclGroupEnd");
    if (depth == 0 || call.fails)
        return call.fails ? ncclSystemError : ncclInvalidUsage;
    return --depth ? ncclSuccess : end_group();
}

EXPORT ncclResult_t ncclSend(const void *from, size_t number, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream)
{
    Call call("ncclSend");
    if (call.dropped)
        return ncclSuccess;
    return add(call.name, {Part::send, peer, from, nullptr, number, type, ncclSum}, comm, stream, call.fails);
}

EXPORT ncclResult_t ncclRecv(void *to, size_t number, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream)
{
    Call call("ncclRecv");
    if (call.dropped)
        return ncclSuccess;
    return add(call.name, {Part::receive, peer, nullptr, to, number, type, ncclSum}, comm, stream, call.fails);
}

EXPORT ncclResult_t ncclAllReduce(const void *from, void *to, size_t number, ncclDataType_t type, ncclRedOp_t reduction,
                                  ncclComm_t comm, cudaStream_t stream)
{
    Call call("ncclAllReduce");
    if (reduction != ncclSum && reduction != ncclAvg)
        report("reduction", "the double only has sums and averages");
    return add(call.name, {Part::all_reduce, 0, from, to, number, type, reduction}, comm, stream, call.fails);
}

EXPORT ncclResult_t ncclBroadcast(const void *from, void *to, size_t number, ncclDataType_t type, int root,
                                  ncclComm_t comm, cudaStream_t stream)
{
    Call call("ncclBroadcast");
    return add(call.name, {Part::broadcast, root, from, to, number, type, ncclSum}, comm, stream, call.fails);
}

EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    Call call("ncclCommAbort");
    abort_exchanges(comm);
    return call.fails ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    Call call("ncclCommFinalize");
    wait_for(comm->tail);
    return call.fails ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    Call call("ncclCommDestroy");
    if (!comm->aborted)
        wait_for(comm->tail);
    return call.fails ? ncclSystemError : ncclSuccess; // kept: finished operations may name it
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    Call call("ncclCommGetAsyncError");
    *error = call.fails || comm->aborted ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int *size)
{
    Call call("ncclCommCount");
    *size = comm->clique->size;
    return call.fails ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    Call call("ncclCommUserRank");
    *rank = comm->rank;
    return call.fails ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclMemAlloc(void **result, size_t bytes)
{
    return cudaMalloc(result, bytes) ? ncclSystemError : ncclSuccess;
}
EXPORT ncclResult_t ncclMemFree(void *p)
{
    return cudaFree(p) ? ncclSystemError : ncclSuccess;
}

EXPORT ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
    Call call("ncclCommRegister");
    *handle = buffer;
    bool good = is_device(buffer) && space_of(uintptr_t(buffer)) == comm->device && range_ok(buffer, bytes, call.name);
    return call.fails ? ncclSystemError : good ? ncclSuccess : ncclInvalidArgument;
}

EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t, void *)
{
    Call call("ncclCommDeregister");
    return call.fails ? ncclSystemError : ncclSuccess;
}
