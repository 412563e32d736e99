/* evaluator.c FILE STEPS WEIGHTS: trains the network of FILE as it is written (not fused, not cut) with the compiler's
 * evaluator, under the schedule of FILE, and compares with the weights that a generated program saved after the same
 * steps: target ref, sgd(momentum = 0.9, weight_decay = 5e-4), lr = constant(0.02), no warm-up. Bits must agree (zeros
 * of either sign). Built and run by evaluator.t.
 *
 * Nothing runs at the same time here, and nothing is taken from sched.c or the runtime's driver: all versions of all
 * weights are kept, and microbatch n goes through the whole network with the versions that the papers say. In a phase
 * that began with minibatch b, of M microbatches, with stage s being w(s) forwards ahead of its backwards:
 *
 *     its forward of n finds    b + max(0, n - b M - w(s)) / M    updates done
 *     its backward of n finds   n / M, as backwards ascend and each M of them are an update
 *
 * Weight versions are kept with the velocity and the mean change that they had. The coefficients of corrections are
 * worked out here by the formulas of grammar/REFERENCE.md, section 9.1; a file with a cure has one phase.
 *
 * Data and initial values come from the runtime; slices of a minibatch are taken here. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ast.h"
#include "correction.h"
#include "op.h"
#include "order.h"
#include "ref/kernels.h"
#include "rt.h"
#include "settings.h"

static const double rate = 0.02, momentum = 0.9;
static const float decay = 5e-4f;

static _Noreturn void stop(const char *text, const char *what)
{
    fprintf(stderr, "evaluator: %s%s\n", text, what);
    exit(1);
}

static Graph *read_network(Arena *arena, const char *path, Settings *settings)
{
    Sources *sources = arena_alloc(arena, sizeof *sources);
    Diags *diags = diags_new(arena, sources);
    const Ast *ast = load(arena, diags, sources, path);
    Graph *graph = diag_errors(diags) ? NULL : lower(arena, diags, sources, ast, NULL, NULL, 0, settings);
    if (graph == NULL) {
        diags_render(diags, stderr, false);
        stop("errors in ", path);
    }
    return graph;
}

/* The program's inputs and data, as far as the data sources look. */
static pn_run *open_data(Arena *arena, const Graph *graph, const Train *train)
{
    pn_program *program = arena_alloc(arena, sizeof *program);
    pn_run *run = arena_alloc(arena, sizeof *run);
    pn_input_def *input = arena_alloc(arena, sizeof *input * (size_t)graph->ninputs);
    for (int i = 0; i < graph->ninputs; i++) {
        const Shape *shape = &graph->node[graph->input[i]].shape;
        input[i] = (pn_input_def){.name = graph->node[graph->input[i]].name,
                                  .label = shape->dtype == DTYPE_CLASS,
                                  .rank = shape->rank,
                                  .classes = shape->classes};
        memcpy(input[i].dim, shape->dim, sizeof input[i].dim);
    }
    pn_arg *arg = arena_alloc(arena, sizeof *arg * (size_t)(train->data.nargs + 1));
    int nargs = 0;
    for (int i = 0; i < train->data.nargs; i++)
        if (train->data.arg[i].given)
            arg[nargs++] = (pn_arg){.key = train->data.arg[i].key, .number = train->data.arg[i].number};
    *program = (pn_program){
        .name = graph->name, .batch = graph->batch * graph->microbatches, .input = input, .ninputs = graph->ninputs};
    program->data = (pn_choice){.name = train->data.name, .arg = arg, .nargs = nargs};
    run->program = program;
    run->seed = train->seed;
    pn_data_open(run, NULL);
    return run;
}

static int64_t size_of(const Param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return count;
}

static void initialise(const Param *param, uint64_t seed, float *values)
{
    static const pn_init kind[] = {[INIT_HE] = PN_HE,
                                   [INIT_XAVIER] = PN_XAVIER,
                                   [INIT_GAUSSIAN] = PN_GAUSSIAN,
                                   [INIT_UNIFORM] = PN_UNIFORM,
                                   [INIT_CONSTANT] = PN_CONSTANT};
    pn_param same = {.name = param->name,
                     .rank = param->rank,
                     .init = kind[param->init.kind],
                     .a = param->init.a,
                     .b = param->init.b,
                     .fan_in = param->fan_in,
                     .fan_out = param->fan_out};
    memcpy(same.dim, param->dim, sizeof same.dim);
    pn_param_initial(&same, seed, values);
}

