#!/bin/bash
# cuda_schedules.t: what a schedule asks of target cuda besides forwards, backwards and updates: gradients summed over microbatches, weights
# that look ahead or back (corrections of staleness), forwards done again. Under the simulator: no report, and the losses and tests of
# target cpu (--exact) within a tolerance.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

zoo=$ROOT/tests/cuda/zoo.pnet
compare "gpipe, 4 microbatches" "$zoo" "random:1" 4 --set 'pipeline.schedule=gpipe(microbatches = 4)'
compare "pipedream_flush, 2 microbatches, again" "$zoo" "random:2" 4 \
    --set 'pipeline.schedule=pipedream_flush(microbatches = 2, recompute = yes)'
compare "spectrain, again" "$zoo" "lazy" 6 --set 'pipeline.schedule=spectrain(recompute = yes)'
compare "pipedream_2bw" "$zoo" "random:4" 5 --set 'pipeline.schedule=pipedream_2bw(microbatches = 2)'
done_testing
