/* calibrate.c: fits compute, bandwidth, overhead and the efficiency of each op to measured times of nodes.
 *
 * The cost model is asked, not copied: with a bandwidth without end its time at 1 FLOP/s is a node's FLOPs, with
 * compute without end its time at 1 B/s is its bytes; the efficiency of a node is where the model's time equals the
 * measured one, by bisection. Overhead: the median time of nodes too small to count. Compute: the best rate of a conv
 * or linear. Bandwidth: the best rate of the other ops, in the caches that a stage's buffers really lie in. */
#define _DEFAULT_SOURCE /* the size of memory */
#include "calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double endless = 1e30, least_efficiency = 1e-6, most_efficiency = 10;
static const char tiny[] = "tiny"; /* begins the names of nodes too small to count */

static const char network[] =
    "network calibration(classes = 10) {\n"
    "    input image: f32[1, 28, 28]\n"
    "    input label: class[classes]\n"
    "    a     = image |> conv(32, kernel = 3, pad = 1) |> relu\n"
    "    b     = a |> conv(32, kernel = 3, pad = 1, bias = false) |> batch_norm |> relu\n"
    "    c     = (b + a) |> conv(32, kernel = 3, pad = 1)\n"
    "    register\n"
    "    d     = tanh((c |> maxpool(2) |> lrn |> conv(64, kernel = 3, pad = 1) |> batch_norm) +\n"
    "                 shortcut(c, 64, stride = 2))\n"
    "    e     = d |> conv(64, kernel = 1) |> sigmoid\n"
    "    f     = concat(d, e |> leaky_relu) |> dropout(0.1) |> avgpool(2)\n"
    "    g     = f |> conv(64, kernel = 3, pad = 1) |> batch_norm |> relu\n"
    "    h     = concat(g |> flatten |> tanh |> linear(512) |> relu |> linear(256),\n"
    "                   g |> global_avgpool |> flatten)\n"
    "    tiny1 = linear(h |> linear(16), 16)\n"
    "    tiny2 = tanh(tiny1)\n"
    "    tiny3 = linear(tiny2, 16)\n"
    "    tiny4 = sigmoid(tiny3)\n"
    "    loss softmax_cross_entropy(linear(tiny4, classes), label)\n"
    "}\n"
    "pipeline {\n"
    "    balance = 100\n"
    "}\n"
    "train {\n"
    "    data  = digits(train = 2000, test = 100)\n";

const char *calibrate_network(Arena *arena, const TargetDef *target)
{
    const int batch = target->id == TARGET_ref ? 4 : 64; /* naive loops take their time */
    return arena_printf(arena, "%s    batch = %d\n}\n", network, batch);
}

int processors(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > MAX_STAGES ? MAX_STAGES : (int)count;
}

/* ---- asking the model ---- */

typedef struct {
    const Graph *graph;
    const Backward *backward;
    const TargetDef *target;
    int states;
    double *forward, *backward_time; /* measured seconds by node; 0: not measured */
} Fit;

static NodeTime *ask(Arena *arena, const Fit *fit, double compute, double bandwidth, double overhead,
                     const double *efficiency)
{
    double *all = arena_alloc(arena, sizeof *all * (size_t)op_count);
    for (int i = 0; i < op_count; i++)
        all[i] = efficiency ? efficiency[i] : 1;
    Device device = {.name = "core",
                     .count = 1,
                     .compute = compute,
                     .bandwidth = bandwidth,
                     .overhead = overhead,
                     .efficiency = all};
    const Hardware hardware = {.name = "asked", .source = "", .device = &device, .ndevices = 1, .workers = 1};
    const CostModel model = {.hardware = &hardware, .target = fit->target, .states = fit->states};
    return cost_times(arena, &model, fit->graph, fit->backward, 0);
}

static double passes_time(const NodeTime *time)
{
    return time->forward + time->backward_data + time->backward_weights;
}

static bool is_tiny(const Node *node)
{
    return !strncmp(node->name, tiny, sizeof tiny - 1);
}

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *of, int count)
{
    qsort(of, (size_t)count, sizeof *of, by_size);
    return count % 2 ? of[count / 2] : (of[count / 2 - 1] + of[count / 2]) / 2;
}

/* ---- the four numbers ---- */

static double fit_overhead(Arena *arena, const Fit *fit)
{
    double *time = arena_alloc(arena, sizeof *time * (size_t)(fit->graph->nnodes + 1));
    int count = 0;
    for (NodeId i = 0; i < fit->graph->nnodes; i++)
        if (is_tiny(&fit->graph->node[i]) && fit->forward[i] > 0)
            time[count++] = fit->forward[i];
    return count ? median(time, count) : 0;
}

/* The best rate of work, in what `amount` counts, over the nodes whose op is weighted or is not: of a forward, or of
 * all passes of a node. */
static double best_rate(const Fit *fit, const NodeTime *amount, double overhead, bool weighted)
{
    double best = 0;
    for (NodeId i = 0; i < fit->graph->nnodes; i++) {
        const Node *node = &fit->graph->node[i];
        if (!node->op || is_tiny(node) || !(node->op->flags & OP_WEIGHTED) == weighted || node->op->flags & OP_LOSS ||
            fit->forward[i] <= 2 * overhead)
            continue;
        const int passes = 1 + (amount[i].backward_data > 0) + (amount[i].backward_weights > 0);
        const double all = fit->forward[i] + fit->backward_time[i] - passes * overhead;
        const double forward_rate = amount[i].forward / (fit->forward[i] - overhead);
        const double rate = all > 0 ? passes_time(&amount[i]) / all : 0;
        best = forward_rate > best ? forward_rate : best;
        best = rate > best ? rate : best;
    }
    return best;
}

