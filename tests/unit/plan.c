/* plan.c: memory of random networks under every preset and target, by running the steps of each stage over a map of who
 * owns each piece of memory; packing of blocks; the numbers of LeNet-5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lowered.h"
#include "plan_area.h"

static const OrderDef *order_of(const char *name)
{
    for (int i = 0; i < order_count; i++)
        if (!strcmp(order_table[i]->name, name))
            return order_table[i];
    return NULL;
}

static const RuleDef *rule_of(const char *name)
{
    for (int i = 0; i < rule_count; i++)
        if (!strcmp(rule_table[i]->name, name))
            return rule_table[i];
    return NULL;
}

static const Plan *planned(Lowered *l, const PresetDef *preset, const TargetDef *target)
{
    Pipeline *pipeline = &l->settings.pipeline;
    pipeline->nphases = 1;
    pipeline->phase[0] =
        (PhaseChoice){.order = order_of(preset->order), .rule = rule_of(preset->rule), .preset = preset->name};
    pipeline->recompute = rule_of(preset->rule)->recomputes;
    const Sched *sched = schedule(l->arena, l->diags, l->pipe, &l->settings);
    if (!sched && rule_of(preset->rule)->most_stale) /* refused: too many stages */
        return NULL;
    assert_non_null(sched);
    sched_check(sched);
    const Plan *plan = plan_memory(l->arena, l->diags, sched, target);
    assert_non_null(plan);
    plan_check(plan);
    return plan;
}

/* ---- the steps of a stage over owned memory ---- */

enum { PIECE = 64 };
typedef struct {
    const Plan *plan;
    int stage;
    int *owner; /* per piece of the transient area: number of the buffer written last, plus 1 */
    int reads;
} Memory;

static void write_buffer(Memory *m, const Buffer *buffer)
{
    if (!buffer || buffer->offset < 0)
        return;
    const int number = (int)(buffer - m->plan->stage[m->stage].buffer) + 1;
    for (int64_t piece = buffer->offset / PIECE; piece < (buffer->offset + buffer->bytes) / PIECE; piece++)
        m->owner[piece] = number;
}

static void read_buffer(Memory *m, const Buffer *buffer)
{
    if (!buffer || buffer->offset < 0)
        return;
    const int number = (int)(buffer - m->plan->stage[m->stage].buffer) + 1;
    m->reads++;
    for (int64_t piece = buffer->offset / PIECE; piece < (buffer->offset + buffer->bytes) / PIECE; piece++)
        if (m->owner[piece] != number)
            fail_msg("stage %d reads buffer %d and finds %d", m->stage, number, m->owner[piece]);
}

static const Buffer *place_buffer(const Memory *m, Place place)
{
    return place.kind == PLACE_BUFFER ? &m->plan->stage[m->stage].buffer[place.index] : NULL;
}

static void forward(Memory *m)
{
    const Pipe *pipe = m->plan->sched->pipe;
    const Graph *g = pipe->graph;
    for (NodeId i = pipe->stage[m->stage].first; i < pipe->stage[m->stage].last; i++) {
        if (!g->node[i].op)
            continue;
        if (i != g->loss)
            write_buffer(m, place_buffer(m, plan_value(m->plan, m->stage, i)));
        for (int k = 0; k < g->node[i].nin; k++)
            read_buffer(m, place_buffer(m, plan_value(m->plan, m->stage, g->node[i].in[k])));
    }
}

/* Inputs first, then node by node. */
static void test_pass(Memory *m)
{
    const Pipe *pipe = m->plan->sched->pipe;
    const Graph *g = pipe->graph;
    for (int i = 0; i < g->ninputs; i++)
        if (pipe_reads_input(pipe, m->stage, g->input[i]))
            write_buffer(m, place_buffer(m, plan_test_value(m->plan, m->stage, g->input[i])));
    for (NodeId i = pipe->stage[m->stage].first; i < pipe->stage[m->stage].last; i++) {
        if (!g->node[i].op)
            continue;
        if (i != g->loss)
            write_buffer(m, place_buffer(m, plan_test_value(m->plan, m->stage, i)));
        for (int k = 0; k < g->node[i].nin; k++)
            read_buffer(m, place_buffer(m, plan_test_value(m->plan, m->stage, g->node[i].in[k])));
    }
}

