/* order.h: orders, weight rules and presets: what a schedule is made of. One const struct in schedules/<name>.c, one
 * line in schedules/orders.def, rules.def or presets.def. */
#ifndef PNETC_ORDER_H
#define PNETC_ORDER_H

#include "base.h"

typedef enum { STEP_FORWARD, STEP_BACKWARD, STEP_UPDATE, STEP_TEST } StepKind;
enum { MAX_BODY = 8 };
typedef struct {
    int warmup;
    StepKind body[MAX_BODY];
    int nbody;
} StageOrder;

typedef struct OrderDef {
    const char *name, *doc, *source; /* source: paper and section */
    void (*order)(int stage, int nstages, StageOrder *out);
} OrderDef;
typedef struct RuleDef {
    const char *name, *doc, *source;
    bool backward_reads_own;        /* backward reads the version its forward read; else the current one */
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
