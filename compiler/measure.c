/* measure.c: builds and runs a program with stopwatches, reads what it wrote (runtime/core/profile.c), writes profiles.
 */
#include "measure.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "build.h"
#include "emit.h"

/* On a device the host only begins an operation, and this machine may have none. */
static bool runs_here(Diags *diags, const Plan *plan)
{
    if (!plan->target->device)
        return true;
    diag_error(diags, P0713, (Span){0}, "programs for target %s cannot be measured", plan->target->name);
    diag_hint(diags, "measure target cpu; the profiler of the device's maker measures this one");
    return false;
}

char *measure_build(Arena *arena, Diags *diags, const char *self, const Plan *plan)
{
    if (!runs_here(diags, plan))
        return NULL;
    const Files files = emit(arena, diags, plan);
    char *folder = diag_errors(diags) ? NULL : temporary_folder(arena, diags);
    if (!folder)
        return NULL;
    const char *given = getenv("CFLAGS"); /* of the generated Makefile; for our child only, we are at our end */
    const char *flags = arena_printf(arena, "%s -DPN_PROFILE", given && *given ? given : "-O3 -march=native");
    if (!setenv("CFLAGS", flags, 1) && write_files(arena, diags, folder, &files) &&
        build_program(arena, diags, self, folder, true))
        return folder;
    remove_folder(folder);
    return NULL;
}

void measure_layouts(Arena *arena, Diags *diags, const char *self, const Plan *plan, Text *out)
{
    if (!runs_here(diags, plan))
        return;
    const Files files = emit(arena, diags, plan);
    char *folder = diag_errors(diags) ? NULL : temporary_folder(arena, diags);
    if (!folder)
        return;
    if (write_files(arena, diags, folder, &files) && build_program(arena, diags, self, folder, true)) {
        const char *name = plan->sched->pipe->graph->name;
        Text said = text_new(arena);
        char *argv[] = {arena_printf(arena, "%s/%s", folder, name), arena_printf(arena, "--layouts"), NULL};
        const int code = run_captured(argv, &said, NULL);
        if (code) {
            diag_error(diags, P0713, (Span){0}, "%s was built and cannot be asked for its layouts: exit code %d", name,
                       code);
            diag_note(diags, (Span){0}, "it said:\n%s", said.length ? said.data : "nothing");
        } else {
            text_printf(out, "\n%s", said.data);
        }
    }
    remove_folder(folder);
}

/* ---- reading ---- */

static bool read_passes(const char *text, Microseconds *pass)
{
    int used = 0;
    return sscanf(text, " %lf %lf %lf %lf %lf %lf%n", &pass[0].middle, &pass[0].least, &pass[1].middle, &pass[1].least,
                  &pass[2].middle, &pass[2].least, &used) == 6 &&
           !text[used];
}

/* One line; false: it is none that we know. */
static bool read_line(Arena *arena, char *line, Measurement *m, int room)
{
    int used = 0, stage = 0;
    long long steps = 0;
    if (!strncmp(line, "versions ", 9)) {
        m->library = arena_text(arena, line + 9, strlen(line + 9));
    } else if (sscanf(line, "steps %lld", &steps) == 1) {
        m->steps = steps;
    } else if (sscanf(line, "node %d %n", &stage, &used) == 1 && used) {
        const size_t length = strcspn(line + used, " ");
        MeasuredNode *node = &m->node[m->nnodes++];
        node->name = arena_text(arena, line + used, length);
        node->stage = stage;
        return m->nnodes <= room && read_passes(line + used + length, node->pass);
    } else if (sscanf(line, "stage %d%n", &stage, &used) == 1 && stage >= 0 && stage < m->nstages) {
        return read_passes(line + used, m->stage[stage]);
    } else if (sscanf(line, "handover %lf", &m->handover) != 1) {
        return !strcmp(line, "measured 1");
    }
    return true;
}

static Measurement *read_file(Arena *arena, const char *path, const Plan *plan)
{
    const Pipe *pipe = plan->sched->pipe;
    const int room = pipe->graph->nnodes;
    Measurement *m = arena_alloc(arena, sizeof *m);
    m->handover = -1;
    m->node = arena_alloc(arena, sizeof *m->node * (size_t)(room + 1));
    m->nstages = pipe->nstages;
    m->stage = arena_alloc(arena, sizeof *m->stage * (size_t)pipe->nstages);
    FILE *file = fopen(path, "r");
    char line[1024];
    bool good = file != NULL;
    while (good && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        good = read_line(arena, line, m, room);
    }
    if (file)
        fclose(file);
    return good && m->library && m->nnodes > 0 ? m : NULL;
}

