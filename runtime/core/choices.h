/* choices.h: the optimiser and the learning-rate policy of a run, resolved from the program's choices by
 * core/choices.def. */
#ifndef PN_CHOICES_H
#define PN_CHOICES_H

#include "rt.h"

enum { RECIPE_VALUES = 8 }; /* arguments of one choice */

/* One const struct an optimiser, in core/<name>.c. `value`: its arguments in the order of choices.def. Reads weights w,
 * gradient g and state; writes next and state. next is w itself or does not overlap it. */
typedef struct {
    const char *name;
    void (*update)(const double *value, double rate, int64_t n, const float *w, float *next, const float *g,
                   float *state);
} pn_optimizer;
extern const pn_optimizer optimizer_sgd;

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
/* The learning rate of the update from version t to t + 1: the policy, times (t + 1) / warmup while t < warmup. */
double recipe_rate(const pn_recipe *recipe, int64_t t);

#endif
