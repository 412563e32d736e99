/* options.h: the command line of every generated program. */
#ifndef PN_OPTIONS_H
#define PN_OPTIONS_H

#include "rt.h"

typedef struct {
    int64_t steps, epochs; /* -1: as the program says */
    int64_t test_every;
    int64_t checkpoint_every; /* 0: only at the end */
    int64_t prefetch;         /* -1: as many as pay */
    int64_t threads;          /* of a stage, at most what the target can have */
    uint64_t seed;
    bool seed_given;
    double timeout; /* seconds; from the environment, PN_TIMEOUT */
    const char *data, *metrics, *save, *load, *checkpoint, *resume, *report, *trace, *algorithms,
        *plans; /* NULL: not given */
    const pn_transport *transport;
    bool allow_divergence; /* a loss that is no number ends nothing */
    bool layouts, quiet;
    pn_arithmetic arithmetic;
} pn_options;

/* Fills `options` and returns -1; or says what is to be said and returns the exit code: 0 after --help, --version, 2
 * usage. */
int options_parse(pn_options *options, const pn_program *program, int argc, char **argv);

#endif
