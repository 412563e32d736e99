/* One update of a stage, in one pass over its weights, block by block and part by part on its threads: what the next
 * forward reads ahead of them is written while a block is in the cache. The coefficients are those of pn_cure (pn.h).
 * Each element's arithmetic is the same wherever blocks begin. */
#include "core/update.h"

#include <math.h>
#include <string.h>

#include "core/choices.h"
#include "core/halves.h"
#include "core/stage.h"

enum { BLOCK = 4096 };

const pn_cure *update_cure(const pn_stage *stage)
{
    if (!stage->def->cure)
        return NULL;
    const pn_cure *cure = &stage->def->cure[stage->phase - stage->run->program->phase];
    return cure->active ? cure : NULL;
}

/* PipeMare T1 (Yang et al. 2021), and a warm-up of stale stages alone. */
static double cure_rate(const pn_cure *cure, int64_t t, int64_t steps)
{
    double rate = cure->rate_factor, done = (double)t;
    double until = fmin(cure->reschedule * (double)steps, cure->reschedule_most);
    if (cure->divisor > 1 && done < until)
        rate *= pow(cure->divisor, done / until - 1);
    double rises = cure->warmup * (double)steps;
    if (done + 1 < rises)
        rate *= (done + 1) / rises;
    return rate;
}

double update_policy_rate(const pn_stage *stage, int64_t t)
{
    const pn_run *run = stage->run;
    const pn_recipe *own = run->phase_recipe ? &run->phase_recipe[stage->phase - run->program->phase] : NULL;
    if (!own || !own->policy)
        return recipe_rate(run->recipe, t);
    int64_t begin = stage->phase_begin / pn_microbatches(run->program);
    pn_recipe here = *own;
    here.steps -= begin;
    return recipe_rate(&here, t - begin);
}

double update_rate(const pn_stage *stage, int64_t t)
{
    const pn_recipe *recipe = stage->run->recipe;
    const pn_cure *cure = update_cure(stage);
    double rate = update_policy_rate(stage, t);
    return cure ? rate * cure_rate(cure, t, recipe->steps) : rate;
}

static pn_terms terms_of(const pn_stage *stage, int64_t t)
{
    const pn_recipe *recipe = stage->run->recipe;
    const pn_cure *cure = update_cure(stage);
    pn_terms terms = recipe->optimizer->terms(recipe->optimizer_value, t, update_rate(stage, t));
    if (cure) {
        terms.momentum = cure->momentum;
        terms.on_velocity = cure->on_velocity;
        terms.on_gradient = cure->on_gradient;
    }
    return terms;
}

static pn_block block_of(const pn_stage *stage, float *w, int64_t at, int64_t end)
{
    const pn_stage_def *def = stage->def;
    int64_t left = end - at;
    pn_block block = {.n = left < BLOCK ? left : BLOCK, .w = w + at, .g = def->gradient + at};
    for (int k = 0; k < def->states && k < OPTIMIZER_STATES; k++)
        block.state[k] = def->state + k * def->weight_floats + at;
    return block;
}

static double rate_factor(const pn_stage *stage)
{
    const pn_cure *cure = update_cure(stage);
    return cure ? cure->rate_factor : 1;
}

/* A phase of another rate_factor has a velocity of another size: rate times velocity goes on as it was. Replicas share
 * the velocity: until the first update of the phase what is read ahead reaches further instead. */
static void settle_velocity(pn_stage *stage)
{
    double factor = rate_factor(stage);
    if (stage->velocity_rate == factor)
        return;
    float scale = (float)(stage->velocity_rate / factor);
    if (!pn_target_scale(stage, stage->velocity_rate / factor))
        for (int64_t i = 0; i < stage->def->weight_floats; i++)
            stage->def->state[i] *= scale;
    stage->velocity_rate = factor;
}

pn_update_rule pn_update_rule_of(const pn_stage *stage, int64_t t)
{
    const pn_recipe *recipe = stage->run->recipe;
    const pn_stage *settled = halves_backward(stage); /* that updates */
    return (pn_update_rule){.optimizer = recipe->optimizer->name,
                            .value = recipe->optimizer_value,
                            .cure = update_cure(stage),
                            .terms = terms_of(stage, t),
                            .reach = t == stage->updates ? settled->velocity_rate / rate_factor(stage) : 1};
}

