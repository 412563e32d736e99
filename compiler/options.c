/* options.c: argv -> Options, by the tables of options_table.h. */
#include <stdlib.h>
#include <string.h>

#include "options_table.h"

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
    const int most = option_largest[option];
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
        options_help(stderr);
        exit(2);
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        options_help(stdout);
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
                options_command_help(c);
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
