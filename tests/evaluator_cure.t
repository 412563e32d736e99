#!/bin/bash
# evaluator_cure.t: generated programs with corrections of staleness and predicted weights against the compiler's evaluator, which
# has the formulas of grammar/REFERENCE.md, section 9.1, over an explicit history of weights, velocities and mean changes: the same
# bits on target ref.
# shellcheck source=tests/evaluator.sh
. "$(dirname "$0")/evaluator.sh"

while IFS='|' read -r schedule cure; do
    compare deep "$WORK/deep.pnet" "$schedule" 12 14 "$cure"
done <<'LIST'
stale|auto
stale|lookahead(horizon = 0.5)
stale|(spike, lookahead)
stale|(spike(horizon = 2), warmup(part = 0.7), lr_reschedule(part = 0.6))
stale|discrepancy
stale|accumulate(a = 3)
stale|(accumulate(a = 2), discrepancy)
stale_1f1b(microbatches = 2)|(momentum_by_delay(k = 7), lr_reschedule(part = 0.9))
stale|(lr_reschedule(part = 0.5, enough = 0), warmup)
stale_1f1b|(momentum_by_delay, lr_reschedule(part = 1, enough = 0.2))
stale_1f1b|(accumulate(a = 4), lookahead, momentum_by_delay)
pipedream|auto
pipedream|(accumulate, spike)
features_replay|auto
pipedream_2bw(microbatches = 4)|lr_reschedule
spectrain|none
spectrain|(accumulate(a = 2), lr_reschedule)
schedule("lockstep", weights = predict)|auto
LIST
done_testing