/* batch_norm moves its running statistics, parameters 2 and 3, by those of the minibatch. */
static void track(const Eval *eval, const Node *node, const float *statistics)
{
    if (node->op == NULL || strncmp(node->op->name, "batch_norm", 10) != 0)
        return;
    const int64_t channels = node->shape.dim[0];
    const ref_channels all = {eval->graph->batch, channels, shape_count(&node->shape) / channels};
    ref_norm_track(&all, attr_real(node, "momentum"), statistics, statistics + channels, eval->param[node->param[2]],
                   eval->param[node->param[3]]);
}

/* ---- the schedule ---- */

static int stage_of(const Graph *graph, NodeId node)
{
    int stage = 0;
    while (stage < graph->ncuts && graph->cut[stage].before <= node)
        stage++;
    return stage;
}

/* How many forwards a stage is ahead of its backwards; -1: the pipe is empty at each update. */
static int64_t ahead(const char *order, int64_t behind)
{
    if (!strcmp(order, "lockstep"))
        return 2 * behind;
    if (!strcmp(order, "lockstep_b"))
        return behind > 0 ? 2 * behind - 1 : 0;
    if (!strcmp(order, "1f1b"))
        return behind;
    if (strcmp(order, "sequential") != 0 && strcmp(order, "gpipe") != 0 && strcmp(order, "1f1b_flush") != 0 &&
        strcmp(order, "zb_h1") != 0)
        stop("no such order here: ", order);
    return -1;
}

typedef struct {
    int64_t forward, backward; /* versions of the weights */
    bool replay;               /* the backward's are those that its stage goes forward with again */
} Versions;

static Versions versions_of(const Pipeline *pipeline, int stages, int stage, int64_t n)
{
    const int64_t slices = pipeline->microbatches, minibatch = n / slices;
    int64_t begin = 0;
    int p = 0;
    while (p + 1 < pipeline->nphases && minibatch >= begin + pipeline->phase[p].minibatches)
        begin += pipeline->phase[p++].minibatches;
    const char *order = pipeline->phase[p].order->name, *rule = pipeline->phase[p].rule->name;
    const bool vertical = !strcmp(rule, "vertical_sync"), stash = !strcmp(rule, "stash");
    const bool buffers = !strcmp(rule, "two_buffer");
    if (!vertical && !stash && !buffers && strcmp(rule, "stale") != 0 && strcmp(rule, "replay") != 0 &&
        strcmp(rule, "predict") != 0)
        stop("no such weight rule here: ", rule);
    const int64_t before = ahead(order, stages - 1 - (vertical ? 0 : stage)), in_phase = n - begin * slices;
    Versions v = {.forward = minibatch, .backward = minibatch, .replay = !strcmp(rule, "replay")};
    if (before >= 0)
        v.forward = begin + (in_phase > before ? (in_phase - before) / slices : 0);
    if (buffers)
        v.forward = minibatch > begin ? minibatch - 1 : begin;
    if (vertical || stash || buffers)
        v.backward = v.forward;
    return v;
}

/* ---- corrections ---- */

typedef struct {
    double momentum, factor, on_velocity, on_gradient; /* of an update */
    double forward, backward;                          /* reads this many rates of velocity ahead */
    double memory, back;                               /* of the mean change; how many of them a backward goes back */
    double divisor, part, warmup;                      /* of the rate, at the beginning, for which part of the run */
    int64_t group;                                     /* minibatches of an update */
} Corrected;

static int64_t rounded_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t delay_of(const Pipeline *pipeline, int behind)
{
    const int64_t before = ahead(pipeline->phase[0].order->name, behind);
    return before < 0 ? 0 : rounded_up(before, pipeline->microbatches);
}

static const CorrectionChoice *chosen(const Pipeline *pipeline, const char *name)
{
    for (int i = 0; i < pipeline->cure.count; i++)
        if (!strcmp(pipeline->cure.correction[i].def->name, name))
            return &pipeline->cure.correction[i];
    return NULL;
}

/* How far staleness brings a stage with the rate and the momentum of the corrections so far: REFERENCE.md, 9.1. */
static double stability(const Graph *graph, int stage, const Corrected *c, int64_t delay)
{
    bool normalised = false;
    for (NodeId id = 0; id < graph->nnodes; id++)
        normalised |= stage_of(graph, id) == stage && graph->node[id].op != NULL &&
                      strncmp(graph->node[id].op->name, "batch_norm", 10) == 0;
    return (normalised ? 1 : 5) * rate * c->factor / (1 - c->momentum) * ((double)delay + 0.5);
}

