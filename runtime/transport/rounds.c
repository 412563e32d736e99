/* rounds.c: see rounds.h. */
#include "transport/rounds.h"

#include <string.h>

#include "world/world.h"

enum { KINDS = 3, MOST_STEPS = 8 }; /* channels of a register; steps of a stage in a round */
typedef struct {
    pn_channel *channel;
    bool *full, *later; /* per slot: now, and from the next round on */
} Slots;
struct pn_rounds {
    pn_run *run;
    pn_stage *stage; /* copies */
    Slots *slots;    /* KINDS a register */
    bool halves;     /* a round is a forward or a backward */
    Round round;
};

/* ---- slots ---- */

static Slots *slots_of(const pn_rounds *rounds, const pn_channel *channel)
{
    for (int i = 0; i < rounds->run->program->nregisters * KINDS; i++)
        if (rounds->slots[i].channel == channel)
            return &rounds->slots[i];
    pn_fail(NULL, "internal error: %s belongs to no register", channel->name);
}

static void open_slots(pn_rounds *rounds)
{
    const pn_program *program = rounds->run->program;
    rounds->slots = pn_alloc((int64_t)sizeof *rounds->slots * (program->nregisters * KINDS + 1));
    for (int i = 0; i < program->nregisters; i++) {
        pn_channel *const channel[KINDS] = {&program->reg[i]->forward, &program->reg[i]->gradient,
                                            &program->reg[i]->test};
        for (int k = 0; k < KINDS; k++) {
            Slots *slots = &rounds->slots[i * KINDS + k];
            slots->channel = channel[k];
            slots->full = pn_alloc(channel[k]->area.slots + 1);
            slots->later = pn_alloc(channel[k]->area.slots + 1);
        }
    }
}

static void set_later(pn_rounds *rounds, const pn_channel *channel, int64_t n, bool full)
{
    slots_of(rounds, channel)->later[n % channel->area.slots] = full;
}

/* The end of a round. */
static void settle(pn_rounds *rounds)
{
    for (int i = 0; i < rounds->run->program->nregisters * KINDS; i++)
        memcpy(rounds->slots[i].full, rounds->slots[i].later, (size_t)rounds->slots[i].channel->area.slots);
}

static bool is_ready(const pn_rounds *rounds, const pn_stage *stage, Step step)
{
    const StepChannels channels = driver_channels(stage, step);
    for (int i = 0; i < channels.ntakes; i++) {
        const Slots *slots = slots_of(rounds, channels.takes[i]);
        const int64_t slot = step.n % channels.takes[i]->area.slots;
        if (!slots->full[slot] || !slots->later[slot]) /* it may have been the one before, freed in this round */
            return false;
    }
    for (int i = 0; i < channels.ngives; i++) {
        const Slots *slots = slots_of(rounds, channels.gives[i]);
        const int64_t slot = step.n % channels.gives[i]->area.slots;
        if (slots->later[slot]) /* freed in this round will do: what was in it is gone before this is given */
            return false;
    }
    return true;
}

/* What the backward still reads is freed by it, the rest by the step that took it. */
static void hand_over(pn_rounds *rounds, const pn_stage *stage, Step step)
{
    const StepChannels channels = driver_channels(stage, step);
    for (int i = 0; i < channels.ntakes; i++)
        if (step.action != ACTION_FORWARD || !channels.takes[i]->held)
            set_later(rounds, channels.takes[i], step.n, false);
    for (int i = 0; step.action == ACTION_BACKWARD && i < stage->def->ntakes; i++)
        if (stage->def->takes[i]->held)
            set_later(rounds, stage->def->takes[i], step.n, false);
    for (int i = 0; i < channels.ngives; i++) {
        set_later(rounds, channels.gives[i], step.n, true);
        rounds->round.gift[rounds->round.gifts++] = (RoundGift){channels.gives[i], step.n};
    }
}

/* ---- rounds ---- */

int rounds_most_gifts(const pn_run *run)
{
    return (run->program->nregisters * KINDS + 1) * MOST_STEPS;
}

