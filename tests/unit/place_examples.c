/* place_examples.c: placement equals brute force over all cuts on all examples, alone, with replicas, and with what a
 * user may limit: allow, forbid, pin, max_stale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lowered.h"
#include "place_brute.h"

typedef struct {
    const Placing *p; /* without wishes */
    const AutoRegisters *wishes;
    int nstages, cut[MOST_STAGES];
    int64_t load;
    int best[MOST_STAGES];
} Search;

static bool holds(const Cut *list, int count, const Placing *p, int b)
{
    for (int i = 0; i < count; i++)
        if (list[i].before >= p->low[b] && list[i].before <= p->high[b])
            return true;
    return false;
}

/* The wishes as their documentation has them, on all cuts. On the machine core: links overlap, one kind of device. */
static void search(Search *x, int next)
{
    const Placing *p = x->p;
    const AutoRegisters *w = x->wishes;
    if (next < x->nstages - 1) {
        for (int b = next ? x->cut[next - 1] + 1 : 1; b < p->n; b++) {
            x->cut[next] = b;
            search(x, next + 1);
        }
        return;
    }
    int64_t load = 0;
    int pinned = 0;
    for (int s = 0; s < x->nstages; s++) {
        const int from = s ? x->cut[s - 1] : 0, to = s + 1 < x->nstages ? x->cut[s] : p->n;
        const int64_t work = p->work[0][0][to] - p->work[0][0][from];
        load = work > load ? work : load;
        if (s + 1 == x->nstages)
            break;
        load = p->transfer[0][to] > load ? p->transfer[0][to] : load;
        const bool pin = holds(w->pin, w->npin, p, to);
        pinned += pin;
        if (!pin && ((w->limited && !holds(w->allow, w->nallow, p, to)) || holds(w->forbid, w->nforbid, p, to)))
            return;
    }
    const int last = x->nstages > 1 ? x->cut[x->nstages - 2] : 0;
    if (pinned < w->npin || (w->max_stale >= 0 && (double)p->stale[last] > w->max_stale * (double)p->stale[p->n]))
        return;
    if (x->load >= 0 && load > x->load)
        return;
    for (int i = x->nstages - 2; x->load == load && i >= 0; i--) {
        if (x->cut[i] > x->best[i])
            return;
        if (x->cut[i] < x->best[i])
            break;
    }
    x->load = load;
    memcpy(x->best, x->cut, sizeof x->best);
}

/* Every `step`-th boundary from `from` on, but for those of `others`. */
static Cut *some(Arena *arena, const Placing *p, int from, int step, const AutoRegisters *others, int *count)
{
    Cut *list = arena_alloc(arena, sizeof *list * (size_t)p->n);
    for (int b = from; b < p->n; b += step)
        if (!holds(others->allow, others->nallow, p, b) && !holds(others->pin, others->npin, p, b))
            list[(*count)++] = (Cut){p->low[b], {0, 0}};
    return list;
}

static double cuts_of(int n, int nstages)
{
    double count = 1;
    for (int i = 1; i < nstages; i++)
        count = count * (n - i) / i;
    return count;
}

static void expect_wished(const Placing *p, const AutoRegisters *wishes, int nstages, Diags *diags, int *impossible)
{
    Search x = {.p = p, .wishes = wishes, .nstages = nstages, .load = -1};
    search(&x, 0);
    Placing *q = placing_new(p->arena, diags, p->written, p->settings, p->model, wishes);
    assert_non_null(q);
    const Placement placed = placing_solve(q, nstages, nstages);
    assert_int_equal(placed.ncuts, x.load < 0 ? -1 : nstages - 1);
    *impossible += x.load < 0;
    if (x.load >= 0 && llabs(x.load - (int64_t)(placed.load * p->scale + 0.5)) > 1)
        fail_msg("%s, %d stages: %.9g s, brute force %.9g s", p->written->name, nstages, placed.load,
                 (double)x.load / p->scale);
    for (int i = 0; i < placed.ncuts; i++)
        if (placed.cut[i].before != p->low[x.best[i]])
            fail_msg("%s, %d stages: register %d before %d, brute force %d", p->written->name, nstages, i,
                     placed.cut[i].before, p->low[x.best[i]]);
}

static void examples_equal_brute_force(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int depth;
    } examples[] = {{"alexnet", 0}, {"cifar_quick", 0}, {"lenet5", 0}, {"resnet", 20}, {"resnet", 56}, {"vgg16", 0}};
    int tried = 0, impossible = 0;
    for (int e = 0; e < COUNT(examples); e++) {
        Arena *arena = arena_new();
        Sources sources = {0};
        Diags *diags = diags_new(arena, &sources);
        Settings settings = {0};
        Expr depth = {.kind = EXPR_INTEGER, .integer = examples[e].depth};
        Override override = {.name = name_of(arena, "depth"), .value = &depth};
        const Ast *ast = load(arena, diags, &sources, arena_printf(arena, "examples/%s.pnet", examples[e].file));
        assert_non_null(ast);
        const Graph *graph = lower(arena, diags, &sources, ast, NULL, &override, examples[e].depth ? 1 : 0, &settings);
        assert_non_null(graph);
        const CostModel model = {.hardware = hardware_builtin(arena, 0),
                                 .target = target_table[0],
                                 .states = optimizer_states(&settings.train.optimizer)};
        const AutoRegisters none = {.max_stale = -1, .workers = 8};
        Placing *p = placing_new(arena, diags, graph, &settings, &model, &none);
        for (int nstages = 1; nstages <= MOST_STAGES && cuts_of(p->n, nstages) < 4e5; nstages++) {
            expect_placed(p, nstages, nstages, 0);
            if (cuts_of(p->n, nstages) < 3000)
                expect_placed(p, nstages, nstages < 3 ? 8 : 5, 0);
            for (int k = 0; k < 8; k++) {
                AutoRegisters wishes = {.max_stale = k & 4 ? 0.1 + 0.1 * nstages : -1, .limited = k & 1};
                if (k & 1)
                    wishes.allow = some(arena, p, 1 + nstages % 2, 2, &none, &wishes.nallow);
                if (k > 3 && nstages > 1)
                    wishes.pin = some(arena, p, p->n / 3, p->n, &none, &wishes.npin);
                if (k & 2)
                    wishes.forbid = some(arena, p, 2, 3, &wishes, &wishes.nforbid);
                expect_wished(p, &wishes, nstages, diags, &impossible);
                tried++;
            }
        }
        arena_free(arena);
    }
    print_message("# %d problems with wishes, %d of them impossible\n", tried, impossible);
    assert_true(tried > 150 && impossible > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_equal_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
