/* policies.h: the learning-rate policies of choices.def; `t` counts updates from 0. */
#ifndef PN_POLICIES_H
#define PN_POLICIES_H

#include "core/choices.h"

#define POLICY(name, doc) double policy_##name(const pn_recipe *recipe, int64_t t);
#define OPTIMIZER(name, states, doc)
#define ARG(owner, key, kind, preset, low, high, doc)
#include "core/choices.def"
#undef POLICY
#undef OPTIMIZER
#undef ARG

#endif
