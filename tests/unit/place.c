/* place.c: placement equals brute force over all cuts, on random numbers and on random networks, under every kind of
 * limit; candidate cuts change nothing but where a stage ends; long chains are placed in time. Seeds are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "lowered.h"
#include "place_report.h"

enum { MOST_N = 24, MOST_STAGES = 5 };

/* ---- brute force ---- */

typedef struct {
    int64_t load;
    int cut[MOST_STAGES];
} Best;

/* Fewer weights before the last register, then a lower one, then a lower one before it, ... */
static bool better(const PlaceInput *in, const int *a, const int *b)
{
    for (int i = in->nstages - 2; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

static void try_all(const PlaceInput *in, int *cut, int next, Best *best)
{
    if (next == in->nstages - 1) {
        const int64_t load = place_load(in, cut);
        if (load >= 0 && (best->load < 0 || load < best->load || (load == best->load && better(in, cut, best->cut)))) {
            best->load = load;
            memcpy(best->cut, cut, sizeof best->cut);
        }
        return;
    }
    for (int p = next ? cut[next - 1] + 1 : 1; p < in->n; p++) {
        cut[next] = p;
        try_all(in, cut, next + 1, best);
    }
}

static Best brute_force(const PlaceInput *in)
{
    Best best = {.load = -1};
    int cut[MOST_STAGES] = {0};
    try_all(in, cut, 0, &best);
    return best;
}

static void expect_equal(const PlaceInput *in, uint64_t seed)
{
    int cut[MOST_STAGES] = {0};
    const int64_t load = place_solve(in, cut);
    const Best best = brute_force(in);
    if (load != best.load)
        fail_msg("seed %llu: load %lld, brute force %lld", (unsigned long long)seed, (long long)load,
                 (long long)best.load);
    assert_int_equal(place_possible(in), best.load >= 0);
    if (load < 0)
        return;
    assert_int_equal(place_load(in, cut), load);
    for (int i = 0; i + 1 < in->nstages; i++)
        if (cut[i] != best.cut[i])
            fail_msg("seed %llu: cut %d at %d, brute force %d", (unsigned long long)seed, i, cut[i], best.cut[i]);
}

/* ---- random numbers ---- */

static int below(uint64_t seed, uint64_t *counter, int n)
{
    return (int)(pn_random(seed, (*counter)++) % (uint64_t)n);
}

static void random_numbers_equal_brute_force(void **state)
{
    (void)state;
    int possible = 0, impossible = 0;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        const uint64_t key = pn_key(seed, "place");
        uint64_t at = 0;
        int64_t work[2][MOST_N + 1] = {{0}}, transfer[2][MOST_N + 1] = {{0}};
        int64_t stale[MOST_N + 1] = {0}, saved[MOST_N + 1] = {0}, before[MOST_N + 1] = {0}, weights[MOST_N + 1] = {0};
        int64_t memory[MOST_STAGES];
        int ring[MOST_STAGES], copies[MOST_STAGES];
        bool pin[MOST_N + 1] = {false}, overlap[MOST_STAGES];
        const int64_t *works[MOST_STAGES], *transfers[MOST_STAGES];
        PlaceInput in = {.n = 1 + below(key, &at, 14), .nstages = 1 + below(key, &at, MOST_STAGES)};
        if (seed % 50 == 0)
            in.n = MOST_N;
        for (int b = 1; b <= in.n; b++) {
            for (int k = 0; k < 2; k++) {
                work[k][b] = work[k][b - 1] + below(key, &at, 4) * below(key, &at, 30);
                transfer[k][b] = below(key, &at, 40);
            }
            stale[b] = stale[b - 1] + below(key, &at, 3) * below(key, &at, 10);
            saved[b] = saved[b - 1] + below(key, &at, 20);
            weights[b] = weights[b - 1] + below(key, &at, 10);
            before[b] = saved[b] + below(key, &at, 15);
            before[b] = before[b] > before[b - 1] ? before[b] : before[b - 1];
        }
        const bool capped = below(key, &at, 3) == 0;
        for (int s = 0; s < in.nstages; s++) {
            works[s] = work[below(key, &at, 2)];
            transfers[s] = transfer[below(key, &at, 2)];
            overlap[s] = below(key, &at, 2);
            ring[s] = 1 + 2 * (in.nstages - 1 - s);
            copies[s] = 2 + below(key, &at, 3);
            memory[s] = capped ? 20 + below(key, &at, 400) : -1;
        }
        for (int i = below(key, &at, 3); i > 1 && in.n > 1; i--)
            pin[1 + below(key, &at, in.n - 1)] = true;
        in.work = works;
        in.transfer = transfers;
        in.overlap = overlap;
        in.stale = stale;
        in.most_stale = below(key, &at, 3) ? -1 : below(key, &at, (int)stale[in.n] + 1);
        in.pin = pin;
        in.saved = saved;
        in.saved_before = before;
        in.weights = weights;
        in.ring = ring;
        in.copies = copies;
        in.memory = memory;
        int64_t most_work[MOST_STAGES];
        for (int s = 0; s < in.nstages; s++) /* between the mean and twice that of one kind of device */
            most_work[s] = work[0][in.n] / in.nstages + below(key, &at, (int)(work[0][in.n] / in.nstages) + 1);
        in.most_work = below(key, &at, 3) ? NULL : most_work;
        PlaceBan ban[4];
        for (int i = below(key, &at, 5); i > 0; i--)
            ban[in.nbans++] = (PlaceBan){below(key, &at, in.nstages), below(key, &at, in.n), 1 + below(key, &at, in.n)};
        in.ban = ban;
        expect_equal(&in, seed);
        *(brute_force(&in).load < 0 ? &impossible : &possible) += 1;
    }
    print_message("# %d possible, %d impossible problems\n", possible, impossible);
    assert_true(possible > 600 && impossible > 100);
}

/* ---- networks ---- */

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
        CostModel model = model_of(l, (int)(seed % 2));
        if (seed % 3 == 0)
            model.hardware = hardware_find(l->arena, l->diags, &l->sources, &l->settings, NULL);
        assert_non_null(model.hardware);
        Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, NULL);
        assert_non_null(p);
        for (int nstages = 1; nstages <= MOST_STAGES && nstages <= p->n && p->n <= MOST_N; nstages++) {
            const Placement placed = placing_solve(p, nstages);
            assert_int_equal(placed.ncuts, nstages - 1);
            /* The same numbers, by hand. */
            const int64_t *work[MOST_STAGES], *transfer[MOST_STAGES];
            bool overlap[MOST_STAGES];
            for (int s = 0; s < nstages; s++) {
                const Hardware *h = model.hardware;
                work[s] = p->work[hardware_kind(h, hardware_worker(h, s, nstages))];
                transfer[s] = p->transfer[s < h->nlinks ? s : h->nlinks - 1];
                overlap[s] = hardware_link(h, s).overlap;
            }
            const PlaceInput in = {.n = p->n,
                                   .nstages = nstages,
                                   .work = work,
                                   .transfer = transfer,
                                   .overlap = overlap,
                                   .stale = p->stale,
                                   .most_stale = -1};
            const Best best = brute_force(&in);
            if (llabs(best.load - (int64_t)(placed.load * p->scale + 0.5)) > 1)
                fail_msg("seed %llu, %d stages: %.9g s, brute force %.9g s", (unsigned long long)seed, nstages,
                         placed.load, (double)best.load / p->scale);
            for (int i = 0; i < placed.ncuts; i++)
                if (placed.cut[i].before != p->low[best.cut[i]])
                    fail_msg("seed %llu, %d stages: register %d before %d, brute force %d", (unsigned long long)seed,
                             nstages, i, placed.cut[i].before, p->low[best.cut[i]]);
        }
        arena_free(l->arena);
        arena_free(arena);
    }
}

