/* report_json.c: --json of check and plan. Keys are an interface: they are added to, never renamed. Sizes are bytes,
 * counts are exact integers. */
#include "json_text.h"
#include "report.h"
#include "stability.h"

typedef json_int_t Int;

/* "stale", "hybrid(stale, steps = 150, then = sequential)" */
static const char *schedule_text(Arena *arena, const Sched *sched)
{
    const char *text = sched->phase[sched->nphases - 1].choice->preset;
    for (int p = sched->nphases - 2; p >= 0; p--) {
        const PhaseChoice *choice = sched->phase[p].choice;
        const char *when = choice->plateau_tests ? arena_printf(arena, "when = plateau(tests = %d, least = %g)",
                                                                choice->plateau_tests, choice->plateau_least)
                                                 : arena_printf(arena, "steps = %lld", (long long)choice->minibatches);
        text = arena_printf(arena, "hybrid(%s, %s, then = %s)", choice->preset, when, text);
    }
    return text;
}

static Int takes_bytes(const Plan *plan, int stage)
{
    return stage > 0 ? (Int)plan->stage[stage - 1].register_bytes : 0;
}

static json_t *stage_json(const Plan *plan, int s)
{
    const Sched *sched = plan->sched;
    const Stage *stage = &sched->pipe->stage[s];
    const StagePlan *memory = &plan->stage[s];
    const int n = memory->replicas; /* bytes are of all */
    const int layers = stage->last_layer - stage->first_layer + 1;
    return json_made(json_pack(
        "{s:i, s:i, s:I, s:I, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:b, s:I}", "stage", s,
        "layers", layers, "parameters", (Int)stage->params, "macs", (Int)stage->cost.macs, "staleness",
        sched->staleness[s], "ring", sched->ring[s], "versions", sched->versions[s], "gives_bytes",
        (Int)memory->register_bytes, "takes_bytes", takes_bytes(plan, s), "saved_bytes", (Int)memory->saved_bytes * n,
        "transient_bytes", (Int)(memory->transient_bytes + memory->forward_transient_bytes) * n, "weight_bytes",
        (Int)(weight_bytes(memory) + (n - 1) * gradient_bytes(memory)), "running_bytes",
        (Int)memory->running_floats * 4 * n, "register_bytes", (Int)memory->register_bytes, "static_bytes",
        (Int)memory->static_bytes, "replicas", memory->replicas, "replica_bytes", (Int)memory->replica_bytes, "halves",
        stage->halves, "forward_half_bytes", (Int)memory->forward_half_bytes));
}

static json_t *registers_json(const Plan *plan)
{
    const Pipe *pipe = plan->sched->pipe;
    json_t *list = json_made(json_array());
    for (int e = 0; e < pipe->nedges; e++) {
        const RegisterPlan *reg = &plan->reg[e];
        json_push(list,
                  json_pack("{s:s, s:i, s:i, s:I, s:i, s:i, s:i}", "value",
                            pipe->graph->node[pipe->edge[e].value].value_name, "from", pipe->edge[e].from, "to",
                            pipe->edge[e].from + 1, "slot_bytes", (Int)reg->slot_bytes, "forward_slots",
                            reg->forward_slots, "gradient_slots", reg->gradient_slots, "test_slots", reg->test_slots));
    }
    return list;
}

static void add_times(json_t *stage, const Prediction *p, int s)
{
    const StageTime *t = &p->stage[s];
    json_put(stage, "forward_seconds", json_real(t->forward));
    json_put(stage, "backward_seconds", json_real(t->backward));
    json_put(stage, "update_seconds", json_real(t->update));
    json_put(stage, "transfer_seconds", json_real(t->give + t->back));
    json_put(stage, "time_share", json_real(p->work > 0 ? stage_time(t) / p->work : 0));
    json_put(stage, "worker", json_integer(t->worker));
    json_put(stage, "workers", json_integer(t->halves ? 2 : t->workers));
    json_put(stage, "device", json_string(p->model->hardware->device[t->kind].name));
    json_put(stage, "backward_worker", json_integer(t->back_worker));
    json_put(stage, "backward_device", json_string(p->model->hardware->device[t->back_kind].name));
}

