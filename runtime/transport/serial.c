/* One thread runs all stages: the same stage code in one global order, the oracle of every other transport.
 *
 * Round after round, each stage does one step if its channels are ready. Data flow fixes every result, so any order of
 * stages would give the same bits. A round in which no stage can go on is a deadlock of the compiled schedule. */
#include <string.h>

#include "core/driver.h"
#include "transport/slots.h"

/* The first channel for which the step would have to wait; NULL: ready. */
static const pn_channel *missing(const pn_stage *stage, Step step)
{
    StepChannels channels = driver_channels(stage, step);
    for (int i = 0; i < channels.ntakes; i++)
        if (!slot_is_there(stage, channels.takes[i], step.n))
            return channels.takes[i];
    for (int i = 0; i < channels.ngives; i++)
        if (!slot_has_room(stage, channels.gives[i], step.n))
            return channels.gives[i];
    return NULL;
}

static void report_deadlock(pn_run *run)
{
    char text[sizeof run->error - 64] = "", line[288], wanted[128], doing[64], name[STAGE_NAME];
    for (int i = 0; i < run->program->nstages; i++) {
        pn_stage *stage = &run->stage[i];
        Step step = order_next(stage);
        const pn_channel *channel = missing(stage, step);
        if (step.action == ACTION_END || !channel)
            continue;
        snprintf(line, sizeof line, "\n  %s: %s waits for %s", stage_name(stage, name, sizeof name),
                 driver_describe(step, doing, sizeof doing),
                 slot_describe(stage, channel, step.n, wanted, sizeof wanted));
        strncat(text, line, sizeof text - strlen(text) - 1);
    }
    fail_record(run, "internal error: no stage can go on%s", text);
}

static void open_links(pn_run *run)
{
    slots_open(run, 0);
}

static void train(pn_run *run)
{
    pn_target_thread(run);
    for (bool running = true; running;) {
        bool moved = false;
        running = false;
        for (int i = 0; i < run->program->nstages; i++) {
            pn_stage *stage = &run->stage[i];
            Step step = order_next(stage);
            if (step.action == ACTION_END)
                continue;
            running = true;
            if (missing(stage, step))
                continue;
            if (!driver_step(stage))
                return;
            moved = true;
        }
        if (running && !moved) {
            report_deadlock(run);
            return;
        }
    }
}

static bool go_round(pn_stage *stage, bool (*round)(pn_stage *stage))
{
    if (setjmp(stage->escape))
        return false;
    while (!round(stage))
        ;
    return true;
}

static bool each(pn_run *run, bool (*round)(pn_stage *stage))
{
    for (int i = 0; i < run->program->nstages; i++)
        if (!go_round(&run->stage[i], round))
            return false;
    return true;
}

/* Its verbs never wait: a stage is driven when its list of channels says that it need not. */
const pn_transport pn_transport_serial = {
    .name = "serial",
    .doc = "one thread runs all stages in turn: slow, for comparison",
    .open = open_links,
    .train = train,
    .close = slots_close,
    .each = each,
    .room = slot_room,
    .give = slot_give,
    .take = slot_take,
    .done = slot_done,
};