static void backward_pass(Memory *m)
{
    const Pipe *pipe = m->plan->sched->pipe;
    const Graph *g = pipe->graph;
    for (int b = 0; b < pipe->backward->nsteps; b++) {
        const BackwardStep *step = &pipe->backward->step[b];
        const Node *node = &g->node[step->node];
        if (pipe_stage_of(pipe, step->node) != m->stage)
            continue;
        for (int k = 0; k < node->nin; k++) {
            const Buffer *gradient = plan_buffer(m->plan, m->stage, BUFFER_GRADIENT, node->in[k]);
            const Buffer *partial = plan_buffer(m->plan, m->stage, BUFFER_PARTIAL, node->in[k]);
            read_buffer(m, plan_buffer(m->plan, m->stage, BUFFER_GRADIENT, step->node));
            if (step->in[k] == GRADIENT_WRITE)
                write_buffer(m, gradient);
            if (step->in[k] == GRADIENT_ADD) {
                assert_non_null(partial);
                write_buffer(m, partial);
                read_buffer(m, gradient);
                read_buffer(m, partial);
            }
        }
        read_buffer(m, plan_buffer(m->plan, m->stage, BUFFER_GRADIENT, step->node));
    }
}

/* What a backward reads must have a slot for each minibatch in flight: in a ring, or in a register that is kept. What a
 * stage makes again has one, and what it makes it of is kept, or made again too. */
static void saved_values_have_slots(const Plan *plan, int s)
{
    const Sched *sched = plan->sched;
    const Pipe *pipe = sched->pipe;
    for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++) {
        const Node *node = &pipe->graph->node[i];
        for (int k = -1; node->op && k < node->nin && k < 2; k++) {
            const NodeId v = k < 0 ? i : node->in[k];
            if (!(pipe->backward->needs[i] & (k < 0 ? NEEDS_OUT : k == 0 ? NEEDS_IN0 : NEEDS_IN1)))
                continue;
            const Place place = plan_value(plan, s, v);
            if (sched->recompute[s] && v >= pipe->stage[s].first && pipe->graph->node[v].op) {
                assert_true(plan->again[v]);
                assert_true(place.kind == PLACE_REGISTER_OUT ? plan_buffer(plan, s, BUFFER_AGAIN, v) != NULL
                                                             : plan->stage[s].buffer[place.index].slots == 1);
            } else if (place.kind == PLACE_BUFFER)
                assert_int_equal(plan->stage[s].buffer[place.index].slots, sched->ring[s]);
            else
                assert_true(sched->forward_slots[place.index] >= sched->ring[s]);
        }
        if (sched->late[s] && node->op && node->op->flags & OP_WEIGHT_PART && pipe->backward->needs[i])
            assert_int_equal(plan_buffer(plan, s, BUFFER_KEPT, i)->slots, sched->late[s]);
        for (int k = 0; k < node->nparams; k++) {
            const int param = node->param[k];
            const bool late = sched->late[s] && node->op->flags & OP_WEIGHT_PART && pipe->backward->needs[i];
            if (!pipe->graph->param[param].running)
                assert_int_equal(plan->param[param].offset >= plan->stage[s].early_floats, late);
        }
        if (node->op && pipe->backward->needs[i] & NEEDS_AUX)
            assert_int_equal(plan_buffer(plan, s, BUFFER_AUX, i)->slots, sched->recompute[s] ? 1 : sched->ring[s]);
        for (int k = 0; plan->again[i] && k < node->nin; k++) {
            const NodeId v = node->in[k];
            const Place place = plan_value(plan, s, v);
            if (place.kind == PLACE_REGISTER_IN)
                assert_true(pipe->edge[place.index].kept_consumer);
            else if (!pipe->graph->node[v].op)
                assert_int_equal(plan->stage[s].buffer[place.index].slots, sched->ring[s]);
            else
                assert_true(plan->again[v]);
        }
    }
}

