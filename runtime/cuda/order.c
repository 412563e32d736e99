/* order.c: steps of a stage on its stream, and the order between the streams of stages.
 *
 * Slots of registers are written and read in place. The transport orders what the hosts of two stages begin; here an
 * event for each slot carries that order to the GPU: give and done record, take and room wait. An event that was never
 * recorded is no wait. A slot that another rank reads or writes is an exchange's (exchange.c), in the place of the
 * other stage. */
#include "cuda/cuda.h"

static _Thread_local pn_stage *at_work; /* a thread does one step at a time */

pn_stage *cuda_stage_at_work(void)
{
    return at_work;
}

typedef struct {
    cudaEvent_t given, freed;
} Slot;

static void open_channel(pn_stage *stage, pn_channel *channel)
{
    const bool first =
        stage->run->stage[channel->from].here ? channel->from == stage->index : channel->to == stage->index;
    if (!first || channel->area.slots == 0)
        return;
    Slot *slot = pn_alloc((int64_t)sizeof *slot * channel->area.slots);
    for (int i = 0; i < channel->area.slots; i++) {
        CU(stage, channel->name, cudaEventCreateWithFlags(&slot[i].given, cudaEventDisableTiming));
        CU(stage, channel->name, cudaEventCreateWithFlags(&slot[i].freed, cudaEventDisableTiming));
    }
    channel->target = slot;
}

void cuda_order_open(pn_stage *stage)
{
    const pn_program *program = stage->run->program;
    for (int i = 0; i < program->nregisters; i++) {
        open_channel(stage, &program->reg[i]->forward);
        open_channel(stage, &program->reg[i]->gradient);
        open_channel(stage, &program->reg[i]->test);
    }
}

void cuda_order_exchange(pn_stage *stage, const pn_transfer *part, bool before)
{
    const Slot *slot = (const Slot *)part->channel->target + part->n % part->channel->area.slots;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    if (before)
        CU(stage, part->channel->name, cudaStreamWaitEvent(stream, part->sends ? slot->given : slot->freed, 0));
    else
        CU(stage, part->channel->name, cudaEventRecord(part->sends ? slot->freed : slot->given, stream));
}

void pn_target_channel(pn_stage *stage, pn_channel *channel, int64_t n, pn_handover what)
{
    Slot *slot = (Slot *)channel->target + n % channel->area.slots;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    cuda_graphs_handover(cuda_stage_of(stage), channel, what);
    switch (what) {
    case PN_AT_ROOM:
        CU(stage, channel->name, cudaStreamWaitEvent(stream, slot->freed, 0));
        break;
    case PN_AT_GIVE:
        CU(stage, channel->name, cudaEventRecord(slot->given, stream));
        break;
    case PN_AT_TAKE:
        CU(stage, channel->name, cudaStreamWaitEvent(stream, slot->given, 0));
        break;
    case PN_AT_DONE:
        CU(stage, channel->name, cudaEventRecord(slot->freed, stream));
        break;
    }
}

void pn_target_run(pn_stage *stage, pn_run_kind kind, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    at_work = stage;
    cuda->loss.count = 0;
    cuda_updates_cover(cuda);
    cuda_graphs_run(cuda, kind, step, n);
    cuda_reports_send(cuda);
    cuda_reports_collect(cuda, false);
}

void pn_target_finish(pn_stage *stage)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    cuda_wait_stream(stage);
    cuda_reports_collect(cuda, true);
}
