/* machine.c: machine blocks -> Hardware. Every number is checked: its unit, its sign, its size. */
#include <math.h>
#include <string.h>

#include "machine.h"

typedef struct {
    Arena *arena;
    Diags *diags;
    bool failed;
} Reader;

#define FAIL(r, code, span, ...) (diag_error((r)->diags, (code), (span), __VA_ARGS__), (r)->failed = true)

/* One key of a block. UNIT_OTHER: a plain number. */
typedef struct {
    const char *name;
    UnitKind unit;
    double low, high; /* inclusive, in base units */
    const char *example;
    bool required, whole;
} Key;

enum { COMPUTE, BANDWIDTH, MEMORY, OVERHEAD, HALF_WIDTH, WINOGRAD, DEVICE_COUNT, DEVICE_KEYS };
static const Key device_key[DEVICE_KEYS] = {
    [COMPUTE] = {"compute", UNIT_FLOPS, 1e6, 1e18, "116 GFLOP/s", true, false},
    [BANDWIDTH] = {"bandwidth", UNIT_BYTES_A_SECOND, 1e5, 1e16, "40 GB/s", true, false},
    [MEMORY] = {"memory", UNIT_BYTES, 1e5, 1e15, "32 GiB", false, false},
    [OVERHEAD] = {"overhead", UNIT_SECONDS, 0, 1, "10 us", false, false},
    [HALF_WIDTH] = {"half_width", UNIT_OTHER, 0, 1e6, "7", false, false},
    [WINOGRAD] = {"winograd", UNIT_OTHER, 1e-6, 10, "0.8", false, false},
    [DEVICE_COUNT] = {"count", UNIT_OTHER, 1, MAX_STAGES, "2", false, true},
};
enum { LINK_BANDWIDTH, LATENCY, LINK_KEYS };
static const Key link_key[LINK_KEYS] = {
    [LINK_BANDWIDTH] = {"bandwidth", UNIT_BYTES_A_SECOND, 1e3, 1e16, "25 GB/s", false, false},
    [LATENCY] = {"latency", UNIT_SECONDS, 0, 10, "5 us", false, false},
};
static const Key efficiency_key = {"efficiency", UNIT_OTHER, 1e-6, 10, "0.6", false, false};

/* The number of `expr` in base units; false after an error. */
static bool read_number(Reader *r, const Key *key, const Expr *expr, double *out)
{
    UnitKind kind = UNIT_OTHER;
    double factor = 1, sign = 1;
    while (expr->kind == EXPR_UNARY && expr->op == OP_NEG) {
        sign = -sign;
        expr = expr->left;
    }
    if (expr->kind != EXPR_QUANTITY && expr->kind != EXPR_INTEGER && expr->kind != EXPR_REAL) {
        FAIL(r, P0703, expr->span, "%s is a number, as %s = %s", key->name, key->name, key->example);
        return false;
    }
    if (expr->kind == EXPR_QUANTITY && !unit_find(expr->text, &kind, &factor)) {
        FAIL(r, P0410, expr->span, "unknown unit %s", expr->text);
        const char *near = unit_nearest(expr->text, key->unit);
        diag_hint(r->diags, near ? "did you mean %s?" : "%s = %s", near ? near : key->name, key->example);
        return false;
    }
    if ((expr->kind == EXPR_QUANTITY) != (key->unit != UNIT_OTHER) || kind != key->unit) {
        if (expr->kind == EXPR_QUANTITY)
            FAIL(r, P0703, expr->span, "%s is not measured in %s", key->name, expr->text);
        else
            FAIL(r, P0703, expr->span, "%s needs a unit", key->name);
        diag_hint(r->diags, "%s = %s", key->name, key->example);
        return false;
    }
    const double number = sign * factor * (expr->kind == EXPR_INTEGER ? (double)expr->integer : expr->real);
    if (!(number >= key->low && number <= key->high)) {
        const char *low = quantity_text(r->arena, key->low, key->unit),
                   *high = quantity_text(r->arena, key->high, key->unit);
        FAIL(r, P0704, expr->span, "%s is %s, not from %s to %s", key->name, quantity_text(r->arena, number, key->unit),
             low, high);
        diag_hint(r->diags, "the nearest possible is %s = %s", key->name, number < key->low ? low : high);
        return false;
    }
    if (key->whole && floor(number) != number) {
        FAIL(r, P0704, expr->span, "%s must be a whole number, found %g", key->name, number);
        diag_hint(r->diags, "the nearest possible is %s = %g", key->name, round(number));
        return false;
    }
    *out = number;
    return true;
}