static int run_over_memory(Arena *arena, const Plan *plan)
{
    int reads = 0;
    for (int s = 0; s < plan->sched->pipe->nstages; s++) {
        Memory m = {.plan = plan, .stage = s};
        m.owner = arena_alloc(arena, sizeof(int) * (size_t)(plan->stage[s].transient_bytes / PIECE + 1));
        forward(&m);
        backward_pass(&m);
        test_pass(&m);
        saved_values_have_slots(plan, s);
        reads += m.reads;
    }
    return reads;
}

static void random_networks_keep_what_they_read(void **state)
{
    (void)state;
    int reads = 0, registers = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 24, (int)(seed % 12)));
        for (int i = 0; i < preset_count; i++) {
            const Plan *plan = planned(l, &preset_table[i], target_table[i % TARGET_COUNT]);
            if (!plan)
                continue;
            reads += run_over_memory(arena, plan);
            registers += l->pipe->nedges;
        }
        arena_free(l->arena);
        arena_free(arena);
    }
    assert_true(reads > 10000 && registers > 500);
}

/* ---- packing ---- */

static int64_t packed(Block *block, int count)
{
    Arena *arena = arena_new();
    const int64_t bytes = area_fit(arena, block, count);
    int a, b;
    for (int i = 0; i < count; i++) {
        assert_true(block[i].offset >= 0 && block[i].offset + block[i].bytes <= bytes);
        for (int k = 0; k < i; k++)
            if (block[i].born <= block[k].dies && block[k].born <= block[i].dies)
                assert_true(block[i].offset + block[i].bytes <= block[k].offset ||
                            block[k].offset + block[k].bytes <= block[i].offset);
    }
    assert_false(area_overlap(arena, block, count, &a, &b));
    arena_free(arena);
    return bytes;
}

static void chains_take_the_two_largest_neighbours(void **state)
{
    (void)state;
    Block shrinking[50], growing[50];
    for (int i = 0; i < 50; i++) {
        shrinking[i] = (Block){64 * (100 - i), i, i + 1, i, 0};
        growing[i] = (Block){64 * (1 + i), i, i + 1, i, 0};
    }
    assert_int_equal(packed(shrinking, 50), 64 * (100 + 99));
    assert_int_equal(packed(growing, 50), 64 * (50 + 49));
    assert_int_equal(packed(growing, 0), 0);
}

static void random_blocks_never_overlap(void **state)
{
    (void)state;
    enum { COUNT_OF_BLOCKS = 200, STEPS = 60 };
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Block block[COUNT_OF_BLOCKS];
        const int count = 1 + (int)(pn_random(seed, 0) % COUNT_OF_BLOCKS);
        int64_t live[STEPS] = {0}, least = 0;
        for (int i = 0; i < count; i++) {
            const int born = (int)(pn_random(seed, (uint64_t)(3 * i + 1)) % STEPS);
            const int dies = born + (int)(pn_random(seed, (uint64_t)(3 * i + 2)) % 8);
            block[i] = (Block){64 * (1 + (int64_t)(pn_random(seed, (uint64_t)(3 * i + 3)) % 50)), born,
                               dies < STEPS ? dies : STEPS - 1, i, 0};
            for (int t = born; t <= block[i].dies; t++)
                live[t] += block[i].bytes;
        }
        for (int t = 0; t < STEPS; t++)
            least = live[t] > least ? live[t] : least;
        const int64_t bytes = packed(block, count);
        assert_true(bytes >= least && bytes <= least + least / 2);
    }
}

static void an_overlap_is_found(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    int a, b;
    Block block[] = {{128, 0, 3, 0, 0}, {128, 3, 5, 1, 64}, {64, 4, 5, 2, 0}};
    assert_true(area_overlap(arena, block, 3, &a, &b));
    assert_int_equal(a + b, 1);
    block[1].offset = 128;
    for (int i = 0; i < 3; i++) /* whatever order they came back in */
        block[i].offset = block[i].id == 1 ? 128 : 0;
    assert_false(area_overlap(arena, block, 3, &a, &b));
    arena_free(arena);
}

