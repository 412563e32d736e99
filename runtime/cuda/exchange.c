/* exchange.c: what crosses between GPUs of several processes, through NCCL (nccl.c).
 *
 * An exchange is all that a rank sends and receives in a round, in one group: no order among its parts, so no circle of
 * waits. It goes into the graph of the step that carries it, as one node, or into a graph of its own; both ends of NCCL
 * must be captured or neither, and all are. What orders it against the steps are the events of the slots (order.c): it
 * waits for what it sends to be given and for what it overwrites to be freed, and does the same for its peers' slots
 * here. All ranks begin their exchanges in the order of the rounds, and none of them waits for another one's host in
 * between (world/agree.c), so a host may wait for its device at any time: the peers of what is begun need nothing that
 * comes later. One communicator has one exchange at a time, also when they are on the streams of several stages. */
#include "cuda/nccl.h"

#include <string.h>

#include "world/world.h"

/* ---- slots ---- */

/* Slots for what other ranks give: as large as theirs. */
static void place_received(pn_stage *stage, pn_channel *channel)
{
    if (channel->area.slots > 0)
        channel->area.memory = pn_place(stage, channel->name, channel->area.bytes, channel->area.slots);
}

int64_t cuda_received_bytes(const pn_run *run)
{
    const pn_program *program = run->program;
    const int rank = world_rank(run);
    int64_t sum = 0;
    for (int i = 0; run->world && i < program->nregisters; i++) {
        const pn_register *reg = program->reg[i];
        if (world_rank_of(run->world, reg->forward.to) != rank || world_rank_of(run->world, reg->forward.from) == rank)
            continue;
        const pn_area areas[] = {reg->forward.area, reg->gradient.area, reg->test.area};
        for (int k = 0; k < PN_COUNT(areas); k++)
            sum += areas[k].bytes * areas[k].slots;
    }
    return sum;
}

void cuda_ranks_place(pn_stage *stage)
{
    const pn_run *run = stage->run;
    for (int i = 0; run->world && i < run->program->nregisters; i++) {
        pn_register *reg = run->program->reg[i];
        if (reg->forward.to != stage->index || run->stage[reg->forward.from].here)
            continue;
        place_received(stage, &reg->forward);
        place_received(stage, &reg->gradient);
        place_received(stage, &reg->test);
    }
}

/* ---- what a rank gives and is given in a round ---- */

static int64_t slot_of(const pn_transfer *part)
{
    return part->n % part->channel->area.slots;
}

static bool is_same(const cuda_exchange *exchange, const pn_transfer *transfer, int count)
{
    if (exchange->parts != count)
        return false;
    for (int i = 0; i < count; i++)
        if (exchange->part[i].channel != transfer[i].channel || slot_of(&exchange->part[i]) != slot_of(&transfer[i]))
            return false;
    return true;
}

static cuda_exchange *find(cuda_ranks *ranks, const pn_transfer *transfer, int count)
{
    for (int i = 0; i < ranks->exchanges; i++)
        if (is_same(&ranks->exchange[i], transfer, count))
            return &ranks->exchange[i];
    return NULL;
}

/* NULL: the table is full. */
static cuda_exchange *add(cuda_ranks *ranks, const pn_transfer *transfer, int count)
{
    if (ranks->exchanges == MOST_EXCHANGES || ranks->parts + count > MOST_PARTS)
        return NULL;
    cuda_exchange *exchange = &ranks->exchange[ranks->exchanges++];
    pn_transfer *part = ranks->part + ranks->parts;
    ranks->parts += count;
    memcpy(part, transfer, (size_t)count * sizeof *part);
    *exchange = (cuda_exchange){.part = part, .parts = count};
    return exchange;
}

/* Without room in the table it is for this round alone, and so is its graph: a rank of a deep pipeline has as many
 * exchanges as the least common multiple of the slots of the registers to its neighbours. The one before in this place
 * is done, as CUDA_AHEAD rounds later everything is (pn_target_pace). */
