/* place_write.c: registers written into a source text.
 *
 * Which gap between two statements of the network a register belongs to is found by trying: the network is lowered with
 * a register in that gap, and positions grow with the gaps, so a binary search needs few trials. The new text is parsed
 * and lowered again, and must give the registers that were asked for. */
#include <string.h>

#include "place_report.h"
#include "settings.h"

typedef struct {
    uint32_t from, to; /* of the file's text */
    const char *text;
} Edit;

typedef struct {
    Arena *arena;
    Diags *diags;
    Sources *sources;
    const Ast *ast;
    const Graph *written;
    const Item *network, *pipeline;      /* pipeline NULL: there is none */
    const Setting *registers, *replicas; /* of the pipeline block; NULL: none */
    VEC(Edit) edit;
} Writer;

static bool refuse(Writer *w, Span span, const char *why)
{
    diag_error(w->diags, P0722, span, "the registers cannot be written: %s", why);
    diag_hint(w->diags, "`pnetc explain P0722` says what is possible");
    return false;
}

/* By offsets: the list of sources moves when it grows. */
static bool in_file(const Writer *w, Span span)
{
    const SourceFile *file = w->ast->file;
    return span.at >= file->base && span.at <= file->base + file->length;
}

/* ---- trying a register in a gap ---- */

static Body without_registers(Writer *w, const Body *body)
{
    Body made = *body;
    made.stmt = arena_alloc(w->arena, sizeof(Stmt) * (size_t)(body->count + 2)); /* room for one more */
    made.count = 0;
    for (int i = 0; i < body->count; i++) {
        if (body->stmt[i].kind == STMT_REGISTER)
            continue;
        Stmt *stmt = &made.stmt[made.count++];
        *stmt = body->stmt[i];
        if (stmt->kind == STMT_FOR || stmt->kind == STMT_IF)
            stmt->body = without_registers(w, &stmt->body);
        if (stmt->kind == STMT_IF && stmt->has_other)
            stmt->other = without_registers(w, &stmt->other);
    }
    return made;
}

static bool placed_by(const Setting *setting)
{
    return !strcmp(setting->name, "registers") || !strcmp(setting->name, "replicas");
}

/* The whole source without `registers` and `replicas` settings, and without `register` statements unless they are
 * kept. */
static Ast bare(Writer *w, bool keep_statements, int *network)
{
    Ast made = *w->ast;
    made.item = arena_alloc(w->arena, sizeof(Item) * (size_t)(w->ast->nitems + 1));
    for (int i = 0; i < made.nitems; i++) {
        Item *item = &made.item[i];
        *item = w->ast->item[i];
        if (&w->ast->item[i] == w->network)
            *network = i;
        if (!keep_statements && (item->kind == ITEM_NETWORK || item->kind == ITEM_DEF))
            item->body = without_registers(w, &item->body);
        if (item->kind != ITEM_PIPELINE)
            continue;
        Setting *kept = arena_alloc(w->arena, sizeof(Setting) * (size_t)(item->nsettings + 1));
        int count = 0;
        for (int k = 0; k < item->nsettings; k++)
            if (!placed_by(&item->setting[k]))
                kept[count++] = item->setting[k];
        item->setting = kept;
        item->nsettings = count;
    }
    return made;
}

static const Graph *lowered(Writer *w, const Ast *ast, Override *overrides, int noverrides)
{
    Diags *unheard = diags_new(w->arena, w->sources);
    Settings *settings = arena_alloc(w->arena, sizeof *settings);
    return lower(w->arena, unheard, w->sources, ast, w->written->name, overrides, noverrides, settings);
}

/* Node before which a register behind statement `gap` of the bare network stands; -1: no op is before it. */
static NodeId gap_position(Writer *w, const Ast *without, int network, int gap, Override *overrides, int noverrides)
{
    const Body *body = &without->item[network].body;
    Ast with = *without;
    with.item = arena_alloc(w->arena, sizeof(Item) * (size_t)with.nitems);
    memcpy(with.item, without->item, sizeof(Item) * (size_t)with.nitems);
    Body *changed = &with.item[network].body;
    changed->stmt = arena_alloc(w->arena, sizeof(Stmt) * (size_t)(body->count + 1));
    memcpy(changed->stmt, body->stmt, sizeof(Stmt) * (size_t)(gap + 1));
    changed->stmt[gap + 1] = (Stmt){.kind = STMT_REGISTER, .span = body->stmt[gap].span};
    memcpy(changed->stmt + gap + 2, body->stmt + gap + 1, sizeof(Stmt) * (size_t)(body->count - gap - 1));
    changed->count = body->count + 1;
    const Graph *graph = lowered(w, &with, overrides, noverrides);
    return graph && graph->ncuts == 1 ? graph->cut[0].before : -1;
}

