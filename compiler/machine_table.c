/* machine_table.c: built-in machines. Numbers of data sheets are peaks: what a program reaches lies below. */
#include "machine.h"

#include <string.h>

typedef struct {
    const char *name, *doc, *source;
    Device device;
    double linear, batch_norm; /* efficiency; 0: 1 */
    Link link;
} Builtin;

static const char data_sheet[] = "built in, data sheet", fitted[] = "built in, fitted";

#define CORE                                                                                                           \
    .name = "core", .count = MAX_STAGES, .compute = 145e9, .bandwidth = 40e9, .overhead = 10e-6, .half_width = 7.2

static const Builtin table[] = {
    {.name = "core",
     .doc =
         "a worker a core of a server CPU with AVX-512; as many as there are stages. Fitted to a profile of ResNet-20 "
         "on a Zen 4 core",
     .source = fitted,
     .device = {CORE, .winograd = 0.78},
     .linear = 0.7,
     .batch_norm = 0.12,
     .link = {"memory", 0, 2e-6, true}},
    {.name = "core-exact",
     .doc = "the same for programs that run with --exact: all convolutions direct, by oneDNN",
     .source = fitted,
     .device = {CORE},
     .linear = 0.7,
     .batch_norm = 0.12,
     .link = {"memory", 0, 2e-6, true}},
    {.name = "ryzen-7950x",
     .doc = "a worker a core: 4.5 GHz x 32 FLOP, a sixteenth of 83.2 GB/s (dual DDR5-5200)",
     .source = data_sheet,
     .device = {.name = "core", .count = 16, .compute = 144e9, .bandwidth = 5.2e9, .overhead = 10e-6, .winograd = 1},
     .link = {"memory", 0, 2e-6, true}},
    {.name = "a100",
     .doc = "NVIDIA A100 SXM 80 GB: 19.5 TFLOP/s f32, 2039 GB/s; NVLink 3, 300 GB/s a direction",
     .source = data_sheet,
     .device =
         {.name = "a100", .count = 8, .compute = 19.5e12, .bandwidth = 2039e9, .memory = 80000000000, .overhead = 5e-6},
     .link = {"nvlink", 300e9, 10e-6, true}},
    {.name = "h100",
     .doc = "NVIDIA H100 SXM: 67 TFLOP/s f32, 3.35 TB/s; NVLink 4, 450 GB/s a direction",
     .source = data_sheet,
     .device =
         {.name = "h100", .count = 8, .compute = 67e12, .bandwidth = 3350e9, .memory = 80000000000, .overhead = 5e-6},
     .link = {"nvlink", 450e9, 10e-6, true}},
    {.name = "h200",
     .doc = "NVIDIA H200 SXM: 67 TFLOP/s f32, 4.8 TB/s; NVLink 4, 450 GB/s a direction",
     .source = data_sheet,
     .device =
         {.name = "h200", .count = 8, .compute = 67e12, .bandwidth = 4800e9, .memory = 141000000000, .overhead = 5e-6},
     .link = {"nvlink", 450e9, 10e-6, true}},
};

int hardware_builtin_count(void)
{
    return COUNT(table);
}

const char *hardware_builtin_doc(int index)
{
    return table[index].doc;
}

const Hardware *hardware_builtin(Arena *arena, int index)
{
    const Builtin *from = &table[index];
    Hardware *made = arena_alloc(arena, sizeof *made);
    *made = (Hardware){
        .name = from->name,
        .source = from->source,
        .device = arena_alloc(arena, sizeof *made->device),
        .ndevices = 1,
        .link = arena_alloc(arena, sizeof *made->link),
        .nlinks = 1,
        .workers = from->device.count,
    };
    made->device[0] = from->device;
    made->device[0].efficiency = arena_alloc(arena, sizeof(double) * (size_t)op_count);
    for (int i = 0; i < op_count; i++) {
        const char *op = op_table[i]->name;
        const double stated = !strcmp(op, "linear")                                        ? from->linear
                              : !strcmp(op, "batch_norm") || !strcmp(op, "batch_norm_add") ? from->batch_norm
                                                                                           : 0;
        made->device[0].efficiency[i] = stated > 0 ? stated : 1;
    }
    made->link[0] = from->link;
    return made;
}
