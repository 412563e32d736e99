/* settings_machine.c: machine blocks. Their keys belong to the cost model; here units, signs and double keys are
 * checked. */
#include "lower.h"

#include <string.h>

static const char *const unit_table[] = {
    "B",      "kB",      "MB",      "GB",      "TB",      "KiB",   "MiB",   "GiB",   "TiB",   /* memory          */
    "B/s",    "kB/s",    "MB/s",    "GB/s",    "TB/s",    "KiB/s", "MiB/s", "GiB/s", "TiB/s", /* bandwidth  */
    "bit/s",  "kbit/s",  "Mbit/s",  "Gbit/s",  "Tbit/s",                                      /* network links   */
    "FLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s",                                     /* compute         */
    "s",      "ms",      "us",      "ns",                                                     /* latency         */
    "Hz",     "kHz",     "MHz",     "GHz",     "W",       "kW",                               /* clock, power    */
};

static void check_quantity(Lower *l, const Expr *expr)
{
    bool known = false;
    for (int i = 0; i < COUNT(unit_table); i++)
        known |= !strcmp(unit_table[i], expr->text);
    if (!known) {
        FAIL(l, NULL, P0410, expr->span, "unknown unit %s", expr->text);
        const char *near = nearest(expr->text, unit_table, COUNT(unit_table));
        if (near)
            diag_hint(l->diags, "did you mean %s?", near);
        else
            diag_hint(l->diags, "units are such as GB/s, GFLOP/s, GiB, us, GHz");
    }
}

/* Nesting of blocks, and of expressions except to the left, is bounded by the parser. */
static void check_value(Lower *l, const Expr *expr)
{
    for (; expr; expr = expr->left) {
        if (expr->kind == EXPR_QUANTITY)
            check_quantity(l, expr);
        check_value(l, expr->right);
        for (int i = 0; i < expr->nargs; i++)
            check_value(l, expr->arg[i].value);
    }
}

static void check_settings(Lower *l, const Setting *setting, int count)
{
    NameMap seen = {0};
    for (int i = 0; i < count; i++) {
        const Setting *s = &setting[i];
        const Name key =
            s->value ? s->name : name_of(l->arena, arena_printf(l->arena, "%s %s", s->name, s->label ? s->label : ""));
        const int before = map_get(&seen, key);
        if (before >= 0) {
            FAIL(l, NULL, P0403, s->name_span, "%s%s%s is set twice", s->name, s->label ? " " : "",
                 s->label ? s->label : "");
            diag_note(l->diags, setting[before].name_span, "it is set here already");
        } else {
            map_set(l->arena, &seen, key, i);
        }
        if (s->value)
            check_value(l, s->value);
        else
            check_settings(l, s->inner, s->ninner);
    }
}

void lower_machine(Lower *l, const Item *item, Machine *out)
{
    check_settings(l, item->setting, item->nsettings);
    *out = (Machine){item->name, item->setting, item->nsettings, item->keyword};
}
