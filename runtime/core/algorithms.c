#include "core/algorithms.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

static const char *const algorithm_name[PN_ALGORITHMS] = {"direct", "winograd"};

static AlgorithmLine *add_line(struct pn_algorithms *all)
{
    if (all->count == all->room) {
        int room = all->room ? 2 * all->room : 64;
        AlgorithmLine *line = pn_alloc((int64_t)sizeof *line * room);
        if (all->count)
            memcpy(line, all->line, sizeof *line * (size_t)all->count);
        all->line = line;
        all->room = room;
    }
    return &all->line[all->count++];
}

static AlgorithmLine *find(const struct pn_algorithms *all, const char *op, const char *pass)
{
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->line[i].op, op) == 0 && strcmp(all->line[i].pass, pass) == 0)
            return &all->line[i];
    return NULL;
}

/* ---- reading ---- */
typedef struct {
    const char *path;
    FILE *stream;
    int number;
    char line[512], *at; /* what is left of the line */
} Reader;

static _Noreturn void refuse(const Reader *in, const char *why)
{
    pn_fail(NULL, "%s:%d: %s; remove the file to measure anew", in->path, in->number, why);
}

/* False at the end of the file. */
static bool read_line(Reader *in)
{
    errno = 0;
    if (!fgets(in->line, sizeof in->line, in->stream)) {
        if (ferror(in->stream))
            pn_fail(NULL, "cannot read %s: %s", in->path, strerror(errno ? errno : EIO));
        return false;
    }
    in->number++;
    in->at = in->line;
    char *end = strchr(in->line, '\n');
    if (!end)
        refuse(in, "the line is cut off or too long");
    *end = 0;
    return true;
}

/* Words are parted by one space. */
static const char *next_word(Reader *in)
{
    char *word = in->at;
    in->at += strcspn(in->at, " ");
    if (*in->at)
        *in->at++ = 0;
    if (!*word)
        refuse(in, "a word is missing");
    return word;
}

/* "key value", the value to the end of the line. */
static void expect(Reader *in, const char *key, const char *value)
{
    char text[1024];
    snprintf(text, sizeof text, "this must be '%s %s'", key, value);
    if (!read_line(in)) {
        in->number++;
        refuse(in, text);
    }
    const size_t length = strlen(key);
    if (strncmp(in->line, key, length) != 0 || in->line[length] != ' ' || strcmp(in->line + length + 1, value) != 0)
        refuse(in, text);
}

static double read_time(Reader *in, const char *word)
{
    char *end;
    double value = strtod(word, &end);
    if (end == word || *end || !isfinite(value) || value < 0)
        refuse(in, "a time in microseconds was expected");
    return value;
}