/* ---- known numbers ---- */

static const char lenet[] =
    "network lenet5 {\n input image: f32[1, 28, 28]\n input label: class[10]\n"
    " pool1 = image |> conv(6, kernel = 5, pad = 2) |> relu |> maxpool(2)\n register\n"
    " pool2 = pool1 |> conv(16, kernel = 5) |> relu |> maxpool(2)\n fc2 = pool2 |> linear(120) |> relu |> linear(84) "
    "|> relu\n"
    " loss softmax_cross_entropy(linear(fc2, 10), label)\n}\n"
    "train {\n data = mnist\n batch = 100\n optimizer = sgd(momentum = 0.9)\n lr = constant(0.1)\n steps = 5\n}\n";

static const PresetDef *preset(const char *name)
{
    for (int i = 0; i < preset_count; i++)
        if (!strcmp(preset_table[i].name, name))
            return &preset_table[i];
    return NULL;
}

static void lenet_by_hand(void **state)
{
    (void)state;
    enum { IMAGE = 28 * 28 * 400, CONV = 6 * IMAGE, POOL = 6 * 14 * 14 * 400 };
    Lowered *l = lowered(lenet);
    const Plan *plan = planned(l, preset("pipedream"), target_find("ref"));
    const NodeId image = node_named(l->fused, "image"), conv = node_named(l->fused, "conv1"),
                 pool = node_named(l->fused, "pool1");
    const Buffer *saved = plan_buffer(plan, 0, BUFFER_SAVED, image);
    assert_int_equal(saved->bytes, IMAGE);
    assert_int_equal(saved->slots, 2); /* 1f1b of two stages */
    assert_int_equal(plan_value(plan, 0, conv).kind, PLACE_BUFFER);
    assert_null(plan_buffer(plan, 0, BUFFER_SAVED, conv)); /* the relu went behind the pool: transient */
    assert_non_null(plan_buffer(plan, 0, BUFFER_GRADIENT, conv));
    assert_int_equal(plan_value(plan, 0, pool).kind, PLACE_REGISTER_OUT);
    assert_int_equal(plan_value(plan, 1, pool).kind, PLACE_REGISTER_IN);
    assert_null(plan_buffer(plan, 1, BUFFER_GRADIENT, pool)); /* written straight into the register */
    assert_int_equal(plan->reg[0].slot_bytes, POOL);
    assert_int_equal(plan->traffic_bytes, 2 * POOL);
    assert_int_equal(plan->stage[0].transient_bytes, CONV + IMAGE); /* of the test pass */
    assert_int_equal(plan->stage[0].weight_floats, 160 + 16);       /* 150 and 6, rounded to lines of 16 */
    assert_int_equal(plan->stage[0].versions, 2);
    assert_int_equal(plan->stage[0].states, 1);
    assert_int_equal(plan->stage[1].versions, 1);
    assert_int_equal(plan->stage[0].register_bytes, POOL * (2 + 2 + 2));
    arena_free(l->arena);
}

static void a_dump_is_stable(void **state)
{
    (void)state;
    const char *first = NULL;
    Arena *arena = arena_new();
    for (int i = 0; i < 2; i++) {
        Lowered *l = lowered(lenet);
        Text text = text_new(l->arena);
        plan_dump(planned(l, preset("stale"), target_table[0]), &text);
        if (first)
            assert_string_equal(text.data, first);
        first = arena_text(arena, text.data, text.length);
        arena_free(l->arena);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_networks_keep_what_they_read),
        cmocka_unit_test(chains_take_the_two_largest_neighbours),
        cmocka_unit_test(random_blocks_never_overlap),
        cmocka_unit_test(an_overlap_is_found),
        cmocka_unit_test(lenet_by_hand),
        cmocka_unit_test(a_dump_is_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