/* Where the model's time of a node is the measured one; the model's time falls as efficiency rises. */
static double fit_node(Arena *arena, const Fit *fit, NodeId node, int op, double compute, double bandwidth,
                       double overhead)
{
    double low = log(least_efficiency), high = log(most_efficiency);
    double *efficiency = arena_alloc(arena, sizeof *efficiency * (size_t)op_count);
    for (int i = 0; i < op_count; i++)
        efficiency[i] = 1;
    for (int step = 0; step < 40; step++) {
        efficiency[op] = exp((low + high) / 2);
        const NodeTime *time = ask(arena, fit, compute, bandwidth, overhead, efficiency);
        if (passes_time(&time[node]) > fit->forward[node] + fit->backward_time[node])
            low = (low + high) / 2;
        else
            high = (low + high) / 2;
    }
    return exp(high);
}

/* The median of the nodes of an op, in proportion; 0: there is none. */
static double fit_op(Arena *arena, const Fit *fit, int op, double compute, double bandwidth, double overhead)
{
    double *of = arena_alloc(arena, sizeof *of * (size_t)(fit->graph->nnodes + 1));
    int count = 0;
    for (NodeId i = 0; i < fit->graph->nnodes; i++)
        if (fit->graph->node[i].op == op_table[op] && !is_tiny(&fit->graph->node[i]) && fit->forward[i] > 0)
            of[count++] = log(fit_node(arena, fit, i, op, compute, bandwidth, overhead));
    return count ? exp(median(of, count)) : 0;
}

/* ---- writing ---- */

static Fit fit_new(Arena *arena, const Plan *plan, int states, const Measurement *measured)
{
    const Pipe *pipe = plan->sched->pipe;
    const size_t nodes = (size_t)pipe->graph->nnodes + 1;
    Fit fit = {pipe->graph,
               pipe->backward,
               plan->target,
               states,
               arena_alloc(arena, sizeof(double) * nodes),
               arena_alloc(arena, sizeof(double) * nodes)};
    for (NodeId i = 0; i < pipe->graph->nnodes; i++)
        for (int m = 0; m < measured->nnodes; m++)
            if (!strcmp(measured->node[m].name, pipe->graph->node[i].name)) {
                fit.forward[i] = 1e-6 * measured->node[m].pass[PASS_FORWARD].median;
                fit.backward_time[i] = 1e-6 * measured->node[m].pass[PASS_BACKWARD].median;
            }
    return fit;
}

static void write_device(Text *out, const Fit *fit, int workers)
{
    Arena *arena = out->arena;
    const double overhead = fit_overhead(arena, fit);
    const double compute = best_rate(fit, ask(arena, fit, 1, endless, 0, NULL), overhead, true);
    const double bandwidth = best_rate(fit, ask(arena, fit, endless, 1, 0, NULL), overhead, false);
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    text_printf(out, "    device core {\n");
    text_printf(out, "        count     = %d\n", workers);
    text_printf(out, "        compute   = %.4g GFLOP/s  # the best conv or linear\n", compute / 1e9);
    text_printf(out,
                "        bandwidth = %.4g GB/s  # the best of the other ops, in the caches where their buffers lie\n",
                bandwidth / 1e9);
    if (pages > 0 && page > 0)
        text_printf(out, "        memory    = %.4g GiB\n", (double)pages * (double)page / 1073741824.0);
    text_printf(out, "        overhead  = %.3g us  # a node too small to count\n", overhead * 1e6);
    text_printf(out, "        efficiency {  # share of compute, where the bandwidth does not limit\n");
    for (int op = 0; op < op_count; op++) {
        const double efficiency = fit_op(arena, fit, op, compute, bandwidth, overhead);
        /* At a bound, efficiency changes nothing: the op counts no FLOPs, or is as fast as the bandwidth. */
        if (efficiency > 1.1 * least_efficiency && efficiency < 0.99 * most_efficiency)
            text_printf(out, "            %s = %.3g\n", op_table[op]->name, efficiency);
    }
    text_printf(out, "        }\n    }\n");
}

void calibrate_write(Text *out, const Plan *plan, int states, const Measurement *measured, int workers,
                     const double *rate)
{
    Arena *arena = out->arena;
    const Fit fit = fit_new(arena, plan, states, measured);
    const char *name = machine_name(arena);
    text_printf(out, "# %s: this machine, measured by `pnetc calibrate` on %s with pnetc %s, target %s (%s).\n", name,
                date_today(arena), PNETC_VERSION, plan->target->name, measured->library);
    text_printf(out, "# Use it with --machine FILE. Measure again after a change of the machine or of a library.\n");
    for (int w = 0; w < workers && rate; w++)
        text_printf(out, "# memory bandwidth of each worker outside the caches, %d running: %.3g GB/s\n", w + 1,
                    rate[w] / 1e9);
    text_printf(out, "machine %s {\n", name);
    write_device(out, &fit, workers);
    text_printf(out, "    link memory {  # between threads, zero copy\n");
    if (measured->handover >= 0)
        text_printf(out, "        latency = %.3g us  # a register's hand-over to a stage that waits for it\n",
                    measured->handover);
    text_printf(out, "        overlap = yes\n    }\n}\n");
}
