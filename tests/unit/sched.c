/* sched.c: schedules of hand-made pipes: the numbers of the design page, and the proof of every preset on random
 * registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "draw.h"
#include "scheduled.h"

static void presets_are_made_of_known_parts(void **state)
{
    (void)state;
    for (int i = 0; i < preset_count; i++) {
        assert_non_null(order_of(preset_table[i].order));
        assert_non_null(rule_of(preset_table[i].rule));
    }
}

/* Delay and ring as in the table of DESIGN 5; K = S - 1: the paper's 2(K - i + 1) with i = s + 1. */
static void staleness_and_ring(void **state)
{
    (void)state;
    for (int nstages = 1; nstages <= 12; nstages++) {
        for (int o = 0; o < order_count; o++) {
            Bench *bench = bench_new();
            const char *name = order_table[o]->name;
            add_phase(bench, name, "stash", 0);
            const Sched *sched = scheduled(bench, make_pipe(bench->arena, nstages, 0));
            assert_non_null(sched);
            for (int s = 0; s < nstages; s++) {
                const int after = nstages - 1 - s;
                const int delay = !strcmp(name, "sequential") ? 0
                                  : !strcmp(name, "lockstep") ? 2 * after
                                  : !strcmp(name, "1f1b")     ? after
                                  : order_table[o]->slices    ? 0
                                                              : (after ? 2 * after - 1 : 0);
                assert_int_equal(sched->staleness[s], delay);
                assert_int_equal(sched->ring[s], delay + 1);
                assert_int_equal(sched->versions[s], delay + 1);
            }
            arena_free(bench->arena);
        }
    }
}

static void stale_rule_keeps_one_version(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    add_phase(bench, "lockstep", "stale", 0);
    const Sched *sched = scheduled(bench, make_pipe(bench->arena, 5, 0));
    for (int s = 0; s < 5; s++)
        assert_int_equal(sched->versions[s], 1);
    /* 100 + 200 + 300 + 400 of 1500 weights are before the last register */
    assert_true(sched->stale_fraction > 0.6666 && sched->stale_fraction < 0.6667);
    arena_free(bench->arena);
}

static const char *body_of(Arena *arena, const char *name, int stage, int nstages, int microbatches)
{
    StageOrder *order = arena_alloc(arena, sizeof *order);
    order_of(name)->order((OrderPlace){stage, nstages, microbatches}, order);
    return arena_printf(arena, "%d %s", order->warmup, order->body);
}

static void bodies_of_microbatches(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    assert_string_equal(body_of(arena, "gpipe", 0, 4, 3), "0 FFFBBBU");
    assert_string_equal(body_of(arena, "gpipe", 3, 4, 3), "0 FFFBBBU");
    assert_string_equal(body_of(arena, "1f1b_flush", 0, 4, 5), "0 FFFFBFBBBBU");
    assert_string_equal(body_of(arena, "1f1b_flush", 3, 4, 3), "0 FBFBFBU");
    assert_string_equal(body_of(arena, "1f1b_flush", 0, 4, 2), "0 FFBBU");
    assert_string_equal(body_of(arena, "zb_h1", 0, 4, 5), "0 FFFFBWFBWBWBWBWU");
    assert_string_equal(body_of(arena, "zb_h1", 1, 4, 5), "0 FFFBFBWFBWBWBWWU");
    assert_string_equal(body_of(arena, "zb_h1", 3, 4, 5), "0 FBFBFBFBWFBWWWWU");
    assert_string_equal(body_of(arena, "zb_h1", 3, 4, 2), "0 FBFBWWU");
    assert_string_equal(body_of(arena, "1f1b", 1, 4, 3), "2 FBFBFBU");
    assert_string_equal(body_of(arena, "sequential", 1, 4, 2), "0 FBFBU");
    arena_free(arena);
}

/* Staleness of M microbatches: orders that go on are stale by what they are ahead, in minibatches, rounded up. */
static void staleness_and_ring_of_microbatches(void **state)
{
    (void)state;
    const int microbatches[] = {2, 3, 4, 8, 31};
    for (int nstages = 1; nstages <= 9; nstages++)
        for (int i = 0; i < COUNT(microbatches); i++)
            for (int o = 0; o < order_count; o++) {
                Bench *bench = bench_new();
                const int m = microbatches[i];
                add_phase(bench, order_table[o]->name, "stash", 0);
                Pipe *pipe = make_pipe(bench->arena, nstages, 0);
                ((Graph *)pipe->graph)->microbatches = m;
                const Sched *sched = scheduled(bench, pipe);
                assert_non_null(sched);
                for (int s = 0; s < nstages; s++) {
                    const int after = nstages - 1 - s, ahead = sched->phase[0].stage[s].warmup;
                    const int ring = !strcmp(order_table[o]->name, "gpipe")   ? m
                                     : !strcmp(order_table[o]->name, "zb_h1") ? (nstages < m ? nstages : m)
                                     : order_table[o]->slices                 ? (after < m ? after + 1 : m)
                                                                              : ahead + 1;
                    assert_int_equal(sched->staleness[s], (ahead + m - 1) / m);
                    assert_int_equal(sched->ring[s], ring);
                    assert_int_equal(sched->versions[s], sched->staleness[s] + 1);
                    assert_int_equal(sched->late[s], strcmp(order_table[o]->name, "zb_h1") ? 0 : s < m ? s + 1 : m);
                }
                arena_free(bench->arena);
            }
}

