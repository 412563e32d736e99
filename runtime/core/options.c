#include "core/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

typedef enum {
    IS_FLAG,
    IS_ENGINE_FLAG,
    IS_COUNT,
    IS_THREADS,
    IS_SEED,
    IS_TEXT,
    IS_ENGINE_TEXT,
    IS_TRANSPORT,
    IS_HELP,
    IS_VERSION
} Kind;
typedef struct {
    const char *name, *argument, *doc;
    Kind kind;
    void *to;
} Option;

/* Edit distance, for hints: two rows of the usual table; names longer than a row are not near anything. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    int row[LONGEST + 1], na = (int)strlen(a), nb = (int)strlen(b);
    if (na > LONGEST || nb > LONGEST)
        return LONGEST;
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}

/* A third of the letters may differ. */
static const char *nearer(const char *name, const char *candidate, const char *nearest)
{
    int d = distance(name, candidate);
    if (d > (int)strlen(candidate) / 3 + 1)
        return nearest;
    return !nearest || d < distance(name, nearest) ? candidate : nearest;
}

static int usage(const pn_program *program)
{
    fprintf(stderr, "try %s --help\n", program->name);
    return 2;
}

/* Only some targets can be asked for engines of their library. */
static bool is_known(const Option *option)
{
    return (option->kind != IS_ENGINE_FLAG && option->kind != IS_ENGINE_TEXT) || pn_target_engines;
}

static void print_help(const pn_program *program, const Option *option, int count)
{
    printf("usage: %s [options]\n\n"
           "Trains the network of %s, compiled by pnetc for target %s into %d stage%s.\n\n",
           program->name, program->source, program->target, program->nstages, program->nstages == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        if (!is_known(&option[i]))
            continue;
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", option[i].name, option[i].argument ? " " : "",
                 option[i].argument ? option[i].argument : "");
        printf("  %-26s %s\n", left, option[i].doc);
    }
    printf("\ntransports:");
    for (int i = 0; i < pn_transport_count; i++)
        printf("%s %s (%s)", i ? "," : "", pn_transport_table[i]->name, pn_transport_table[i]->doc);
    printf("\nas compiled: data %s, batch %lld, ", program->data.name, (long long)program->batch);
    if (program->epochs > 0)
        printf("%lld epochs", (long long)program->epochs);
    else
        printf("%lld steps", (long long)program->steps);
    printf(", seed %llu\nPN_TIMEOUT in the environment: seconds without progress after which a run is stopped (60; 0: "
           "never)\n"
           "exit status: 0 ok, 1 failed, 2 usage, 3 training diverged\n",
           (unsigned long long)program->seed);
    if (pn_target_ranks)
        printf("several GPUs: N processes, by mpirun -n N, srun -n N, or RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, "
               "MASTER_PORT\n");
}

static bool parse_count(const char *text, int64_t *to)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > INT64_C(1000000000000000))
        return false;
    *to = value;
    return true;
}

static bool parse_seed(const char *text, uint64_t *to)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno || end == text || *end || strchr(text, '-'))
        return false;
    *to = value;
    return true;
}

static bool parse_transport(const char *text, const pn_transport **to)
{
    const char *near = NULL;
    *to = pn_transport_find(text);
    if (*to)
        return true;
    for (int i = 0; i < pn_transport_count; i++)
        near = nearer(text, pn_transport_table[i]->name, near);
    fprintf(stderr, "error: unknown transport '%s'", text);
    if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, "\nthere are:");
    for (int i = 0; i < pn_transport_count; i++)
        fprintf(stderr, "%s %s", i ? "," : "", pn_transport_table[i]->name);
    fprintf(stderr, "\n");
    return false;
}