static pn_rounds *open_once(pn_run *run, bool halves)
{
    pn_rounds *rounds = pn_alloc((int64_t)sizeof *rounds);
    const pn_program *program = run->program;
    const int stages = program->nstages;
    rounds->run = run;
    rounds->halves = halves;
    rounds->stage = pn_alloc((int64_t)sizeof *rounds->stage * stages);
    for (int i = 0; i < stages; i++) {
        pn_stage *stage = &rounds->stage[i];
        stage->def = program->stage[i];
        stage->run = run;
        stage->index = stage->worker = i;
        stage->cursor = pn_alloc((int64_t)sizeof *stage->cursor);
        order_begin(stage);
    }
    open_slots(rounds);
    rounds->round.step = pn_alloc((int64_t)sizeof *rounds->round.step * stages * MOST_STEPS);
    rounds->round.gift = pn_alloc((int64_t)sizeof *rounds->round.gift * rounds_most_gifts(run));
    return rounds;
}

/* Adds the steps of a stage. False: it has ended. */
static bool add_steps(pn_rounds *rounds, pn_stage *stage)
{
    bool forward = false, backward = false;
    for (int count = 0; count < MOST_STEPS; count++) {
        const Step step = order_next(stage);
        if (step.action == ACTION_END)
            return count > 0;
        const bool goes_forward = step.action == ACTION_FORWARD || step.action == ACTION_TEST;
        const bool goes_back = step.action == ACTION_BACKWARD;
        if ((goes_forward && (forward || (rounds->halves && backward))) ||
            (goes_back && (backward || (rounds->halves && forward))) || !is_ready(rounds, stage, step))
            return true;
        forward |= goes_forward;
        backward |= goes_back;
        hand_over(rounds, stage, step);
        rounds->round.step[rounds->round.steps++] = (RoundStep){stage->index, step};
        order_pass(stage, step);
    }
    return true;
}

/* An error of the driver's unwinds to here: it is then of the run. */
static bool add_guarded(pn_rounds *rounds, pn_stage *stage, bool *running)
{
    if (setjmp(stage->escape))
        return false;
    if (add_steps(rounds, stage))
        *running = true;
    return true;
}

static const Round *next(pn_rounds *rounds, bool tries)
{
    bool running = false;
    Round *round = &rounds->round;
    round->steps = round->gifts = 0;
    for (int i = 0; i < rounds->run->program->nstages; i++)
        if (!add_guarded(rounds, &rounds->stage[i], &running))
            return NULL;
    if (!running)
        return NULL;
    if (round->steps == 0 && !tries)
        fail_record(rounds->run, "internal error: no stage can go on after round %lld", (long long)round->number);
    if (round->steps == 0)
        return NULL;
    settle(rounds);
    round->number++;
    return round;
}

const Round *rounds_next(pn_rounds *rounds)
{
    return next(rounds, false);
}

/* ---- the length of a round ---- */

static double cost_of(const Round *round, const pn_run *run, double *rank)
{
    static const double cost[] = {[ACTION_FORWARD] = 1, [ACTION_BACKWARD] = 2, [ACTION_TEST] = 1, [ACTION_END] = 0};
    double most = 0;
    memset(rank, 0, sizeof *rank * (size_t)world_size(run));
    for (int i = 0; i < round->steps; i++) {
        double *sum = &rank[world_rank_of(run->world, round->step[i].stage)];
        *sum += cost[round->step[i].step.action];
        most = *sum > most ? *sum : most;
    }
    return most + 0.25;
}

/* Of a minibatch, over the beginning of the run. */
static double try_rounds(pn_run *run, bool halves)
{
    pn_rounds *rounds = open_once(run, halves);
    double *rank = pn_alloc((int64_t)sizeof *rank * world_size(run)), sum = 0;
    const int tries = 16 * run->program->nstages + 64;
    const long long begun = atomic_load(&run->begun);
    for (int i = 0; i < tries; i++) {
        const Round *round = next(rounds, true);
        if (!round)
            break;
        sum += cost_of(round, run, rank);
    }
    atomic_store(&run->begun, begun);
    const int64_t done = rounds->stage[0].updates - run->first;
    return done > 0 ? sum / (double)done : sum;
}

pn_rounds *rounds_open(pn_run *run)
{
    const double whole = try_rounds(run, false), half = try_rounds(run, true);
    return open_once(run, half < whole);
}
