/* Learning-rate policies: the formulas are in choices.def, those of Caffe's solver where it has one. */
#include "core/policies.h"

#include <math.h>

double policy_constant(const pn_recipe *recipe, int64_t t)
{
    (void)t;
    return recipe->policy_value[0];
}

double policy_inv(const pn_recipe *recipe, int64_t t)
{
    const double *value = recipe->policy_value;
    return value[0] * pow(1.0 + value[1] * (double)t, -value[2]);
}

double policy_step(const pn_recipe *recipe, int64_t t)
{
    const double *value = recipe->policy_value;
    return value[0] * pow(value[2], floor((double)t / value[1]));
}

double policy_multistep(const pn_recipe *recipe, int64_t t)
{
    const double *value = recipe->policy_value;
    int reached = 0;
    for (int i = 0; i < recipe->nlist; i++)
        reached += (double)t >= recipe->list[i];
    return value[0] * pow(value[2], reached);
}

/* Beyond its last step a rate stays at zero. */
static double part_done(const pn_recipe *recipe, int64_t t)
{
    return recipe->steps > 0 && t < recipe->steps ? (double)t / (double)recipe->steps : 1.0;
}

double policy_poly(const pn_recipe *recipe, int64_t t)
{
    const double *value = recipe->policy_value;
    return value[0] * pow(1.0 - part_done(recipe, t), value[1]);
}

double policy_cosine(const pn_recipe *recipe, int64_t t)
{
    const double pi = 3.14159265358979323846;
    return 0.5 * recipe->policy_value[0] * (1.0 + cos(pi * part_done(recipe, t)));
}