static bool parse_value(const Option *option, const char *text)
{
    switch (option->kind) {
    case IS_COUNT:
        if (parse_count(text, option->to))
            return true;
        fprintf(stderr, "error: --%s wants a whole number from 0, not '%s'\n", option->name, text);
        return false;
    case IS_THREADS:
        if (parse_count(text, option->to) && *(int64_t *)option->to > 0)
            return true;
        fprintf(stderr, "error: --%s wants a whole number from 1, not '%s'\n", option->name, text);
        return false;
    case IS_SEED:
        if (parse_seed(text, option->to))
            return true;
        fprintf(stderr, "error: --%s wants a whole number from 0 to 2^64 - 1, not '%s'\n", option->name, text);
        return false;
    case IS_TRANSPORT:
        return parse_transport(text, option->to);
    case IS_TEXT:
    case IS_ENGINE_TEXT:
        if (*text) {
            *(const char **)option->to = text;
            return true;
        }
        fprintf(stderr, "error: --%s wants a name, not nothing\n", option->name);
        return false;
    default:
        return false;
    }
}

static bool parse_timeout(double *to)
{
    const char *text = getenv("PN_TIMEOUT");
    *to = 60;
    if (!text || !*text)
        return true;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < 0) {
        fprintf(stderr, "error: PN_TIMEOUT wants seconds from 0, not '%s'\n", text);
        return false;
    }
    *to = value;
    return true;
}

static const Option *find(const Option *option, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (is_known(&option[i]) && strlen(option[i].name) == length && strncmp(option[i].name, name, length) == 0)
            return &option[i];
    return NULL;
}

static void report_unknown(const Option *option, int count, const char *word)
{
    char name[64] = "";
    const char *near = NULL;
    if (strncmp(word, "--", 2) == 0) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
        for (int i = 0; i < count; i++)
            if (is_known(&option[i]))
                near = nearer(name, option[i].name, near);
    }
    fprintf(stderr, "error: %s '%s'", word[0] == '-' ? "unknown option" : "unexpected argument", word);
    if (near)
        fprintf(stderr, "; did you mean --%s?", near);
    fprintf(stderr, "\n");
}

static bool contradicts(const pn_options *options)
{
    const char *says = NULL;
    if (options->steps >= 0 && options->epochs >= 0)
        says = "--steps and --epochs say the same thing: give one";
    else if (options->load && options->resume)
        says = "--load and --resume both set the weights: give one";
    else if (options->checkpoint_every > 0 && !options->checkpoint)
        says = "--checkpoint-every wants --checkpoint FILE";
    else if (options->arithmetic.exact && options->algorithms)
        says = "--exact leaves nothing for --algorithms to choose: give one";
    else if (options->arithmetic.exact && options->arithmetic.tf32)
        says = "--exact and --tf32 contradict each other: give one";
    if (says)
        fprintf(stderr, "error: %s\n", says);
    return says != NULL;
}

