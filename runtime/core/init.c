/* Initial values of a parameter, in plain order: a function of the seed, its global name and the element's index. Cuts,
 * layouts and threads have no part in it. Sources: he = normal, deviation sqrt(2 / fan_in) (He et al., "Delving deep
 * into rectifiers", 2015); xavier = uniform within sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010, formula 16).
 */
#include <math.h>

#include "rt.h"

void pn_param_initial(const pn_param *param, uint64_t seed, float *plain)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    uint64_t key = pn_key(seed, param->name);
    double mean = 0, deviation = 0, low = 0, high = 0;
    bool normal = false;
    switch (param->init) {
    case PN_HE:
        normal = true;
        deviation = sqrt(2.0 / (double)(param->fan_in > 0 ? param->fan_in : 1));
        break;
    case PN_XAVIER: {
        int64_t fans = param->fan_in + param->fan_out;
        high = sqrt(6.0 / (double)(fans > 0 ? fans : 1));
        low = -high;
        break;
    }
    case PN_GAUSSIAN:
        normal = true;
        mean = param->a;
        deviation = param->b;
        break;
    case PN_UNIFORM:
        low = param->a;
        high = param->b;
        break;
    case PN_CONSTANT:
        low = high = param->a;
        break;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t counter = (uint64_t)i;
        double value =
            normal ? mean + deviation * pn_normal(key, counter) : low + (high - low) * pn_uniform(key, counter);
        plain[i] = (float)value;
    }
}