/* The statement of the bare network behind which the register stands; -1: it stands inside one. */
static int find_gap(Writer *w, const Ast *without, int network, NodeId before, Override *overrides, int noverrides)
{
    const Body *body = &without->item[network].body;
    int low = 0, high = body->count - 2;
    for (int i = 0; i <= high; i++)
        if (body->stmt[i].kind == STMT_LOSS) /* nothing behind it counts */
            high = i - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (gap_position(w, without, network, middle, overrides, noverrides) < before)
            low = middle + 1;
        else
            high = middle;
    }
    return high >= 0 && gap_position(w, without, network, low, overrides, noverrides) == before ? low : -1;
}

/* ---- editing ---- */

static uint32_t offset(const Writer *w, uint32_t at)
{
    return at - w->ast->file->base;
}

static void replace(Writer *w, uint32_t from, uint32_t to, const char *text)
{
    *vec_push(w->arena, &w->edit) = (Edit){from, to, text};
}

/* With its line, if nothing else stands on it. */
static void remove_span(Writer *w, Span span)
{
    const char *text = w->ast->file->text;
    uint32_t from = offset(w, span.at), to = offset(w, span.end), line = from, end = to;
    while (line > 0 && (text[line - 1] == ' ' || text[line - 1] == '\t'))
        line--;
    while (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')
        end++;
    if ((line == 0 || text[line - 1] == '\n') && text[end] == '\n')
        replace(w, line, end + 1, "");
    else
        replace(w, from, to, "");
}

/* The `register` statements that cut this network, wherever they stand. */
static bool remove_registers(Writer *w, Override *overrides, int noverrides)
{
    int network = 0;
    const Ast statements = bare(w, true, &network);
    const Graph *graph = lowered(w, &statements, overrides, noverrides);
    for (int i = 0; graph && i < graph->ncuts; i++) {
        const Span span = graph->cut[i].span;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= graph->cut[k].span.at == span.at;
        if (seen)
            continue;
        if (!in_file(w, span))
            return refuse(w, span, "this register stands in a file that is used");
        remove_span(w, span);
    }
    return true;
}

static const char *setting_text(Writer *w, const Cut *cut, int ncuts)
{
    Text text = text_new(w->arena);
    text_printf(&text, "registers = after(");
    for (int i = 0; i < ncuts; i++) {
        const char *name = cut_after(w->written, cut[i].before);
        const bool dotted = strchr(name, '.') != NULL;
        text_printf(&text, "%s%s%s%s", i ? ", " : "", dotted ? "\"" : "", name, dotted ? "\"" : "");
    }
    text_printf(&text, ")");
    return text.data;
}

/* In the place of `old`, or at the end of the pipeline block, which is added where there is none. */
static void write_settings(Writer *w, const char *registers, const char *replicas)
{
    const Setting *old[] = {w->registers, w->replicas};
    const char *text[] = {registers, replicas};
    Text more = text_new(w->arena);
    for (int i = 0; i < COUNT(old); i++) {
        if (old[i] && text[i])
            replace(w, offset(w, old[i]->span.at), offset(w, old[i]->span.end), text[i]);
        else if (old[i])
            remove_span(w, old[i]->span);
        else if (text[i])
            text_printf(&more, "%s\n", text[i]);
    }
    if (!more.length)
        return;
    if (w->pipeline) {
        const uint32_t brace = offset(w, w->pipeline->body.span.end) - 1;
        replace(w, brace, brace, arena_printf(w->arena, "\n%s", more.data));
    } else {
        const uint32_t end = w->ast->file->length;
        replace(w, end, end, arena_printf(w->arena, "\npipeline {\n%s}\n", more.data));
    }
}

static void write_statements(Writer *w, const Ast *without, int network, const int *gap, int ncuts)
{
    const Body *body = &without->item[network].body;
    for (int i = 0; i < ncuts; i++) {
        const char *text = w->ast->file->text;
        uint32_t end = offset(w, body->stmt[gap[i]].span.end);
        while (text[end] != '\n')
            end++;
        replace(w, end, end, "\nregister");
    }
}

static const char *apply(Writer *w)
{
    Text out = text_new(w->arena);
    uint32_t at = 0;
    for (int done = 0; done < w->edit.count; done++) {
        const Edit *next = NULL; /* few: the lowest that is left */
        for (int i = 0; i < w->edit.count; i++)
            if (w->edit.at[i].text && (!next || w->edit.at[i].from < next->from))
                next = &w->edit.at[i];
        text_append(&out, w->ast->file->text + at, next->from > at ? next->from - at : 0);
        text_append(&out, next->text, strlen(next->text));
        at = next->to > at ? next->to : at;
        ((Edit *)next)->text = NULL;
    }
    text_append(&out, w->ast->file->text + at, w->ast->file->length - at);
    return out.data;
}

/* Parses and formats the new text, and holds its registers against those wanted. */
static const char *finish(Writer *w, const char *text, const Placement *placed, Override *overrides, int noverrides)
{
    const SourceFile *file = source_add(w->arena, w->sources, w->ast->file->path, text, strlen(text));
    const Ast *alone = file ? parse(w->arena, w->diags, file) : NULL;
    if (!alone || diag_errors(w->diags))
        return NULL;
    Ast joined = *alone; /* used files first, as load() has it */
    joined.item = arena_alloc(w->arena, sizeof(Item) * (size_t)(alone->nitems + w->ast->nitems + 1));
    joined.nitems = 0;
    for (int i = 0; i < w->ast->nitems; i++)
        if (!in_file(w, w->ast->item[i].keyword))
            joined.item[joined.nitems++] = w->ast->item[i];
    for (int i = 0; i < alone->nitems; i++)
        joined.item[joined.nitems++] = alone->item[i];
    const Graph *graph = lowered(w, &joined, overrides, noverrides);
    bool same = graph && graph->ncuts == placed->ncuts;
    for (int i = 0; same && i < placed->ncuts; i++)
        same = graph->cut[i].before == placed->cut[i].before;
    for (int s = 0; same && s <= placed->ncuts; s++)
        same = graph_replicas(graph, s) == placed->replicas[s];
    if (!same) {
        refuse(w, w->network->name_span, "the text with them means something else");
        return NULL;
    }
    Text out = text_new(w->arena);
    format(alone, &out);
    return out.data;
}

static bool find_items(Writer *w)
{
    for (int i = 0; i < w->ast->nitems; i++) {
        const Item *item = &w->ast->item[i];
        if (item->kind == ITEM_NETWORK && item->name == w->written->name)
            w->network = item;
        if (item->kind == ITEM_PIPELINE)
            w->pipeline = item;
    }
    for (int i = 0; w->pipeline && i < w->pipeline->nsettings; i++)
        if (placed_by(&w->pipeline->setting[i]))
            *(strcmp(w->pipeline->setting[i].name, "replicas") ? &w->registers : &w->replicas) =
                &w->pipeline->setting[i];
    if (!in_file(w, w->network->keyword))
        return refuse(w, w->network->name_span, "the network stands in a file that is used");
    if (w->pipeline && !in_file(w, w->pipeline->keyword))
        return refuse(w, w->pipeline->keyword, "the pipeline block stands in a file that is used");
    return true;
}

const char *place_write(Arena *arena, Diags *diags, Sources *sources, const Ast *ast, const Graph *written,
                        const Placement *placed, Override *overrides, int noverrides, bool *by_setting)
{
    Writer *w = &(Writer){.arena = arena, .diags = diags, .sources = sources, .ast = ast, .written = written};
    Override *kept = arena_alloc(arena, sizeof *kept * (size_t)(noverrides + 1));
    int nkept = 0; /* all but --set pipeline.registers and replicas, which would hide what is written */
    for (int i = 0; i < noverrides; i++)
        if (!overrides[i].block || strcmp(overrides[i].block, "pipeline") ||
            (strcmp(overrides[i].name, "registers") && strcmp(overrides[i].name, "replicas")))
            kept[nkept++] = overrides[i];
    if (!find_items(w))
        return NULL;
    const int ncuts = placed->ncuts;
    int network = 0;
    const Ast without = bare(w, false, &network);
    int *gap = arena_alloc(arena, sizeof *gap * (size_t)(ncuts + 1));
    *by_setting = false;
    for (int i = 0; i < ncuts && !*by_setting; i++) {
        gap[i] = find_gap(w, &without, network, placed->cut[i].before, kept, nkept);
        *by_setting = gap[i] < 0;
    }
    if (!remove_registers(w, kept, nkept))
        return NULL;
    if (!*by_setting)
        write_statements(w, &without, network, gap, ncuts);
    write_settings(w, *by_setting ? setting_text(w, placed->cut, ncuts) : NULL,
                   placed->workers > ncuts + 1
                       ? arena_printf(arena, "replicas = %s", replicas_text(arena, placed->replicas, placed->ncuts + 1))
                       : NULL);
    return finish(w, apply(w), placed, kept, nkept);
}
