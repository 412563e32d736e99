/* update.c: what core/update.c does to arrays of weights, by kernels.
 *
 * The rates of the next CUDA_ROWS updates lie on the device: core's formulas, computed by the host far ahead, so that
 * an update launches the same kernels with the same parameters every time. They are written anew when they are used up
 * and when a phase begins, in the order of the stream. */
#include <math.h>
#include <string.h>

#include "cuda/cuda.h"

struct cuda_updates {
    cuda_rates *rates, *written; /* on the device; pinned: what was copied there last */
    cudaEvent_t copied;
    const pn_phase *phase; /* of the rates; NULL: there are none yet */
    int64_t end;           /* the first update whose rate is not there */
    cuda_kernel sgd, adam, sgd_ahead, adam_ahead, back, multiply, sum, count, copy;
};

void cuda_updates_open(cuda_stage *cuda)
{
    pn_stage *stage = cuda->stage;
    struct cuda_updates *u = pn_alloc(sizeof *u);
    u->rates = cuda_alloc(stage, sizeof *u->rates, "the rates of updates");
    CU(stage, "the rates of updates", cudaMallocHost((void **)&u->written, sizeof *u->written));
    CU(stage, "the rates of updates", cudaEventCreateWithFlags(&u->copied, cudaEventDisableTiming));
    u->sgd = cuda_kernel_common(stage, "sgd", "ppppppppRiii");
    u->adam = cuda_kernel_common(stage, "adam", "pppppppppRiii");
    u->sgd_ahead = cuda_kernel_common(stage, "sgd_ahead", "ppppiii");
    u->adam_ahead = cuda_kernel_common(stage, "adam_ahead", "pppppfiii");
    u->back = cuda_kernel_common(stage, "step_back", "pppfii");
    u->multiply = cuda_kernel_common(stage, "multiply", "pfi");
    u->sum = cuda_kernel_common(stage, "sum_gradients", "ppiiii");
    u->count = cuda_kernel_common(stage, "count_update", "p");
    u->copy = cuda_kernel_common(stage, "copy_weights", "ppii");
    cuda->updates = u;
}

/* ---- rates; arguments of optimisers in the order of core/choices.def ---- */
enum { SGD_DECAY = 1, ADAM_BETA2 = 1, ADAM_EPSILON, ADAM_DECAY };

static bool is_sgd(const pn_update_rule *rule)
{
    return strcmp(rule->optimizer, "sgd") == 0;
}

static bool is_adamw(const pn_update_rule *rule)
{
    return strcmp(rule->optimizer, "adamw") == 0;
}

static cuda_row row_of(const pn_update_rule *rule)
{
    const double rate = rule->terms.rate, forward = rule->cure ? rule->cure->forward * rule->reach : 0;
    const double backward = rule->cure ? rule->cure->backward * rule->reach : 0;
    if (is_sgd(rule))
        return (cuda_row){(float)rate, 1, 1, 1, (float)(rate * forward), (float)(rate * backward)};
    const double t = (double)rule->terms.t, momentum = rule->terms.momentum, beta2 = rule->value[ADAM_BETA2];
    cuda_row row = {.rate = (float)(rate / (1 - pow(momentum, t + 1))),
                    .keep = is_adamw(rule) ? (float)(1 - rate * rule->value[ADAM_DECAY]) : 1,
                    .scale = (float)(1 / sqrt(1 - pow(beta2, t + 1))),
                    .scale_before = 1};
    if (rule->terms.t > 0) { /* before the first update there is no direction */
        row.scale_before = (float)(1 / sqrt(1 - pow(beta2, t)));
        row.forward = (float)(rate * forward / (1 - pow(momentum, t)));
        row.backward = (float)(rate * backward / (1 - pow(momentum, t)));
    }
    return row;
}

/* An update reads its own row and, where it looks ahead, the next one. */
void cuda_updates_cover(cuda_stage *cuda)
{
    pn_stage *stage = cuda->stage;
    struct cuda_updates *u = cuda->updates;
    const int64_t t = stage->updates;
    if (stage->def->weight_floats == 0 || (u->phase == stage->phase && t + 1 < u->end))
        return;
    CU(stage, "the rates of updates", cudaEventSynchronize(u->copied));
    u->written->updates = (uint64_t)t;
    for (int64_t k = t; k < t + CUDA_ROWS; k++) {
        const pn_update_rule rule = pn_update_rule_of(stage, k);
        u->written->row[k % CUDA_ROWS] = row_of(&rule);
    }
    CU(stage, "the rates of updates",
       cudaMemcpyAsync(u->rates, u->written, sizeof *u->written, cudaMemcpyHostToDevice, cuda->stream));
    CU(stage, "the rates of updates", cudaEventRecord(u->copied, cuda->stream));
    u->phase = stage->phase;
    u->end = t + CUDA_ROWS;
}