/* With equal forwards and backwards a minibatch takes 2(M + S - 1) of them: a bubble of (S - 1) / (M + S - 1). */
static void flushes_take_the_time_of_the_book(void **state)
{
    (void)state;
    static const char *const orders[] = {"gpipe", "1f1b_flush"};
    for (int nstages = 1; nstages <= 8; nstages++)
        for (int m = 2; m <= 12; m += 5)
            for (int o = 0; o < COUNT(orders); o++) {
                Bench *bench = bench_new();
                add_phase(bench, orders[o], "stale", 0);
                Pipe *pipe = make_pipe(bench->arena, nstages, 0);
                ((Graph *)pipe->graph)->microbatches = m;
                const Sched *sched = scheduled(bench, pipe);
                for (int minibatches = 1; minibatches <= 3; minibatches++) {
                    const DrawRun run = draw_run(bench->arena, sched, TIME_UNIT, minibatches);
                    const double each = 2.0 * (m + nstages - 1);
                    assert_true(run.end <= minibatches * each && run.end > (minibatches - 1) * each);
                    assert_true(minibatches > 1 || run.end == each);
                }
                arena_free(bench->arena);
            }
}

/* Qi et al. 2023, table 1: a bubble of (S - 1)(F + B - W), a third of that of 1f1b_flush where the three take as
 * long. */
static void zb_h1_fills_two_thirds_of_the_bubble(void **state)
{
    (void)state;
    for (int nstages = 1; nstages <= 8; nstages++)
        for (int m = nstages; m <= 24; m += 5) {
            Bench *bench = bench_new();
            add_phase(bench, "zb_h1", "stale", 0);
            Pipe *pipe = make_pipe(bench->arena, nstages, 0);
            ((Graph *)pipe->graph)->microbatches = m;
            const Sched *sched = scheduled(bench, pipe);
            const DrawRun run = draw_run(bench->arena, sched, TIME_UNIT, 1);
            assert_true(run.end == 3 * m + nstages - 1);
            assert_true(run.busy == 3.0 * m * nstages);
            arena_free(bench->arena);
        }
}

/* One version for all stages: vertical_sync is as stale as the first stage is ahead, two_buffer by one update. */
static void rules_of_one_version_are_equally_stale(void **state)
{
    (void)state;
    for (int nstages = 1; nstages <= 6; nstages++)
        for (int m = 1; m <= 7; m++)
            for (int rule = 0; rule < 2; rule++) {
                Bench *bench = bench_new();
                add_phase(bench, "1f1b", rule ? "two_buffer" : "vertical_sync", 0);
                Pipe *pipe = make_pipe(bench->arena, nstages, 0);
                ((Graph *)pipe->graph)->microbatches = m;
                ((Graph *)pipe->graph)->batch = 60;
                const Sched *sched = scheduled(bench, pipe);
                const int ahead = (nstages - 1 + m - 1) / m;
                assert_int_equal(sched == NULL, rule == 1 && ahead > 1);
                for (int s = 0; sched && s < nstages; s++) {
                    assert_int_equal(sched->staleness[s], rule ? 1 : ahead);
                    assert_int_equal(sched->versions[s], sched->staleness[s] + 1);
                }
                arena_free(bench->arena);
            }
}

static void every_preset_is_legal_on_random_registers(void **state)
{
    (void)state;
    for (int nstages = 1; nstages <= 12; nstages++)
        for (uint64_t seed = 0; seed < 6; seed++)
            for (int i = 0; i < preset_count; i++) {
                Bench *bench = bench_new();
                add_phase(bench, preset_table[i].order, preset_table[i].rule, 0);
                Pipe *pipe = make_pipe(bench->arena, nstages, seed);
                ((Graph *)pipe->graph)->microbatches = 1 + (int64_t)(seed * 7 + (uint64_t)nstages) % 6;
                const Sched *sched = scheduled(bench, pipe);
                const int limit = rule_of(preset_table[i].rule)->most_stale;
                assert_int_equal(sched == NULL, limit && nstages - 1 > limit * pipe->graph->microbatches);
                const int64_t lengths[] = {1, 2, 7, 40};
                if (!sched) {
                    arena_free(bench->arena);
                    continue;
                }
                for (int n = 0; n < COUNT(lengths); n++)
                    assert_null(sched_prove(bench->arena, sched, lengths[n], lengths[n] / 2 + 1));
                arena_free(bench->arena);
            }
}

