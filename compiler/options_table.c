/* options_table.c: see options_table.h. */
#include "options_table.h"

#include "draw.h"

const OptionDef option_table[O_COUNT] = {
    [O_OUT] = {"--output", "-o", "DIR", "the folder to write"},
    [O_FILE] = {"--output", "-o", "OUT", "the file to write (default: standard output)"},
    [O_TARGET] = {"--target", NULL, "TARGET", "cpu (oneDNN, the default), ref (naive C, no library) or cuda (a GPU)"},
    [O_NETWORK] = {"--network", NULL, "NAME", "which network of the file (default: the last)"},
    [O_DUMP] = {"--dump", NULL, "IR", "print an inner form instead: ast, graph, pipe, sched or plan"},
    [O_JSON] = {"--json", NULL, NULL, "machine-readable output"},
    [O_EMIT_ONLY] = {"--emit-only", NULL, NULL, "write the sources, do not compile them"},
    [O_CHECK] = {"--check", NULL, NULL, "write nothing; exit 1 if a file is not in canonical form"},
    [O_WRITE] = {"--write", "-w", NULL, "rewrite the files in place instead of printing"},
    [O_DEFINE] = {"-D", NULL, "NAME=VALUE", "set a parameter of the network or the file"},
    [O_SET] = {"--set", NULL, "BLOCK.KEY=VALUE", "set or replace a setting, as --set train.batch=64"},
    [O_CFLAGS] = {"--cflags", NULL, NULL, "compiler flags for generated code"},
    [O_LIBS] = {"--libs", NULL, "TARGET", "linker flags for generated code of a target"},
    [O_ARCH] = {"--arch", NULL, "LIST", "GPUs to compile for, as in sm_90 (default: 80,90,100); newer ones get PTX"},
    [O_WHAT] = {"--what", NULL, "network|schedule", "what to draw (default: network)"},
    [O_FORMAT] = {"--format", NULL, "dot|svg", "DOT text or SVG (default: svg for OUT.svg and schedules, else dot)"},
    [O_TIME] = {"--time", NULL, "unit|macs", "schedule: a step takes a unit (default), or as long as its FLOPs"},
    [O_MINIBATCHES] = {"--minibatches", NULL, "N", "schedule: how many of each phase to draw"},
    [O_X] = {"--x", NULL, "step|epoch|seconds", "what runs along the x axis (default: step)"},
    [O_SMOOTH] = {"--smooth", NULL, "N", "draw the mean loss of N intervals (default: 1)"},
    [O_TRACE] = {"--trace", NULL, "FILE", "of a run of the program: show what was measured beside the prediction"},
    [O_MACHINE] = {"--machine", NULL, "NAME", "what to predict times for: pnetc list machines, or FILE.pnet"},
    [O_PROFILE] = {"--profile", NULL, "FILE", "times that were measured, instead of predicted ones"},
    [O_WARN] = {"-W", NULL, "LIMIT",
                "warn of balance, stale, memory or stability; -Wno-LIMIT: not; -WLIMIT=error: an error"},
    [O_WORKERS] = {"--workers", NULL, "N", "try 1 to N workers (default: 8, or what the machine has)"},
    [O_ALL_SCHEDULES] = {"--all-schedules", NULL, NULL, "compare all schedules instead"},
    [O_LAYOUTS] = {"--layouts", NULL, NULL, "build it too, and list the copies that only change a layout"},
    [O_STEPS] = {"--steps", NULL, "N", "minibatches to measure (default: 30)"},
    [O_ALONE] = {"--alone", NULL, NULL, "times of one worker at work, not of all of them"},
    [O_QUICK] = {"--quick", NULL, NULL, "less exact, in some seconds"},
    [O_QUIET] = {"--quiet", "-q", NULL, "say nothing but errors and results"},
    [O_HELP] = {"--help", "-h", NULL, "this text"},
    [O_VERSION] = {"--version", NULL, NULL, "the version"},
};

const int option_largest[O_COUNT] = {
    [O_MINIBATCHES] = DRAW_MOST_MINIBATCHES, [O_SMOOTH] = 1000, [O_STEPS] = 100000, [O_WORKERS] = MAX_STAGES};

#define BIT(option) (UINT64_C(1) << (option))
#define COMPILE                                                                                                        \
    (BIT(O_TARGET) | BIT(O_NETWORK) | BIT(O_DEFINE) | BIT(O_SET) | BIT(O_MACHINE) | BIT(O_PROFILE) | BIT(O_WARN))
