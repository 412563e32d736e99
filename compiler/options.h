/* options.h: the command line of pnetc, as data.
 *
 * Exit codes: 0 ok, 1 errors in the input or the machine, 2 usage. Usage errors end the process from here. */
#ifndef PNETC_OPTIONS_H
#define PNETC_OPTIONS_H

#include "balance.h"
#include "settings.h"

typedef enum {
    COMMAND_CHECK,
    COMMAND_PLAN,
    COMMAND_PLACE,
    COMMAND_BUILD,
    COMMAND_RUN,
    COMMAND_FMT,
    COMMAND_EXPLAIN,
    COMMAND_DOCTOR,
    COMMAND_LIST,
    COMMAND_DRAW,
    COMMAND_PLOT,
    COMMAND_REPORT,
    COMMAND_PROFILE,
    COMMAND_CALIBRATE,
    COMMAND_FLAGS,
    COMMAND_KERNELS,
    COMMAND_COUNT
} Command;

typedef struct {
    Command command;
    const char **file; /* positional arguments */
    int nfiles;
    const char *out;     /* -o */
    const char *target;  /* --target; NULL: the default */
    const char *network; /* --network; NULL: the last of the file */
    const char *dump;    /* --dump; NULL: none */
    bool json, emit_only, check, quiet, write;
    const char *what, *format, *time, *x; /* draw, plot: checked words; NULL: not given */
    const char *trace;                    /* report; NULL: not given */
    int minibatches, smooth;              /* draw, plot; 0: not given */
    const char *machine, *profile;        /* NULL: not given */
    Warn warn_balance, warn_stale, warn_memory, warn_stability;
    int workers;                 /* place; 0: not given */
    bool all_schedules, layouts; /* plan */
    int steps;                   /* profile; 0: not given */
    bool alone, quick;           /* profile, calibrate */
    bool cflags;
    const char *libs;    /* flags: --libs=TARGET */
    const char *arch;    /* kernels; NULL: not given */
    const char **define; /* "-D" texts "depth=56" and "--set" texts "train.batch=64", in order */
    bool *define_is_set;
    int ndefines;
    char **program; /* run: what follows --, NULL-terminated */
} Options;

/* Prints help or version and exits 0 where asked to; exits 2 on usage errors, naming the nearest option. */
Options options_read(Arena *arena, int argc, char **argv);

/* The -D and --set texts as Overrides; malformed ones are usage errors (exit 2), bad values diagnostics. */
Override *options_overrides(Arena *arena, Diags *diags, Sources *sources, const Options *options);

#endif