static Corrected corrected(const Graph *graph, const Pipeline *pipeline, int stage)
{
    const int stages = graph->ncuts + 1;
    static const char *const known[] = {"accumulate",  "momentum_by_delay", "spike", "lookahead",
                                        "discrepancy", "lr_reschedule",     "warmup"};
    Corrected c = {.momentum = momentum, .factor = 1, .on_velocity = 1, .group = 1};
    const CorrectionChoice *choice[COUNT(known)];
    int64_t d = delay_of(pipeline, stages - 1 - stage);
    int found = 0;
    for (int i = 0; i < COUNT(known); i++)
        found += (choice[i] = chosen(pipeline, known[i])) != NULL;
    if (found < pipeline->cure.count || (found > 0 && pipeline->nphases > 1))
        stop("no such cure here", "");
    if (!strcmp(pipeline->phase[0].rule->name, "predict")) {
        const int64_t after = (delay_of(pipeline, stages - 1) - d) / 2; /* until the first stage's backward */
        c.forward = (double)(d + after);
        c.backward = (double)after;
    }
    if (d == 0)
        return c;
    if (choice[0]) {
        c.group = (int64_t)choice[0]->arg[0];
        c.factor *= (double)c.group;
        c.forward /= (double)c.group;
        c.backward /= (double)c.group;
        d = rounded_up(d, c.group);
    }
    if (choice[1]) {
        c.momentum = 1 - 1 / fmax(1 / (1 - momentum), choice[1]->arg[0] * (double)d);
        c.factor *= (1 - c.momentum) / (1 - momentum);
    }
    if (choice[2]) {
        const double kept = pow(c.momentum, choice[2]->arg[0] * (double)d);
        c.on_velocity = kept;
        c.on_gradient = (1 - kept) / (1 - c.momentum);
    }
    const char *rule = pipeline->phase[0].rule->name; /* cure = auto has no lookahead where others choose the version */
    const bool current = strcmp(rule, "predict") && strcmp(rule, "vertical_sync") && strcmp(rule, "two_buffer");
    if (choice[3] && (current || !pipeline->cure.automatic))
        c.forward =
            c.on_velocity * c.momentum * (1 - pow(c.momentum, choice[3]->arg[0] * (double)d)) / (1 - c.momentum);
    if (choice[4]) {
        c.memory = pow(choice[4]->arg[0], 1.0 / (double)d);
        c.back = (double)d;
    }
    if (choice[5]) {
        const double enough = choice[5]->arg[1];
        c.divisor = enough > 0 ? fmin((double)d, stability(graph, stage, &c, d) / enough) : (double)d;
        c.part = choice[5]->arg[0];
    }
    c.warmup = choice[6] ? choice[6]->arg[0] : 0;
    return c;
}

/* Of update t of a run. */
static double rate_of(const Corrected *c, int64_t t, int64_t steps)
{
    const double until = c->part * (double)steps, rises = c->warmup * (double)steps;
    double factor = c->factor;
    if (c->divisor > 1 && (double)t < until)
        factor *= pow(c->divisor, (double)t / until - 1);
    if ((double)t + 1 < rises)
        factor *= ((double)t + 1) / rises;
    return rate * factor;
}

/* ---- training ---- */

typedef struct {
    const Graph *graph;
    const Pipeline *pipeline;
    Eval *eval;
    int64_t steps;
    float ***version, ***velocity, ***change; /* of each update, of each parameter; change: the mean one */
    float **sum, **gathered;                  /* of the microbatches of a minibatch, of the minibatches of an update */
} Trainer;

