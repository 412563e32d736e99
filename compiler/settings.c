/* settings.c: the train and pipeline blocks: keys, --set overrides, bounds, defaults. Values are constant expressions;
 * they may use the parameters of the file.
 *
 * A block of the last file counts: blocks of the same kind in files it uses are replaced as a whole. */
#include "lower.h"

#include <math.h>
#include <string.h>

static const int64_t trillion = 1000000000000;

/* One setting that counts: from the file or from --set. */
typedef struct {
    const Expr *value; /* NULL: not given, or wrong and reported */
    Span span;         /* of the key */
    bool by_command;
} Entry;

typedef struct {
    const char *name; /* "train" */
    ItemKind kind;
    const char *const *key;
    int nkeys;
    Entry *entry; /* per key */
    Span span;    /* the word that opens the block; no place: there is none */
} Block;

enum { DATA, BATCH, OPTIMIZER, LR, WARMUP, STEPS, EPOCHS, SEED, TEST_EVERY, PRECISION, TRAIN_KEYS };
static const char *const train_key[TRAIN_KEYS] = {"data",  "batch",  "optimizer", "lr",         "warmup",
                                                  "steps", "epochs", "seed",      "test_every", "precision"};
enum { SCHEDULE, REGISTERS, REPLICAS, MAPPING, CURE, BALANCE, MAX_STALE, MEMORY, THREADS, PIPELINE_KEYS };
static const char *const pipeline_key[PIPELINE_KEYS] = {"schedule", "registers", "replicas", "mapping", "cure",
                                                        "balance",  "max_stale", "memory",   "threads"};

static int find_key(const Block *block, const char *key)
{
    for (int i = 0; i < block->nkeys; i++)
        if (!strcmp(block->key[i], key))
            return i;
    return -1;
}

static void unknown_key(Lower *l, const Block *block, const char *key, Span span)
{
    FAIL(l, NULL, P0402, span, "%s has no setting %s", block->name, key);
    const char *near = nearest(key, block->key, block->nkeys);
    Text all = text_new(l->arena);
    for (int i = 0; i < block->nkeys; i++)
        text_printf(&all, "%s%s", i ? ", " : "", block->key[i]);
    if (near)
        diag_hint(l->diags, "did you mean %s?", near);
    else
        diag_hint(l->diags, "it has %s", all.data);
}

static void read_item(Lower *l, Block *block, const Item *item)
{
    block->span = item->keyword;
    for (int i = 0; i < block->nkeys; i++)
        block->entry[i] = (Entry){0};
    for (int i = 0; i < item->nsettings; i++) {
        const Setting *s = &item->setting[i];
        const int at = find_key(block, s->name);
        if (!s->value) {
            FAIL(l, NULL, P0402, s->name_span, "a block inside %s: blocks stand in machine blocks only", block->name);
        } else if (at < 0) {
            unknown_key(l, block, s->name, s->name_span);
        } else if (block->entry[at].span.at) {
            FAIL(l, NULL, P0403, s->name_span, "%s is set twice", s->name);
            diag_note(l->diags, block->entry[at].span, "it is set here already");
        } else {
            block->entry[at] = (Entry){s->value, s->name_span, false};
        }
    }
}

static void read_block(Lower *l, Block *block)
{
    const Item *last = NULL;
    for (int i = 0; i < l->ast->nitems; i++) {
        const Item *item = &l->ast->item[i];
        if (item->kind != block->kind)
            continue;
        if (last && source_of(l->sources, last->keyword.at) == source_of(l->sources, item->keyword.at)) {
            FAIL(l, NULL, P0401, item->keyword, "a second %s block", block->name);
            diag_note(l->diags, last->keyword, "the first one is here");
            continue;
        }
        last = item;
    }
    if (last)
        read_item(l, block, last);
    for (int i = 0; i < l->noverrides; i++) {
        Override *o = &l->overrides[i];
        if (!o->block || strcmp(o->block, block->name))
            continue;
        o->used = true;
        const int at = find_key(block, o->name);
        if (at < 0)
            unknown_key(l, block, o->name, o->span);
        else
            block->entry[at] = (Entry){o->value, o->span, true};
    }
}

/* ---- values ---- */

