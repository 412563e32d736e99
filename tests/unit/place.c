/* place.c: placement equals brute force over all cuts and replicas on random networks, by the solver's numbers, by the
 * prediction and by the plan; candidate cuts change nothing but where a stage ends; what is written back is what was
 * placed. Seeds are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lowered.h"
#include "place_brute.h"
#include "place_report.h"

static CostModel model_of(Lowered *l, int machine)
{
    return (CostModel){.hardware = hardware_builtin(l->arena, machine),
                       .target = target_table[0],
                       .states = optimizer_states(&l->settings.train.optimizer)};
}

/* A machine with two kinds of devices and links that hold up their ends, a slow one and a fast one. */
static const char two_kinds[] = "machine odd {\n device a { count = 2\n compute = 1 GFLOP/s\n bandwidth = 2 GB/s }\n"
                                " device b { count = 3\n compute = 3 GFLOP/s\n bandwidth = 2 GB/s\n overhead = 1 us }\n"
                                " link x { bandwidth = 20 MB/s\n latency = 1 us\n overlap = no }\n"
                                " link y { bandwidth = 2 MB/s\n latency = 1 us\n overlap = yes }\n}\n";

static void networks_equal_brute_force(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new();
        const char *net = random_net(arena, seed, 4 + (int)(seed % 12), 0);
        Lowered *l = lowered(arena_printf(arena, "%s%s", net, two_kinds));
        Graph graph = *l->graph;
        graph.batch = seed % 4 < 2 ? 12 : 2;
        CostModel model = model_of(l, (int)(seed % 2));
        if (seed % 3 == 0)
            model.hardware = hardware_find(l->arena, l->diags, &l->sources, &l->settings, NULL);
        assert_non_null(model.hardware);
        const AutoRegisters wishes = {.max_stale = -1, .workers = 5};
        Placing *p = placing_new(l->arena, l->diags, &graph, &l->settings, &model, &wishes);
        assert_non_null(p);
        for (int nstages = 1; nstages <= MOST_STAGES && nstages <= p->n && p->n <= MOST_N; nstages++) {
            expect_placed(p, nstages, nstages, seed);
            if (nstages <= 3)
                expect_placed(p, nstages, 5, seed);
        }
        arena_free(l->arena);
        arena_free(arena);
    }
}

/* The slowest stage as predicted, of each cut into two or three stages and all replicas on up to four workers. */
static void replicas_equal_brute_force_by_prediction(void **state)
{
    (void)state;
    int replicated = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 4 + (int)(seed % 3), 0));
        Graph graph = *l->graph;
        graph.batch = 12;
        const CostModel model = model_of(l, 0);
        const AutoRegisters wishes = {.max_stale = -1, .workers = 4};
        Placing *p = placing_new(l->arena, l->diags, &graph, &l->settings, &model, &wishes);
        for (int nstages = 1; nstages <= 3 && nstages <= p->n; nstages++) {
            double least = 1e30;
            for (int code = 0; code < p->n * p->n * 64; code++) {
                const int a = code % p->n, b = code / p->n % p->n, r = code / p->n / p->n;
                int replicas[] = {1 + r % 4, 1 + r / 4 % 4, 1 + r / 16};
                int workers = 0;
                for (int s = 0; s < nstages; s++)
                    workers += replicas[s];
                if (nstages == 3 ? a < 1 || b <= a : b > 0 || (nstages == 2) != (a > 0))
                    continue;
                if (workers > 4 || (nstages < 3 && replicas[2] > 1) || (nstages < 2 && replicas[1] > 1))
                    continue;
                const Cut cut[2] = {{p->low[a], {0, 0}}, {p->low[b], {0, 0}}};
                graph.replicas = replicas;
                graph.nreplicas = nstages;
                Arena *scratch = arena_new();
                const Candidate c = candidate(scratch, l->diags, &graph, cut, nstages - 1, &l->settings, &model);
                assert_non_null(c.plan);
                double load = c.prediction->most;
                for (int s = 0; s + 1 < nstages; s++) {
                    const double link = c.prediction->stage[s].give + c.prediction->stage[s].back;
                    load = link > load ? link : load;
                }
                least = load < least ? load : least;
                arena_free(scratch);
                graph.replicas = NULL;
                graph.nreplicas = 0;
            }
            const Placement placed = placing_solve(p, nstages, 4);
            assert_int_equal(placed.ncuts, nstages - 1);
            if (!(placed.load > least - 1e-9 && placed.load < least + 1e-9))
                fail_msg("seed %llu, %d stages: %.9g s, brute force %.9g s", (unsigned long long)seed, nstages,
                         placed.load, least);
            replicated += placed.workers > nstages;
        }
        arena_free(l->arena);
        arena_free(arena);
    }
    print_message("# %d placements with replicas\n", replicated);
    assert_true(replicated > 12);
}

