/* pipe.h: the graph cut into stages, and what crosses each cut.
 *
 * Stage s holds nodes [first, last) of the program order; S = nstages, numbered 0..S-1 (the paper's FS_(s+1)). A value
 * that crosses several cuts has an edge at each: the stage between passes it on (a delay line). Network inputs never
 * cross: the data source hands each stage what it reads, by minibatch number. */
#ifndef PNETC_PIPE_H
#define PNETC_PIPE_H

#include "backward.h"

typedef struct {
    NodeId first, last;
    int first_layer, last_layer; /* weighted layers, 1-based, as the ppv counts; last < first: none */
    int replicas;                /* copies that divide each minibatch: 1, or so many equal slices of it */
    bool halves;                 /* one worker does its forwards, another all the rest: backwards, updates, tests */
    int64_t params;              /* trainable scalars */
    Cost cost;                   /* sum over its nodes, per sample */
} Stage;

/* One half-register pair: `value` goes from stage `from` to from+1, its gradient comes back when `gradient`. */
typedef struct {
    NodeId value;
    int from;
    bool gradient;
    bool read_forward;  /* stage from+1 reads it itself (false: only passed on) */
    bool kept_consumer; /* the backward of stage from+1 reads it: the slot is released after that backward */
    bool kept_producer; /* the backward of stage `from` reads it (it produced it) */
    int64_t bytes;      /* f32 bytes of a minibatch in plain layout: what the paper counts */
} Edge;

typedef struct {
    const Graph *graph;
    const Backward *backward;
    Stage *stage;
    int nstages;
    Edge *edge; /* by `from`, then by value */
    int nedges;
} Pipe;

/* pipe.c. Empty stages (no node, or no parameter-free excuse: a stage needs at least one node) are errors at the cut.
 */
Pipe *pipe_cut(Arena *arena, Diags *diags, const Graph *graph, const Backward *backward);
/* The graph as a replica of the stage sees it: the batch is its slice. */
Graph pipe_slice(const Pipe *pipe, int stage);
bool pipe_sliced(const Pipe *pipe, const Edge *edge); /* a stage at one of its ends has replicas */
int stage_workers(const Stage *stage);                /* its replicas, or its halves */
int pipe_workers(const Pipe *pipe, int stages);       /* of the first so many stages */
/* Pictures have a row for each stage; where stages are in halves, forwards from the first stage to the last and then
 * backwards the other way, so that a minibatch runs downwards. */
int pipe_rows(const Pipe *pipe);
int pipe_row(const Pipe *pipe, int stage, bool forward);
const char *pipe_row_name(Arena *arena, const Pipe *pipe, int row); /* "stage 1"; "FS1", "FS3 BKS1" as the paper */
int pipe_row_stage(const Pipe *pipe, int row);
bool pipe_replicated(const Pipe *pipe);                          /* some stage has replicas */
bool pipe_halved(const Pipe *pipe);                              /* some stage is in halves */
int pipe_stage_of(const Pipe *pipe, NodeId node);                /* inputs: -1 */
const Edge *pipe_edge(const Pipe *pipe, NodeId value, int from); /* NULL: does not cross there */
bool pipe_reads_input(const Pipe *pipe, int stage, NodeId input);
bool pipe_normalises(const Pipe *pipe, int stage); /* has batch normalisation, or no weights */
void pipe_check(const Pipe *pipe);
void pipe_dump(const Pipe *pipe, Text *out);

#endif
