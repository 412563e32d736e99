#include "core/choices.h"

#include <string.h>

#include "core/policies.h"

/* The row numbers of an owner's arguments are their places in `value`. */
typedef struct {
    const char *owner, *key;
    bool list;
    double preset;
} Argument;

enum { KIND_NUMBER, KIND_BOOL, KIND_LIST };
static const Argument argument[] = {
#define OPTIMIZER(name, states, doc)
#define POLICY(name, doc)
#define ARG(owner, key, kind, preset, low, high, doc) {#owner, #key, KIND_##kind == KIND_LIST, preset},
#include "core/choices.def"
#undef OPTIMIZER
#undef POLICY
#undef ARG
};

static const pn_optimizer *const optimizer[] = {
#define OPTIMIZER(name, states, doc) &optimizer_##name,
#define POLICY(name, doc)
#define ARG(owner, key, kind, preset, low, high, doc)
#include "core/choices.def"
#undef OPTIMIZER
#undef POLICY
#undef ARG
};

static const struct {
    const char *name;
    double (*rate)(const pn_recipe *recipe, int64_t t);
} policy[] = {
#define OPTIMIZER(name, states, doc)
#define POLICY(name, doc) {#name, policy_##name},
#define ARG(owner, key, kind, preset, low, high, doc)
#include "core/choices.def"
#undef OPTIMIZER
#undef POLICY
#undef ARG
};

/* Given arguments over presets. One without a key is the first of the choice. */
static void resolve(const pn_choice *choice, double *value, const double **list, int *nlist)
{
    int place = 0, used = 0;
    for (int row = 0; row < PN_COUNT(argument); row++) {
        if (strcmp(argument[row].owner, choice->name) != 0)
            continue;
        if (place == RECIPE_VALUES)
            pn_fail(NULL, "internal error: %s has more than %d arguments", choice->name, RECIPE_VALUES);
        value[place] = argument[row].preset;
        for (int i = 0; i < choice->nargs; i++) {
            const pn_arg *given = &choice->arg[i];
            if (given->key ? strcmp(given->key, argument[row].key) != 0 : place != i)
                continue;
            used++;
            if (argument[row].list) {
                *list = given->list ? given->list : &given->number;
                *nlist = given->list ? given->nlist : 1;
            } else if (given->text) {
                value[place] = strcmp(given->text, "true") == 0;
            } else {
                value[place] = given->number;
            }
        }
        place++;
    }
    if (used != choice->nargs)
        pn_fail(NULL, "internal error: %s has an argument that this runtime does not know", choice->name);
}

void recipe_resolve(pn_recipe *recipe, const pn_program *program, int64_t steps)
{
    memset(recipe, 0, sizeof *recipe);
    recipe->warmup = program->warmup;
    recipe->steps = steps;
    for (int i = 0; i < PN_COUNT(optimizer); i++)
        if (strcmp(optimizer[i]->name, program->optimizer.name) == 0)
            recipe->optimizer = optimizer[i];
    for (int i = 0; i < PN_COUNT(policy); i++)
        if (strcmp(policy[i].name, program->lr.name) == 0)
            recipe->policy = policy[i].rate;
    if (!recipe->optimizer || !recipe->policy)
        pn_fail(NULL, "internal error: this runtime does not know the %s %s",
                recipe->optimizer ? "lr policy" : "optimizer",
                recipe->optimizer ? program->lr.name : program->optimizer.name);
    const double *none = NULL;
    int nnone = 0;
    resolve(&program->optimizer, recipe->optimizer_value, &none, &nnone);
    resolve(&program->lr, recipe->policy_value, &recipe->list, &recipe->nlist);
}

void recipe_of_phase(pn_recipe *recipe, const pn_recipe *run, const pn_choice *lr)
{
    *recipe = *run;
    recipe->policy = NULL;
    if (!lr)
        return;
    for (int i = 0; i < PN_COUNT(policy); i++)
        if (strcmp(policy[i].name, lr->name) == 0)
            recipe->policy = policy[i].rate;
    if (!recipe->policy)
        pn_fail(NULL, "internal error: this runtime does not know the lr policy %s", lr->name);
    recipe->warmup = 0;
    resolve(lr, recipe->policy_value, &recipe->list, &recipe->nlist);
}

double recipe_rate(const pn_recipe *recipe, int64_t t)
{
    double rate = recipe->policy(recipe, t);
    if (t < recipe->warmup)
        rate *= (double)(t + 1) / (double)recipe->warmup;
    return rate;
}
