/* emit_launches.c: what each stage of a program for a device launches for a minibatch, and what it takes of the
 * device's memory besides its buffers. Counted on the lines of the generated functions: a verb launches the kernels
 * that its operation has for the passes named here, and what it always does (runtime/cuda). tests/cuda_plan.t holds all
 * of it against what was run. */
#include "emit_state.h"

#include <string.h>

typedef long long Int;

typedef struct {
    const char *verb, *passes[3]; /* of its operation: NULL ends them */
    Launches always;
} Verb;

static const Verb verbs[] = {
    {"pn_conv_forward", {"finish"}, {0, 1, 0, 0}},
    {"pn_conv_backward_data", {NULL}, {0, 1, 0, 0}},
    {"pn_conv_backward_weights", {"bias_part", "bias"}, {0, 1, 0, 0}},
    {"pn_linear_forward", {"finish"}, {0, 1, 0, 0}},
    {"pn_linear_backward_data", {NULL}, {0, 1, 0, 0}},
    {"pn_linear_backward_weights", {"bias_part", "bias"}, {0, 1, 0, 0}},
    {"pn_batch_norm_forward", {"part", "statistics", "apply"}, {0}},
    {"pn_batch_norm_backward", {"gradient_part", "gradient"}, {0}}, /* "backward": where a gradient is wanted */
    {"pn_batch_norm_track", {"track"}, {0}},
    {"pn_maxpool_forward", {"forward"}, {0}},
    {"pn_maxpool_backward", {"backward"}, {0}},
    {"pn_avgpool_forward", {"forward"}, {0}},
    {"pn_avgpool_backward", {"backward"}, {0}},
    {"pn_pointwise_forward", {"forward"}, {0}},
    {"pn_pointwise_backward", {"backward"}, {0}},
    {"pn_add_forward", {"forward"}, {0}},
    {"pn_add_backward", {NULL}, {0, 0, 1, 0}},
    {"pn_concat_forward", {NULL}, {1, 0, 0, 0}},
    {"pn_concat_backward", {NULL}, {1, 0, 0, 0}},
    {"pn_flatten_forward", {"forward"}, {0}},
    {"pn_flatten_backward", {"backward"}, {0}},
    {"pn_lrn_forward", {"forward"}, {0}},
    {"pn_lrn_backward", {"backward"}, {0}},
    {"pn_shortcut_forward", {"forward"}, {0}},
    {"pn_shortcut_backward", {"backward"}, {0}},
    {"pn_dropout_forward", {"forward"}, {0}},
    {"pn_dropout_backward", {"backward"}, {0}},
    {"pn_softmax_cross_entropy_forward", {"forward"}, {0}},
    {"pn_softmax_cross_entropy_backward", {"backward"}, {0}},
    {"pn_mse_forward", {"forward"}, {0}},
    {"pn_mse_backward", {"backward"}, {0}},
    {"pn_relu_mask", {NULL}, {1, 0, 0, 0}},
    {"pn_accumulate", {NULL}, {1, 0, 0, 0}},
    {"pn_copy", {NULL}, {0, 0, 1, 0}},
    {"pn_input", {NULL}, {1, 0, 0, 0}},
};

/* The verb that a line calls, "pn_conv_forward"; "": none. */
static const char *verb_of(Emit *e, const char *code)
{
    const char *at = strncmp(code, "pn_", 3) ? strstr(code, " = pn_") : code;
    if (!at)
        return "";
    at += at == code ? 0 : strlen(" = ");
    return arena_text(e->arena, at, strcspn(at, "("));
}

/* The name of the operation "op.conv1" in a line. */
static const char *operation_of(Emit *e, const char *code)
{
    const char *op = strstr(code, "(op.");
    if (!op)
        return NULL;
    const char *member = arena_text(e->arena, op + 4, strcspn(op + 4, ",)"));
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->op_name && !strcmp(value->op_name, member))
            return e->graph->node[value->id].name;
    }
    ICE("emit: no operation op.%s", member);
}

static void add(Launches *to, Launches more)
{
    to->kernels += more.kernels;
    to->library += more.library;
    to->copies += more.copies;
    to->fusible += more.fusible;
}