void update_begin(pn_stage *stage)
{
    const pn_program *program = stage->run->program;
    stage->velocity_rate = rate_factor(stage);
    if (stage->def->cure && stage->phase > program->phase && stage->phase_first == stage->phase_begin) {
        const pn_cure *before = &stage->def->cure[stage->phase - program->phase - 1];
        stage->velocity_rate = before->active ? before->rate_factor : 1;
    }
}

/* ---- gradients of several minibatches ---- */
static int64_t accumulated(const pn_stage *stage)
{
    const pn_cure *cure = update_cure(stage);
    return cure && cure->accumulate > 1 ? cure->accumulate : 1;
}

/* Gradients that wait when `updates` updates of the phase are done. */
static int64_t waiting(const pn_stage *stage, int64_t updates)
{
    const int64_t each = accumulated(stage);
    return updates % each + (updates < each ? stage->left_over : 0);
}

void update_leave(pn_stage *stage, int64_t end)
{
    stage->left_over = waiting(stage, (end - stage->phase_begin) / pn_microbatches(stage->run->program));
}

/* Adds the gradient to those that wait; or makes it the mean of all of them: then the weights move. */
static bool gather(pn_stage *stage)
{
    const pn_stage_def *def = stage->def;
    const int64_t done = stage->updates - stage->phase_begin / pn_microbatches(stage->run->program);
    const int64_t each = accumulated(stage), before = waiting(stage, done);
    const bool moves = done % each == each - 1;
    float *restrict sum = def->gathered, *restrict gradient = def->gradient;
    if (moves && before == 0)
        return true;
    for (int64_t i = 0; i < def->weight_floats; i++) {
        const float all = before ? sum[i] + gradient[i] : gradient[i];
        if (moves)
            gradient[i] = all / (float)(before + 1);
        else
            sum[i] = all;
    }
    return moves;
}

/* Version t + 1 is version t. */
static void stand(pn_stage *stage)
{
    const float *now = stage_version(stage, stage->updates);
    float *next = stage_version(stage, stage->updates + 1);
    if (next != now)
        memcpy(next, now, sizeof *now * (size_t)stage->def->weight_floats);
}

/* What is read in place of a version: by forwards, of halves a copy for each version, since one is read while the next
 * is made; then by backwards. */
static float *forward_copy(const pn_stage *stage, int64_t version)
{
    const int64_t copy = stage->halves ? version % stage->def->versions : 0;
    return stage->def->ahead + copy * stage_version_floats(stage);
}

static float *backward_copy(const pn_stage *stage, const pn_cure *cure)
{
    const int64_t before = cure->forward == 0 ? 0 : stage->halves ? stage->def->versions : 1;
    return stage->def->ahead + before * stage_version_floats(stage);
}

/* One of the loops below over the weights of a stage, shared among its threads. */
typedef struct {
    pn_stage *stage;
    const pn_cure *cure;
    pn_terms now, then; /* of this update and of the next */
    float *version, *to, *ahead;
    double reach;
} Work;
enum { PART = 4 * BLOCK }; /* weights that are worth a thread */

static void ahead_part(void *data, int64_t from, int64_t to)
{
    const Work *work = data;
    const pn_recipe *recipe = work->stage->run->recipe;
    for (int64_t at = from; at < to; at += BLOCK) {
        pn_block block = block_of(work->stage, work->version, at, to);
        recipe->optimizer->ahead(recipe->optimizer_value, &work->now, work->reach, &block, work->to + at);
    }
}

static void ahead_of(pn_stage *stage, bool backward, float *to)
{
    const pn_update_rule rule = pn_update_rule_of(stage, stage->updates);
    Work work = {.stage = stage, .version = stage_weights(stage, stage->updates), .to = to};
    if (pn_target_ahead(stage, work.version, backward, to))
        return;
    work.reach = (backward ? rule.cure->backward : rule.cure->forward) * rule.reach;
    work.now = rule.terms;
    pn_target_split(stage, stage->def->weight_floats, PART, ahead_part, &work);
}