/* The weights of all stages for a pass of microbatch n. Running statistics have no versions. */
static void set_weights(Trainer *t, int64_t n, bool backward)
{
    for (int p = 0; p < t->graph->nparams; p++) {
        const Param *param = &t->graph->param[p];
        const Versions v = versions_of(t->pipeline, t->graph->ncuts + 1, stage_of(t->graph, param->node), n);
        if (param->running)
            continue;
        const Corrected c = corrected(t->graph, t->pipeline, stage_of(t->graph, param->node));
        const bool own = t->pipeline->phase[0].rule->backward_reads_own;
        const int64_t at = backward ? v.backward : v.forward;
        const float *w = t->version[at][p], *velocity = t->velocity[at][p], *change = t->change[at][p];
        const float step = (float)(rate_of(&c, at, t->steps) * (backward ? c.backward : c.forward)),
                    back = (float)c.back;
        for (int64_t i = 0; i < size_of(param); i++)
            t->eval->param[p][i] = backward && own          ? w[i]
                                   : backward && c.back > 0 ? w[i] - back * change[i]
                                                            : w[i] - step * velocity[i];
    }
}

/* Slice n of its minibatch, which is `whole`. */
static void set_input(Trainer *t, pn_stage *stage, int64_t n, void *whole)
{
    const int64_t slices = t->graph->microbatches;
    for (int i = 0; i < t->graph->ninputs; i++) {
        const Node *input = &t->graph->node[t->graph->input[i]];
        const size_t bytes = sizeof(float) * (size_t)(t->graph->batch * shape_count(&input->shape));
        pn_input(stage, n / slices, i, whole);
        memcpy(t->eval->value[t->graph->input[i]], (char *)whole + (size_t)(n % slices) * bytes, bytes);
    }
}

/* Version `next` of element i, which moves by gradient g. */
static void move(const Trainer *t, const Corrected *c, int p, int64_t i, int64_t now, float g)
{
    const float m = (float)c->momentum, r = (float)rate_of(c, now, t->steps), w = t->version[now][p][i];
    const float on_velocity = (float)c->on_velocity, on_gradient = (float)c->on_gradient;
    const float d = g + decay * w, v = m * t->velocity[now][p][i] + d;
    const bool plain = c->on_velocity == 1 && c->on_gradient == 0;
    const float next = plain ? w - r * v : w - r * (on_gradient * d + on_velocity * v);
    t->version[now + 1][p][i] = next;
    t->velocity[now + 1][p][i] = v;
    t->change[now + 1][p][i] = (float)c->memory * t->change[now][p][i] + (float)(1 - c->memory) * (next - w);
}

/* The mean gradient of the microbatches, summed as they come; with the last one the next version, which moves with the
 * last minibatch of a group. */
static void learn(Trainer *t, int64_t n)
{
    const int64_t slices = t->graph->microbatches, slice = n % slices, now = n / slices;
    for (int p = 0; p < t->graph->nparams; p++) {
        const Param *param = &t->graph->param[p];
        const Corrected c = corrected(t->graph, t->pipeline, stage_of(t->graph, param->node));
        const int64_t waiting = now % c.group;
        for (int64_t i = 0; !param->running && i < size_of(param); i++) {
            float *sum = &t->sum[p][i], *gathered = &t->gathered[p][i];
            const float g = t->eval->param_gradient[p][i];
            *sum = slice == 0 ? g : *sum + g;
            if (slice < slices - 1)
                continue;
            const float mean = slices > 1 ? *sum / (float)slices : *sum;
            *gathered = waiting ? *gathered + mean : mean;
            if (waiting == c.group - 1) {
                move(t, &c, p, i, now, c.group > 1 ? *gathered / (float)c.group : *gathered);
                continue;
            }
            t->version[now + 1][p][i] = t->version[now][p][i];
            t->velocity[now + 1][p][i] = t->velocity[now][p][i];
            t->change[now + 1][p][i] = t->change[now][p][i];
        }
    }
}

/* Stage after stage, the last first: what a stage takes from those before it is still what their forwards gave. */
static void go_back(Trainer *t, uint64_t seed, int64_t n)
{
    const Graph *graph = t->graph;
    const int last = graph->ncuts;
    eval_backward_begin(t->eval);
    for (int s = last; s >= 0; s--) {
        const NodeId from = s > 0 ? graph->cut[s - 1].before : 0, to = s < last ? graph->cut[s].before : graph->nnodes;
        if (versions_of(t->pipeline, last + 1, s, n).replay)
            eval_forward_nodes(t->eval, from, to, true, seed, n);
        eval_backward_nodes(t->eval, from, to, seed, n);
    }
}

