/* options.c: argv -> Options. One table of commands, one of options; help is printed from them. */
#include <stdlib.h>
#include <string.h>

#include "draw.h"
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
static const OptionDef option_table[O_COUNT] = {
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

/* > 0: the value is a number from 1 to this. */
static const int largest[O_COUNT] = {
    [O_MINIBATCHES] = DRAW_MOST_MINIBATCHES, [O_SMOOTH] = 1000, [O_STEPS] = 100000, [O_WORKERS] = MAX_STAGES};

#define BIT(option) (UINT64_C(1) << (option))
#define COMPILE                                                                                                        \
    (BIT(O_TARGET) | BIT(O_NETWORK) | BIT(O_DEFINE) | BIT(O_SET) | BIT(O_MACHINE) | BIT(O_PROFILE) | BIT(O_WARN))
typedef struct {
    const char *name, *arguments, *doc;
    int least, most; /* positional arguments; most -1: any number */
    uint64_t options;
} CommandDef;
static const CommandDef command_table[COMMAND_COUNT] = {
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

static void help(FILE *out)
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

static void command_help(const CommandDef *c)
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

_Noreturn static void usage(const CommandDef *c, const char *format, ...) PRINTF_LIKE(2, 3);
_Noreturn static void usage(const CommandDef *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("pnetc: ", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
    if (c)
        fprintf(stderr, "\nusage: pnetc %s%s %s   (pnetc %s --help)\n", c->name, c->options ? " [OPTIONS]" : "",
                c->arguments, c->name);
    else
        fprintf(stderr, "\nusage: pnetc COMMAND [OPTIONS] ...   (pnetc --help)\n");
    exit(2);
}

static const CommandDef *find_command(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (int i = 0; i < COMMAND_COUNT; i++) {
        names[i] = command_table[i].name;
        if (!strcmp(word, names[i]))
            return &command_table[i];
    }
    const char *near = nearest(word, names, COMMAND_COUNT);
    if (near)
        usage(NULL, "unknown command '%s'; did you mean '%s'?", word, near);
    usage(NULL, "unknown command '%s'", word);
}

/* Which option `word` is; *value is what follows '=' or the letter, NULL if nothing does. */
static int find_option(Arena *arena, const CommandDef *c, const char *word, const char **value)
{
    const char *names[O_COUNT];
    int count = 0;
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    *value = equals ? equals + 1 : NULL;
    for (int i = 0; i < O_COUNT; i++) {
        const OptionDef *o = &option_table[i];
        if (!(c->options >> i & 1) && i != O_HELP && i != O_VERSION)
            continue;
        names[count++] = o->name;
        if (strlen(o->name) == length && !strncmp(word, o->name, length))
            return i;
        if (o->short_name && !strcmp(word, o->short_name))
            return i;
        const char *letter = o->short_name ? o->short_name : o->name;
        if (letter[1] != '-' && o->value && !strncmp(word, letter, 2) && word[1] != '-') {
            *value = word + 2;
            return i;
        }
    }
    const char *near = nearest(arena_text(arena, word, length), names, count);
    if (near)
        usage(c, "unknown option '%s'; did you mean '%s'?", word, near);
    usage(c, "unknown option '%s'", word);
}

/* The value is one of the words or in the range of its option. */
static void check_value(const CommandDef *c, int option, const char *value)
{
    const OptionDef *o = &option_table[option];
    const int most = largest[option];
    char *end;
    const long number = most ? strtol(value, &end, 10) : 0;
    if (most && (*end || end == value || number < 1 || number > most))
        usage(c, "%s wants a number from 1 to %d, not '%s'", o->name, most, value);
    if (!strchr(o->value, '|'))
        return;
    const size_t length = strlen(value);
    for (const char *word = o->value; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
        if (strcspn(word, "|") == length && !strncmp(word, value, length))
            return;
    usage(c, "%s wants %s, not '%s'", o->name, o->value, value);
}

/* "stale", "no-stale", "stale=error" */
static void set_warning(Options *o, const CommandDef *c, const char *value)
{
    const struct {
        const char *name;
        Warn *warn;
    } limits[] = {{"balance", &o->warn_balance},
                  {"stale", &o->warn_stale},
                  {"memory", &o->warn_memory},
                  {"stability", &o->warn_stability}};
    const bool off = !strncmp(value, "no-", 3);
    const char *name = value + (off ? 3 : 0), *equals = strchr(name, '=');
    const size_t length = equals ? (size_t)(equals - name) : strlen(name);
    for (int i = 0; i < COUNT(limits); i++)
        if (strlen(limits[i].name) == length && !strncmp(name, limits[i].name, length) &&
            (!equals || (!off && !strcmp(equals, "=error")))) {
            *limits[i].warn = off ? WARN_OFF : equals ? WARN_ERROR : WARN_ON;
            return;
        }
    usage(c, "-W wants balance, stale, memory or stability, no- before it or =error behind it, not '%s'", value);
}

static void set_option(Options *o, const CommandDef *c, int option, const char *value)
{
    switch (option) {
    case O_OUT:
    case O_FILE:
        o->out = value;
        break;
    case O_TARGET:
        o->target = value;
        break;
    case O_NETWORK:
        o->network = value;
        break;
    case O_DUMP:
        o->dump = value;
        break;
    case O_JSON:
        o->json = true;
        break;
    case O_EMIT_ONLY:
        o->emit_only = true;
        break;
    case O_CHECK:
        o->check = true;
        break;
    case O_WRITE:
        o->write = true;
        break;
    case O_QUIET:
        o->quiet = true;
        break;
    case O_WHAT:
        o->what = value;
        break;
    case O_FORMAT:
        o->format = value;
        break;
    case O_TIME:
        o->time = value;
        break;
    case O_X:
        o->x = value;
        break;
    case O_TRACE:
        o->trace = value;
        break;
    case O_MINIBATCHES:
        o->minibatches = atoi(value);
        break;
    case O_SMOOTH:
        o->smooth = atoi(value);
        break;
    case O_MACHINE:
        o->machine = value;
        break;
    case O_PROFILE:
        o->profile = value;
        break;
    case O_WARN:
        set_warning(o, c, value);
        break;
    case O_WORKERS:
        o->workers = atoi(value);
        break;
    case O_ALL_SCHEDULES:
        o->all_schedules = true;
        break;
    case O_LAYOUTS:
        o->layouts = true;
        break;
    case O_STEPS:
        o->steps = atoi(value);
        break;
    case O_ALONE:
        o->alone = true;
        break;
    case O_QUICK:
        o->quick = true;
        break;
    case O_CFLAGS:
        o->cflags = true;
        break;
    case O_LIBS:
        o->libs = value;
        break;
    case O_ARCH:
        o->arch = value;
        break;
    case O_DEFINE:
    case O_SET:
        if (!strchr(value, '=') || value[0] == '=')
            usage(c, "%s wants %s, not '%s'", option_table[option].name, option_table[option].value, value);
        o->define[o->ndefines] = value;
        o->define_is_set[o->ndefines++] = option == O_SET;
        break;
    default:
        ICE("option %d is not handled", option);
    }
}

Options options_read(Arena *arena, int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        exit(2);
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help(stdout);
        exit(0);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("pnetc %s\n", PNETC_VERSION);
        exit(0);
    }
    const CommandDef *c = find_command(argv[1]);
    Options o = {.command = (Command)(c - command_table)};
    o.file = arena_alloc(arena, (size_t)argc * sizeof *o.file);
    o.define = arena_alloc(arena, (size_t)argc * sizeof *o.define);
    o.define_is_set = arena_alloc(arena, (size_t)argc * sizeof *o.define_is_set);
    bool no_options = false;
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i], *value;
        if (!no_options && !strcmp(word, "--")) {
            if (o.command == COMMAND_RUN || o.command == COMMAND_PROFILE) {
                o.program = argv + i + 1;
                break;
            }
            no_options = true;
        } else if (no_options || word[0] != '-' || !word[1]) {
            if (c->most >= 0 && o.nfiles == c->most)
                usage(c, "unexpected argument '%s'%s", word,
                      o.command == COMMAND_RUN || o.command == COMMAND_PROFILE ? "; options of the program follow --"
                                                                               : "");
            o.file[o.nfiles++] = word;
        } else {
            int option = find_option(arena, c, word, &value);
            if (option == O_HELP) {
                command_help(c);
                exit(0);
            }
            if (option == O_VERSION) {
                printf("pnetc %s\n", PNETC_VERSION);
                exit(0);
            }
            if (!option_table[option].value) {
                if (value)
                    usage(c, "%s takes no value", option_table[option].name);
            } else if (!value) {
                if (i + 1 == argc)
                    usage(c, "%s wants a value: %s", option_table[option].name, option_table[option].value);
                value = argv[++i];
            }
            if (value)
                check_value(c, option, value);
            set_option(&o, c, option, value);
        }
    }
    if (o.nfiles < c->least)
        usage(c, "%s is missing", c->arguments);
    if (o.command == COMMAND_BUILD && !o.out)
        usage(c, "where to? -o DIR is missing");
    return o;
}

Override *options_overrides(Arena *arena, Diags *diags, Sources *sources, const Options *options)
{
    Override *list = arena_alloc(arena, (size_t)(options->ndefines + 1) * sizeof *list);
    for (int i = 0; i < options->ndefines; i++) {
        const char *text = options->define[i], *equals = strchr(text, '=');
        const char *dot = options->define_is_set[i] ? memchr(text, '.', (size_t)(equals - text)) : NULL;
        const CommandDef *c = &command_table[options->command];
        if (options->define_is_set[i] && (!dot || dot == text || dot + 1 == equals))
            usage(c, "--set wants BLOCK.KEY=VALUE, not '%s'", text);
        const char *key = dot ? dot + 1 : text;
        list[i].name = name_intern(arena, key, (size_t)(equals - key));
        if (dot)
            list[i].block = name_intern(arena, text, (size_t)(dot - text));
        const char *path = arena_printf(arena, "%s %.*s", dot ? "--set" : "-D", (int)(equals - text), text);
        const SourceFile *file = source_add(arena, sources, path, equals + 1, strlen(equals + 1));
        if (!file)
            usage(c, "the value of '%.*s' is too long", (int)(equals - text), text);
        list[i].value = parse_expr(arena, diags, file);
        list[i].span = (Span){file->base, file->base + file->length};
    }
    return list;
}
