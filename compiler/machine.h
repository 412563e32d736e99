/* machine.h: the machine a pipeline is predicted for: devices that run stages, links between them.
 *
 * From a machine block of the source, a file that holds machine blocks only, or a built-in description:
 *
 *     machine rack {
 *         device gpu {
 *             count     = 4              # workers of this kind; default 1
 *             compute   = 19.5 TFLOP/s   # at its best
 *             bandwidth = 2039 GB/s      # of its memory
 *             memory    = 80 GB          # optional
 *             overhead  = 5 us           # of each node and pass; default 0
 *             half_width = 7            # channels with which half of compute is reached; default 0
 *             efficiency { conv = 0.6 }  # share of compute that an op gets; default 1
 *             winograd  = 0.8            # share that the products of Winograd convolutions get; not given: the device has none
 *         }
 *         link nvlink {                  # cut k uses link k, the last one all further cuts; none: zero copy, free
 *             bandwidth = 300 GB/s       # not given: zero copy, the latency is all it costs
 *             latency   = 10 us          # default 0
 *             overlap   = yes            # transfers run beside the work; no: both ends wait for them
 *         }
 *     }
 *
 * Worker w is the w-th device, kinds in order of their blocks. With fewer workers than stages, neighbouring stages
 * share one: stage s of S runs on worker s * workers / S. */
#ifndef PNETC_MACHINE_H
#define PNETC_MACHINE_H

#include "op.h"
#include "settings.h"

typedef struct {
    const char *name;
    int count;
    double compute;    /* FLOP/s */
    double bandwidth;  /* B/s */
    int64_t memory;    /* bytes; 0: not stated */
    double overhead;   /* seconds of each node and pass */
    double half_width; /* channels with which half of `compute` is reached */
    double winograd;   /* share of `compute` for the products of Winograd's algorithm; 0: all convolutions are direct */
    double *efficiency; /* per op of op_table */
} Device;

typedef struct {
    const char *name;
    double bandwidth; /* B/s; 0: zero copy */
    double latency;   /* seconds a transfer */
    bool overlap;
} Link;

typedef struct Hardware {
    const char *name;
    const char *source; /* "built in, measured", "built in, data sheet", or the file */
    Device *device;     /* kinds */
    int ndevices;
    Link *link;
    int nlinks;
    int workers; /* sum of the counts */
} Hardware;

/* The machine to predict for. `wanted` (--machine): a machine block of the source, a built-in machine, or a file, in
 * this order; NULL: the last block of the source, else the first built-in one. NULL after errors, which are at their
 * lines. */
const Hardware *hardware_find(Arena *arena, Diags *diags, Sources *sources, const Settings *settings,
                              const char *wanted);
void hardware_list(Text *out); /* pnetc list machines */

int hardware_kind(const Hardware *hardware, int worker);               /* index of its device */
int hardware_worker(const Hardware *hardware, int stage, int nstages); /* that runs the stage */
Link hardware_link(const Hardware *hardware, int cut);

/* machine_table.c: built-in machines; the first is the default. */
int hardware_builtin_count(void);
const Hardware *hardware_builtin(Arena *arena, int index);
const char *hardware_builtin_doc(int index);

/* machine_units.c: what a unit measures; false: unknown. "GiB" -> UNIT_BYTES, 2^30. */
typedef enum { UNIT_BYTES, UNIT_BYTES_A_SECOND, UNIT_FLOPS, UNIT_SECONDS, UNIT_OTHER } UnitKind;
bool unit_find(const char *text, UnitKind *kind, double *factor);
const char *unit_nearest(const char *text, UnitKind kind); /* of this kind; NULL: none is near */
/* "100 kB/s", "1 MFLOP/s", "0 s", "256": in the largest unit that leaves no fraction of one. */
const char *quantity_text(Arena *arena, double number, UnitKind kind);
/* "512 MiB" as bytes, for texts of the pipeline block; false: malformed, negative, or over 2^56. */
bool bytes_from_text(const char *text, int64_t *bytes);

#endif