const CommandDef command_table[COMMAND_COUNT] = {
    [COMMAND_CHECK] = {"check", "FILE", "check a network and print its stages, staleness and memory", 1, 1,
                       COMPILE | BIT(O_JSON) | BIT(O_DUMP)},
    [COMMAND_PLAN] = {"plan", "FILE", "print the memory map: every byte of every stage", 1, 1,
                      COMPILE | BIT(O_JSON) | BIT(O_DUMP) | BIT(O_ALL_SCHEDULES) | BIT(O_LAYOUTS)},
    [COMMAND_PLACE] = {"place", "FILE", "where registers would stand best, and what each further one gains and costs",
                       1, 1, COMPILE | BIT(O_JSON) | BIT(O_WORKERS) | BIT(O_WRITE)},
    [COMMAND_BUILD] = {"build", "FILE -o DIR", "write the program's C and compile it", 1, 1,
                       COMPILE | BIT(O_OUT) | BIT(O_EMIT_ONLY) | BIT(O_QUIET)},
    [COMMAND_RUN] = {"run", "FILE [-- PROGRAM OPTIONS]", "build in a temporary folder and train", 1, 1,
                     COMPILE | BIT(O_OUT) | BIT(O_QUIET)},
    [COMMAND_FMT] = {"fmt", "FILE...", "print the canonical form, comments kept", 1, -1, BIT(O_CHECK) | BIT(O_WRITE)},
    [COMMAND_EXPLAIN] = {"explain", "[CODE]", "what a diagnostic code means, with an example", 0, 1, 0},
    [COMMAND_DOCTOR] = {"doctor", "", "what this machine has for building programs", 0, 0, 0},
    [COMMAND_LIST] = {"list", "ops|schedules|targets|data|machines", "what the language can name", 1, 1, 0},
    [COMMAND_DRAW] = {"draw", "FILE", "draw the network or its schedule in space and time", 1, 1,
                      COMPILE | BIT(O_FILE) | BIT(O_WHAT) | BIT(O_FORMAT) | BIT(O_TIME) | BIT(O_MINIBATCHES)},
    [COMMAND_PLOT] = {"plot", "[NAME=]METRICS...", "draw loss and accuracy of runs from their --metrics files", 1, -1,
                      BIT(O_FILE) | BIT(O_X) | BIT(O_SMOOTH)},
    [COMMAND_REPORT] = {"report", "FILE", "all that check, plan, place and draw know, as one page for a browser", 1, 1,
                        COMPILE | BIT(O_FILE) | BIT(O_TRACE)},
    [COMMAND_PROFILE] = {"profile", "FILE [-- PROGRAM OPTIONS]", "measure the time of every node on this machine", 1, 1,
                         (COMPILE & ~BIT(O_PROFILE)) | BIT(O_FILE) | BIT(O_STEPS) | BIT(O_ALONE)},
    [COMMAND_CALIBRATE] = {"calibrate", "", "measure this machine and describe it in a machine block", 0, 0,
                           BIT(O_FILE) | BIT(O_TARGET) | BIT(O_QUICK)},
    [COMMAND_FLAGS] = {"flags", "", "compiler and linker flags, for generated Makefiles", 0, 0,
                       BIT(O_CFLAGS) | BIT(O_LIBS)},
    [COMMAND_KERNELS] = {"kernels", "FILE.cu",
                         "compile the kernels of a program for target cuda, to C; or a table of them", 1, 1,
                         BIT(O_FILE) | BIT(O_ARCH)},
};

static void print_option(FILE *out, const OptionDef *o)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s%s", o->short_name ? o->short_name : "", o->short_name ? ", " : "", o->name,
             o->value ? (o->name[1] == '-' ? "=" : " ") : "", o->value ? o->value : "");
    fprintf(out, "  %-26s  %s\n", left, o->doc);
}

void options_help(FILE *out)
{
    fprintf(out,
            "pnetc %s: compiles a .pnet file (network, pipeline registers, training) to a pipelined trainer in C\n\n"
            "usage: pnetc COMMAND [OPTIONS] ...\n\n",
            PNETC_VERSION);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", command_table[i].name, command_table[i].arguments);
        fprintf(out, "  %-40s  %s\n", left, command_table[i].doc);
    }
    fprintf(out,
            "\n`pnetc COMMAND --help` lists a command's options. Exit codes: 0 ok, 1 errors in the input, 2 usage.\n"
            "First steps: pnetc run examples/lenet5.pnet    Manual: pnetc(1), pnet(5)\n");
}

void options_command_help(const CommandDef *c)
{
    printf("usage: pnetc %s%s %s\n\n%s\n\n", c->name, c->options ? " [OPTIONS]" : "", c->arguments, c->doc);
    for (int i = 0; i < O_COUNT; i++)
        if (c->options >> i & 1 || i == O_HELP)
            print_option(stdout, &option_table[i]);
    if (c == &command_table[COMMAND_RUN])
        printf("\nWhat follows -- goes to the trained program; `pnetc run FILE -- --help` lists its options.\n");
    if (c == &command_table[COMMAND_CHECK])
        printf("\nFILE may be - for standard input.\n");
}
