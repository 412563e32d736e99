/* report_html_memory.c: every byte of every stage: what it is, where its transient part lies, and when. */
#include <math.h>

#include "report_html.h"

static const LegendEntry parts[] = {
    {"S", "saved for backward, in rings"}, {"T", "transient, shared in time"}, {"V", "weights, all copies"},
    {"G", "gradients of weights"},         {"O", "optimiser state"},           {"N", "running statistics"},
    {"R", "registers it gives"},
};

static const char *kind_word(BufferKind kind)
{
    static const char *const words[BUFFER_KINDS] = {[BUFFER_SAVED] = "saved value",
                                                    [BUFFER_AGAIN] = "value made again",
                                                    [BUFFER_AUX] = "saved aux",
                                                    [BUFFER_KEPT] = "kept gradient",
                                                    [BUFFER_VALUE] = "value",
                                                    [BUFFER_GRADIENT] = "gradient",
                                                    [BUFFER_PARTIAL] = "partial gradient",
                                                    [BUFFER_TEST] = "value of a test"};
    return words[kind];
}

static void stage_bar(const Page *page, int s, int64_t most, Text *out)
{
    Arena *arena = out->arena;
    const Plan *plan = page->balance->plan;
    const StagePlan *stage = &plan->stage[s];
    const Graph *graph = plan->sched->pipe->graph;
    const int copies = stage->versions + stage->ahead + stage->masters;
    const int64_t bytes[] = {0,
                             stage->transient_bytes + stage->forward_transient_bytes,
                             weight_bytes(stage) - gradient_bytes(stage) - 4 * stage->weight_floats * stage->states,
                             gradient_bytes(stage),
                             4 * stage->weight_floats * stage->states,
                             stage->running_floats * 4,
                             stage->register_bytes};
    html_bars(out,
              arena_printf(arena, "stage %d: ring %d, %d cop%s of the weights", s, plan->sched->ring[s], copies,
                           copies == 1 ? "y" : "ies"),
              human_bytes(arena, stage->static_bytes));
    double at = 0;
    for (int i = 0; i < stage->nbuffers; i++) {
        const Buffer *buffer = &stage->buffer[i];
        if (buffer_is_transient(buffer->kind))
            continue;
        const double share = (double)buffer->bytes * buffer->slots / (double)most;
        if (share > 0.0002)
            html_bar(out, "S thin", at, share, "stage %d: %s %s\n%s in %d slot%s of %s", s, kind_word(buffer->kind),
                     graph->node[buffer->value].value_name, human_bytes(arena, buffer->bytes * buffer->slots),
                     buffer->slots, plural(buffer->slots), human_bytes(arena, buffer->bytes));
        at += share;
    }
    for (int k = 1; k < COUNT(bytes); k++) {
        const double share = (double)bytes[k] / (double)most;
        if (bytes[k] > 0)
            html_bar(out, parts[k].style, at, share, "stage %d: %s\n%s", s, parts[k].word,
                     human_bytes(arena, bytes[k]));
        at += share;
    }
    html_bars_end(out);
}

/* ---- the map ---- */

typedef struct {
    double left, top, height, pitch, test_left; /* pixels; of a step */
    int64_t bytes, forward_at; /* forward_at: where the area of a forward half is drawn, above the other */
    int nodes;
} Map;

static void map_buffer(const Page *page, const Map *map, int s, const Buffer *buffer, Text *out)
{
    Arena *arena = out->arena;
    const char *name = page->balance->plan->sched->pipe->graph->node[buffer->value].value_name;
    const bool test = buffer->kind == BUFFER_TEST, gradient = buffer->kind == BUFFER_GRADIENT;
    const double x = (test ? map->test_left : map->left) + buffer->born * map->pitch;
    const double width = (buffer->dies - buffer->born + 1) * map->pitch;
    const double height = map->height * (double)buffer->bytes / (double)map->bytes;
    const bool forward = buffer_area(buffer->kind, page->balance->plan->sched->pipe->stage[s].halves) == AREA_FORWARD;
    const int64_t end = buffer->offset + buffer->bytes + (forward ? map->forward_at : 0);
    const double y = map->top + map->height * (1 - (double)end / (double)map->bytes);
    chart_box(out,
              gradient                         ? "B thin"
              : buffer->kind == BUFFER_PARTIAL ? "O thin"
              : test                           ? "U thin"
                                               : "F thin",
              x, y, width, fmax(1, height), "stage %d: %s %s\n%s at %s\nsteps %d to %d", s, kind_word(buffer->kind),
              name, human_bytes(arena, buffer->bytes), human_bytes(arena, buffer->offset), buffer->born, buffer->dies);
    if (height >= 14 && chart_width(name, 11) < width - 6)
        chart_text(out, "small m halo ink", x + width / 2, y + height / 2 + 4, "%s", name);
}

