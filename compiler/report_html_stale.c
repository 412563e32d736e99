/* report_html_stale.c: which weights are stale, by how much, and what is done about it. */
#include "report_html.h"
#include "stability.h"

static int64_t parameters(const Pipe *pipe)
{
    int64_t sum = 0;
    for (int s = 0; s < pipe->nstages; s++)
        sum += pipe->stage[s].params;
    return sum;
}

static void weight_bars(const Sched *sched, Text *out)
{
    static const LegendEntry entries[] = {{"O", "stale"}, {"V", "current"}};
    Arena *arena = out->arena;
    const int64_t all = parameters(sched->pipe);
    double at = 0;
    html_bars(out, arena_printf(arena, "%lld parameters", (Int)all),
              arena_printf(arena, "%.3g %% stale", 100 * sched->stale_fraction));
    for (int s = 0; s < sched->pipe->nstages; s++) {
        const int64_t params = sched->pipe->stage[s].params;
        const double share = all > 0 ? (double)params / (double)all : 0;
        const bool stale = sched->phase[0].staleness[s] > 0;
        html_bar(out, entries[stale ? 0 : 1].style, at, share, "stage %d: %lld parameters, %.3g %%\n%s", s, (Int)params,
                 100 * share,
                 stale ? arena_printf(arena, "stale by %d update%s", sched->phase[0].staleness[s],
                                      plural(sched->phase[0].staleness[s]))
                       : "current");
        at += share;
    }
    html_bars_end(out);
    html_legend(out, entries, COUNT(entries));
}

static void stage_row(const Sched *sched, int p, int s, Text *out)
{
    const Phase *phase = &sched->phase[p];
    const int64_t all = parameters(sched->pipe), params = sched->pipe->stage[s].params;
    const double number = stability_number(sched->settings, phase->choice, phase->staleness[s]);
    text_printf(out, "<tr>");
    html_cell(out, NULL, "%d", s);
    html_cell(out, NULL, "%s", phase->choice->preset);
    html_cell(out, "n", "%.3g %%", all > 0 ? 100.0 * (double)params / (double)all : 0.0);
    html_cell(out, "n", "%d", phase->staleness[s]);
    html_cell(out, "n", "%s",
              phase->staleness[s] == 0 ? "0"
              : number < 0             ? "not known"
                                       : arena_printf(out->arena, "%.3g", number));
    html_cell(out, "w", "%s", phase->cure[s].active ? cure_text(out->arena, &phase->cure[s]) : "nothing");
    text_printf(out, "</tr>\n");
}

void page_staleness(const Page *page, Text *out)
{
    static const char *const columns[] = {"stage",     "schedule",         "weights",
                                          "staleness", "stability number", "corrections"};
    static const char *const styles[] = {NULL, NULL, "n", "n", "n", NULL};
    const Sched *sched = page->balance->plan->sched;
    const Stability worst = stability_judge(sched);
    html_section(
        out, "staleness", "Stale weights",
        "All weights before the last register are stale: between the forward and the backward of a minibatch their "
        "stage makes as many updates as its staleness. It is the share of stale weights that costs accuracy.");
    weight_bars(sched, out);
    html_table(out, "staleness of the stages", columns, styles, COUNT(columns));
    for (int p = 0; p < sched->nphases; p++)
        for (int s = 0; s < sched->pipe->nstages; s++)
            stage_row(sched, p, s, out);
    html_table_end(out);
    text_printf(out, "<p>");
    html_printf(out,
                "The stability number tells how near a stage is to divergence: lr / (1 - momentum) times (staleness + "
                "1/2), with the highest learning rate. With batch normalisation little is lost up to %g; over %g not "
                "even corrections help enough.",
                stability_enough, stability_most);
    if (worst.most > 0)
        html_printf(out, " Here it is %.3g at most, in stage %d.", worst.most, worst.stage);
    text_printf(out, "</p>\n");
    html_section_end(out);
}
