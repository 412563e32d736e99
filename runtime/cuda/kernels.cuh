/* kernels.cuh: the device code of target cuda. kernels.cu of a program includes it and makes from its templates one kernel
 * for each shape; the kernels in it (KERNEL ...) are the same in every program.
 *
 * Read by NVRTC, which has no standard headers, and which gets from `pnetc kernels` what is included here and nothing else;
 * also, behind a shim, by a C++17 compiler for the tests: hence no shared array in a template (callers give `room`), no
 * inline PTX, barriers in uniform code only.
 * Activations of rank 4 are [batch][height][width][channel]. Blocks have THREADS threads. Every sum has one order: a run
 * repeats bit for bit on the same GPU. Formulas: runtime/ref/kernels*.c, where their sources are named. */

enum { THREADS = 256, WARP = 32 };
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

typedef unsigned char byte_t;
typedef unsigned long long bits_t;

/* Each may use those before it. */
#include "cuda/device/element.cuh"
#include "cuda/device/index.cuh"
#include "cuda/device/sums.cuh"
#include "cuda/device/dense.cuh"
#include "cuda/device/norm.cuh"
#include "cuda/device/pool.cuh"
#include "cuda/device/map.cuh"
#include "cuda/device/dropout.cuh"
#include "cuda/device/loss.cuh"
#include "cuda/device/update.cuh"
#include "cuda/device/input.cuh"