const float *update_forward(pn_stage *stage)
{
    const pn_cure *cure = update_cure(stage);
    float *version = stage_version(stage, stage->updates);
    if (!cure || cure->forward == 0 || stage->def->weight_floats == 0)
        return version;
    float *copy = forward_copy(stage, stage->updates);
    if (stage->ahead_version != stage->updates) {
        ahead_of(stage, false, copy);
        stage->ahead_version = stage->updates;
    }
    return copy;
}

/* PipeMare T2 (Yang et al. 2021). */
static void back_part(void *data, int64_t from, int64_t end)
{
    const Work *work = data;
    const pn_stage_def *def = work->stage->def;
    const float *restrict w = work->version, *restrict delta = def->state + (def->states - 1) * def->weight_floats;
    const float times = (float)work->cure->back;
    float *restrict to = work->to;
    for (int64_t i = from; i < end; i++)
        to[i] = w[i] - times * delta[i];
}

const float *update_backward(pn_stage *stage)
{
    const pn_cure *cure = update_cure(stage);
    if (!cure || (cure->backward == 0 && cure->memory == 0) || stage->def->weight_floats == 0)
        return stage_version(stage, stage->updates);
    float *to = backward_copy(stage, cure);
    if (cure->memory > 0) {
        Work work = {.stage = stage, .cure = cure, .version = stage_weights(stage, stage->updates), .to = to};
        if (!pn_target_back(stage, work.version, cure->back, to))
            pn_target_split(stage, stage->def->weight_floats, PART, back_part, &work);
    } else {
        ahead_of(stage, true, to);
    }
    return to;
}

static void remember(double memory, int64_t n, const float *restrict before, const float *restrict after,
                     float *restrict delta)
{
    const float keep = (float)memory, add = (float)(1 - memory);
    for (int64_t i = 0; i < n; i++)
        delta[i] = keep * delta[i] + add * (after[i] - before[i]);
}

/* A kept older version is copied block by block, so that the arithmetic finds its block in the cache. */
static void move_part(void *data, int64_t from, int64_t to)
{
    const Work *work = data;
    pn_stage *stage = work->stage;
    const pn_recipe *recipe = stage->run->recipe;
    const pn_stage_def *def = stage->def;
    const pn_cure *cure = work->cure;
    const float *w = work->version;
    float *next = work->to, before[BLOCK];
    bool looks = cure && cure->forward != 0, remembers = cure && cure->memory > 0;
    for (int64_t at = from; at < to; at += BLOCK) {
        pn_block block = block_of(stage, next, at, to);
        size_t bytes = (size_t)block.n * sizeof *w;
        if (next != w)
            memcpy(block.w, w + at, bytes);
        if (remembers)
            memcpy(before, block.w, bytes);
        recipe->optimizer->update(recipe->optimizer_value, &work->now, &block);
        if (remembers)
            remember(cure->memory, block.n, before, block.w, def->state + (def->states - 1) * def->weight_floats + at);
        if (looks)
            recipe->optimizer->ahead(recipe->optimizer_value, &work->then, cure->forward, &block, work->ahead + at);
    }
}

/* Reads version t, writes version t + 1: the same memory when one version is kept. */
void update_follow(pn_stage *stage)
{
    stage->velocity_rate = rate_factor(stage);
    stage->updates++;
}

static void move(pn_stage *stage)
{
    settle_velocity(stage);
    Work work = {.stage = stage,
                 .cure = update_cure(stage),
                 .now = terms_of(stage, stage->updates),
                 .then = terms_of(stage, stage->updates + 1),
                 .version = stage_weights(stage, stage->updates),
                 .to = stage_weights(stage, stage->updates + 1)};
    float *version = stage->def->masters ? stage_version(stage, stage->updates + 1) : NULL;
    if (stage->def->ahead)
        work.ahead = forward_copy(stage, stage->updates + 1);
    if (!pn_target_update(stage, work.version, work.to, version))
        pn_target_split(stage, stage->def->weight_floats, PART, move_part, &work);
    if (work.cure && work.cure->forward != 0)
        stage->ahead_version = stage->updates + 1;
}

void pn_update(pn_stage *stage)
{
    const bool moves = stage->def->weight_floats > 0 && gather(stage);
    if (moves)
        move(stage);
    else if (stage->def->weight_floats > 0)
        stand(stage);
    stage->updates++;
    if (stage->halves && !moves)
        update_forward(stage); /* the forward half finds it made */
}
