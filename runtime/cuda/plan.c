/* plan.c: see plan.h. Which engine computes a described convolution, and its plan. */
#include "cuda/describe.h"

#include <stdio.h>
#include <stdlib.h>

/* What an engine does to numbers. */
static unsigned notes_of(Maker *m, Descriptor engine)
{
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    unsigned notes = 0;
    get(m, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
        note);
    for (int64_t i = 0; i < count; i++)
        notes |= 1u << note[i];
    return notes;
}

/* Tensor cores round f32 to TF32, and nothing of bf16. */
static bool fits(unsigned notes, const cuda_place *place, bool bf16)
{
    const unsigned varies = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    const unsigned cores = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    const unsigned rounds = (bf16 ? 0 : cores) | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                            1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    const unsigned transforms = 1u << CUDNN_NUMERICAL_NOTE_FFT | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD |
                                1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |
                                1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
                                1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    return !(notes & ((place->nondeterministic ? 0 : varies) | (place->tf32 && !bf16 ? 0 : rounds) |
                      (place->exact ? transforms : 0)));
}

/* The word of a configuration. */
static void name_engine(Maker *m, Descriptor config, Descriptor engine, char *word)
{
    Descriptor choice[MOST];
    int64_t number = 0, count = 0, one;
    for (int i = 0; i < MOST; i++)
        choice[i] = make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob of an engine");
    get(m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &number);
    get(m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &count, choice);
    int length = snprintf(word, CUDA_ENGINE, "%lld", (long long)number);
    for (int64_t i = 0; i < count && m->status == CUDNN_STATUS_SUCCESS; i++) {
        cudnnBackendKnobType_t knob = 0;
        get(m, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &knob);
        get(m, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &number);
        length += snprintf(word + length, (size_t)(CUDA_ENGINE - length), ":%d=%lld", (int)knob, (long long)number);
        if (length >= CUDA_ENGINE)
            m->status = CUDNN_STATUS_NOT_SUPPORTED; /* it could not be asked for again */
    }
}