/* What the solver adds up is what the pipeline's stages take: the load is the slowest stage of the prediction, and with
 * enough slots the simulated step is not shorter. */
static void loads_are_those_of_the_stages(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 12, 0));
        const CostModel model = model_of(l, 0);
        Placing *p = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, NULL);
        for (int nstages = 1; nstages <= 4 && nstages <= p->n; nstages++) {
            const Placement placed = placing_solve(p, nstages);
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
            assert_true(work - c.prediction->one_worker < slack && c.prediction->one_worker - work < slack);
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
            const Placement least = placing_solve(p, nstages);
            assert_int_equal(least.ncuts, nstages - 1);
            const Outcome o = outcome(l->graph, least.cut, least.ncuts, &l->settings, &model);
            assert_true(o.legal);
            /* With a cap a byte below what this placement needs, none or another one is found; with it, one is. */
            AutoRegisters capped = {.max_stale = -1, .memory = o.most_bytes};
            Placing *q = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, &capped);
            const Placement under = placing_solve(q, nstages);
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
        const Placement smallest = placing_solve(p, 3);
        assert_int_equal(smallest.ncuts, 2);
        assert_int_equal(outcome(l->graph, smallest.cut, 2, &l->settings, &model).most_bytes, least);
        for (int k = 0; k < 4; k++) {
            AutoRegisters limits = {
                .max_stale = -1, .memory = least + least * k / 8, .balance = k == 3 ? 0 : 1.2 + 0.4 * k};
            Placing *q = placing_new(l->arena, l->diags, l->graph, &l->settings, &model, &limits);
            const Placement found = placing_solve(q, 3);
            const int64_t *work = q->work[0];
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
            const Placement placed = placing_solve(p, nstages);
            const SourceFile *file = source_add(l->arena, &l->sources, "again.pnet", text, strlen(text));
            const Ast *ast = parse(l->arena, l->diags, file);
            bool by_setting = false;
            const char *written = place_write(l->arena, l->diags, &l->sources, ast, l->graph, placed.cut, placed.ncuts,
                                              NULL, 0, &by_setting);
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

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void a_long_chain_is_placed_in_time(void **state)
{
    (void)state;
    double took[3];
    for (int i = 0; i < 3; i++) {
        const int n = 2500 << i, nstages = 64;
        int64_t *work = calloc((size_t)n + 1, sizeof *work), *nothing = calloc((size_t)n + 1, sizeof *nothing);
        const int64_t *works[64], *transfers[64];
        bool overlap[64];
        int cut[64];
        for (int b = 1; b <= n; b++)
            work[b] = work[b - 1] + (int64_t)(pn_random(7, (uint64_t)b) % 1000000000);
        for (int s = 0; s < nstages; s++) {
            works[s] = work;
            transfers[s] = nothing;
            overlap[s] = true;
        }
        const PlaceInput in = {.n = n,
                               .nstages = nstages,
                               .work = works,
                               .transfer = transfers,
                               .overlap = overlap,
                               .stale = nothing,
                               .most_stale = -1};
        const double begin = seconds();
        const int64_t load = place_solve(&in, cut);
        took[i] = seconds() - begin;
        print_message("# %d layers, %d stages: %.0f ms\n", n, nstages, 1000 * took[i]);
        assert_true(load >= work[n] / nstages && load <= work[n] / nstages + 1000000000);
        free(work);
        free(nothing);
    }
    assert_true(took[2] < 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_equal_brute_force), cmocka_unit_test(networks_equal_brute_force),
        cmocka_unit_test(loads_are_those_of_the_stages),    cmocka_unit_test(candidates_split_no_fused_node),
        cmocka_unit_test(memory_is_bounded_from_below),     cmocka_unit_test(registers_are_written_back),
        cmocka_unit_test(a_long_chain_is_placed_in_time),   cmocka_unit_test(limits_equal_brute_force_by_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
