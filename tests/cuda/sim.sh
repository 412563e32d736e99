#!/bin/bash
# sim.sh: what tests of target cuda under the simulator need, or the reason why they are skipped. Source it behind tap.sh.
[ -e "$B/lib/libpn_cuda.a" ] || skip_all "no CUDA toolkit with cuDNN when pnetc was built: target cuda is not tested"
[ -e "$B/lib/libpn_cpu.a" ] || skip_all "no oneDNN: there is nothing to hold target cuda against"
"$PNETC" doctor | grep -q '^ok  *NVRTC' || skip_all "no NVRTC: target cuda is not tested"
command -v "${CXX:-g++}" >"$WORK/log" || skip_all "no C++ compiler"
[ "$(uname -m)" = x86_64 ] || skip_all "the simulator needs x86-64"
make -s -C "$ROOT" B="$B" cudasim >"$WORK/log" 2>&1 || { note "$(tail "$WORK/log")"; ok 1 "the simulator builds"; done_testing; }
cd "$WORK" || exit 1