static void unknown_key(Reader *r, const Setting *s, const char *what, const char *const *names, int count)
{
    FAIL(r, P0702, s->name_span, "a %s has no %s", what, s->name);
    const char *near = nearest(s->name, names, count);
    Text all = text_new(r->arena);
    for (int i = 0; i < count; i++)
        text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    diag_hint(r->diags, near ? "did you mean %s?" : "it has %s", near ? near : all.data);
}

/* True if an earlier setting has the same name (and label); reported. */
static bool set_twice(Reader *r, const Setting *list, int i)
{
    for (int k = 0; k < i; k++)
        if (list[k].name == list[i].name && list[k].label == list[i].label) {
            FAIL(r, P0403, list[i].name_span, "%s%s%s is set twice", list[i].name, list[i].label ? " " : "",
                 list[i].label ? list[i].label : "");
            diag_note(r->diags, list[k].name_span, "it is set here already");
            return true;
        }
    return false;
}

/* Reads the plain keys of a block into number[]; NAN: not given. Other settings go to `further`, which may refuse. */
static void read_block(Reader *r, const Setting *block, const Key *key, int nkeys, double *number,
                       bool (*further)(Reader *r, const Setting *s, void *context), void *context, const char *what,
                       const char *further_name)
{
    const char *names[8];
    for (int i = 0; i < nkeys; i++) {
        names[i] = key[i].name;
        number[i] = NAN;
    }
    names[nkeys] = further_name;
    for (int i = 0; i < block->ninner; i++) {
        const Setting *s = &block->inner[i];
        if (set_twice(r, block->inner, i))
            continue;
        int at = 0;
        while (at < nkeys && strcmp(key[at].name, s->name))
            at++;
        if (at < nkeys && s->value)
            read_number(r, &key[at], s->value, &number[at]);
        else if (at < nkeys || !further(r, s, context))
            unknown_key(r, s, what, names, nkeys + 1);
    }
    for (int i = 0; i < nkeys; i++)
        if (key[i].required && isnan(number[i]) && !r->failed) {
            FAIL(r, P0705, block->name_span, "the %s%s%s states no %s", what, block->label ? " " : "",
                 block->label ? block->label : "", key[i].name);
            diag_hint(r->diags, "%s = %s", key[i].name, key[i].example);
        }
}

static bool read_efficiency(Reader *r, const Setting *s, void *context)
{
    Device *device = context;
    if (strcmp(s->name, "efficiency") || s->value)
        return false;
    for (int i = 0; i < s->ninner; i++) {
        const Setting *one = &s->inner[i];
        int op = 0;
        while (op < op_count && strcmp(op_table[op]->name, one->name))
            op++;
        if (set_twice(r, s->inner, i))
            continue;
        if (op < op_count && one->value) {
            read_number(r, &efficiency_key, one->value, &device->efficiency[op]);
            continue;
        }
        FAIL(r, P0702, one->name_span, "there is no op %s", one->name);
        const char *near = op_nearest(one->name);
        if (near)
            diag_hint(r->diags, "did you mean %s?", near);
    }
    return true;
}

static bool read_overlap(Reader *r, const Setting *s, void *context)
{
    Link *link = context;
    if (strcmp(s->name, "overlap") || !s->value)
        return false;
    if (s->value->kind != EXPR_BOOL)
        FAIL(r, P0703, s->value->span, "overlap is yes or no");
    link->overlap = s->value->kind == EXPR_BOOL && s->value->integer;
    return true;
}