static char *kept(const char *text)
{
    char *copy = pn_alloc((int64_t)strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

static void read_op(Reader *in, struct pn_algorithms *all)
{
    AlgorithmLine line = {.line = in->number};
    if (strcmp(next_word(in), "op") != 0)
        refuse(in, "this must begin with 'op'");
    line.op = kept(next_word(in));
    line.pass = kept(next_word(in));
    const char *choice = next_word(in);
    while (line.choice < PN_ALGORITHMS && strcmp(algorithm_name[line.choice], choice) != 0)
        line.choice++;
    if (line.choice == PN_ALGORITHMS)
        refuse(in, "the algorithm is neither 'direct' nor 'winograd'");
    line.microseconds[PN_DIRECT] = read_time(in, next_word(in));
    const char *winograd = next_word(in);
    line.possible = strcmp(winograd, "-") != 0;
    if (line.possible)
        line.microseconds[PN_WINOGRAD] = read_time(in, winograd);
    if (*in->at)
        refuse(in, "there is too much on the line");
    if (line.choice == PN_WINOGRAD && !line.possible)
        refuse(in, "winograd is chosen where there is none");
    if (find(all, line.op, line.pass))
        refuse(in, "the same pass of the same operation again");
    *add_line(all) = line;
}

static void read_file(const pn_run *run, struct pn_algorithms *all, FILE *stream)
{
    Reader in = {.path = all->path, .stream = stream};
    char batch[32];
    snprintf(batch, sizeof batch, "%lld", (long long)run->program->batch);
    expect(&in, "algorithms", "1");
    expect(&in, "program", run->program->name);
    expect(&in, "batch", batch);
    expect(&in, "library", pn_target_version());
    expect(&in, "isa", pn_target_isa());
    while (read_line(&in))
        read_op(&in, all);
}

void algorithms_open(pn_run *run, const char *path)
{
    struct pn_algorithms *all = run->algorithms = pn_alloc((int64_t)sizeof *all);
    all->path = path;
    FILE *stream = fopen(path, "r");
    if (stream) {
        read_file(run, all, stream);
        fclose(stream);
        return;
    }
    if (errno != ENOENT)
        pn_fail(NULL, "cannot read %s: %s", path, strerror(errno));
    const char *error = file_probe(path);
    if (error)
        pn_fail(NULL, "cannot write %s: %s", path, error);
    all->measures = true;
}

void algorithms_check(const pn_run *run)
{
    const struct pn_algorithms *all = run->algorithms;
    for (int i = 0; i < all->count; i++)
        if (!all->line[i].claimed)
            pn_fail(NULL, "%s:%d: %s has no %s of %s; remove the file to measure anew", all->path, all->line[i].line,
                    run->program->name, all->line[i].pass, all->line[i].op);
}

/* ---- for targets ---- */
const char *pn_algorithm_name(pn_algorithm algorithm)
{
    return algorithm_name[algorithm];
}

pn_algorithm pn_algorithm_of(pn_stage *stage, const char *op, const char *pass, bool possible, bool known_to_win)
{
    const struct pn_algorithms *all = stage->run->algorithms;
    if (!all)
        return known_to_win && !stage->run->exact ? PN_WINOGRAD : PN_DIRECT;
    if (all->measures)
        return PN_ALGORITHMS;
    AlgorithmLine *line = find(all, op, pass);
    if (!line)
        pn_fail(NULL, "%s has no line for the %s of %s; remove the file to measure anew", all->path, pass, op);
    if (line->choice == PN_WINOGRAD && !possible)
        pn_fail(NULL, "%s:%d: there is no winograd for the %s of %s", all->path, line->line, pass, op);
    line->claimed = true;
    return line->choice;
}

pn_algorithm pn_algorithm_measured(pn_stage *stage, const char *op, const char *pass, bool possible,
                                   const double *seconds)
{
    AlgorithmLine *line = find(stage->run->algorithms, op, pass);
    if (line) /* the other half of the stage has measured it */
        return line->choice;
    line = add_line(stage->run->algorithms);
    *line = (AlgorithmLine){.op = op, .pass = pass, .possible = possible};
    line->microseconds[PN_DIRECT] = 1e6 * seconds[PN_DIRECT];
    if (possible)
        line->microseconds[PN_WINOGRAD] = 1e6 * seconds[PN_WINOGRAD];
    if (possible && seconds[PN_WINOGRAD] * (1 + ALGORITHMS_GAIN) < seconds[PN_DIRECT])
        line->choice = PN_WINOGRAD;
    return line->choice;
}

/* ---- writing ---- */
void algorithms_write(const pn_run *run)
{
    const struct pn_algorithms *all = run->algorithms;
    NewFile file;
    const char *error = file_begin(&file, all->path);
    if (error)
        pn_fail(NULL, "cannot write %s: %s", all->path, error);
    fprintf(file.stream, "algorithms 1\nprogram %s\nbatch %lld\nlibrary %s\nisa %s\n", run->program->name,
            (long long)run->program->batch, pn_target_version(), pn_target_isa());
    for (int i = 0; i < all->count; i++) {
        const AlgorithmLine *line = &all->line[i];
        fprintf(file.stream, "op %s %s %s %.1f", line->op, line->pass, algorithm_name[line->choice],
                line->microseconds[PN_DIRECT]);
        if (line->possible)
            fprintf(file.stream, " %.1f\n", line->microseconds[PN_WINOGRAD]);
        else
            fprintf(file.stream, " -\n");
    }
    error = file_end(&file);
    if (error)
        pn_fail(NULL, "cannot write %s: %s", all->path, error);
}

void algorithms_tell(const pn_run *run)
{
    const struct pn_algorithms *all = run->algorithms;
    int chosen = 0, possible = 0;
    for (int i = 0; i < all->count; i++) {
        chosen += all->line[i].choice == PN_WINOGRAD;
        possible += all->line[i].possible;
    }
    if (possible == 0)
        printf("algorithms: all direct, %s has nothing else for these operations", pn_target_version());
    else
        printf("algorithms: winograd for %d passes of convolutions, direct for %d", chosen, all->count - chosen);
    printf(" (%s %s)\n", all->measures ? "measured, written to" : "as in", all->path);
}