const Measurement *measure_run(Arena *arena, Diags *diags, const char *folder, const Plan *plan, bool busy, int steps,
                               char **options)
{
    enum { SHOWN = 2000, COLD = 4 }; /* profile.c leaves the first ones out */
    const char *name = plan->sched->pipe->graph->name, *times = arena_printf(arena, "%s/times", folder);
    VEC(char *) argv = {0};
    char *fixed[] = {arena_printf(arena, "%s/%s", folder, name),
                     arena_printf(arena, "%s", times),
                     arena_printf(arena, "--steps=%d", steps + COLD),
                     "--eval-every=0",
                     "--allow-divergence", /* only times count */
                     "--quiet",
                     busy ? "--transport=threads" : "--transport=serial"};
    for (int i = 0; i < COUNT(fixed); i++)
        *vec_push(arena, &argv) = fixed[i];
    for (int i = 0; options && options[i]; i++)
        *vec_push(arena, &argv) = options[i];
    *vec_push(arena, &argv) = NULL;
    Text said = text_new(arena);
    const int code = run_captured(argv.at, &said, NULL);
    Measurement *m = code ? NULL : read_file(arena, times, plan);
    remove(times);
    if (m) {
        m->steps -= COLD;
        return m;
    }
    diag_error(diags, P0713, (Span){0}, "the program for measuring %s ended with exit code %d", name, code);
    if (said.length)
        diag_note(diags, (Span){0}, "the end of what it said:\n%s",
                  said.data + (said.length > SHOWN ? said.length - SHOWN : 0));
    return NULL;
}

/* ---- writing ---- */

static void stage_comments(Text *out, const char *how, const Measurement *m)
{
    for (int s = 0; s < m->nstages; s++)
        text_printf(out, "# stage %d, %s: forward %.1f us, backward %.1f us, update %.1f us\n", s, how,
                    m->stage[s][PASS_FORWARD].middle, m->stage[s][PASS_BACKWARD].middle,
                    m->stage[s][PASS_UPDATE].middle);
}

static void node_lines(Text *out, const char *before, const Measurement *m, bool least)
{
    for (int i = 0; i < m->nnodes; i++) {
        const MeasuredNode *node = &m->node[i];
        text_printf(out, "%s%-24s", before, node->name);
        for (int pass = 0; pass < PASSES; pass++)
            text_printf(out, " %12.3f", least ? node->pass[pass].least : node->pass[pass].middle);
        text_printf(out, "\n");
    }
}

void profile_write(Text *out, const Graph *written, const Plan *plan, const char *machine, const Measurement *idle,
                   const Measurement *busy, bool idle_lines)
{
    static const char idle_text[] = "other workers idle", busy_text[] = "all workers busy";
    const Measurement *shown = idle_lines || !busy ? idle : busy, *other = shown == idle ? busy : idle;
    text_printf(out, "pnet profile 1\n");
    text_printf(out, "network  %s\n", written->name);
    text_printf(out, "graph    %s\n", graph_hash(out->arena, written));
    text_printf(out, "batch    %lld\n", (long long)written->batch);
    text_printf(out, "target   %s\n", plan->target->name);
    text_printf(out, "machine  %s\n", machine);
    if (plan->sched->settings->pipeline.threads > 1)
        text_printf(out, "threads  %lld\n", (long long)plan->sched->settings->pipeline.threads);
    text_printf(out, "versions pnetc %s, %s\n", PNETC_VERSION, shown->library);
    if (busy && busy->handover >= 0)
        text_printf(out, "handover %.1f\n", busy->handover);
    text_printf(out,
                "\n# Measured on %s: %lld minibatches, %d stage%s. A line is a node and its times in the middle fifth "
                "of them, in us:\n",
                date_today(out->arena), (long long)shown->steps, shown->nstages, shown->nstages == 1 ? "" : "s");
    text_printf(out, "# its forward, its backward, its share of its stage's update; %s.\n",
                shown == idle ? idle_text : busy_text);
    node_lines(out, "", shown, false);
    text_printf(
        out, "\n# whole steps of the stages, with data and registers; the time that other programs take is left out\n");
    stage_comments(out, idle_text, idle);
    if (busy)
        stage_comments(out, busy_text, busy);
    text_printf(out, "\n# the least, %s\n", shown == idle ? idle_text : busy_text);
    node_lines(out, "# ", shown, true);
    if (other) {
        text_printf(out, "\n# in the middle, %s\n", other == idle ? idle_text : busy_text);
        node_lines(out, "# ", other, false);
    }
}

/* ---- where and when ---- */

const char *machine_name(Arena *arena)
{
    static const char key[] = "model name";
    char line[512];
    const char *model = "machine";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) || !colon)
            continue;
        model = arena_text(arena, colon + 1, strlen(colon + 1));
        break;
    }
    if (file)
        fclose(file);
    Text name = text_new(arena);
    for (const char *c = model; *c && *c != '@'; c++)
        if (isalnum((unsigned char)*c))
            text_printf(&name, "%c", tolower((unsigned char)*c));
        else if (name.length && name.data[name.length - 1] != '_')
            text_append(&name, "_", 1);
    while (name.length && name.data[name.length - 1] == '_')
        name.data[--name.length] = '\0';
    if (!name.length || isdigit((unsigned char)name.data[0]))
        return arena_printf(arena, "machine%s%s", name.length ? "_" : "", name.length ? name.data : "");
    return name.data;
}

const char *date_today(Arena *arena)
{
    const time_t now = time(NULL);
    char text[32] = "an unknown day";
    struct tm local;
    if (localtime_r(&now, &local) && !strftime(text, sizeof text, "%Y-%m-%d", &local))
        return "an unknown day";
    return arena_text(arena, text, strlen(text));
}
