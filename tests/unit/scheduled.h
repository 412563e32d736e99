/* scheduled.h: for tests of schedules: settings and hand-made pipes, without a network. */
#ifndef TEST_SCHEDULED_H
#define TEST_SCHEDULED_H

#include <string.h>

#include "sched.h"

enum { MOST_EDGES = 4096 };

typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
    Settings settings;
} Bench;

static inline const OrderDef *order_of(const char *name)
{
    for (int i = 0; i < order_count; i++)
        if (!strcmp(order_table[i]->name, name))
            return order_table[i];
    return NULL;
}

static inline const RuleDef *rule_of(const char *name)
{
    for (int i = 0; i < rule_count; i++)
        if (!strcmp(rule_table[i]->name, name))
            return rule_table[i];
    return NULL;
}

static inline void add_phase(Bench *bench, const char *order, const char *rule, int64_t minibatches)
{
    Pipeline *pipeline = &bench->settings.pipeline;
    pipeline->phase[pipeline->nphases++] =
        (PhaseChoice){.order = order_of(order), .rule = rule_of(rule), .preset = order, .minibatches = minibatches};
}

static inline Bench *bench_new(void)
{
    Arena *arena = arena_new();
    Bench *bench = arena_alloc(arena, sizeof *bench);
    bench->arena = arena;
    bench->diags = diags_new(arena, &bench->sources);
    return bench;
}

/* A pipe with one register per cut, or random ones with delay lines when `seed` is not 0. Each value is a node of its
 * own. */
static inline Pipe *make_pipe(Arena *arena, int nstages, uint64_t seed)
{
    Graph *graph = arena_alloc(arena, sizeof *graph);
    Pipe *pipe = arena_alloc(arena, sizeof *pipe);
    const int per_stage = seed ? 3 : 1;
    graph->name = "test";
    graph->microbatches = 1;
    graph->nnodes = nstages * per_stage;
    graph->node = arena_alloc(arena, sizeof(Node) * (size_t)graph->nnodes);
    for (int v = 0; v < graph->nnodes; v++)
        graph->node[v].value_name = graph->node[v].name = arena_printf(arena, "v%d", v);
    pipe->graph = graph;
    pipe->nstages = nstages;
    pipe->stage = arena_alloc(arena, sizeof(Stage) * (size_t)nstages);
    pipe->edge = arena_alloc(arena, sizeof(Edge) * MOST_EDGES);
    uint64_t state = seed * 0x9e3779b97f4a7c15u;
    int *reach = arena_alloc(arena, sizeof(int) * (size_t)graph->nnodes);
    bool *gradient = arena_alloc(arena, sizeof(bool) * (size_t)graph->nnodes);
    for (int v = 0; v < graph->nnodes; v++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int stage = v / per_stage;
        reach[v] = !seed ? stage + 1 : stage + (int)((state >> 33) % 4);
        gradient[v] = !seed || (state >> 40) % 4 != 0;
    }
    for (int s = 0; s < nstages; s++) {
        pipe->stage[s].params = 100 * (s + 1);
        for (int v = 0; v < graph->nnodes && s + 1 < nstages; v++) {
            const int made = v / per_stage;
            if (made > s || reach[v] <= s)
                continue;
            state = state * 6364136223846793005u + 1442695040888963407u;
            const unsigned bits = (unsigned)(state >> 40);
            const bool last = reach[v] == s + 1 || s + 2 == nstages, reads = last || bits & 1;
            assert_true(pipe->nedges < MOST_EDGES);
            pipe->edge[pipe->nedges++] = (Edge){.value = v,
                                                .from = s,
                                                .gradient = gradient[v],
                                                .read_forward = reads,
                                                .kept_consumer = reads && (!seed || bits & 2),
                                                .kept_producer = seed && made == s && bits & 4,
                                                .bytes = 4};
        }
    }
    return pipe;
}

/* mapping = split */
static inline void halve(Pipe *pipe)
{
    for (int s = 0; s + 1 < pipe->nstages; s++)
        pipe->stage[s].halves = true;
}

static inline Sched *scheduled(Bench *bench, const Pipe *pipe)
{
    Sched *sched = schedule(bench->arena, bench->diags, pipe, &bench->settings);
    if (sched)
        sched_check(sched);
    return sched;
}

#endif