/* What the solver adds up is what the pipeline's stages take: the load is the slowest stage of the prediction, and with
 * enough slots the simulated step is not shorter. */
static void loads_are_those_of_the_stages(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Arena *arena = arena_new();
        const char *schedule = seed % 4 ? "stale" : "features_replay"; /* makes values again */
        Lowered *l =
            lowered(arena_printf(arena, "%spipeline { schedule = %s }\n", random_net(arena, seed, 12, 0), schedule));
        const CostModel model = model_of(l, 0);
        Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, NULL);
        for (int nstages = 1; nstages <= 4 && nstages <= p->n; nstages++) {
            const Placement placed = placing_solve(p, nstages, nstages);
            const Candidate c = candidate(l->arena, l->diags, l->graph, placed.cut, placed.ncuts, &l->settings, &model);
            assert_non_null(c.plan);
            assert_int_equal(c.plan->sched->pipe->graph->nnodes, p->graph->nnodes);
            const double slack = 1e-9;
            if (c.prediction->most > placed.load + slack || c.prediction->step < placed.load - slack)
                fail_msg("seed %llu, %d stages: load %g, slowest stage %g, step %g", (unsigned long long)seed, nstages,
                         placed.load, c.prediction->most, c.prediction->step);
            double work = 0;
            for (int s = 0; s < nstages; s++)
                work += stage_time(&c.prediction->stage[s]);
            assert_true(c.prediction->one_worker - work < slack &&
                        (seed % 4 == 0 || work - c.prediction->one_worker < slack));
            if (seed % 4 == 0 && nstages > 1)
                assert_true(c.prediction->most > placed.load - slack && work > c.prediction->one_worker);
        }
        arena_free(l->arena);
        arena_free(arena);
    }
}

/* A register at any one candidate leaves the nodes as they are. */
static void candidates_split_no_fused_node(void **state)
{
    (void)state;
    int tried = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 16, 0));
        const CostModel model = model_of(l, 0);
        const Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, NULL);
        for (int b = 1; b < p->n; b++) {
            Graph with = *l->graph;
            Cut cut = {p->low[b], {0, 0}};
            with.cut = &cut;
            with.ncuts = 1;
            const Graph *fused = fuse(l->arena, &with);
            if (fused->nnodes != p->graph->nnodes)
                fail_msg("seed %llu: a register %s gives %d nodes, not %d", (unsigned long long)seed,
                         placing_cut_text(l->arena, l->graph, p->low[b]), fused->nnodes, p->graph->nnodes);
            assert_int_equal(fused->cut[0].before, p->at[b]);
            for (NodeId i = 0; i < fused->nnodes; i++)
                assert_ptr_equal(fused->node[i].name, p->graph->node[i].name);
            tried++;
        }
        arena_free(l->arena);
        arena_free(arena);
    }
    assert_true(tried > 500);
}

/* The solver's memory is a lower bound of the plan's. */
static void memory_is_bounded_from_below(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 12, 3));
        const CostModel model = model_of(l, 0);
        AutoRegisters wishes = {.max_stale = -1, .least_memory = true};
        Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, &wishes);
        for (int nstages = 2; nstages <= 4 && nstages <= p->n; nstages++) {
            const Placement least = placing_solve(p, nstages, nstages);
            assert_int_equal(least.ncuts, nstages - 1);
            const Outcome o = outcome(l->graph, least.cut, least.ncuts, &l->settings, &model);
            assert_true(o.legal);
            /* With a cap a byte below what this placement needs, none or another one is found; with it, one is. */
            AutoRegisters capped = {.max_stale = -1, .memory = o.most_bytes};
            Placing *q = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, &capped);
            const Placement under = placing_solve(q, nstages, nstages);
            assert_int_equal(under.ncuts, nstages - 1);
            assert_true(outcome(l->graph, under.cut, under.ncuts, &l->settings, &model).most_bytes <= o.most_bytes);
        }
        arena_free(l->arena);
        arena_free(arena);
    }
}

/* The plan's own bytes of every pair of cuts: the smallest largest stage is the one that minimize = memory finds, and
 * under a cap and a balance the solver finds the least load of all placements that keep both. */