static bool number_setting(Lower *l, const Block *block, int key, double low, double high, double *out)
{
    const Entry *entry = &block->entry[key];
    if (!entry->value)
        return false;
    double number = 0;
    Value value = lower_expr(l, &l->file, entry->value, NULL);
    if (!value_want_number(l, &l->file, value, entry->value->span, block->key[key], &number))
        return false;
    if (number < low || number > high) {
        FAIL(l, NULL, P0404, entry->value->span, "%s must be from %.15g to %.15g, found %.15g", block->key[key], low,
             high, number);
        return false;
    }
    *out = number;
    return true;
}

/* Also reads 1e6: a real that is whole. `high` is at most 2^53. */
static void integer_setting(Lower *l, const Block *block, int key, int64_t low, int64_t high, int64_t *out)
{
    double number = 0;
    if (!number_setting(l, block, key, (double)low, (double)high, &number))
        return;
    if (number != floor(number))
        FAIL(l, NULL, P0209, block->entry[key].value->span, "%s must be a whole number, found %g", block->key[key],
             number);
    else
        *out = (int64_t)number;
}

static void choice_setting(Lower *l, const Block *block, int key, ChoiceFamily family, Choice *out)
{
    Choice choice;
    if (block->entry[key].value && lower_choice(l, family, block->entry[key].value, &choice))
        *out = choice;
}

static void set_argument_default(Choice *choice, const char *key, double number)
{
    for (int i = 0; i < choice->nargs; i++)
        if (!strcmp(choice->arg[i].key, key)) {
            choice->arg[i].number = number;
            choice->arg[i].given = true;
        }
}

/* ---- train ---- */

static void precision_setting(Lower *l, const Expr *value, Precision *out)
{
    static const char *const words[] = {[PRECISION_F32] = "f32", [PRECISION_BF16] = "bf16"};
    const bool named = value && (value->kind == EXPR_NAME || value->kind == EXPR_TEXT);
    for (int i = 0; named && i < COUNT(words); i++)
        if (!strcmp(value->text, words[i])) {
            *out = (Precision)i;
            return;
        }
    if (!value)
        return;
    FAIL(l, NULL, P0421, value->span, "precision is f32 or bf16");
    const char *near = named ? nearest(value->text, words, COUNT(words)) : NULL;
    if (near)
        diag_hint(l->diags, "did you mean %s?", near);
}

static void lower_train(Lower *l, Train *train, Span *batch_span)
{
    Entry entry[TRAIN_KEYS] = {0};
    Block block = {"train", ITEM_TRAIN, train_key, TRAIN_KEYS, entry, {0, 0}};
    *train = (Train){
        .data = choice_default(l, CHOICE_DATA, "digits"),
        .optimizer = choice_default(l, CHOICE_OPTIMIZER, "sgd"),
        .lr = choice_default(l, CHOICE_POLICY, "constant"),
        .batch = 100,
        .steps = 1000,
        .seed = 1,
    };
    set_argument_default(&train->optimizer, "momentum", 0.9);
    set_argument_default(&train->lr, "lr", 0.01);
    read_block(l, &block);

    if (entry[STEPS].value && entry[EPOCHS].value && entry[STEPS].by_command == entry[EPOCHS].by_command) {
        FAIL(l, NULL, P0403, entry[EPOCHS].span, "both steps and epochs say how long to train");
        diag_note(l->diags, entry[STEPS].span, "steps is set here");
    } else if (entry[STEPS].value && entry[EPOCHS].value) { /* the command line replaces the file's */
        entry[entry[STEPS].by_command ? EPOCHS : STEPS] = (Entry){0};
    }
    int64_t seed = 1;
    choice_setting(l, &block, DATA, CHOICE_DATA, &train->data);
    choice_setting(l, &block, OPTIMIZER, CHOICE_OPTIMIZER, &train->optimizer);
    choice_setting(l, &block, LR, CHOICE_POLICY, &train->lr);
    integer_setting(l, &block, BATCH, 1, 65536, &train->batch);
    integer_setting(l, &block, WARMUP, 0, trillion, &train->warmup);
    integer_setting(l, &block, STEPS, 1, trillion, &train->steps);
    integer_setting(l, &block, EPOCHS, 1, 1000000000, &train->epochs);
    integer_setting(l, &block, SEED, 0, 999999999999999, &seed);
    integer_setting(l, &block, TEST_EVERY, 0, trillion, &train->test_every);
    precision_setting(l, entry[PRECISION].value, &train->precision);
    train->precision_span = entry[PRECISION].span;
    train->seed = (uint64_t)seed;
    *batch_span = entry[BATCH].span;
}

