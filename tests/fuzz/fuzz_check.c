/* fuzz_check.c: libFuzzer entry: any text through every pass of `pnetc check`. Bounded by the compiler's own limits. */
#include <stdlib.h>

#include "place.h"
#include "plan.h"
#include "report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(Arena *arena, Diags *diags, Sources *sources, const char *text, size_t size)
{
    const SourceFile *file = source_add(arena, sources, "fuzz.pnet", text, size);
    const Ast *ast = parse(arena, diags, file);
    if (diag_errors(diags))
        return;
    Settings settings = {0};
    const Graph *written = lower(arena, diags, sources, ast, NULL, NULL, 0, &settings);
    if (!written)
        return;
    graph_check(written);
    CostModel model = {.hardware = hardware_find(arena, diags, sources, &settings, NULL),
                       .target = target_table[0],
                       .states = optimizer_states(&settings.train.optimizer)};
    if (!model.hardware)
        return;
    if (settings.pipeline.automatic.wanted)
        written = place_registers(arena, diags, written, &settings, &model);
    if (!written)
        return;
    const Graph *graph = fuse(arena, written);
    graph_check(graph);
    const Backward *back = backward(arena, graph);
    backward_check(back);
    const Pipe *pipe = pipe_cut(arena, diags, graph, back);
    if (!pipe)
        return;
    pipe_check(pipe);
    const Sched *sched = schedule(arena, diags, pipe, &settings);
    if (!sched)
        return;
    sched_check(sched);
    const Plan *plan = plan_memory(arena, diags, sched, target_table[0]);
    if (!plan)
        return;
    plan_check(plan);
    const Balance *balance = balance_judge(arena, plan, predict(arena, sched, &model), written, true);
    Text out = text_new(arena);
    report_check(balance, written, &out);
    report_check_json(balance, written, &out);
    plan_dump(plan, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    Sources sources = {0};
    Diags *diags = diags_new(arena, &sources);
    check(arena, diags, &sources, (const char *)data, size);
    FILE *sink = fopen("/dev/null", "w");
    if (!sink)
        abort();
    diags_render(diags, sink, true);
    if (fclose(sink))
        abort();
    arena_free(arena);
    return 0;
}
