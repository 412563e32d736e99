/* place.h: where registers stand so that the slowest worker is as fast as can be.
 *
 * Two layers: place_solve on plain numbers, exact; place on a network: its candidate cuts, times and memory as those
 * numbers, the plan's own memory as the last word. */
#ifndef PNETC_PLACE_H
#define PNETC_PLACE_H

#include "predict.h"

/* ---- the problem in numbers (place_solve.c) ----
 * Boundaries 0 .. n in program order: 0 the beginning, n the end, the others where a register may stand. Sums over what
 * lies between two boundaries are differences of prefix sums. Load of stage s = [q, p): its work on its device, plus
 * the transfers over its two cuts where their links do not overlap; where one does, the transfer must itself fit.
 *
 * Workers are taken in order, by each stage one or several: replicas, which divide every minibatch (the partitioner of
 * PipeDream, Harlap et al. 2018, 3.1, and Narayanan et al. 2019, 3.1, but with the sum of the gradients added to the
 * work, as nothing here runs beside it). Its work is that of one of them: its slice, and its part of that sum. */
typedef struct {
    int replicas;
    const int64_t *const *work; /* by first worker: prefix sums, n + 1; NULL: they cannot begin with this worker */
    int copies;                 /* of the weights, in their unit; of all replicas */
    int64_t memory;             /* cap of all replicas; < 0: none */
} PlaceChoice;
typedef struct {
    const PlaceChoice *choice; /* ascending replicas */
    int nchoices;
    int ring;
    int64_t most_work;       /* cap of its own work, without transfers; < 0: none */
    const int64_t *transfer; /* behind it: time of a register at each boundary, both ways */
    bool overlap;            /* of the link behind it */
} PlaceStage;
typedef struct {
    int stage, worker, replicas, from, to; /* worker: its first; -1: whichever */
} PlaceBan;
typedef struct {
    int n;
    int nstages, workers; /* workers: at least one a stage */
    const PlaceStage *stage;
    const int64_t *stale; /* prefix sums: trainable scalars */
    int64_t most_stale;   /* of the last register's boundary; < 0: no limit */
    const bool *pin;      /* per boundary: a register stands here; NULL: none */
    /* Least memory of a stage: ring * max(0, saved[to] - saved_before[from]) + copies * (weights[to] - weights[from]);
     * saved_before is not less than saved, and neither falls. */
    const int64_t *saved, *saved_before, *weights;
    const PlaceBan *ban; /* intervals that a stage may not hold */
    int nbans;
} PlaceInput;

/* The placement with the least largest load; among those the one with the lowest last register (so with the fewest
 * stale weights), then with the fewest workers, then the lowest register before the last one, and so on.
 * cut[0 .. nstages - 2] and replicas[0 .. nstages - 1] out. Returns that load; -1: there is none. Without bans the time
 * is O(n S log(total)) for one worker a stage, and that times workers and choices with replicas. */
int64_t place_solve(const PlaceInput *in, int *cut, int *replicas);
bool place_possible(const PlaceInput *in); /* at any load */

/* ---- on a network (place_input.c, place_problem.c, place.c) ----
 * Registers stand between nodes of the fused graph, never inside a fused one, and not behind the loss. Replicas of a
 * stage are workers of one kind; their number divides the batch. They are considered where so many workers are wished
 * for and the target has them, and neither memory is minimised nor the balance limited: both are of stages without. */
typedef struct {
    Arena *arena;
    const Graph *written; /* its own cuts and its mapping are ignored: stages have one worker, or replicas */
    const Graph *graph;   /* fused, without cuts */
    const Backward *backward;
    const Settings *settings;
    const CostModel *model;
    AutoRegisters wishes;
    int n;              /* boundaries 0 .. n */
    NodeId *at;         /* per boundary: the node of the fused graph behind it */
    NodeId *low, *high; /* per boundary: first and last node of the written graph before which the cut is the same */
    bool *pin;
    double scale;  /* units of the solver in a second */
    int *replicas; /* that a stage may have, ascending from 1 */
    int nreplicas;
    /* Per kind of device, per number of replicas: prefix sums, n + 1; in stages that make their values again, or
     * not. */
    int64_t ***work, ***again;
    int64_t **transfer; /* per link, n + 1 */
    int64_t *stale, *saved, *saved_before, *weights;
} Placing;

/* Takes from the arena that the written graph is in. wishes NULL: none. NULL after an error at a wish. */
Placing *placing_new(Arena *arena, Diags *diags, const Graph *written, const Settings *settings, const CostModel *model,
                     const AutoRegisters *wishes);

typedef struct {
    int ncuts;            /* -1: there is no such placement */
    Cut *cut;             /* before nodes of the written graph */
    int *replicas;        /* per stage */
    int workers;          /* their sum */
    double load;          /* seconds of the slowest stage */
    int64_t least_memory; /* none because of memory: the least cap that could be met */
    double least_stale;   /* none because of max_stale: the least share */
    double least_balance; /* none because of balance: the least ratio; 0: it is not that */
} Placement;
/* Exactly nstages stages on at most so many workers; with as many as stages, none has replicas but those of the written
 * graph, where that has replicas of so many stages. The memory limit holds for the plan's own static bytes. */
Placement placing_solve(Placing *placing, int nstages, int workers);
bool placing_replicates(const Placing *placing); /* stages may have replicas */
/* The written graph with its cuts and replicas; and what it comes to. */
Graph placing_graph(const Placing *placing, const Placement *placed);
Outcome placing_outcome(const Placing *placing, const Placement *placed);
/* The machine has so many workers; else false after an error (P0721). */
bool enough_workers(Diags *diags, const Hardware *hardware, int workers, Span span);
/* Both are of no placement, for the same reason, and the nearest possible of the first is nearer. */
bool placing_nearer(const Placement *none, const Placement *than);
/* Reports why there is none, and the nearest possible: P0721. */
void placing_refused(Arena *arena, Diags *diags, const Placing *placing, const Placement *none, int nstages);
/* What stands before and behind a candidate cut, for people: "after pool1, before conv2". */
const char *placing_cut_text(Arena *arena, const Graph *written, NodeId before);
/* Node of the written graph right before a cut: after("...") places a register there. */
const char *cut_after(const Graph *written, NodeId before);

/* Fulfils registers = auto(...): a copy of the graph with its cuts. NULL after an error. */
Graph *place_registers(Arena *arena, Diags *diags, const Graph *written, const Settings *settings,
                       const CostModel *model);

#endif