/* Every pair of orders, with a switch after any number of minibatches up to beyond the warm-up. */
static void hybrids_are_legal(void **state)
{
    (void)state;
    for (int a = 0; a < order_count; a++)
        for (int b = 0; b < order_count; b++)
            for (int64_t n = 1; n <= 12; n++) {
                Bench *bench = bench_new();
                add_phase(bench, order_table[a]->name, "stash", n);
                add_phase(bench, order_table[b]->name, "stale", 0);
                Pipe *pipe = make_pipe(bench->arena, 4, (uint64_t)n);
                ((Graph *)pipe->graph)->microbatches = 1 + n % 3;
                const Sched *sched = scheduled(bench, pipe);
                assert_non_null(sched);
                for (int64_t after = 0; after <= 20; after++)
                    assert_null(sched_prove(bench->arena, sched, 20, after));
                arena_free(bench->arena);
            }
}

static void steps_of_a_hybrid_drain_between_phases(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    add_phase(bench, "1f1b", "stale", 3);
    add_phase(bench, "sequential", "stale", 0);
    const Sched *sched = scheduled(bench, make_pipe(bench->arena, 2, 0));
    int count;
    const Step *step = sched_steps(bench->arena, sched, 0, 5, &count);
    static const char expected[] = "F0F1B0U0F2B1U1B2U2F3B3U3F4B4U4";
    Text text = text_new(bench->arena);
    for (int i = 0; i < count; i++)
        text_printf(&text, "%c%d", step_letter(step[i].kind), (int)step[i].n);
    assert_string_equal(text.data, expected);
    arena_free(bench->arena);
}

/* Halves are as stale as the stage in one piece, and have its ring; every preset whose forwards read the newest weights,
 * which are handed over, is legal. */
static void halves_are_legal_and_as_stale(void **state)
{
    (void)state;
    for (int nstages = 1; nstages <= 12; nstages++)
        for (uint64_t seed = 0; seed < 6; seed++)
            for (int i = 0; i < preset_count; i++) {
                Bench *bench = bench_new();
                const RuleDef *rule = rule_of(preset_table[i].rule);
                add_phase(bench, preset_table[i].order, preset_table[i].rule, 0);
                Pipe *pipe = make_pipe(bench->arena, nstages, seed);
                ((Graph *)pipe->graph)->microbatches = 1 + (int64_t)(seed * 7 + (uint64_t)nstages) % 6;
                const Sched *whole = scheduled(bench, pipe);
                halve(pipe);
                const Sched *sched = whole ? scheduled(bench, pipe) : NULL;
                const bool newest = rule->forward_reads == READS_CURRENT && !rule->recomputes;
                assert_int_equal(sched != NULL, whole && (nstages == 1 || newest));
                for (int s = 0; sched && s < nstages; s++) {
                    assert_int_equal(sched->staleness[s], whole->staleness[s]);
                    assert_int_equal(sched->ring[s], whole->ring[s]);
                    const int least = s + 1 < nstages ? 2 : 1;
                    assert_int_equal(sched->versions[s], whole->versions[s] > least ? whole->versions[s] : least);
                }
                const int64_t lengths[] = {1, 2, 7, 40};
                for (int n = 0; sched && n < COUNT(lengths); n++)
                    assert_null(sched_prove(bench->arena, sched, lengths[n], lengths[n] / 2 + 1));
                arena_free(bench->arena);
            }
}

/* Where all take as long, backwards no longer than forwards, and the last stage does both in that time, a minibatch takes
 * a cycle: here the last stage is the slowest, with two units. */
static void halves_keep_the_pace_of_the_slowest(void **state)
{
    (void)state;
    for (int nstages = 2; nstages <= 9; nstages++) {
        Bench *bench = bench_new();
        add_phase(bench, "lockstep", "stale", 0);
        Pipe *pipe = make_pipe(bench->arena, nstages, 0);
        halve(pipe);
        const Sched *sched = scheduled(bench, pipe);
        const DrawRun some = draw_run(bench->arena, sched, TIME_UNIT, 30),
                      more = draw_run(bench->arena, sched, TIME_UNIT, 50);
        assert_true(more.end - some.end == 20 * 2);
        assert_true(more.busy == 2.0 * 50 * nstages);
        arena_free(bench->arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_made_of_known_parts),
        cmocka_unit_test(staleness_and_ring),
        cmocka_unit_test(bodies_of_microbatches),
        cmocka_unit_test(rules_of_one_version_are_equally_stale),
        cmocka_unit_test(flushes_take_the_time_of_the_book),
        cmocka_unit_test(zb_h1_fills_two_thirds_of_the_bubble),
        cmocka_unit_test(staleness_and_ring_of_microbatches),
        cmocka_unit_test(stale_rule_keeps_one_version),
        cmocka_unit_test(every_preset_is_legal_on_random_registers),
        cmocka_unit_test(hybrids_are_legal),
        cmocka_unit_test(steps_of_a_hybrid_drain_between_phases),
        cmocka_unit_test(halves_are_legal_and_as_stale),
        cmocka_unit_test(halves_keep_the_pace_of_the_slowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