static void add_cure(json_t *stage, const Sched *sched, int s)
{
    const double stability = stability_of_stage(sched, s);
    json_t *phases = json_made(json_array());
    for (int p = 0; p < sched->nphases; p++)
        json_push(phases, report_cure_json(&sched->phase[p].cure[s]));
    json_put(stage, "stability", stability < 0 ? json_null() : json_real(stability));
    json_put(stage, "cure", phases);
}

static json_t *cuts_json(const Graph *written, const Cut *cut, int ncuts)
{
    json_t *list = json_made(json_array());
    for (int i = 0; i < ncuts; i++)
        json_push(list, json_string(cut_after(written, cut[i].before)));
    return list;
}

/* Nodes that the prediction counts as Winograd's algorithm, where no profile has their time. */
static json_t *winograd_json(const Balance *b)
{
    json_t *list = json_made(json_array());
    const Pipe *pipe = b->plan->sched->pipe;
    for (int s = 0; s < pipe->nstages; s++) {
        const Graph slice = pipe_slice(pipe, s);
        for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++)
            if (cost_winograd(b->prediction->model, &slice, i, b->prediction->stage[s].kind))
                json_push(list, json_string(slice.node[i].name));
    }
    return list;
}

static json_t *prediction_json(const Balance *b, const Graph *written)
{
    const Prediction *p = b->prediction;
    json_t *top =
        json_made(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "source", p->model->profile ? "profiled" : "analytic",
                            "machine", p->model->hardware->name, "machine_source", p->model->hardware->source, "nodes",
                            p->timed, "measured_nodes", p->measured, "workers", p->workers));
    json_put(top, "step_seconds", json_real(p->step));
    json_put(top, "one_worker_seconds", json_real(p->one_worker));
    json_put(top, "speedup", json_real(p->speedup));
    json_put(top, "efficiency", json_real(p->speedup / p->workers));
    json_put(top, "bubble", json_real(p->bubble));
    json_put(top, "balance", json_real(b->factor));
    json_put(top, "balanced", json_boolean(!b->unbalanced));
    json_put(top, "gains", json_boolean(balance_gains(b)));
    if (b->ncuts > 0) {
        json_t *better = json_made(json_object());
        json_put(better, "registers_after", cuts_json(written, b->cut, b->ncuts));
        json_put(better, "step_seconds", json_real(b->better.step));
        json_put(better, "speedup", json_real(b->better.speedup));
        json_put(better, "stale_fraction", json_real(b->better.stale_fraction));
        json_put(top, "better_cut", better);
    } else {
        json_put(top, "better_cut", json_null());
        json_put(top, "winograd", winograd_json(b));
    }
    return top;
}

/* What the pipeline block sets, null where nothing is; and what is exceeded. */
static json_t *limits_json(const Balance *b, const Graph *written)
{
    const Pipeline *pipeline = &b->plan->sched->settings->pipeline;
    const double most_stale = pipeline->max_stale;
    json_t *top = json_made(json_object());
    json_put(top, "balance", json_real(pipeline->balance));
    json_put(top, "max_stale", most_stale >= 0 ? json_real(most_stale) : json_null());
    json_put(top, "memory", pipeline->memory > 0 ? json_integer(pipeline->memory) : json_null());
    json_t *exceeded = json_made(json_array());
    if (b->unbalanced)
        json_push(exceeded, json_string("balance"));
    if (b->over_stale)
        json_push(exceeded, json_string("max_stale"));
    if (b->over_memory)
        json_push(exceeded, json_string("memory"));
    json_put(top, "exceeded", exceeded);
    const bool kept = (b->over_stale || b->over_memory) && b->within.ncuts > 0 && b->kept.legal;
    json_put(top, "kept_by", kept ? cuts_json(written, b->within.cut, b->within.ncuts) : json_null());
    return top;
}