static cuda_rule rule_of(const pn_update_rule *rule)
{
    const pn_terms *terms = &rule->terms;
    cuda_rule to = {.momentum = (float)terms->momentum,
                    .add_momentum = (float)(1 - terms->momentum),
                    .on_velocity = (float)terms->on_velocity,
                    .on_gradient = (float)terms->on_gradient};
    if (rule->cure) {
        to.memory = (float)rule->cure->memory;
        to.add_memory = (float)(1 - rule->cure->memory);
    }
    if (is_sgd(rule)) {
        to.decay = (float)rule->value[SGD_DECAY];
        return to;
    }
    to.square = (float)rule->value[ADAM_BETA2];
    to.add_square = (float)(1 - rule->value[ADAM_BETA2]);
    to.epsilon = (float)rule->value[ADAM_EPSILON];
    to.decay = is_adamw(rule) ? 0 : (float)rule->value[ADAM_DECAY];
    return to;
}

/* ---- the work ---- */

/* The first weight that is bf16 in versions and the gradient. */
static int bf16_at(const pn_stage *stage)
{
    return (int)(stage->def->masters ? stage->def->bf16_at : stage->def->weight_floats);
}

void pn_target_copy(pn_stage *stage, float *version)
{
    const pn_stage_def *def = stage->def;
    int at = bf16_at(stage), n = (int)def->weight_floats;
    const float *masters = def->masters;
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->updates->copy, cuda_blocks(n), &version, &masters, &at, &n);
    CU(stage, "weights", cudaStreamSynchronize(cuda_stage_of(stage)->stream));
}

/* The mean gradient of several microbatches is where they were summed. */
bool pn_target_update(pn_stage *stage, const float *w, float *next, float *version)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    struct cuda_updates *u = cuda->updates;
    const pn_stage_def *def = stage->def;
    cuda_updates_cover(cuda);
    const pn_update_rule rule = pn_update_rule_of(stage, stage->updates);
    const pn_cure *cure = rule.cure;
    cuda_rule numbers = rule_of(&rule);
    int n = (int)def->weight_floats, at = bf16_at(stage), gradient_at = def->sum ? n : at;
    float *state = def->state, *second = state + n, *gradient = def->sum ? def->sum : def->gradient;
    float *ahead = cure && cure->forward != 0 ? def->ahead : NULL;
    float *delta = cure && cure->memory > 0 ? state + (def->states - 1) * def->weight_floats : NULL;
    if (is_sgd(&rule))
        CUDA_LAUNCH(stage, &u->sgd, cuda_blocks(n), &next, &version, &w, &gradient, &state, &ahead, &delta, &u->rates,
                    &numbers, &at, &gradient_at, &n);
    else if (strcmp(rule.optimizer, "adam") == 0 || is_adamw(&rule))
        CUDA_LAUNCH(stage, &u->adam, cuda_blocks(n), &next, &version, &w, &gradient, &state, &second, &ahead, &delta,
                    &u->rates, &numbers, &at, &gradient_at, &n);
    else
        pn_fail(stage, "internal error: optimizer %s has no kernel", rule.optimizer);
    CUDA_LAUNCH(stage, &u->count, 1, &u->rates);
    return true;
}

bool pn_target_ahead(pn_stage *stage, const float *w, bool backward, float *to)
{
    struct cuda_updates *u = cuda_stage_of(stage)->updates;
    const pn_update_rule rule = pn_update_rule_of(stage, stage->updates);
    int n = (int)stage->def->weight_floats, at = bf16_at(stage), which = backward;
    float *state = stage->def->state, *second = state + n;
    if (is_sgd(&rule)) {
        CUDA_LAUNCH(stage, &u->sgd_ahead, cuda_blocks(n), &to, &w, &state, &u->rates, &which, &at, &n);
        return true;
    }
    float epsilon = (float)rule.value[ADAM_EPSILON];
    CUDA_LAUNCH(stage, &u->adam_ahead, cuda_blocks(n), &to, &w, &state, &second, &u->rates, &epsilon, &which, &at, &n);
    return true;
}

bool pn_target_back(pn_stage *stage, const float *w, double times, float *to)
{
    const pn_stage_def *def = stage->def;
    float *delta = def->state + (def->states - 1) * def->weight_floats, factor = (float)times;
    int n = (int)def->weight_floats, at = bf16_at(stage);
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->updates->back, cuda_blocks(n), &to, &w, &delta, &factor, &at, &n);
    return true;
}

bool pn_target_scale(pn_stage *stage, double factor)
{
    float *velocity = stage->def->state, times = (float)factor;
    int n = (int)stage->def->weight_floats;
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->updates->multiply, cuda_blocks(n), &velocity, &times, &n);
    return true;
}

bool pn_target_sum(pn_stage *stage, int64_t slice, int64_t slices)
{
    const pn_stage_def *def = stage->def;
    int which = (int)slice, count = (int)slices, at = bf16_at(stage), n = (int)def->weight_floats;
    float *total = def->sum, *gradient = def->gradient;
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->updates->sum, cuda_blocks(n), &total, &gradient, &which, &count, &at, &n);
    return true;
}
