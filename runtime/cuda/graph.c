/* graph.c: steps of training as CUDA graphs: one launch instead of one for each kernel.
 *
 * A step is straight-line code; what differs between its minibatches are the slots of rings and registers and the
 * version of the weights. For each combination of these it is captured once and launched from then on. Its first run,
 * uncaptured, tells which slots change hands; after that a step is: take what it takes, launch, give what it gives.
 * (That a whole step may wait for all its slots first is what the transport `serial` does, too.) Nothing is told anew
 * for a launch: the device counts minibatches and updates (input.c, update.c); the loss is fetched behind it.
 * Test passes, whose last batch may be ragged, are not captured. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"

enum { KINDS = 2, MOST_GRAPHS = 96 }; /* of a stage; with more combinations the others are launched kernel by kernel */

typedef struct {
    pn_channel *channel;
    pn_handover what;
} Handover;
/* What a kind of step does around its kernels. */
typedef struct {
    Handover *handover;
    int handovers;
    bool known;
    cuda_asked asked; /* which numbers it counts on */
    cuda_loss loss;   /* count 0: none */
} Frame;
typedef struct {
    pn_run_kind kind;
    int64_t place; /* minibatch % period */
    const float *w;
    const pn_phase *phase;         /* what corrects for staleness is of a phase */
    const cuda_exchange *exchange; /* that goes with it; NULL: none */
    cudaGraphExec_t exec;
} Graph;
struct cuda_graphs {
    bool wanted;
    int64_t period;                /* after so many minibatches all slots are the same again */
    Frame frame[KINDS], *learning; /* learning: of the step that runs for the first time; NULL: none */
    Graph graph[MOST_GRAPHS];
    int count;
};

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static void add_slots(struct cuda_graphs *graphs, pn_channel *const *channel, int count)
{
    for (int i = 0; i < count; i++)
        if (channel[i]->area.slots > 0)
            graphs->period = common_multiple(graphs->period, channel[i]->area.slots);
}

void cuda_graphs_open(cuda_stage *cuda)
{
    const pn_stage_def *def = cuda->stage->def;
    struct cuda_graphs *graphs = pn_alloc(sizeof *graphs);
    const char *eager = getenv("PN_CUDA_EAGER");
    graphs->wanted = !eager || strcmp(eager, "1") != 0;
    graphs->period = common_multiple(def->ring, pn_microbatches(cuda->stage->run->program));
    add_slots(graphs, def->takes, def->ntakes);
    add_slots(graphs, def->gives, def->ngives);
    add_slots(graphs, def->takes_gradient, def->ntakes_gradient);
    add_slots(graphs, def->gives_gradient, def->ngives_gradient);
    /* Each channel of a step is entered and left once. */
    const int channels = def->ntakes + def->ngives + def->ntakes_gradient + def->ngives_gradient;
    for (int k = 0; k < KINDS; k++)
        graphs->frame[k].handover = pn_alloc((int64_t)sizeof(Handover) * (2 * channels + 1));
    cuda->graphs = graphs;
}

void cuda_graphs_handover(cuda_stage *cuda, pn_channel *channel, pn_handover what)
{
    Frame *frame = cuda->graphs->learning;
    if (frame)
        frame->handover[frame->handovers++] = (Handover){channel, what};
}

static void begin(cuda_stage *cuda, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    cuda_numbers_begin(cuda, n);
    step(cuda->stage, n);
}

static void learn(cuda_stage *cuda, Frame *frame, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    cuda->graphs->learning = frame;
    begin(cuda, step, n);
    cuda->graphs->learning = NULL;
    frame->asked = cuda_numbers_asked(cuda);
    frame->loss = cuda->loss;
    frame->known = true;
}

bool cuda_graphs_wanted(const cuda_stage *cuda)
{
    return cuda->graphs->wanted;
}

