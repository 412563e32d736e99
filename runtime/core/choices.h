/* choices.h: the optimiser and the learning-rate policy of a run, resolved from the program's choices by
 * core/choices.def. */
#ifndef PN_CHOICES_H
#define PN_CHOICES_H

#include "rt.h"

enum { RECIPE_VALUES = 8 }; /* arguments of one choice */

enum { OPTIMIZER_STATES = 2 };
/* A part of a stage's weights. */
typedef struct {
    int64_t n;
    float *w;
    const float *g;
    float *state[OPTIMIZER_STATES];
} pn_block;

/* One const struct an optimiser, in core/<name>.c. `value`: its arguments in the order of choices.def. */
typedef struct {
    const char *name;
    bool averages; /* its steps are normalised: the size of gradients is not that of steps */
    pn_terms (*terms)(const double *value, int64_t t, double rate); /* without a cure */
    /* Reads g; moves w and state. */
    void (*update)(const double *value, const pn_terms *terms, const pn_block *block);
    /* to = w - rate reach (direction of the last update), elementwise. terms->t: updates done. */
    void (*ahead)(const double *value, const pn_terms *terms, double reach, const pn_block *block, float *to);
} pn_optimizer;
#define OPTIMIZER(name, states, doc) extern const pn_optimizer optimizer_##name;
#define POLICY(name, doc)
#define ARG(owner, key, kind, preset, low, high, doc)
#include "core/choices.def"
#undef OPTIMIZER
#undef POLICY
#undef ARG

typedef struct pn_recipe pn_recipe;
struct pn_recipe {
    const pn_optimizer *optimizer;
    double optimizer_value[RECIPE_VALUES];
    double (*policy)(const pn_recipe *recipe, int64_t t);
    double policy_value[RECIPE_VALUES];
    const double *list;
    int nlist;
    int64_t warmup, steps;
};

/* Ends the program if a choice names what the table does not hold: the compiler has checked it. */
void recipe_resolve(pn_recipe *recipe, const pn_program *program, int64_t steps);
/* The policy of a phase: of the run but for `lr`; NULL: no policy of its own. */
void recipe_of_phase(pn_recipe *recipe, const pn_recipe *run, const pn_choice *lr);
/* The learning rate of the update from version t to t + 1: the policy, times (t + 1) / warmup while t < warmup. */
double recipe_rate(const pn_recipe *recipe, int64_t t);

#endif