static cuda_exchange *pass(pn_stage *stage, const pn_transfer *transfer, int count)
{
    cuda_ranks *ranks = cuda_ranks_of(stage);
    cuda_exchange *exchange = &ranks->passing[ranks->passed++ % PN_COUNT(ranks->passing)];
    if (exchange->alone)
        CU(stage, "the exchange", cudaGraphExecDestroy(exchange->alone));
    *exchange = (cuda_exchange){.part = transfer, .parts = count};
    return exchange;
}

bool cuda_exchange_passes(const pn_stage *stage, const cuda_exchange *exchange)
{
    const cuda_exchange *passing = cuda_ranks_of(stage)->passing;
    return exchange >= passing && exchange < passing + PN_COUNT(cuda_ranks_of(stage)->passing);
}

void cuda_exchange_enqueue(pn_stage *stage, const cuda_exchange *exchange)
{
    cuda_ranks *ranks = cuda_ranks_of(stage);
    const Nccl *nccl = &ranks->nccl;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    nccl_lock(stage);
    nccl_check(stage, nccl->begin(), "ncclGroupStart");
    for (int i = 0; i < exchange->parts; i++) {
        const pn_transfer *part = &exchange->part[i];
        const pn_area *area = &part->channel->area;
        char *slot = (char *)area->memory + slot_of(part) * area->bytes;
        const bool bf16 = part->channel->element == PN_BF16;
        const size_t items = (size_t)area->bytes / (bf16 ? sizeof(pn_bf16) : sizeof(float));
        const int type = bf16 ? BFLOAT16 : FLOAT32;
        if (part->sends)
            nccl_check(stage, nccl->send(slot, items, type, part->peer, ranks->comm, stream), "ncclSend");
        else
            nccl_check(stage, nccl->receive(slot, items, type, part->peer, ranks->comm, stream), "ncclRecv");
    }
    nccl_check(stage, nccl->end(), "ncclGroupEnd");
    nccl_unlock(stage);
}

void cuda_exchange_before(pn_stage *stage, const cuda_exchange *exchange)
{
    for (int i = 0; i < exchange->parts; i++)
        cuda_order_exchange(stage, &exchange->part[i], true);
    CU(stage, "the exchange", cudaStreamWaitEvent(cuda_stage_of(stage)->stream, cuda_ranks_of(stage)->last, 0));
}

void cuda_exchange_behind(pn_stage *stage, const cuda_exchange *exchange)
{
    for (int i = 0; i < exchange->parts; i++)
        cuda_order_exchange(stage, &exchange->part[i], false);
    CU(stage, "the exchange", cudaEventRecord(cuda_ranks_of(stage)->last, cuda_stage_of(stage)->stream));
}

void cuda_exchange_alone(pn_stage *stage, cuda_exchange *exchange)
{
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    cuda_exchange_before(stage, exchange);
    if (cuda_graphs_wanted(cuda_stage_of(stage))) {
        if (!exchange->alone) {
            cudaGraph_t recorded;
            CU(stage, "the exchange", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            cuda_exchange_enqueue(stage, exchange);
            CU(stage, "the exchange", cudaStreamEndCapture(stream, &recorded));
            CU(stage, "the exchange", cudaGraphInstantiate(&exchange->alone, recorded, 0));
            CU(stage, "the exchange", cudaGraphDestroy(recorded));
        }
        CU(stage, "the exchange", cudaGraphLaunch(exchange->alone, stream));
    } else {
        cuda_exchange_enqueue(stage, exchange);
    }
    cuda_exchange_behind(stage, exchange);
}

void pn_target_exchange(pn_stage *stage, const pn_transfer *transfer, int count, bool with_next)
{
    cuda_ranks *ranks = cuda_ranks_of(stage);
    cuda_exchange *exchange = find(ranks, transfer, count);
    if (!exchange)
        exchange = add(ranks, transfer, count);
    if (!exchange)
        exchange = pass(stage, transfer, count);
    if (with_next)
        cuda_stage_of(stage)->carries = exchange;
    else
        cuda_exchange_alone(stage, exchange);
}
