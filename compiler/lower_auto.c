/* lower_auto.c: registers = auto(...): what the user wishes of the placement, checked. place.c fulfils it. */
#include "lower.h"
#include "machine.h"

#include <string.h>

enum { STAGES, WORKERS, REPLICAS, MAX_STALE, MEMORY, BALANCE, MINIMIZE, ALLOW, FORBID, PIN, KEYS };
static const char *const key[KEYS] = {"stages",  "workers",  "replicas", "max_stale", "memory",
                                      "balance", "minimize", "allow",    "forbid",    "pin"};

bool lower_bytes(Lower *l, const Expr *expr, const char *what, int64_t *bytes)
{
    if (expr->kind == EXPR_TEXT && bytes_from_text(expr->text, bytes) && *bytes > 0)
        return true;
    FAIL(l, NULL, P0404, expr->span, "%s is a size with its unit, as text", what);
    diag_hint(l->diags, "%s = \"512 MiB\"", what);
    return false;
}

static void read_count(Lower *l, const Arg *arg, const char *what, int *out)
{
    int64_t n = 0;
    if (!value_want_integer(l, &l->file, lower_expr(l, &l->file, arg->value, NULL), arg->value->span, what, &n))
        return;
    if (n < 1 || n > MAX_STAGES) {
        FAIL(l, NULL, P0720, arg->value->span, "%s must be from 1 to %d, found %lld", what, MAX_STAGES, (long long)n);
        return;
    }
    *out = (int)n;
}

static void read_places(Lower *l, const Arg *arg, const char *what, const NodeId *to, Cut **list, int *count)
{
    Cuts cuts = {0};
    if (!lower_places(l, arg->value, to, &cuts)) {
        FAIL(l, NULL, P0720, arg->value->span, "%s wants positions: after(...) or ppv(...)", what);
        diag_hint(l->diags, "%s = after(pool1)", what);
        return;
    }
    *list = cuts.at;
    *count = cuts.count;
}

static void read_minimize(Lower *l, const Arg *arg, bool *least_memory)
{
    static const char *const words[] = {"time", "memory"};
    const Expr *word = arg->value;
    const bool named = word->kind == EXPR_NAME || word->kind == EXPR_TEXT;
    for (int i = 0; named && i < COUNT(words); i++)
        if (!strcmp(word->text, words[i])) {
            *least_memory = i == 1;
            return;
        }
    FAIL(l, NULL, P0720, word->span, "minimize is time or memory");
}

void lower_auto(Lower *l, const Expr *call, const NodeId *to)
{
    const Pipeline *pipeline = &l->settings->pipeline;
    AutoRegisters *out = &l->settings->pipeline.automatic;
    const Arg *slot[KEYS] = {0};
    if (!bind_arguments(l, &l->file, call, 0, key, KEYS, slot, (Span){0, 0}))
        return;
    *out = (AutoRegisters){
        .wanted = true,
        .max_stale = pipeline->max_stale,
        .memory = pipeline->memory,
        .span = call->span,
        .count_span = call->span,
        .workers_span = call->span,
        .max_stale_span = pipeline->max_stale_span,
        .memory_span = pipeline->memory_span,
    };
    if (!slot[STAGES] && !slot[WORKERS]) {
        FAIL(l, NULL, P0720, call->span, "auto wants stages = n, workers = n or both");
        diag_hint(l->diags,
                  "stages: exactly n; workers: at most n, replicas of stages counted, as many as are fastest");
        return;
    }
    out->count_span = slot[slot[STAGES] ? STAGES : WORKERS]->value->span;
    if (slot[STAGES])
        read_count(l, slot[STAGES], "stages", &out->stages);
    if (slot[WORKERS])
        out->workers_span = slot[WORKERS]->value->span;
    if (slot[WORKERS])
        read_count(l, slot[WORKERS], "workers", &out->workers);
    if (out->workers && out->workers < out->stages) {
        FAIL(l, NULL, P0720, slot[WORKERS]->value->span, "%d workers are too few for %d stages", out->workers,
             out->stages);
        diag_hint(l->diags, "workers = %d, or stages = %d alone to let stages share workers", out->stages, out->stages);
    }
    bool replicas = true;
    if (slot[REPLICAS])
        value_want_bool(l, &l->file, lower_expr(l, &l->file, slot[REPLICAS]->value, NULL), slot[REPLICAS]->value->span,
                        "replicas of auto", &replicas);
    out->no_replicas = !replicas;
    if (slot[MAX_STALE]) {
        const Span span = slot[MAX_STALE]->value->span;
        double share = 0;
        if (value_want_number(l, &l->file, lower_expr(l, &l->file, slot[MAX_STALE]->value, NULL), span, "max_stale",
                              &share) &&
            (share < 0 || share > 1))
            FAIL(l, NULL, P0720, span, "max_stale is a share of the weights, from 0 to 1, found %g", share);
        out->max_stale = share;
        out->max_stale_span = span;
    }
    if (slot[MEMORY] && lower_bytes(l, slot[MEMORY]->value, "memory", &out->memory))
        out->memory_span = slot[MEMORY]->value->span;
    if (slot[BALANCE]) {
        const Span span = slot[BALANCE]->value->span;
        if (value_want_number(l, &l->file, lower_expr(l, &l->file, slot[BALANCE]->value, NULL), span, "balance",
                              &out->balance) &&
            !(out->balance >= 1 && out->balance <= 1000000))
            FAIL(l, NULL, P0720, span, "balance is the slowest stage over the mean, at least 1, found %g",
                 out->balance);
        out->balance_span = span;
    }
    if (slot[MINIMIZE])
        read_minimize(l, slot[MINIMIZE], &out->least_memory);
    out->limited = slot[ALLOW] != NULL;
    if (slot[ALLOW])
        read_places(l, slot[ALLOW], "allow", to, &out->allow, &out->nallow);
    if (slot[FORBID])
        read_places(l, slot[FORBID], "forbid", to, &out->forbid, &out->nforbid);
    if (slot[PIN])
        read_places(l, slot[PIN], "pin", to, &out->pin, &out->npin);
    const int least = out->npin + 1, most = out->stages ? out->stages : out->workers;
    if (most && least > most) {
        FAIL(l, NULL, P0720, out->count_span, "%d pinned register%s make%s %d stages, more than %d", out->npin,
             out->npin == 1 ? "" : "s", out->npin == 1 ? "s" : "", least, most);
        diag_hint(l->diags, "the nearest possible is %s = %d", out->stages ? "stages" : "workers", least);
    }
}
