/* tune.c: which engine of cuDNN does a pass of a convolution or dense layer: the first one that its heuristics list, or,
 * with --algorithms FILE, what FILE says, or what is fastest here, which FILE then says (core/algorithms.h).
 *
 * To measure, a pass gets the plans of the first CANDIDATES engines that do as the run may compute; each is run on the
 * pass's own buffers, several times in one graph, as steps are, between two events, while nothing else is on the GPU.
 * The buffers hold zeros then, as do weights and gradient before and after. A candidate may use as much workspace as
 * the first engines of its stage need: measuring takes no more memory than a run. Passes of the same shape in a stage
 * are measured once and get the same engine. */
#include <math.h>
#include <string.h>

#include "cuda/cuda.h"

enum { CANDIDATES = 8, REPEATS = 4, ROUNDS = 4 /* the first one warms up */ };

struct cuda_tuning {
    cuda_shape shape;
    const cuda_tuning *twin;         /* measured for both; NULL: it is measured itself */
    cuda_plan candidate[CANDIDATES]; /* the first one is the op's, without a descriptor here; the others are destroyed
                                      * when the choice is made */
    int count, best;                 /* best: of the others; 0: none could be run */
    double seconds[2];               /* of the first one, of the best */
};

const char *const cuda_pass_name[CUDA_PASSES] = {
    [CUDA_FORWARD] = "forward", [CUDA_DATA] = "backward_data", [CUDA_FILTER] = "backward_weights"};

static bool same_shape(const cuda_shape *a, const cuda_shape *b)
{
    return a->batch == b->batch && a->in == b->in && a->height == b->height && a->width == b->width &&
           a->out == b->out && a->out_height == b->out_height && a->out_width == b->out_width &&
           a->groups == b->groups && a->kernel == b->kernel && a->stride == b->stride && a->pad == b->pad &&
           a->dilation == b->dilation && a->bias == b->bias && a->relu == b->relu;
}

static const cuda_tuning *find_twin(const pn_op *op, cuda_pass pass, const cuda_shape *shape)
{
    for (const pn_op *other = cuda_stage_of(op->stage)->dense; other; other = other->next) {
        const cuda_tuning *tuning = other->dense.tuning[pass];
        if (tuning && !tuning->twin && same_shape(&tuning->shape, shape))
            return tuning;
    }
    return NULL;
}

static bool list_candidates(pn_op *op, cuda_pass pass, const cuda_place *place, const cuda_shape *shape, char *why,
                            size_t size)
{
    cuda_tuning *tuning = pn_alloc(sizeof *tuning);
    tuning->shape = *shape;
    tuning->twin = find_twin(op, pass, shape);
    tuning->count = cuda_plan_make(tuning->candidate, tuning->twin ? 1 : CANDIDATES, place, pass, shape, why, size);
    if (tuning->count == 0)
        return false;
    op->dense.plan[pass] = tuning->candidate[0];
    tuning->candidate[0].descriptor = NULL;
    op->dense.tuning[pass] = tuning;
    return true;
}

bool cuda_tune_plan(pn_op *op, cuda_pass pass, const cuda_shape *shape, char *why, size_t size)
{
    const cuda_place place = cuda_plan_place(op->stage);
    const char *engine = pn_engine_of(op->stage, op->name, cuda_pass_name[pass]);
    cuda_plan *plan = &op->dense.plan[pass];
    if (engine && !*engine)
        return list_candidates(op, pass, &place, shape, why, size);
    return engine ? cuda_plan_of(plan, engine, &place, pass, shape, why, size)
                  : cuda_plan_make(plan, 1, &place, pass, shape, why, size) > 0;
}

void cuda_tune_refuse(pn_op *op, cuda_pass pass, const char *why)
{
    const char *engine = pn_engine_of(op->stage, op->name, cuda_pass_name[pass]);
    char text[1024];
    snprintf(text, sizeof text, "%s: %s", op->name, why);
    if (engine && *engine)
        pn_engine_refuse(op->stage, op->name, cuda_pass_name[pass], text);
    pn_fail(op->stage, "%s", text);
}

/* ---- measuring ---- */

/* What the pass reads and writes in a step, zeroed. */
typedef struct {
    float *x, *w, *b, *y;
} Buffers;

static float *clear(pn_op *op, const pn_area *area)
{
    if (!area->memory)
        pn_fail(op->stage, "internal error: %s has no memory to be measured in", op->name);
    CU(op->stage, op->name, cudaMemsetAsync(area->memory, 0, (size_t)area->bytes, cuda_stage_of(op->stage)->stream));
    return area->memory;
}

/* Where a parameter begins in a version of the weights and in the gradient: those that are bf16 there have half a float.
 */
static int64_t place_of(const pn_stage_def *def, const pn_param *param)
{
    const int64_t beyond = def->masters && param->offset > def->bf16_at ? param->offset - def->bf16_at : 0;
    return param->offset - beyond + beyond / 2;
}

static Buffers buffers_of(pn_op *op, cuda_pass pass)
{
    const pn_stage_def *def = op->stage->def;
    const pn_tensor *x = op->dense.x, *y = op->dense.y;
    const pn_param *w = op->dense.w, *b = op->dense.b;
    return (Buffers){.x = clear(op, pass == CUDA_DATA ? &x->gradient : &x->value),
                     .w = (pass == CUDA_FILTER ? def->gradient : def->weights) + place_of(def, w),
                     .b = b ? def->weights + place_of(def, b) : NULL,
                     .y = clear(op, pass == CUDA_FORWARD ? &y->value : &y->gradient)};
}