static Eval *train(Arena *arena, const Graph *graph, const Settings *settings, int64_t steps)
{
    pn_run *run = open_data(arena, graph, &settings->train);
    pn_stage stage = {.run = run, .samples = run->program->batch};
    const size_t nparams = (size_t)(graph->nparams + 1);
    Trainer t = {.graph = graph, .pipeline = &settings->pipeline, .eval = eval_new(arena, graph), .steps = steps};
    float ****const history[] = {&t.version, &t.velocity, &t.change};
    for (int k = 0; k < COUNT(history); k++) {
        *history[k] = arena_alloc(arena, sizeof **history[k] * (size_t)(steps + 1));
        for (int64_t v = 0; v <= steps; v++)
            (*history[k])[v] = arena_alloc(arena, sizeof ***history[k] * nparams);
    }
    t.sum = arena_alloc(arena, sizeof *t.sum * nparams);
    t.gathered = arena_alloc(arena, sizeof *t.gathered * nparams);
    int64_t largest = 0;
    for (int i = 0; i < graph->ninputs; i++) {
        const int64_t count = shape_count(&graph->node[graph->input[i]].shape);
        largest = count > largest ? count : largest;
    }
    void *whole = arena_alloc(arena, sizeof(float) * (size_t)(largest * run->program->batch));
    for (int p = 0; p < graph->nparams; p++) {
        const size_t bytes = sizeof(float) * (size_t)size_of(&graph->param[p]);
        t.sum[p] = arena_alloc(arena, bytes);
        t.gathered[p] = arena_alloc(arena, bytes);
        for (int k = 0; k < COUNT(history); k++)
            for (int64_t v = 0; v <= steps; v++)
                (*history[k])[v][p] = arena_alloc(arena, bytes);
        initialise(&graph->param[p], run->seed, t.eval->param[p]);
        memcpy(t.version[0][p], t.eval->param[p], bytes);
    }
    for (int64_t n = 0; n < steps * graph->microbatches; n++) {
        set_input(&t, &stage, n, whole);
        set_weights(&t, n, false);
        eval_forward(t.eval, true, run->seed, n);
        set_weights(&t, n, true);
        go_back(&t, run->seed, n);
        for (NodeId i = 0; i < graph->nnodes; i++)
            track(t.eval, &graph->node[i], t.eval->aux[i]);
        learn(&t, n);
    }
    for (int p = 0; p < graph->nparams; p++)
        if (!graph->param[p].running)
            memcpy(t.eval->param[p], t.version[steps][p], sizeof(float) * (size_t)size_of(&graph->param[p]));
    printf("# loss of the last microbatch: %.9g\n", (double)t.eval->value[graph->loss][0]);
    return t.eval;
}

/* A safetensors file: length of the header, the header in JSON, the data. */
static int compare(const Graph *graph, const Eval *eval, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint64_t length;
    if (file == NULL || fread(&length, sizeof length, 1, file) != 1)
        stop("cannot read ", path);
    json_error_t error;
    char *text = calloc(1, length + 1);
    if (text == NULL || fread(text, 1, length, file) != length)
        stop("no header in ", path);
    json_t *header = json_loads(text, 0, &error);
    if (header == NULL)
        stop("bad header: ", error.text);
    int bad = 0;
    for (int p = 0; p < graph->nparams; p++) {
        const Param *param = &graph->param[p];
        const int64_t count = size_of(param);
        json_t *offsets = json_object_get(json_object_get(header, param->name), "data_offsets");
        float *saved = calloc((size_t)count, sizeof *saved);
        const long at = 8 + (long)length + (long)json_integer_value(json_array_get(offsets, 0));
        if (offsets == NULL || saved == NULL || fseek(file, at, SEEK_SET) != 0 ||
            fread(saved, sizeof *saved, (size_t)count, file) != (size_t)count)
            stop("not in the file: ", param->name);
        int64_t differ = 0;
        for (int64_t i = 0; i < count; i++)
            differ += saved[i] != eval->param[p][i];
        printf("# %s: %lld of %lld differ\n", param->name, (long long)differ, (long long)count);
        bad |= differ > 0;
        free(saved);
    }
    free(text);
    json_decref(header);
    fclose(file);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        stop("usage: FILE STEPS ", "WEIGHTS");
    Arena *arena = arena_new();
    Settings *settings = arena_alloc(arena, sizeof *settings);
    const Graph *graph = read_network(arena, argv[1], settings);
    const Eval *eval = train(arena, graph, settings, atoll(argv[2]));
    const int bad = compare(graph, eval, argv[3]);
    arena_free(arena);
    return bad;
}