static Graph *find(struct cuda_graphs *graphs, Graph wanted)
{
    for (int i = 0; i < graphs->count; i++) {
        const Graph *one = &graphs->graph[i];
        if (one->kind == wanted.kind && one->place == wanted.place && one->w == wanted.w &&
            one->phase == wanted.phase && one->exchange == wanted.exchange)
            return &graphs->graph[i];
    }
    if (graphs->count == MOST_GRAPHS)
        return NULL;
    Graph *graph = &graphs->graph[graphs->count++];
    *graph = wanted;
    return graph;
}

/* Slots and inputs are taken already: the verbs of channels only say where they are (rt.h: captures). */
static void capture(cuda_stage *cuda, Graph *graph, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    pn_stage *stage = cuda->stage;
    cudaGraph_t recorded;
    CU(stage, "graph", cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal));
    stage->captures = true;
    begin(cuda, step, n);
    stage->captures = false;
    if (graph->exchange)
        cuda_exchange_enqueue(stage, graph->exchange);
    CU(stage, "graph", cudaStreamEndCapture(cuda->stream, &recorded));
    CU(stage, "graph", cudaGraphInstantiate(&graph->exec, recorded, 0));
    CU(stage, "graph", cudaGraphDestroy(recorded));
}

static void hand_over(pn_stage *stage, const Frame *frame, int64_t n, bool before)
{
    for (int i = 0; i < frame->handovers; i++) {
        pn_channel *channel = frame->handover[i].channel;
        switch (frame->handover[i].what) {
        case PN_AT_ROOM:
            if (before)
                (void)pn_room(stage, channel, n);
            break;
        case PN_AT_TAKE:
            if (before)
                (void)pn_take(stage, channel, n);
            break;
        case PN_AT_GIVE:
            if (!before)
                pn_give(stage, channel, n);
            break;
        case PN_AT_DONE:
            if (!before)
                pn_done(stage, channel, n);
            break;
        }
    }
}

/* The graph of a step and of what goes with it; NULL: kernel by kernel. */
static Graph *graph_of(cuda_stage *cuda, pn_run_kind kind, int64_t n, const cuda_exchange *exchange)
{
    struct cuda_graphs *graphs = cuda->graphs;
    pn_stage *stage = cuda->stage;
    if (!graphs->wanted || kind == PN_RUN_TEST || !graphs->frame[kind].known)
        return NULL;
    const float *w = kind == PN_RUN_FORWARD ? pn_forward_weights(stage, n) : pn_backward_version(stage, n);
    return find(
        graphs,
        (Graph){.kind = kind, .place = n % graphs->period, .w = w, .phase = stage->phase, .exchange = exchange});
}

static void launch(cuda_stage *cuda, Graph *graph, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    pn_stage *stage = cuda->stage;
    const Frame *frame = &cuda->graphs->frame[graph->kind];
    hand_over(stage, frame, n, true);
    cuda_numbers_launch(cuda, &frame->asked, n);
    if (!graph->exec)
        capture(cuda, graph, step, n);
    if (graph->exchange)
        cuda_exchange_before(stage, graph->exchange);
    CU(stage, "graph", cudaGraphLaunch(graph->exec, cuda->stream));
    cuda->loss = frame->loss;
    cuda->loss.n = n;
    hand_over(stage, frame, n, false);
    if (graph->exchange)
        cuda_exchange_behind(stage, graph->exchange);
}

void cuda_graphs_run(cuda_stage *cuda, pn_run_kind kind, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    struct cuda_graphs *graphs = cuda->graphs;
    cuda_exchange *exchange = cuda->carries;
    cuda->carries = NULL;
    const bool passes = exchange && cuda_exchange_passes(cuda->stage, exchange);
    Graph *graph = graph_of(cuda, kind, n, passes ? NULL : exchange);
    if (graph)
        launch(cuda, graph, step, n);
    else if (graphs->wanted && kind != PN_RUN_TEST && !graphs->frame[kind].known)
        learn(cuda, &graphs->frame[kind], step, n);
    else
        begin(cuda, step, n);
    if (exchange && (passes || !graph))
        cuda_exchange_alone(cuda->stage, exchange);
}