/* Of a finalised configuration. False: it does not do as `place` says, or there is no plan. */
static bool plan_config(cuda_plan *plan, const cuda_place *place, bool bf16, Descriptor config, bool *unfit)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count;
    Descriptor engine = make(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine"), p = NULL;
    get(&m, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
    *unfit = !fits(notes_of(&m, engine), place, bf16);
    if (m.status == CUDNN_STATUS_SUCCESS && !*unfit) {
        name_engine(&m, config, engine, plan->engine);
        p = make(&m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
        if (place->handle)
            set(&m, p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &place->handle);
        else
            set_descriptor(&m, p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, place->device);
        set_descriptor(&m, p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        finalize(&m, p);
        get(&m, p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &plan->workspace);
    }
    const bool good = p && m.status == CUDNN_STATUS_SUCCESS;
    if (good) {
        plan->descriptor = p;
        keep(&m, p);
    }
    destroy_all(&m);
    return good;
}

/* The engines that one mode of the heuristics lists, best first. A configuration whose plan cannot be made is no
 * failure: the next one may do. */
static int try_mode(cuda_plan *plan, int most, const cuda_place *place, bool bf16, Descriptor g,
                    cudnnBackendHeurMode_t mode, int *seen)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor config[MOST];
    int64_t count = 0;
    int good = 0;
    bool unfit;
    Descriptor h = make(&m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    set_descriptor(&m, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g);
    set(&m, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!place->handle)
        set_descriptor(&m, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, place->device);
    finalize(&m, h);
    for (int i = 0; i < MOST; i++)
        config[i] = make(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "an engine's configuration");
    get(&m, h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &count, config);
    *seen += (int)count;
    for (int64_t i = 0; m.status == CUDNN_STATUS_SUCCESS && i < count && good < most; i++)
        good += plan_config(&plan[good], place, bf16, config[i], &unfit);
    destroy_all(&m);
    return good;
}

/* What cuDNN said of a call that failed. */
static void say(const Maker *m, char *why, size_t size)
{
    char said[512] = "";
    cudnnGetLastErrorString(said, sizeof said);
    snprintf(why, size, "cuDNN refuses %s: %s (%s)", m->doing, cudnnGetErrorString(m->status), said);
}

static void note_fused(cuda_plan *plan, cuda_pass pass, const cuda_shape *shape)
{
    plan->bias = pass == CUDA_FORWARD && shape->bias;
    plan->relu = pass == CUDA_FORWARD && shape->relu;
}

int cuda_plan_make(cuda_plan *plan, int most, const cuda_place *place, cuda_pass pass, const cuda_shape *shape,
                   char *why, size_t size)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    int seen = 0, good = 0;
    Descriptor g = cuda_describe(&m, place, pass, shape);
    if (m.status != CUDNN_STATUS_SUCCESS) {
        say(&m, why, size);
    } else {
        good = try_mode(plan, most, place, shape->bf16, g, CUDNN_HEUR_MODE_A, &seen);
        if (good == 0)
            good = try_mode(plan, most, place, shape->bf16, g, CUDNN_HEUR_MODE_FALLBACK, &seen);
        if (good == 0)
            snprintf(why, size, "cuDNN has no engine for %s%s%s (%d looked at)", cuda_pass_text(pass),
                     place->nondeterministic ? "" : " that repeats bit for bit",
                     place->tf32 || shape->bf16 ? "" : " in f32", seen);
    }
    destroy_all(&m);
    for (int i = 0; i < good; i++)
        note_fused(&plan[i], pass, shape);
    return good;
}

/* ":1=4:13=0" becomes descriptors. False: it has another form. */
static bool read_knobs(Maker *m, const char *text, Descriptor *choice, int64_t *count)
{
    for (*count = 0; *text && *count < MOST; ++*count) {
        int type, length = 0;
        long long value;
        if (sscanf(text, ":%d=%lld%n", &type, &value, &length) != 2)
            return false;
        const cudnnBackendKnobType_t knob = (cudnnBackendKnobType_t)type;
        const int64_t number = value;
        Descriptor d = choice[*count] = make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob of an engine");
        set(m, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob);
        set(m, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &number);
        finalize(m, d);
        text += length;
    }
    return !*text;
}

bool cuda_plan_of(cuda_plan *plan, const char *engine, const cuda_place *place, cuda_pass pass, const cuda_shape *shape,
                  char *why, size_t size)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor choice[MOST];
    int64_t count = 0;
    char *knobs;
    bool unfit = false, good = false;
    const int64_t number = strtoll(engine, &knobs, 10);
    Descriptor g = cuda_describe(&m, place, pass, shape);
    Descriptor e = make(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "the engine");
    set_descriptor(&m, e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g);
    set(&m, e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    if (!place->handle)
        set_descriptor(&m, e, CUDNN_ATTR_ENGINE_DEVICEPROP, place->device);
    finalize(&m, e);
    Descriptor config = make(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "the engine's configuration");
    set_descriptor(&m, config, CUDNN_ATTR_ENGINECFG_ENGINE, e);
    const bool read = knobs != engine && read_knobs(&m, knobs, choice, &count);
    if (count > 0)
        set(&m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, choice);
    finalize(&m, config);
    if (!read)
        snprintf(why, size, "'%s' is no engine of cuDNN with its knobs", engine);
    else if (m.status != CUDNN_STATUS_SUCCESS)
        say(&m, why, size);
    else if (!(good = plan_config(plan, place, shape->bf16, config, &unfit)))
        snprintf(why, size,
                 unfit ? "engine %s of cuDNN computes in another way than this run may"
                       : "cuDNN makes no plan of its engine %s",
                 engine);
    destroy_all(&m);
    note_fused(plan, pass, shape);
    return good;
}

void cuda_plan_free(cuda_plan *plan)
{
    if (plan->descriptor)
        cudnnBackendDestroyDescriptor(plan->descriptor);
    plan->descriptor = NULL;
}

cudnnStatus_t cuda_plan_run(const cuda_plan *plan, cudnnHandle_t handle, const void *x, const void *w, const float *b,
                            const void *y, void *workspace)
{
    const int64_t id[] = {X, W, Y, BIAS}, count = plan->bias ? 4 : 3;
    const void *const pointer[] = {x, w, y, b};
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor pack = make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "pointers");
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, id);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointer);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(&m, pack);
    if (m.status == CUDNN_STATUS_SUCCESS)
        m.status = cudnnBackendExecute(handle, plan->descriptor, pack);
    destroy_all(&m);
    return m.status;
}
