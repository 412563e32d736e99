/* place_report.h: what `pnetc place` and `pnetc plan --all-schedules` print, and the source with registers written in.
 */
#ifndef PNETC_PLACE_REPORT_H
#define PNETC_PLACE_REPORT_H

#include "ast.h"
#include "place.h"

/* The best placement of each number of stages, and with replicas of each number of workers. */
typedef struct {
    Placement placed; /* ncuts -1: none */
    Outcome outcome;
} FrontRow;
typedef struct {
    const Placing *placing;
    FrontRow *row; /* row[n - 1]: n stages without replicas; behind these: with replicas, by workers */
    int nrows, nstraight;
    int best;    /* row of the fastest without replicas, the fewest stages among equals; -1: none */
    int fastest; /* row of the fastest of all; -1: none */
} Front;

/* 1 .. most workers, under the limits of the pipeline block and of its auto(...). NULL after an error. */
const Front *place_front(Arena *arena, Diags *diags, const Graph *written, const Settings *settings,
                         const CostModel *model, int most);
/* The row that the pipeline block asks for: of auto(stages = n), the fastest of auto(workers = n) with its replicas;
 * where it does not ask, or --workers (0: not given) counts instead of its stages, the fastest without. -1: none. */
int front_chosen(const Front *front, const AutoRegisters *wished, int workers);
/* No other row is at least as fast with at most its stale weights and memory, and better in one of them. */
bool front_holds(const Front *front, int row);
/* Says why so many stages (0: any number) cannot be had: P0721. */
void place_refused(Arena *arena, Diags *diags, const Front *front, int asked);
/* As the setting `replicas` is written: "(1, 2)", "4". */
const char *replicas_text(Arena *arena, const int *replicas, int nstages);
/* The table, and why each register of the chosen row (-1: none) stands where it does. */
void report_front(const Front *front, int chosen, Text *out);
void report_front_json(const Front *front, int chosen, Text *out);

/* The network with its registers under the preset as the only phase. */
Outcome outcome_of_preset(const Graph *written, const Settings *settings, const CostModel *model,
                          const PresetDef *preset);
/* The preset slices minibatches, and those of the network are not sliced. */
bool preset_lacks_slices(const Graph *written, const Settings *settings, const PresetDef *preset);
/* One line a preset: bubble, memory, traffic, staleness, speed. The cuts are those of `written`. */
void report_schedules(const Graph *written, const Settings *settings, const CostModel *model, Text *out);
void report_schedules_json(const Graph *written, const Settings *settings, const CostModel *model, Text *out);

/* place_write.c: the canonical text of the file that `ast` (as load() gave it) comes from, with these registers and
 * replicas instead of those it has: `register` statements where all stand between statements of the network, else
 * registers = after(...) in the pipeline block. NULL after an error (P0722). *by_setting: it is the latter. `written`
 * has the registers of the file; `overrides` are those of the command line. */
const char *place_write(Arena *arena, Diags *diags, Sources *sources, const Ast *ast, const Graph *written,
                        const Placement *placed, Override *overrides, int noverrides, bool *by_setting);

#endif