int options_parse(pn_options *options, const pn_program *program, int argc, char **argv)
{
    *options = (pn_options){.steps = -1,
                            .epochs = -1,
                            .test_every = program->test_every,
                            .prefetch = -1,
                            .threads = program->threads > 0 ? program->threads : 1,
                            .seed = program->seed,
                            .transport = pn_transport_table[0]};
    const Option table[] = {
        {"steps", "N", "minibatches to train; 0: only test", IS_COUNT, &options->steps},
        {"epochs", "N", "the same, in passes over the training images", IS_COUNT, &options->epochs},
        {"data", "PATH|NAME", "folder of the images, SOURCE or SOURCE:FOLDER; digits is built in", IS_TEXT,
         &options->data},
        {"transport", "NAME", "how stages run and talk", IS_TRANSPORT, &options->transport},
        {"seed", "N", "of initial weights, order of images, dropout", IS_SEED, &options->seed},
        {"eval-every", "N", "test after each N steps; 0: only at the end", IS_COUNT, &options->test_every},
        {"prefetch", "N", "minibatches a thread makes ready ahead; 0: none (default: as many as pay)", IS_COUNT,
         &options->prefetch},
        {"threads", "N", "that each stage shares its work among; sums, and so results, depend on N", IS_THREADS,
         &options->threads},
        {"metrics", "FILE", "write a line of JSON for each interval and test", IS_TEXT, &options->metrics},
        {"save", "FILE.safetensors", "write the weights at the end", IS_TEXT, &options->save},
        {"load", "FILE.safetensors", "start from these weights", IS_TEXT, &options->load},
        {"checkpoint", "FILE.safetensors", "write all that --resume needs, at the end", IS_TEXT, &options->checkpoint},
        {"checkpoint-every", "N", "and after each N steps, over the one before", IS_COUNT, &options->checkpoint_every},
        {"resume", "FILE.safetensors", "go on from this checkpoint: --steps counts from the very start", IS_TEXT,
         &options->resume},
        {"report", "FILE", "write what was measured, as JSON: staleness, rings, traffic, times", IS_TEXT,
         &options->report},
        {"trace", "FILE", "write when each stage did what, as JSON for Perfetto and chrome://tracing", IS_TEXT,
         &options->trace},
        {"algorithms", "FILE", "do convolutions in the way that FILE says; if it is not there: measure, write it",
         IS_TEXT, &options->algorithms},
        {"exact", NULL, "do all convolutions directly: no Winograd, exact on small integers", IS_FLAG,
         &options->arithmetic.exact},
        {"tf32", NULL, "let convolutions round what they multiply to TF32 (default: f32 throughout)", IS_ENGINE_FLAG,
         &options->arithmetic.tf32},
        {"nondeterministic", NULL, "let them sum in an order that varies: runs do not repeat bit for bit",
         IS_ENGINE_FLAG, &options->arithmetic.nondeterministic},
        {"allow-divergence", NULL, "go on when the loss is no number or explodes, instead of ending with status 3",
         IS_FLAG, &options->allow_divergence},
        {"plans", "GPU.json", "list the engines of cuDNN for a GPU that is only described, and end", IS_ENGINE_TEXT,
         &options->plans},
        {"layouts", NULL, "list the copies of a step that only change a layout, and end", IS_FLAG, &options->layouts},
        {"quiet", NULL, "print the last line only", IS_FLAG, &options->quiet},
        {"help", NULL, "print this", IS_HELP, NULL},
        {"version", NULL, "print versions", IS_VERSION, NULL},
    };
    const int count = PN_COUNT(table);
    if (!parse_timeout(&options->timeout))
        return usage(program);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *name = word + 2;
        const Option *option = NULL;
        if (strcmp(word, "-h") == 0)
            option = find(table, count, "help", 4);
        else if (strncmp(word, "--", 2) == 0)
            option = find(table, count, name, strcspn(name, "="));
        if (!option) {
            report_unknown(table, count, word);
            return usage(program);
        }
        const char *value = strchr(word, '=');
        if (!option->argument && value) {
            fprintf(stderr, "error: --%s takes no value\n", option->name);
            return usage(program);
        }
        if (option->kind == IS_HELP) {
            print_help(program, table, count);
            return file_printed() ? 0 : 1;
        }
        if (option->kind == IS_VERSION) {
            printf("%s (pnetc %s, target %s: %s)\n", program->name, PN_VERSION, pn_target_name, pn_target_version());
            return file_printed() ? 0 : 1;
        }
        if (option->kind == IS_FLAG || option->kind == IS_ENGINE_FLAG) {
            *(bool *)option->to = true;
            continue;
        }
        if (value)
            value++;
        else if (i + 1 < argc)
            value = argv[++i];
        if (!value) {
            fprintf(stderr, "error: --%s wants a value: --%s %s\n", option->name, option->name, option->argument);
            return usage(program);
        }
        if (!parse_value(option, value))
            return usage(program);
        if (option->kind == IS_SEED)
            options->seed_given = true;
    }
    return contradicts(options) ? usage(program) : -1;
}
