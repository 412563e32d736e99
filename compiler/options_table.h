/* options_table.h: all options and commands, as tables; help is printed from them. */
#ifndef PNETC_OPTIONS_TABLE_H
#define PNETC_OPTIONS_TABLE_H

#include "options.h"

enum {
    O_OUT,
    O_FILE,
    O_TARGET,
    O_NETWORK,
    O_DUMP,
    O_JSON,
    O_EMIT_ONLY,
    O_CHECK,
    O_WRITE,
    O_DEFINE,
    O_SET,
    O_CFLAGS,
    O_LIBS,
    O_ARCH,
    O_WHAT,
    O_FORMAT,
    O_TIME,
    O_MINIBATCHES,
    O_X,
    O_SMOOTH,
    O_TRACE,
    O_MACHINE,
    O_PROFILE,
    O_WARN,
    O_WORKERS,
    O_ALL_SCHEDULES,
    O_LAYOUTS,
    O_STEPS,
    O_ALONE,
    O_QUICK,
    O_QUIET,
    O_HELP,
    O_VERSION,
    O_COUNT
};

typedef struct {
    const char *name, *short_name, *value, *doc; /* value NULL: a flag; "a|b": one of these words */
} OptionDef;
extern const OptionDef option_table[O_COUNT];
extern const int option_largest[O_COUNT]; /* > 0: the value is a number from 1 to this */

typedef struct {
    const char *name, *arguments, *doc;
    int least, most; /* positional arguments; most -1: any number */
    uint64_t options;
} CommandDef;
extern const CommandDef command_table[COMMAND_COUNT];

void options_help(FILE *out);
void options_command_help(const CommandDef *command);

#endif
