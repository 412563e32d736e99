/* order.h: orders, weight rules and presets: what a schedule is made of. One const struct in schedules/<name>.c, one
 * line in schedules/orders.def, rules.def or presets.def. */
#ifndef PNETC_ORDER_H
#define PNETC_ORDER_H

#include "base.h"

/* Forward and backward are steps of a microbatch (a minibatch is one or several), an update is one of a minibatch. A
 * backward may be split (Qi et al. 2023, Zero Bubble Pipeline Parallelism, section 2): in a body with a W, B makes the
 * gradients of values, on which the stage before waits, and W later those of the weights, for which nobody waits. */
typedef enum { STEP_FORWARD, STEP_BACKWARD, STEP_WEIGHTS, STEP_UPDATE, STEP_TEST } StepKind;
enum { STEP_KINDS = STEP_TEST + 1 };
enum { MAX_MICROBATCHES = 256, MAX_BODY = 4 * MAX_MICROBATCHES };
typedef struct {
    int warmup;              /* forwards before the body */
    char body[MAX_BODY + 1]; /* letters: "FBU", "FFFFBBBBU", "FBWFBWU" */
} StageOrder;
char step_letter(StepKind kind); /* F B W U T */
StepKind step_kind(char letter);
void order_add(StageOrder *order, int times, const char *letters); /* to the body */
bool order_splits(const StageOrder *order);                        /* its backwards have weight parts */

typedef struct {
    int stage, nstages, microbatches; /* microbatches: of a minibatch; 1: it is not sliced */
} OrderPlace;
typedef struct OrderDef {
    const char *name, *doc, *source; /* source: paper and section */
    bool slices;                     /* needs microbatches: with one it is `sequential` */
    void (*order)(
        OrderPlace at,
        StageOrder *
            out); /* out is empty; each body updates once, behind all backwards and, if there are any, as many weight parts */
} OrderDef;
/* The version of the weights that a forward reads: the current one; the one that stage 0 read for this microbatch; the
 * one without the last minibatch's update, as its minibatch finds it (the first of a phase: the current one). */
typedef enum { READS_CURRENT, READS_FIRST, READS_BEFORE } Reads;
typedef struct RuleDef {
    const char *name, *doc, *source;
    bool backward_reads_own; /* backward reads the version its forward read; else the current one */
    Reads forward_reads;
    bool recomputes; /* only what a stage takes is kept: each backward makes its forward's values again */
    int most_stale;  /* refused where a backward is more updates behind its forward; 0: never */
    int (*versions)(int staleness); /* copies of the stage's weights */
    /* Updates by which the weights are predicted, from the delay of the stage and of the first one; NULL: none. */
    int (*forward_ahead)(int delay, int first_delay), (*backward_ahead)(int delay, int first_delay);
} RuleDef;
typedef struct {
    const char *name, *order, *rule, *doc, *source;
} PresetDef;

extern const OrderDef *const order_table[];
extern const int order_count;
extern const RuleDef *const rule_table[];
extern const int rule_count;
extern const PresetDef preset_table[];
extern const int preset_count;
void schedule_list(Text *out); /* pnetc list schedules */

#endif
