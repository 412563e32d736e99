/* report_html_balance.c: the time of the stages against each other; what crosses the registers between them. */
#include <math.h>

#include "report_html.h"

static const LegendEntry times[] = {{"F", "forward"}, {"B", "backward"}, {"U", "update of the weights"}};

static void verdict(const Page *page, Text *out)
{
    Arena *arena = out->arena;
    const Balance *b = page->balance;
    const Prediction *p = b->prediction;
    text_printf(out, "<p>");
    if (p->nstages == 1) {
        html_printf(out, "One stage, one worker: nothing to balance.");
    } else if (!b->overlaps) {
        html_printf(out, "Stages take turns in this schedule: no faster than one worker.");
    } else {
        html_printf(out, "%s: %s takes %.2f times the mean (up to %.2f is allowed). ",
                    b->unbalanced ? "Unbalanced" : "Balanced", prediction_slowest(arena, p), b->factor,
                    b->plan->sched->settings->pipeline.balance);
        if (p->parts > p->nstages)
            html_printf(out, "Each stage but the last has two workers; places are solved for stages of one.");
        else if (b->ncuts > 0)
            html_printf(out,
                        "A better cut: registers after %s, a step of %s, %.2f times one worker, %.3g %% of the "
                        "weights stale.",
                        balance_cuts_text(arena, page->written, b->cut, b->ncuts), human_seconds(arena, b->better.step),
                        b->better.speedup, 100 * b->better.stale_fraction);
        else
            html_printf(out, "No other cut into %d stages is faster, by this prediction.", p->nstages);
    }
    if (b->over_stale || b->over_memory)
        html_printf(out, " It exceeds %s of the pipeline block%s.",
                    b->over_stale && b->over_memory ? "max_stale and memory"
                    : b->over_stale                 ? "max_stale"
                                                    : "memory",
                    b->within.ncuts > 0 && b->kept.legal
                        ? arena_printf(arena, "; registers after %s keep the limits",
                                       balance_cuts_text(arena, page->written, b->within.cut, b->within.ncuts))
                        : "");
    if (p->workers < p->parts)
        html_printf(out, " %d %s share the %d worker%s of this machine.", p->parts,
                    p->parts > p->nstages ? "halves of stages" : "stages", p->workers, plural(p->workers));
    text_printf(out, "</p>\n<p>");
    if (p->nstages > 1)
        html_printf(out, "Step %s with %d worker%s; one worker alone takes %s: %s", human_seconds(arena, p->step),
                    p->workers, plural(p->workers), human_seconds(arena, p->one_worker),
                    balance_gains(b) ? arena_printf(arena,
                                                    "%.2f times as fast, efficiency %.0f %%; workers wait %.0f %% "
                                                    "of the time.",
                                                    p->speedup, 100 * p->speedup / p->workers, 100 * p->bubble)
                                     : "one worker is as fast or faster.");
    text_printf(out, "</p>\n");
}

/* The bar of a stage, or of a half of one. */
typedef struct {
    const char *name;
    double parts[COUNT(times)]; /* forward, backward, update */
    int worker, kind;
    bool slowest;
} Bar;

static void balance_bar(const Page *page, const Bar *bar, double most, double limit, Text *out)
{
    Arena *arena = out->arena;
    const Prediction *p = page->balance->prediction;
    const double all = bar->parts[0] + bar->parts[1] + bar->parts[2];
    double at = 0;
    html_bars(out,
              arena_printf(arena, "%s%s, worker %d (%s)", bar->name, bar->slowest ? ", the slowest" : "", bar->worker,
                           p->model->hardware->device[bar->kind].name),
              arena_printf(arena, "%s, %.0f %%", human_seconds(arena, all), p->work > 0 ? 100 * all / p->work : 0.0));
    for (int k = 0; k < COUNT(times); k++) {
        if (bar->parts[k] > 0 || all == 0)
            html_bar(out, times[k].style, at, bar->parts[k] / most, "%s: %s %s, %.1f %% of the stage", bar->name,
                     times[k].word, human_seconds(arena, bar->parts[k]), all > 0 ? 100 * bar->parts[k] / all : 0.0);
        at += bar->parts[k] / most;
    }
    if (limit > 0 && limit <= most)
        html_bar_mark(out, limit / most, "%s: %.2f times the mean", human_seconds(arena, limit),
                      page->balance->plan->sched->settings->pipeline.balance);
    html_bars_end(out);
}