static double or_else(double number, double fallback)
{
    return isnan(number) ? fallback : number;
}

static Device read_device(Reader *r, const Setting *block)
{
    Device device = {.name = block->label ? block->label : "device",
                     .efficiency = arena_alloc(r->arena, sizeof(double) * (size_t)op_count)};
    for (int i = 0; i < op_count; i++)
        device.efficiency[i] = 1;
    double number[DEVICE_KEYS];
    read_block(r, block, device_key, DEVICE_KEYS, number, read_efficiency, &device, "device", "efficiency { }");
    device.compute = number[COMPUTE];
    device.bandwidth = number[BANDWIDTH];
    device.memory = (int64_t)or_else(number[MEMORY], 0);
    device.overhead = or_else(number[OVERHEAD], 0);
    device.half_width = or_else(number[HALF_WIDTH], 0);
    device.winograd = or_else(number[WINOGRAD], 0);
    device.count = (int)or_else(number[DEVICE_COUNT], 1);
    return device;
}

static Link read_link(Reader *r, const Setting *block)
{
    Link link = {.name = block->label ? block->label : "link", .overlap = true};
    double number[LINK_KEYS];
    read_block(r, block, link_key, LINK_KEYS, number, read_overlap, &link, "link", "overlap");
    link.bandwidth = or_else(number[LINK_BANDWIDTH], 0);
    link.latency = or_else(number[LATENCY], 0);
    return link;
}

static const Hardware *read_machine(Arena *arena, Diags *diags, const Sources *sources, Name name,
                                    const Setting *setting, int count, Span span)
{
    static const char *const blocks[] = {"device", "link"};
    Reader *r = &(Reader){.arena = arena, .diags = diags};
    Hardware *made = arena_alloc(arena, sizeof *made);
    made->name = name ? name : "machine";
    made->device = arena_alloc(arena, sizeof(Device) * (size_t)(count + 1));
    made->link = arena_alloc(arena, sizeof(Link) * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        const Setting *s = &setting[i];
        if (set_twice(r, setting, i))
            continue;
        if (!s->value && !strcmp(s->name, "device"))
            made->device[made->ndevices++] = read_device(r, s);
        else if (!s->value && !strcmp(s->name, "link"))
            made->link[made->nlinks++] = read_link(r, s);
        else
            unknown_key(r, s, "machine", blocks, COUNT(blocks));
    }
    for (int i = 0; i < made->ndevices; i++)
        made->workers += made->device[i].count;
    if (made->ndevices == 0 && !r->failed) {
        FAIL(r, P0705, span, "the machine %s has no device", made->name);
        diag_hint(diags, "a device states compute and bandwidth; `pnetc explain P0702` shows a machine");
    }
    if (made->workers > MAX_STAGES && !r->failed)
        FAIL(r, P0704, span, "the machine %s has %d devices, at most %d are possible", made->name, made->workers,
             MAX_STAGES);
    const SourceFile *file = source_of(sources, count ? setting[0].span.at : span.at);
    made->source = file ? file->path : "the source";
    return r->failed ? NULL : made;
}

/* Two blocks of one name in one file would hide each other. */
static bool described_twice(Diags *diags, const Sources *sources, Name name, Span span, Name other, Span other_span)
{
    if (!name || name != other || source_of(sources, span.at) != source_of(sources, other_span.at))
        return false;
    diag_error(diags, P0403, span, "the machine %s is described twice", name);
    diag_note(diags, other_span, "it is described here already");
    return true;
}