/* What depends on more than the verb. */
static int further(Emit *e, const char *verb, const char *code, const char *op)
{
    const Cure *cure = &e->sched->phase[0].cure[e->stage];
    if (!strcmp(verb, "pn_batch_norm_backward"))
        return strstr(code, "NULL, NULL") ? 0 : emit_kernel_uses(e, op, "backward");
    if (!strcmp(verb, "pn_backward_weights"))
        return cure->active && (cure->backward != 0 || cure->memory > 0);
    return 0;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

void emit_count(Emit *e, const char *const *code, int count)
{
    if (!e->device || e->part == PART_INIT || e->part == PART_TEST)
        return;
    DeviceStage *stage = &e->on_device[e->stage];
    Launches *to = e->part == PART_FORWARD ? &stage->forward : &stage->backward;
    const bool fuses = e->graph->precision == PRECISION_F32; /* runtime/cuda/plan.h */
    bool inputs = false, drops = false;
    for (int i = 0; i < count; i++) {
        const char *verb = verb_of(e, code[i]), *op = operation_of(e, code[i]);
        for (int v = 0; v < COUNT(verbs); v++) {
            if (strcmp(verb, verbs[v].verb))
                continue;
            add(to, verbs[v].always);
            for (int p = 0; p < COUNT(verbs[v].passes) && verbs[v].passes[p]; p++) {
                const int uses = emit_kernel_uses(e, op, verbs[v].passes[p]);
                to->kernels += uses;
                to->fusible += fuses && !strcmp(verbs[v].passes[p], "finish") ? uses : 0;
            }
        }
        to->kernels += further(e, verb, code[i], op);
        inputs |= !strcmp(verb, "pn_input");
        drops |= !strcmp(verb, "pn_dropout_forward");
        /* A loss that is told: the sum over the samples, and its way to the host. */
        if (e->part == PART_FORWARD && (ends_in(verb, "entropy_forward") || ends_in(verb, "mse_forward")))
            add(to, (Launches){1, 0, 1, 0});
    }
    to->kernels += (inputs || drops) + inputs; /* counts minibatches; draws samples */
}

/* ---- memory: as runtime/cuda takes it ---- */

static int64_t besides(const Emit *e, int s)
{
    enum { THREADS = 256, NUMBERS = 2 * 8, PICK = 12, RATES = 8 + 512 * 6 * 4, LOSSES = 2 * 8, LOSS = 2 * 4 };
    const Stage *stage = &e->pipe->stage[s];
    int64_t sums = 0, bytes = NUMBERS + PICK * e->graph->batch + RATES + LOSSES;
    for (NodeId id = stage->first; id < stage->last; id++) {
        const Node *node = &e->graph->node[id];
        const int64_t blocks = emit_sum_blocks(e, node->name);
        sums = blocks * 2 * THREADS * 4 > sums ? blocks * 2 * THREADS * 4 : sums;
        if (node->op && node->op->flags & OP_LOSS)
            bytes += LOSS * e->graph->batch;
    }
    return bytes + sums;
}

void emit_launches(Emit *e)
{
    for (int s = 0; s < e->pipe->nstages; s++) {
        DeviceStage *to = &e->on_device[s];
        const StagePlan *plan = &e->plan->stage[s];
        to->bytes = besides(e, s);
        if (plan->weight_floats)
            to->update.kernels = 2; /* moves the weights, counts itself */
        if (plan->weight_floats && plan->sums)
            to->backward.kernels++;
    }
}

void device_dump(const Plan *plan, const DeviceStage *stage, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    int64_t bytes = 0;
    for (int s = 0; s < pipe->nstages; s++)
        bytes += stage[s].bytes;
    text_printf(
        out,
        "\non the device: %lld bytes in the buffers above, %lld besides them: numbers, samples, rates, losses, sums;\n"
        "the data set and cuDNN's workspaces are known at the start\n\n"
        "launches of a %s, and of an update%s; of the kernels `fusible` less where cuDNN does bias and relu\n"
        "  stage     besides   forward: kernels fusible cuDNN copies   backward: kernels fusible cuDNN copies   "
        "update: kernels\n",
        (Int)plan->static_bytes, (Int)bytes, pipe->graph->microbatches > 1 ? "microbatch" : "minibatch",
        plan->sched->nphases > 1 ? ", in the first phase" : "");
    for (int s = 0; s < pipe->nstages; s++) {
        const DeviceStage *at = &stage[s];
        text_printf(out, "  %5d  %10lld  %17d %7d %5d %6d  %19d %7d %5d %6d  %16d\n", s, (Int)at->bytes,
                    at->forward.kernels, at->forward.fusible, at->forward.library, at->forward.copies,
                    at->backward.kernels, at->backward.fusible, at->backward.library, at->backward.copies,
                    at->update.kernels);
    }
}