void report_check_json(const Balance *balance, const Graph *written, Text *out)
{
    const Plan *plan = balance->plan;
    const Sched *sched = plan->sched;
    const Pipe *pipe = sched->pipe;
    json_t *top = json_made(json_pack("{s:s, s:s, s:s, s:s, s:I}", "network", pipe->graph->name, "target",
                                      plan->target->name, "schedule", schedule_text(out->arena, sched), "mapping",
                                      sched->settings->pipeline.split ? "split" : "joined", "batch",
                                      (Int)(pipe->graph->batch * pipe->graph->microbatches)));
    json_t *stages = json_made(json_array());
    int64_t params = 0, macs = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        json_t *stage = stage_json(plan, s);
        add_times(stage, balance->prediction, s);
        add_cure(stage, sched, s);
        json_push(stages, stage);
        params += pipe->stage[s].params;
        macs += (int64_t)pipe->stage[s].cost.macs;
    }
    json_put(top, "stages", stages);
    json_put(top, "registers", registers_json(plan));
    json_put(top, "parameters", json_integer(params));
    json_put(top, "macs", json_integer(macs));
    json_put(top, "stale_fraction", json_real(sched->stale_fraction));
    json_put(top, "traffic_bytes", json_integer(plan->traffic_bytes));
    json_put(top, "static_bytes", json_integer(plan->static_bytes));
    json_put(top, "prediction", prediction_json(balance, written));
    json_put(top, "limits", limits_json(balance, written));
    json_print(top, out);
}

static json_t *buffers_json(const Plan *plan, int s)
{
    static const char *const kinds[BUFFER_KINDS] = {"saved", "again",    "aux",     "kept",
                                                    "value", "gradient", "partial", "test"};
    const StagePlan *stage = &plan->stage[s];
    json_t *list = json_made(json_array());
    for (int b = 0; b < stage->nbuffers; b++) {
        const Buffer *buffer = &stage->buffer[b];
        json_t *item = json_made(json_pack("{s:s, s:s, s:I, s:i}", "kind", kinds[buffer->kind], "value",
                                           plan->sched->pipe->graph->node[buffer->value].value_name, "bytes",
                                           (Int)buffer->bytes, "slots", buffer->slots));
        if (buffer->offset >= 0) {
            json_put(item, "offset", json_integer(buffer->offset));
            json_put(item, "born", json_integer(buffer->born));
            json_put(item, "dies", json_integer(buffer->dies));
        }
        json_push(list, item);
    }
    return list;
}

static json_t *params_json(const Plan *plan, int s)
{
    const Pipe *pipe = plan->sched->pipe;
    json_t *list = json_made(json_array());
    for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++)
        for (int k = 0; k < pipe->graph->node[i].nparams; k++) {
            const int param = pipe->graph->node[i].param[k];
            json_push(list, json_pack("{s:s, s:I, s:I, s:b}", "name", pipe->graph->param[param].name, "offset",
                                      (Int)plan->param[param].offset, "room", (Int)plan->param[param].room, "running",
                                      pipe->graph->param[param].running));
        }
    return list;
}

static json_t *launches_json(Launches launches)
{
    return json_made(json_pack("{s:i, s:i, s:i, s:i}", "kernels", launches.kernels, "fusible", launches.fusible,
                               "library", launches.library, "copies", launches.copies));
}

void report_plan_json(const Plan *plan, const DeviceStage *on_device, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    json_t *top =
        json_made(json_pack("{s:s, s:s, s:I, s:I}", "network", pipe->graph->name, "target", plan->target->name,
                            "static_bytes", (Int)plan->static_bytes, "traffic_bytes", (Int)plan->traffic_bytes));
    json_t *stages = json_made(json_array());
    for (int s = 0; s < pipe->nstages; s++) {
        json_t *stage = stage_json(plan, s);
        json_put(stage, "buffers", buffers_json(plan, s));
        json_put(stage, "weights", params_json(plan, s));
        if (on_device) {
            json_put(stage, "device_bytes", json_integer(on_device[s].bytes));
            json_put(stage, "forward_launches", launches_json(on_device[s].forward));
            json_put(stage, "backward_launches", launches_json(on_device[s].backward));
            json_put(stage, "update_launches", launches_json(on_device[s].update));
        }
        json_push(stages, stage);
    }
    json_put(top, "stages", stages);
    json_put(top, "registers", registers_json(plan));
    json_print(top, out);
}