static const Hardware *read_file(Arena *arena, Diags *diags, Sources *sources, const char *path)
{
    const int before = diag_errors(diags);
    const Ast *ast = load(arena, diags, sources, path);
    if (!ast || diag_errors(diags) > before)
        return NULL;
    const Item *machine = NULL;
    for (int i = 0; i < ast->nitems; i++) {
        if (ast->item[i].kind == ITEM_MACHINE) {
            for (int k = 0; k < i; k++)
                if (described_twice(diags, sources, ast->item[i].name, ast->item[i].keyword, ast->item[k].name,
                                    ast->item[k].keyword))
                    return NULL;
            machine = &ast->item[i];
            continue;
        }
        diag_error(diags, P0706, ast->item[i].keyword, "a machine file holds machine blocks only");
        return NULL;
    }
    if (!machine) {
        diag_error(diags, P0701, (Span){0, 0}, "%s has no machine block", path);
        diag_hint(diags, "`pnetc calibrate -o %s` writes one of this machine; `pnetc explain P0702` shows one", path);
        return NULL;
    }
    return read_machine(arena, diags, sources, machine->name, machine->setting, machine->nsettings, machine->keyword);
}

const Hardware *hardware_find(Arena *arena, Diags *diags, Sources *sources, const Settings *settings,
                              const char *wanted)
{
    const Machine *block = NULL, *list = settings->machine;
    for (int i = 0; i < settings->nmachines; i++)
        for (int k = 0; k < i; k++)
            if (described_twice(diags, sources, list[i].name, list[i].span, list[k].name, list[k].span))
                return NULL;
    for (int i = 0; i < settings->nmachines; i++)
        if (!wanted || (settings->machine[i].name && !strcmp(settings->machine[i].name, wanted)))
            block = &settings->machine[i];
    if (block)
        return read_machine(arena, diags, sources, block->name, block->setting, block->nsettings, block->span);
    if (!wanted)
        return hardware_builtin(arena, 0);
    const char **names = arena_alloc(arena, sizeof(char *) * (size_t)hardware_builtin_count());
    for (int i = 0; i < hardware_builtin_count(); i++) {
        const Hardware *builtin = hardware_builtin(arena, i);
        names[i] = builtin->name;
        if (!strcmp(wanted, builtin->name))
            return builtin;
    }
    if (strchr(wanted, '/') || strchr(wanted, '.'))
        return read_file(arena, diags, sources, wanted);
    diag_error(diags, P0701, (Span){0, 0}, "there is no machine %s", wanted);
    const char *near = nearest(wanted, names, hardware_builtin_count());
    if (near)
        diag_hint(diags,
                  "did you mean %s? `pnetc list machines` shows all; a file is written with its folder or ending",
                  near);
    else
        diag_hint(diags, "`pnetc list machines` shows all; a file is written with its folder or ending, as ./%s.pnet",
                  wanted);
    return NULL;
}

int hardware_kind(const Hardware *hardware, int worker)
{
    int kind = 0;
    while (kind + 1 < hardware->ndevices && worker >= hardware->device[kind].count)
        worker -= hardware->device[kind++].count;
    return kind;
}

int hardware_worker(const Hardware *hardware, int stage, int nstages)
{
    return nstages <= hardware->workers ? stage : (int)((int64_t)stage * hardware->workers / nstages);
}

Link hardware_link(const Hardware *hardware, int cut)
{
    if (hardware->nlinks == 0)
        return (Link){"none", 0, 0, true};
    return hardware->link[cut < hardware->nlinks ? cut : hardware->nlinks - 1];
}

void hardware_list(Text *out)
{
    text_printf(out, "machines (--machine NAME, or --machine FILE.pnet with a machine block)\n");
    for (int i = 0; i < hardware_builtin_count(); i++) {
        const Hardware *h = hardware_builtin(out->arena, i);
        const Device *d = &h->device[0];
        text_printf(out, "  %-12s %s\n", h->name, hardware_builtin_doc(i));
        text_printf(out, "  %-12s = %d x %.4g GFLOP/s, %.4g GB/s, %.3g us a node; %s\n", "", d->count, d->compute / 1e9,
                    d->bandwidth / 1e9, d->overhead * 1e6, h->source);
    }
}