void page_balance(const Page *page, Text *out)
{
    Arena *arena = out->arena;
    const Balance *b = page->balance;
    const Prediction *p = b->prediction;
    const double mean = p->work / p->parts, limit = mean * b->plan->sched->settings->pipeline.balance;
    const bool limited = b->overlaps && p->nstages > 1;
    const double most = fmax(1e-12, limited && limit < 2 * p->most ? fmax(p->most, limit) : p->most) * 1.02;
    html_section(out, "balance", "Balance of the stages",
                 "Work of a minibatch in each stage; the slowest sets the pace of all.%s",
                 limited && limit <= most ? " The line is the limit of the setting balance." : "");
    for (int s = 0; s < p->nstages; s++) {
        const StageTime *t = &p->stage[s];
        const double back = t->backward + t->update;
        const Bar whole = {.name = arena_printf(arena, "stage %d", s),
                           .parts = {t->forward, t->backward, t->update},
                           .worker = t->worker,
                           .kind = t->kind,
                           .slowest = limited && s == p->slowest};
        Bar half = whole;
        if (t->halves) {
            half.name = arena_printf(arena, "stage %d, forward", s);
            half.parts[1] = half.parts[2] = 0;
            half.slowest &= t->forward > back;
        }
        balance_bar(page, &half, most, limited ? limit : 0, out);
        if (!t->halves)
            continue;
        const Bar rest = {.name = arena_printf(arena, "stage %d, backward", s),
                          .parts = {0, t->backward, t->update},
                          .worker = t->back_worker,
                          .kind = t->back_kind,
                          .slowest = whole.slowest && t->forward <= back};
        balance_bar(page, &rest, most, limited ? limit : 0, out);
    }
    html_legend(out, times, COUNT(times));
    verdict(page, out);
    html_section_end(out);
}

/* ---- registers ---- */

typedef struct {
    int64_t there, back, values;
} Traffic;

static Traffic traffic(const Plan *plan, int cut)
{
    const Pipe *pipe = plan->sched->pipe;
    Traffic t = {0};
    for (int e = 0; e < pipe->nedges; e++) {
        if (pipe->edge[e].from != cut)
            continue;
        t.there += plan->reg[e].slot_bytes;
        t.back += pipe->edge[e].gradient ? plan->reg[e].slot_bytes : 0;
        t.values++;
    }
    return t;
}

