/* lower.h: private to lowering (lower*.c, settings*.c, choices.c): Ast -> Graph and Settings, by elaboration.
 *
 * Expressions evaluate to Values; a tensor Value is a node of the graph under construction. An erroneous expression is
 * reported once and evaluates to VALUE_ERROR, which everything that meets it passes on in silence.
 * Work is bounded: see the limits below. Nothing here is quadratic in the number of nodes. */
#ifndef PNETC_LOWER_H
#define PNETC_LOWER_H

#include "settings.h"

enum {
    MAX_LOOP = 100000,    /* iterations of one `for` */
    MAX_WORK = 2000000,   /* statements and calls of one elaboration: a mistyped nest of loops ends in a second */
    MAX_NODES = 100000,   /* a node is about 1 kB; the largest network in use (ResNet-1001) has 5000 */
    MAX_CALL_DEPTH = 100, /* defs inside defs: the host's stack */
    MAX_DEPTH = 1000,     /* expressions and blocks inside each other, over all calls: the host's stack. One call: 200
                           * at most, by the parser */
    MAX_CALL_NOTES = 3,   /* "in this call of ..." below an error inside a def */
};

/* ---- values (lower_value.c) ---- */
typedef enum { VALUE_ERROR, VALUE_INTEGER, VALUE_REAL, VALUE_BOOL, VALUE_TEXT, VALUE_INIT, VALUE_TENSOR } ValueKind;
typedef struct {
    ValueKind kind;
    int64_t integer; /* INTEGER; BOOL: 0 or 1 */
    double real;     /* REAL; INTEGER: the same number */
    Name text;
    Init init;
    NodeId node;
} Value;

/* ---- maps from names to numbers (lower_names.c): open addressing, never emptied ---- */
typedef struct {
    Name *key;
    int *value;
    int count, room;
} NameMap;
int map_get(const NameMap *map, Name key); /* -1: absent */
void map_set(Arena *arena, NameMap *map, Name key, int value);

/* What a body binds, whatever runs: known before it is elaborated. */
typedef struct {
    Name name;
    int times;  /* statements that bind it; one in a loop, a loop variable, a parameter count twice */
    Span first; /* the first of them */
} Bound;
typedef struct {
    NameMap index;
    VEC(Bound) bound;
} BoundNames;

typedef struct {
    Name name;
    Value value;
    Span span;   /* where it was bound */
    bool hidden; /* a loop variable after its loop */
} Binding;

/* One elaboration of a network, of a def, or the parameters of the file. */
typedef struct Scope Scope;
struct Scope {
    const Scope *outer;      /* the file's parameters; NULL for those themselves and for settings given by -D */
    const Scope *caller;     /* the elaboration that called this def */
    Span call;               /* ... from here */
    const Item *item;        /* NULL: the file */
    const BoundNames *names; /* NULL: the file */
    Name prefix;             /* "group2.unit1"; NULL: the network */
    NameMap index;           /* name -> binding */
    VEC(Binding) binding;
    NameMap number; /* op or def -> the last automatic number */
    int calls;      /* nesting of defs */
};

typedef struct {
    Arena *arena;
    Diags *diags;
    const Sources *sources;
    const Ast *ast;
    Override *overrides;
    int noverrides;
    Settings *settings;

    const Item **def; /* callable, in order */
    int ndefs;
    NameMap def_index;
    const BoundNames **def_names; /* per def, made at its first call */
    const Item *network;
    Scope file, body; /* the parameters of the file; the network */

    Graph *graph;
    int node_room;
    NameMap taken;    /* C names of nodes and def instances */
    NameMap reserved; /* C names that variables of open scopes may want */
    VEC(NodeId) inputs;
    VEC(Cut) cuts;
    NodeId loss; /* -1: none yet */
    Span loss_span;
    bool loss_failed;
    int work, depth;
    bool stopped; /* a limit was met and reported */

    const Expr *replicas;  /* of the pipeline block; NULL: none */
    const Expr *registers; /* of the pipeline block; NULL: none */
    Span registers_span;
    bool registers_override; /* from --set: replaces the `register` statements */
} Lower;

/* Reports an error and where the defs around it were called from. Hints and notes may follow. */
#define FAIL(l, scope, code, span, ...) (diag_error((l)->diags, (code), (span), __VA_ARGS__), lower_trace((l), (scope)))
void lower_trace(Lower *l, const Scope *scope);

/* lower_value.c */
Value value_error(void);
Value value_integer(int64_t integer);
Value value_real(double real);
const char *value_text(Lower *l, const Value *value); /* "the number 3", "tensor f32[6,28,28]", ... for messages */
Value value_unary(Lower *l, const Scope *scope, const Expr *expr, Value value);
Value value_binary(Lower *l, const Scope *scope, const Expr *expr, Value left, Value right);
/* Fetch a typed value; false after an error at `span`, or in silence for VALUE_ERROR. `what`: "the size of conv". */
bool value_want_integer(Lower *l, const Scope *scope, Value value, Span span, const char *what, int64_t *out);
bool value_want_number(Lower *l, const Scope *scope, Value value, Span span, const char *what, double *out);
bool value_want_bool(Lower *l, const Scope *scope, Value value, Span span, const char *what, bool *out);

