/* graph.h: names resolved, parameters bound, shapes known; nodes in program order, each defined before its uses.
 *
 * A value is the output of a node and has the node's id. Shapes are per sample: the batch is Graph.batch and leads
 * every buffer. Passes that change a graph return a new one (fuse); a graph is const when its pass has returned. */
#ifndef PNETC_GRAPH_H
#define PNETC_GRAPH_H

#include "diag.h"

typedef struct OpDef OpDef; /* op.h */

enum {
    MAX_RANK = 3, /* [C, H, W], [F], or [] for class labels */
    MAX_ATTRS = 12,
    MAX_PARAMS = 4, /* per node */
    MAX_STAGES = 256,
    MAX_REPLICAS = 64, /* of one stage */
};

typedef enum { DTYPE_F32, DTYPE_CLASS } DType;
typedef struct {
    DType dtype;
    int rank; /* CLASS: 0 */
    int64_t dim[MAX_RANK];
    int64_t classes; /* CLASS */
} Shape;
int64_t shape_count(const Shape *shape); /* elements per sample */
bool shape_equal(const Shape *a, const Shape *b);
const char *shape_text(Arena *arena, const Shape *shape);                      /* "f32[6,28,28]", "class[10]" */
const char *shape_text_batch(Arena *arena, const Shape *shape, int64_t batch); /* "f32[100,6,28,28]" */

typedef enum { INIT_HE, INIT_XAVIER, INIT_GAUSSIAN, INIT_UNIFORM, INIT_CONSTANT } InitKind;
typedef struct {
    InitKind kind;
    double a, b; /* GAUSSIAN mean, deviation; UNIFORM low, high; CONSTANT value, - ; HE, XAVIER unused */
} Init;

typedef struct {
    int64_t i;
    double f;
    Init init;
    bool given; /* written by the user */
    Span span;
} Attr;

typedef int NodeId;

/* A trainable tensor, or a running statistic. dim in plain layout: conv [out, in/groups, k, k], linear [out, in...],
 * bias [out]. */
typedef struct {
    Name name; /* "conv1.weight": global, the key of checkpoints */
    int rank;
    int64_t dim[4];
    Init init;
    int64_t fan_in, fan_out;
    NodeId node;
    bool running; /* saved, but not trained and never versioned: batch_norm's running mean and variance */
} Param;

typedef struct {
    const OpDef *op; /* NULL: an input of the network */
    Name name;       /* of the node: scoped, unique ("conv1"): parameters are named after it */
    Name value_name; /* of its output: the name itself, or the name of the last node fused into it ("relu1") */
    Span span;       /* the call */
    Attr attr[MAX_ATTRS];
    NodeId *in;
    int nin;
    Shape shape;
    int param[MAX_PARAMS]; /* ids in Graph.param */
    int nparams;
    bool relu;           /* fuse: relu applied to the output of conv, linear, maxpool, add */
    const OpDef **chain; /* fuse: further pointwise ops behind a pointwise op, in order of application */
    double *chain_attr;  /* of each op of the chain: the value of its attribute, if it has one; NULL: none has */
    int nchain;
    const char *fused;  /* fuse: "relu1", "flatten1 relu2": names of what was absorbed, for comments; NULL: nothing */
    Shape in_shape;     /* shape of in[0] as the op saw it before a view (flatten) was dropped */
    NodeId first, last; /* fuse: what was merged into it lies in this range of the graph as written */
} Node;

/* What values and weights are stored as; element.h says which of them. All is computed in f32. */
typedef enum { PRECISION_F32, PRECISION_BF16 } Precision;

/* A cut stands before node `before` (program order position); several cuts are ascending and distinct. */
typedef struct {
    NodeId before;
    Span span;
} Cut;

typedef struct {
    Name name;
    const char *file;     /* base name of the source, for comments */
    int64_t batch;        /* samples of a microbatch, which leads every buffer */
    int64_t microbatches; /* of a minibatch, which an update sees; mostly 1 */
    Precision precision;
    Node *node;
    int nnodes;
    Param *param;
    int nparams;
    NodeId *input; /* in order of declaration */
    int ninputs;
    NodeId loss; /* the one loss node */
    Cut *cut;
    int ncuts;
    const int *replicas; /* copies of each stage that divide its batch; NULL: one each */
    int nreplicas;       /* stages that `replicas` is for: it counts where the cuts make so many */
    bool halves;         /* mapping = split: every stage but the last has a worker for each half (pipe.h) */
    const Sources *sources;
} Graph;

int graph_replicas(const Graph *graph, int stage);
int graph_line(const Graph *graph, Span span);              /* line number in its file */
int64_t graph_param_count(const Graph *graph, NodeId node); /* trainable scalars of a node */
/* C identifier for a scoped name: dots become underscores. */
const char *c_name(Arena *arena, Name name);

void graph_check(const Graph *graph); /* ICE on a broken graph */
void graph_dump(const Graph *graph, Text *out);

/* fuse.c: Graph -> Graph. relu into conv, linear, maxpool, add; relu moved behind the maxpool that alone reads it
 * (exact); chains of pointwise ops into one node; flatten dropped where only linear reads it. Nothing merges across a
 * cut; a flatten, a mere view, is dropped across one too. */
Graph *fuse(Arena *arena, const Graph *graph);

#endif