/* Stages in a row, arrows as thick as the bytes they carry. */
static void register_chart(const Page *page, Text *out)
{
    enum { BOX = 96, GAP = 124, TOP = 42, HEIGHT = 62, THICKEST = 14 };
    Arena *arena = out->arena;
    const Plan *plan = page->balance->plan;
    const int n = plan->sched->pipe->nstages;
    int64_t most = 1;
    for (int s = 0; s + 1 < n; s++)
        most = traffic(plan, s).there > most ? traffic(plan, s).there : most;
    chart_open(out, "bytes over each register, there and back", n * BOX + (n - 1) * GAP + 4, TOP + HEIGHT + 42);
    for (int s = 0; s < n; s++) {
        const double x = 2 + s * (BOX + GAP);
        chart_box(out, "frame", x, TOP, BOX, HEIGHT, "stage %d: staleness %d, ring %d, %s static", s,
                  plan->sched->staleness[s], plan->sched->ring[s], human_bytes(arena, plan->stage[s].static_bytes));
        chart_text(out, "b m", x + BOX / 2.0, TOP + 28, "stage %d", s);
        chart_text(out, "small m", x + BOX / 2.0, TOP + 46, "%d update%s stale", plan->sched->staleness[s],
                   plural(plan->sched->staleness[s]));
        if (s + 1 == n)
            continue;
        const Traffic t = traffic(plan, s);
        const struct {
            const char *style, *word;
            int64_t bytes;
            double y, label, seconds;
            bool there;
        } ways[] = {
            {"flow", "there", t.there, TOP + 18, TOP - 4, page->balance->prediction->stage[s].give, true},
            {"back", "back", t.back, TOP + 44, TOP + HEIGHT + 14, page->balance->prediction->stage[s].back, false}};
        for (int k = 0; k < COUNT(ways); k++) {
            if (!ways[k].bytes)
                continue;
            const double thick = fmax(1.5, THICKEST * (double)ways[k].bytes / (double)most);
            const double x1 = x + BOX + 3, x2 = x + BOX + GAP - 3, tip = 9;
            text_printf(out, "<g><title>");
            html_printf(out, "register %d, %s: %s a %s, %s on the link", s + 1, ways[k].word,
                        human_bytes(arena, ways[k].bytes), page_slice(plan->sched->pipe->graph),
                        human_seconds(arena, ways[k].seconds));
            text_printf(out, "</title><path class=\"%s\" stroke-width=\"%.2f\" d=\"M%g %gH%g\"/>", ways[k].style, thick,
                        ways[k].there ? x1 : x1 + tip, ways[k].y, ways[k].there ? x2 - tip : x2);
            const double from = ways[k].there ? x2 - tip : x1 + tip, to = ways[k].there ? x2 : x1, wide = thick / 2 + 4;
            text_printf(out, "<path class=\"%s\" d=\"M%g %.2fL%g %gL%g %.2fZ\"/></g>\n", k ? "headB" : "headF", from,
                        ways[k].y - wide, to, ways[k].y, from, ways[k].y + wide);
            chart_text(out, "small m", x + BOX + GAP / 2.0, ways[k].label, "%s %s", human_bytes(arena, ways[k].bytes),
                       ways[k].word);
        }
    }
    chart_close(out);
}

void page_registers(const Page *page, Text *out)
{
    static const char *const columns[] = {"register", "value",    "shape", "a slot",
                                          "forward",  "gradient", "test",  "kept for"};
    static const char *const styles[] = {NULL, NULL, NULL, "n", "n", "n", "n", NULL};
    Arena *arena = out->arena;
    const Plan *plan = page->balance->plan;
    const Pipe *pipe = plan->sched->pipe;
    html_section(out, "registers", "Register traffic",
                 "What crosses the cuts: values forward (solid), their gradients back (dashed); %s a minibatch. "
                 "Columns forward, gradient and test are slots.",
                 human_bytes(arena, plan->traffic_bytes));
    register_chart(page, out);
    html_table(out, "registers", columns, styles, COUNT(columns));
    for (int e = 0; e < pipe->nedges; e++) {
        const Edge *edge = &pipe->edge[e];
        const RegisterPlan *reg = &plan->reg[e];
        const Node *node = &pipe->graph->node[edge->value];
        text_printf(out, "<tr>");
        html_cell(out, NULL, "%d: stage %d to %d", edge->from + 1, edge->from, edge->from + 1);
        html_cell(out, NULL, "%s", node->value_name);
        html_cell(out, NULL, "%s", element_shape_text(arena, pipe->graph, edge->value));
        html_cell(out, "n", "%s", human_bytes(arena, reg->slot_bytes));
        html_cell(out, "n", "%d", reg->forward_slots);
        html_cell(out, "n", "%d", reg->gradient_slots);
        html_cell(out, "n", "%d", reg->test_slots);
        html_cell(out, NULL, "%s",
                  edge->kept_consumer && edge->kept_producer ? "backward of both stages"
                  : edge->kept_consumer                      ? "backward behind it"
                  : edge->kept_producer                      ? "backward before it"
                  : edge->read_forward                       ? "forward only"
                                                             : "passed on only");
        text_printf(out, "</tr>\n");
    }
    html_table_end(out);
    html_section_end(out);
}