/* ---- pipeline ---- */

static void lower_pipeline(Lower *l, int64_t batch, Span batch_span, Pipeline *pipeline)
{
    Entry entry[PIPELINE_KEYS] = {0};
    Block block = {"pipeline", ITEM_PIPELINE, pipeline_key, PIPELINE_KEYS, entry, {0, 0}};
    pipeline->balance = 1.25;
    pipeline->max_stale = -1;
    pipeline->threads = 1;
    read_block(l, &block);
    pipeline->span = entry[SCHEDULE].value ? entry[SCHEDULE].value->span : block.span;
    lower_schedule(l, entry[SCHEDULE].value, batch, batch_span, pipeline);
    lower_cure(l, entry[CURE].value, &pipeline->cure);
    number_setting(l, &block, BALANCE, 1, 1000000, &pipeline->balance);
    number_setting(l, &block, MAX_STALE, 0, 1, &pipeline->max_stale);
    pipeline->max_stale_span = entry[MAX_STALE].span;
    if (entry[MEMORY].value)
        lower_bytes(l, entry[MEMORY].value, "memory", &pipeline->memory);
    pipeline->memory_span = entry[MEMORY].span;
    integer_setting(l, &block, THREADS, 1, 256, &pipeline->threads);
    pipeline->threads_span = entry[THREADS].span;
    lower_mapping(l, entry[MAPPING].value, pipeline);
    l->replicas = entry[REPLICAS].value;
    l->registers = entry[REGISTERS].value;
    l->registers_span = entry[REGISTERS].span;
    l->registers_override = entry[REGISTERS].by_command;
}

/* ---- all ---- */

void lower_settings(Lower *l)
{
    Settings *settings = l->settings;
    Span batch_span = {0, 0};
    lower_train(l, &settings->train, &batch_span);
    lower_pipeline(l, settings->train.batch, batch_span, &settings->pipeline);
    lower_cure_check(l);
    settings->machine = arena_alloc(l->arena, (size_t)(l->ast->nitems + 1) * sizeof *settings->machine);
    for (int i = 0; i < l->ast->nitems; i++)
        if (l->ast->item[i].kind == ITEM_MACHINE)
            lower_machine(l, &l->ast->item[i], &settings->machine[settings->nmachines++]);
    static const char *const blocks[] = {"train", "pipeline"};
    for (int i = 0; i < l->noverrides; i++) {
        const Override *o = &l->overrides[i];
        if (!o->block || o->used)
            continue;
        FAIL(l, NULL, P0402, o->span, "there is no block %s to set %s in", o->block, o->name);
        const char *near = nearest(o->block, blocks, COUNT(blocks));
        diag_hint(l->diags, near ? "did you mean --set %s.%s=...?" : "--set takes train.KEY and pipeline.KEY", near,
                  o->name);
    }
}

void lower_data_check(Lower *l)
{
    const Graph *g = l->graph;
    const Choice *data = &l->settings->train.data;
    const SourceShape shape = choice_source_shape(data);
    if (!shape.channels) /* as the network says */
        return;
    const Shape image = {DTYPE_F32, 3, {shape.channels, shape.height, shape.width}, 0};
    const Shape label = {.dtype = DTYPE_CLASS, .classes = shape.classes};
    for (int i = 0; i < g->ninputs; i++) {
        const Node *n = &g->node[g->input[i]];
        const bool is_label = n->shape.dtype == DTYPE_CLASS;
        const bool flat = n->shape.rank == 1 && shape_count(&n->shape) == shape_count(&image);
        if (is_label ? n->shape.classes == shape.classes : flat || shape_equal(&n->shape, &image))
            continue;
        FAIL(l, NULL, P0407, n->span, "the data source %s gives %s; %s is %s", data->name,
             shape_text(l->arena, is_label ? &label : &image), n->name, shape_text(l->arena, &n->shape));
        if (data->span.at)
            diag_note(l->diags, data->span, "the data source is chosen here");
        else
            diag_hint(l->diags, "%s is the default; choose another: train { data = ... }", data->name);
    }
}