static void limits_equal_brute_force_by_the_plan(void **state)
{
    (void)state;
    int tried = 0, none = 0;
    for (uint64_t seed = 1; seed <= 14; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 8, 3));
        const CostModel model = model_of(l, 0);
        AutoRegisters wishes = {.max_stale = -1, .least_memory = true};
        Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, &wishes);
        if (p->n < 3 || p->n > MOST_N)
            continue;
        int64_t least = INT64_MAX, bytes[MOST_N][MOST_N];
        double ratio[MOST_N][MOST_N];
        for (int a = 1; a < p->n; a++)
            for (int b = a + 1; b < p->n; b++) {
                const Cut cut[2] = {{p->low[a], {0, 0}}, {p->low[b], {0, 0}}};
                const Outcome o = outcome(l->graph, cut, 2, &l->settings, &model);
                assert_true(o.legal);
                bytes[a][b] = o.most_bytes;
                ratio[a][b] = o.balance;
                least = o.most_bytes < least ? o.most_bytes : least;
            }
        const Placement smallest = placing_solve(p, 3, 3);
        assert_int_equal(smallest.ncuts, 2);
        assert_int_equal(outcome(l->graph, smallest.cut, 2, &l->settings, &model).most_bytes, least);
        for (int k = 0; k < 4; k++) {
            AutoRegisters limits = {
                .max_stale = -1, .memory = least + least * k / 8, .balance = k == 3 ? 0 : 1.2 + 0.4 * k};
            Placing *q = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, &limits);
            const Placement found = placing_solve(q, 3, 3);
            const int64_t *work = q->work[0][0];
            int64_t best = INT64_MAX;
            for (int a = 1; a < q->n; a++)
                for (int b = a + 1; b < q->n; b++) {
                    const int64_t part[3] = {work[a], work[b] - work[a], work[q->n] - work[b]};
                    const int64_t most = part[0] > part[1] ? part[0] : part[1];
                    const int64_t load = part[2] > most ? part[2] : most;
                    if (bytes[a][b] <= limits.memory && (limits.balance == 0 || ratio[a][b] <= limits.balance))
                        best = load < best ? load : best;
                }
            tried++;
            none += best == INT64_MAX;
            assert_int_equal(found.ncuts, best == INT64_MAX ? -1 : 2);
            if (best < INT64_MAX)
                assert_true(llabs(best - (int64_t)(found.load * q->scale + 0.5)) <= 1);
        }
        arena_free(l->arena);
        arena_free(arena);
    }
    print_message("# %d problems, %d without a solution\n", tried, none);
    assert_true(tried > 20 && none > 3);
}

/* What --write makes of a random network, with registers before or without, is canonical and has the registers. */
static void registers_are_written_back(void **state)
{
    (void)state;
    int statements = 0, settings = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Arena *arena = arena_new();
        const char *text = random_net(arena, seed, 12, (int)(seed % 3));
        Lowered *l = lowered(text);
        const CostModel model = model_of(l, 0);
        Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, NULL);
        for (int nstages = 1; nstages <= 4 && nstages <= p->n; nstages++) {
            const Placement placed = placing_solve(p, nstages, nstages);
            const SourceFile *file = source_add(l->arena, &l->sources, "again.pnet", text, strlen(text));
            const Ast *ast = parse(l->arena, l->diags, file);
            bool by_setting = false;
            const char *written =
                place_write(l->arena, l->diags, &l->sources, ast, l->graph, &placed, NULL, 0, &by_setting);
            if (!written)
                fail_msg("seed %llu, %d stages: not written", (unsigned long long)seed, nstages);
            *(by_setting ? &settings : &statements) += 1;
            Lowered *again = lowered(written);
            assert_int_equal(again->graph->ncuts, placed.ncuts);
            for (int i = 0; i < placed.ncuts; i++)
                assert_int_equal(again->graph->cut[i].before, placed.cut[i].before);
            assert_string_equal(graph_hash(again->arena, again->graph), graph_hash(l->arena, l->graph));
            Text formatted = text_new(again->arena);
            const SourceFile *canonical = source_add(again->arena, &again->sources, "c", written, strlen(written));
            format(parse(again->arena, again->diags, canonical), &formatted);
            assert_string_equal(formatted.data, written);
            arena_free(again->arena);
        }
        arena_free(l->arena);
        arena_free(arena);
    }
    print_message("# %d written as statements, %d as a setting\n", statements, settings);
    assert_true(statements > 20 && settings > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_equal_brute_force),
        cmocka_unit_test(replicas_equal_brute_force_by_prediction),
        cmocka_unit_test(loads_are_those_of_the_stages),
        cmocka_unit_test(candidates_split_no_fused_node),
        cmocka_unit_test(memory_is_bounded_from_below),
        cmocka_unit_test(registers_are_written_back),
        cmocka_unit_test(limits_equal_brute_force_by_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
