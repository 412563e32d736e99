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
    line.choice = kept(next_word(in));
    line.microseconds[0] = read_time(in, next_word(in));
    const char *winograd = next_word(in);
    line.possible = strcmp(winograd, "-") != 0;
    if (line.possible)
        line.microseconds[1] = read_time(in, winograd);
    if (*in->at)
        refuse(in, "there is too much on the line");
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
    expect(&in, "isa", pn_target_isa(run));
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
    for (int i = 0; i < all->count && !run->world; i++)
        if (!all->line[i].claimed)
            pn_fail(NULL, "%s:%d: %s has no %s of %s; remove the file to measure anew", all->path, all->line[i].line,
                    run->program->name, all->line[i].pass, all->line[i].op);
}

/* ---- for targets ---- */
const char *pn_algorithm_name(pn_algorithm algorithm)
{
    return algorithm_name[algorithm];
}

static _Noreturn void refuse_line(const struct pn_algorithms *all, const AlgorithmLine *line, const char *why)
{
    pn_fail(NULL, "%s:%d: %s; remove the file to measure anew", all->path, line->line, why);
}

static const AlgorithmLine *claim(struct pn_algorithms *all, const char *op, const char *pass)
{
    AlgorithmLine *line = find(all, op, pass);
    if (!line)
        pn_fail(NULL, "%s has no line for the %s of %s; remove the file to measure anew", all->path, pass, op);
    line->claimed = true;
    return line;
}

/* Notes a measurement; true: the other way is taken. */
static bool note(struct pn_algorithms *all, AlgorithmLine line, const char *const *choice, const double *seconds)
{
    const bool takes_other = line.possible && seconds[1] * (1 + ALGORITHMS_GAIN) < seconds[0];
    line.microseconds[0] = 1e6 * seconds[0];
    if (line.possible)
        line.microseconds[1] = 1e6 * seconds[1];
    line.choice = kept(choice[takes_other]);
    *add_line(all) = line;
    return takes_other;
}

pn_algorithm pn_algorithm_of(pn_stage *stage, const char *op, const char *pass, bool possible, bool known_to_win)
{
    struct pn_algorithms *all = stage->run->algorithms;
    if (!all)
        return known_to_win && !stage->run->arithmetic.exact ? PN_WINOGRAD : PN_DIRECT;
    if (all->measures)
        return PN_ALGORITHMS;
    const AlgorithmLine *line = claim(all, op, pass);
    pn_algorithm choice = PN_DIRECT;
    while (choice < PN_ALGORITHMS && strcmp(algorithm_name[choice], line->choice) != 0)
        choice++;
    if (choice == PN_ALGORITHMS)
        refuse_line(all, line, "the algorithm is neither 'direct' nor 'winograd'");
    if (choice == PN_WINOGRAD && !line->possible)
        refuse_line(all, line, "winograd is chosen where there is none");
    if (choice == PN_WINOGRAD && !possible)
        pn_fail(NULL, "%s:%d: there is no winograd for the %s of %s", all->path, line->line, pass, op);
    return choice;
}

pn_algorithm pn_algorithm_measured(pn_stage *stage, const char *op, const char *pass, bool possible,
                                   const double *seconds)
{
    const AlgorithmLine line = {.op = op, .pass = pass, .possible = possible};
    const AlgorithmLine *before = find(stage->run->algorithms, op, pass);
    if (before) /* the other half of the stage has measured it */
        return strcmp(before->choice, algorithm_name[PN_WINOGRAD]) == 0 ? PN_WINOGRAD : PN_DIRECT;
    return note(stage->run->algorithms, line, algorithm_name, seconds) ? PN_WINOGRAD : PN_DIRECT;
}

const char *pn_engine_of(pn_stage *stage, const char *op, const char *pass)
{
    struct pn_algorithms *all = stage->run->algorithms;
    if (!all)
        return NULL;
    all->engines = true;
    return all->measures ? "" : claim(all, op, pass)->choice;
}

void pn_engine_refuse(pn_stage *stage, const char *op, const char *pass, const char *why)
{
    struct pn_algorithms *all = stage->run->algorithms;
    refuse_line(all, claim(all, op, pass), why);
}

bool pn_engine_measured(pn_stage *stage, const char *op, const char *pass, const char *first, const char *other,
                        const double *seconds)
{
    const AlgorithmLine line = {.op = op, .pass = pass, .possible = other != NULL};
    return note(stage->run->algorithms, line, (const char *const[]){first, other}, seconds);
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
            (long long)run->program->batch, pn_target_version(), pn_target_isa(run));
    for (int i = 0; i < all->count; i++) {
        const AlgorithmLine *line = &all->line[i];
        fprintf(file.stream, "op %s %s %s %.1f", line->op, line->pass, line->choice, line->microseconds[0]);
        if (line->possible)
            fprintf(file.stream, " %.1f\n", line->microseconds[1]);
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
        chosen += strcmp(all->line[i].choice, algorithm_name[PN_WINOGRAD]) == 0;
        possible += all->line[i].possible;
    }
    if (all->engines)
        printf("algorithms: an engine of %s for each of %d passes", pn_target_version(), all->count);
    else if (possible == 0)
        printf("algorithms: all direct, %s has nothing else for these operations", pn_target_version());
    else
        printf("algorithms: winograd for %d passes of convolutions, direct for %d", chosen, all->count - chosen);
    printf(" (%s %s)\n", all->measures ? "measured, written to" : "as in", all->path);
}