/* NULL: the plan cannot be run here. */
static cudaGraphExec_t repeat(pn_op *op, const cuda_plan *plan, const Buffers *at)
{
    pn_stage *stage = op->stage;
    const cuda_stage *cuda = cuda_stage_of(stage);
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t exec = NULL;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    CU(stage, op->name, cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < REPEATS && status == CUDNN_STATUS_SUCCESS; i++)
        status = cuda_plan_run(plan, cuda->dnn, at->x, at->w, at->b, at->y, cuda->workspace);
    const cudaError_t error = cudaStreamEndCapture(cuda->stream, &recorded);
    if (error == cudaSuccess && status == CUDNN_STATUS_SUCCESS)
        CU(stage, op->name, cudaGraphInstantiate(&exec, recorded, 0));
    if (recorded)
        CU(stage, op->name, cudaGraphDestroy(recorded));
    if (!exec)
        (void)cudaGetLastError(); /* it has been answered */
    return exec;
}

/* Of one run; infinity: it cannot be run. */
static double seconds_of(pn_op *op, const cuda_plan *plan, const Buffers *at, const cudaEvent_t *event)
{
    pn_stage *stage = op->stage;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    cudaGraphExec_t exec = repeat(op, plan, at);
    float least = INFINITY;
    for (int round = 0; exec && round < ROUNDS; round++) {
        float milliseconds = 0;
        CU(stage, op->name, cudaEventRecord(event[0], stream));
        CU(stage, op->name, cudaGraphLaunch(exec, stream));
        CU(stage, op->name, cudaEventRecord(event[1], stream));
        CU(stage, op->name, cudaEventSynchronize(event[1]));
        CU(stage, op->name, cudaEventElapsedTime(&milliseconds, event[0], event[1]));
        if (round > 0 && milliseconds < least)
            least = milliseconds;
    }
    if (exec)
        CU(stage, op->name, cudaGraphExecDestroy(exec));
    return 1e-3 * (double)least / REPEATS;
}

static void measure(pn_op *op, cuda_pass pass, cuda_tuning *tuning, const cudaEvent_t *event)
{
    const cuda_stage *cuda = cuda_stage_of(op->stage);
    const Buffers at = buffers_of(op, pass);
    tuning->seconds[0] = seconds_of(op, &op->dense.plan[pass], &at, event);
    if (!isfinite(tuning->seconds[0]))
        pn_fail(op->stage, "%s: engine %s of cuDNN cannot be run in a graph", op->name, op->dense.plan[pass].engine);
    tuning->seconds[1] = INFINITY;
    for (int i = 1; i < tuning->count; i++) {
        const cuda_plan *plan = &tuning->candidate[i];
        const double seconds = plan->workspace <= cuda->workspace_bytes ? seconds_of(op, plan, &at, event) : INFINITY;
        if (seconds < tuning->seconds[1]) {
            tuning->seconds[1] = seconds;
            tuning->best = i;
        }
    }
}

/* A twin's plan is made anew: plans are of an operation's own. */
static void take_best(pn_op *op, cuda_pass pass, cuda_tuning *tuning)
{
    char why[768];
    const cuda_place place = cuda_plan_place(op->stage);
    cuda_plan *plan = &op->dense.plan[pass];
    cuda_plan_free(plan);
    if (!tuning->twin) {
        *plan = tuning->candidate[tuning->best];
        tuning->candidate[tuning->best].descriptor = NULL;
    } else if (!cuda_plan_of(plan, tuning->twin->candidate[tuning->twin->best].engine, &place, pass, &tuning->shape,
                             why, sizeof why)) {
        pn_fail(op->stage, "%s: %s", op->name, why);
    }
}

static void settle(pn_op *op, cuda_pass pass, const cudaEvent_t *event)
{
    cuda_tuning *tuning = op->dense.tuning[pass];
    if (!tuning)
        return;
    if (!tuning->twin)
        measure(op, pass, tuning, event);
    const cuda_tuning *as = tuning->twin ? tuning->twin : tuning;
    if (pn_engine_measured(op->stage, op->name, cuda_pass_name[pass], as->candidate[0].engine,
                           as->best ? as->candidate[as->best].engine : NULL, as->seconds))
        take_best(op, pass, tuning);
    for (int i = 0; i < tuning->count; i++)
        cuda_plan_free(&tuning->candidate[i]);
}

/* In the order of the program. */
static void settle_all(pn_op *last, const cudaEvent_t *event)
{
    if (!last)
        return;
    settle_all(last->next, event);
    for (int pass = 0; pass < CUDA_PASSES; pass++)
        settle(last, (cuda_pass)pass, event);
}

/* Stages share the GPU: each is measured when the others are still. */
bool pn_target_measure(pn_stage *stage)
{
    (void)stage;
    return true;
}

void pn_target_settle(pn_stage *stage)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    cudaEvent_t event[2];
    for (int i = 0; i < 2; i++)
        CU(stage, NULL, cudaEventCreateWithFlags(&event[i], cudaEventDefault));
    settle_all(cuda->dense, event);
    CU(stage, NULL, cudaStreamSynchronize(cuda->stream));
    for (int i = 0; i < 2; i++)
        CU(stage, NULL, cudaEventDestroy(event[i]));
}
