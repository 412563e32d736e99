// window.h: which buffer each window of a launch shows (kernel.cpp fills, hooks.cpp reads). Window 0 is for copies and libraries;
// windows 1 and up belong to the launch's pointers, in the order of the parameters.
#pragma once
#include "sim.h"

namespace sim
{
struct Window {
    Bounds bounds;
    int parameter = -1;
};
extern Window windows[window_count];
} // namespace sim
