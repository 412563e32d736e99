/* Stages in several processes (world/world.h): each rank runs its own on one thread, round by round (rounds.h); what
 * crosses between ranks in a round is one exchange behind it, put on the device like everything else. The host is a few
 * rounds ahead of the device at most. Both ends of a channel have slots of their own, used alike: a slot is free again
 * when the taker is done with it, which every rank knows without being told. */
#include <string.h>

#include "core/driver.h"
#include "transport/rounds.h"
#include "transport/slots.h"
#include "world/world.h"

static void open_links(pn_run *run)
{
    slots_open(run, 0);
    world_ready(run);
}

static bool crosses(const pn_run *run, const pn_channel *channel)
{
    return run->stage[channel->from].here != run->stage[channel->to].here;
}

static int list_transfers(const pn_run *run, const Round *round, pn_transfer *transfer)
{
    int count = 0;
    for (int i = 0; i < round->gifts; i++) {
        pn_channel *channel = round->gift[i].channel;
        if (!crosses(run, channel))
            continue;
        const bool sends = run->stage[channel->from].here;
        const int peer = world_rank_of(run->world, sends ? channel->to : channel->from);
        transfer[count++] = (pn_transfer){channel, round->gift[i].n, peer, sends};
    }
    return count;
}

/* For the slots of this end: what is sent is gone, what is received is there. */
static void settle(pn_run *run, const pn_transfer *transfer, int count)
{
    for (int i = 0; i < count; i++) {
        pn_channel *channel = transfer[i].channel;
        if (transfer[i].sends) {
            slot_done(&run->stage[channel->to], channel, transfer[i].n);
        } else {
            slot_begin(&run->stage[channel->from], channel, transfer[i].n);
            slot_give(&run->stage[channel->from], channel, transfer[i].n);
        }
    }
}

static void tell(pn_run *run, const Round *round)
{
    char text[WORLD_TEXT], doing[64];
    int length = snprintf(text, sizeof text, "round %lld", (long long)round->number);
    for (int i = 0; i < round->steps; i++) {
        const RoundStep *one = &round->step[i];
        if (run->stage[one->stage].here && length < (int)sizeof text)
            length += snprintf(text + length, sizeof text - (size_t)length, ", stage %d: %s", one->stage,
                               driver_describe(one->step, doing, sizeof doing));
    }
    world_doing(run, text);
}

/* The last step of the round here that gives anything takes the exchange with it, if it is a forward or a backward. -1:
 * it goes alone, behind the round. */
static int find_carrier(const pn_run *run, const Round *round)
{
    for (int i = round->steps - 1; i >= 0; i--) {
        const Action action = round->step[i].step.action;
        if (!run->stage[round->step[i].stage].here)
            continue;
        if (action == ACTION_TEST)
            return -1;
        if (action == ACTION_FORWARD || action == ACTION_BACKWARD)
            return i;
    }
    return -1;
}

static pn_stage *any_stage(pn_run *run)
{
    return &run->stage[world_first(run->world, world_rank(run))];
}

static bool exchange(pn_stage *stage, const pn_transfer *transfer, int count, bool with_next)
{
    if (setjmp(stage->escape))
        return false;
    pn_target_exchange(stage, transfer, count, with_next);
    return true;
}

static bool pace(pn_stage *stage, int64_t round)
{
    if (setjmp(stage->escape))
        return false;
    pn_target_pace(stage, round);
    return true;
}

static bool do_round(pn_run *run, const Round *round, const pn_transfer *transfer, int count)
{
    const int carrier = count > 0 ? find_carrier(run, round) : -1;
    for (int i = 0; i < round->steps; i++) {
        const RoundStep *one = &round->step[i];
        pn_stage *stage = &run->stage[one->stage];
        if (!stage->here)
            continue;
        const Step step = order_next(stage);
        if (step.action != one->step.action || step.n != one->step.n) {
            fail_record(run, "internal error: stage %d is not where round %lld has it", stage->index,
                        (long long)round->number);
            return false;
        }
        if (i == carrier && !exchange(stage, transfer, count, true))
            return false;
        if (!driver_step(stage))
            return false;
    }
    if (count > 0 && carrier < 0 && !exchange(any_stage(run), transfer, count, false))
        return false;
    settle(run, transfer, count);
    for (int s = 0; s < run->program->nstages; s++)
        if (run->stage[s].here && !pace(&run->stage[s], round->number))
            return false;
    return true;
}

static void train(pn_run *run)
{
    pn_target_thread(run);
    pn_rounds *rounds = rounds_open(run);
    pn_transfer *transfer = pn_alloc((int64_t)sizeof *transfer * rounds_most_gifts(run));
    world_begins(run);
    while (!atomic_load(&run->stop)) {
        const Round *round = rounds_next(rounds);
        if (!round)
            return;
        tell(run, round);
        if (!do_round(run, round, transfer, list_transfers(run, round, transfer)))
            return;
    }
}

static bool each(pn_run *run, bool (*round)(pn_stage *stage))
{
    (void)round;
    fail_record(run, "internal error: nothing is measured by several ranks");
    return false;
}

/* The rounds see to it that nothing is ever waited for. */
const pn_transport pn_transport_ranks = {
    .name = "ranks",
    .doc = "a process a device: started by mpirun, srun or torchrun",
    .open = open_links,
    .train = train,
    .close = slots_close,
    .each = each,
    .room = slot_room,
    .give = slot_give,
    .take = slot_take,
    .done = slot_done,
};