/* lower_names.c */
const BoundNames *names_of_body(Lower *l, const ParamDecl *param, int nparams, const Body *body);
void scope_reserve(Lower *l, const Scope *scope);
const Binding *scope_find(const Scope *scope, Name name); /* also in the file's parameters; NULL: unknown */
void scope_bind(Lower *l, Scope *scope, Name name, Span span, Value value);
const char *scope_nearest(Lower *l, const Scope *scope, Name name);
bool scope_binds_once(const Scope *scope, Name name);
Name name_automatic(Lower *l, Scope *scope, const char *base);           /* "group2.conv3", taken from now on */
Name name_explicit(Lower *l, Scope *scope, Name name, const char *base); /* the name itself if it is free */
Name name_scoped(Lower *l, const Scope *scope, Name name);

/* lower_expr.c */
bool lower_step(Lower *l, const Scope *scope,
                Span span); /* counts one step; false at a limit, which is reported once */
Value lower_expr(Lower *l, Scope *scope, const Expr *expr,
                 Name explicit_name); /* the name the value is assigned to, or NULL */
Value lower_init(Lower *l, Scope *scope, const Expr *call);
bool is_initialiser(const char *name);

/* lower_call.c */
/* Sorts the arguments of a call by key: slot[i] is the argument for key[i], or NULL. The first `taken` keys are given
 * already (by |>). False after errors (unknown, twice, too many); `declared`: where the keys are, or no place. */
bool bind_arguments(Lower *l, Scope *scope, const Expr *call, int taken, const char *const *key, int nkeys,
                    const Arg **slot, Span declared);
/* `first` is the left side of |>, or NULL */
typedef struct {
    Value value;
    Span span;
} First;
Value lower_op(Lower *l, Scope *scope, const OpDef *op, const Expr *call, const First *first, Name explicit_name);
Value lower_add(Lower *l, Scope *scope, const Expr *expr, Value left, Value right, Name explicit_name);

/* lower_def.c */
Value lower_def(Lower *l, Scope *scope, int def, const Expr *call, const First *first);
void lower_params_of_file(Lower *l);
void lower_network(Lower *l);

/* lower_body.c: true when a `return` was met; its value in *result */
bool lower_body(Lower *l, Scope *scope, const Body *body, Value *result);

/* lower_finish.c: drops what does not reach the loss, puts the inputs first, numbers anew. Returns old id -> new id or
 * -1. */
const NodeId *lower_finish(Lower *l);
/* lower_registers.c: the cuts of the finished graph, from `register` statements or the setting. `to` as above,
 * old_nodes long. */
void lower_registers(Lower *l, const NodeId *to, int old_nodes);
/* lower_replicas.c: replicas = (1, 2, ...) of the finished stages. */
void lower_replicas(Lower *l);

/* lower_mapping.c: mapping = joined | split; then whether the finished stages can be in halves. NULL: not given. */
void lower_mapping(Lower *l, const Expr *expr, Pipeline *out);
void lower_mapping_check(Lower *l);
typedef VEC(Cut) Cuts;
/* The cuts of ppv(...) or after(...), ascending; false if `expr` is neither (nothing is reported then). */
bool lower_places(Lower *l, const Expr *expr, const NodeId *to, Cuts *cuts);
/* lower_auto.c: auto(...), into the settings; and sizes written as text: "512 MiB". */
void lower_auto(Lower *l, const Expr *call, const NodeId *to);
bool lower_bytes(Lower *l, const Expr *expr, const char *what, int64_t *bytes);

/* settings.c */
void lower_settings(Lower *l);
void lower_data_check(Lower *l); /* inputs of the network against the data source */
/* settings_pipeline.c, settings_machine.c */
void lower_schedule(Lower *l, const Expr *expr, int64_t batch, Span batch_span, Pipeline *out);
/* settings_cure.c */
void lower_cure(Lower *l, const Expr *expr, CureChoice *out);
void lower_cure_check(Lower *l); /* against the optimiser and the phases */
void lower_machine(Lower *l, const Item *item, Machine *out);

/* choices.c */
typedef enum { CHOICE_DATA, CHOICE_OPTIMIZER, CHOICE_POLICY } ChoiceFamily;
bool lower_choice(Lower *l, ChoiceFamily family, const Expr *expr, Choice *out);
Choice choice_default(Lower *l, ChoiceFamily family, const char *name);
typedef struct {
    int64_t channels, height, width, classes; /* 0: as the network says */
} SourceShape;
SourceShape choice_source_shape(const Choice *data);

#endif