static void stage_map(const Page *page, int s, Text *out)
{
    enum { LEFT = 70, GAP = 24, TOP = 24, HEIGHT = 170, BOTTOM = 22 };
    Arena *arena = out->arena;
    const Plan *plan = page->balance->plan;
    const StagePlan *plan_of = &plan->stage[s];
    const Stage *stage = &plan->sched->pipe->stage[s];
    Map map = {.left = LEFT,
               .top = TOP,
               .height = HEIGHT,
               .bytes = plan_of->transient_bytes + plan_of->forward_transient_bytes,
               .forward_at = plan_of->transient_bytes};
    map.nodes = stage->last - stage->first;
    map.pitch = fmin(40, (PAGE_WIDTH - LEFT - GAP - 10) / (3.0 * map.nodes));
    map.test_left = LEFT + 2 * map.nodes * map.pitch + GAP;
    text_printf(out, "<h3>");
    html_printf(out, "Stage %d, transient memory over a %s: %s", s, page_slice(plan->sched->pipe->graph),
                human_bytes(arena, map.bytes));
    text_printf(out, "</h3>\n");
    if (map.bytes == 0) {
        text_printf(out, "<p>This stage has none.</p>\n");
        return;
    }
    const double end = map.test_left + map.nodes * map.pitch;
    chart_open(out, arena_printf(arena, "transient buffers of stage %d by time and place", s), fmax(end + 10, 340),
               TOP + HEIGHT + BOTTOM);
    const double step = chart_step((double)map.bytes, 3);
    for (int i = 0; i * step <= (double)map.bytes * 1.0001; i++) {
        const double y = TOP + HEIGHT * (1 - i * step / (double)map.bytes);
        chart_line(out, "grid", LEFT, y, map.test_left - GAP, y);
        chart_line(out, "grid", map.test_left, y, end, y);
        chart_text(out, "small e", LEFT - 6, y + 4, "%s", human_bytes(arena, (int64_t)(i * step)));
    }
    const double half = map.nodes * map.pitch;
    const struct {
        const char *word;
        double from;
    } heads[] = {{"forward", LEFT}, {"backward", LEFT + half}, {"test pass", map.test_left}};
    for (int i = 0; i < COUNT(heads); i++)
        if (chart_width(heads[i].word, 11) < half + (i == 2 ? 10 : 0))
            chart_text(out, "small m", heads[i].from + half / 2, TOP - 8, "%s", heads[i].word);
    for (int i = 0; i < plan_of->nbuffers; i++)
        if (plan_of->buffer[i].offset >= 0)
            map_buffer(page, &map, s, &plan_of->buffer[i], out);
    chart_line(out, "cut", LEFT + half, TOP - 4, LEFT + half, TOP + HEIGHT);
    chart_line(out, "axis", LEFT, TOP + HEIGHT, map.test_left - GAP, TOP + HEIGHT);
    chart_line(out, "axis", map.test_left, TOP + HEIGHT, end, TOP + HEIGHT);
    chart_text(out, "small", LEFT, TOP + HEIGHT + 16, "time: %d steps, a node each", 2 * map.nodes);
    chart_close(out);
}

void page_memory(const Page *page, Text *out)
{
    enum { OPEN = 8 }; /* stages whose maps are shown at once */
    static const LegendEntry kinds[] = {
        {"F", "value"}, {"B", "gradient"}, {"O", "further part of a gradient"}, {"U", "value of a test pass"}};
    const Plan *plan = page->balance->plan;
    const int n = plan->sched->pipe->nstages;
    int64_t most = 1;
    for (int s = 0; s < n; s++)
        most = plan->stage[s].static_bytes > most ? plan->stage[s].static_bytes : most;
    html_section(out, "memory", "Memory",
                 "All of it is static: %s. A ring has a slot for each %s in flight at its stage; transient "
                 "buffers lie over each other where they never live at one time.",
                 human_bytes(out->arena, plan->static_bytes), page_slice(plan->sched->pipe->graph));
    for (int s = 0; s < n; s++)
        stage_bar(page, s, most, out);
    html_legend(out, parts, COUNT(parts));
    text_printf(out, "<details%s><summary>Maps of the transient memory: time to the right, place upwards</summary>\n",
                n <= OPEN ? " open=\"\"" : "");
    html_legend(out, kinds, COUNT(kinds));
    for (int s = 0; s < n; s++)
        stage_map(page, s, out);
    text_printf(out, "</details>\n");
    html_section_end(out);
}
