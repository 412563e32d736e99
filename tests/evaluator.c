/* evaluator.c FILE STEPS WEIGHTS: trains the network of FILE as it is written (not fused, not cut) with the compiler's
 * evaluator and plain loops for the optimiser, and compares with the weights that a generated program saved after the
 * same steps: target ref, schedule sequential, sgd(momentum = 0.9, weight_decay = 5e-4), lr = constant(0.02), no
 * warm-up. Data and initial values come from the runtime. Bits must agree (zeros of either sign). Built and run by
 * evaluator.t. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ast.h"
#include "op.h"
#include "ref/kernels.h"
#include "rt.h"
#include "settings.h"

static const float rate = 0.02f, momentum = 0.9f, decay = 5e-4f;

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
    *program = (pn_program){.name = graph->name, .batch = graph->batch, .input = input, .ninputs = graph->ninputs};
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

static Eval *train(Arena *arena, const Graph *graph, const Train *settings, int64_t steps)
{
    pn_run *run = open_data(arena, graph, settings);
    pn_stage stage = {.run = run};
    Eval *eval = eval_new(arena, graph);
    float **velocity = arena_alloc(arena, sizeof *velocity * (size_t)(graph->nparams + 1));
    for (int p = 0; p < graph->nparams; p++) {
        initialise(&graph->param[p], run->seed, eval->param[p]);
        velocity[p] = arena_alloc(arena, sizeof(float) * (size_t)size_of(&graph->param[p]));
    }
    for (int64_t n = 0; n < steps; n++) {
        for (int i = 0; i < graph->ninputs; i++)
            pn_input(&stage, n, i, eval->value[graph->input[i]]);
        eval_forward(eval, true, run->seed, n);
        eval_backward(eval, run->seed, n);
        for (NodeId i = 0; i < graph->nnodes; i++)
            track(eval, &graph->node[i], eval->aux[i]);
        for (int p = 0; p < graph->nparams; p++)
            for (int64_t i = 0; !graph->param[p].running && i < size_of(&graph->param[p]); i++) {
                float *w = &eval->param[p][i], *v = &velocity[p][i];
                *v = momentum * *v + (eval->param_gradient[p][i] + decay * *w);
                *w -= rate * *v;
            }
    }
    printf("# loss of step %lld: %.9g\n", (long long)steps - 1, (double)eval->value[graph->loss][0]);
    return eval;
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
    const Eval *eval = train(arena, graph, &settings->train, atoll(argv[2]));
    const int bad = compare(graph, eval, argv[3]);
    arena_free(arena);
    return bad;
}
