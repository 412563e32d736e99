/* calibrate.c: fits compute, bandwidth, overhead and the efficiency of each op to measured times of nodes.
 *
 * The cost model is asked, not copied: with a bandwidth without end its time at 1 FLOP/s is a node's FLOPs, with
 * compute without end its time at 1 B/s is its bytes; the efficiency of a node is where the model's time equals the
 * measured one, by bisection. These are of direct convolutions; then Winograd's share of compute is where the model has
 * the times of a run in which the target's rule chose it. Overhead: the median time of nodes too small to count.
 * Compute: the best rate of a conv or linear. Bandwidth: the best rate of the other ops, in the caches that a stage's
 * buffers really lie in. */
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
    double winograd;                 /* share of compute that the model is asked with; 0: direct */
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
                     .winograd = fit->winograd,
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

static int64_t tiles_of(const Fit *fit, NodeId node)
{
    return fit->target->winograd_tiles ? fit->target->winograd_tiles(fit->graph, node) : 0;
}

/* The median over the convolutions that are Winograd's by the target's rule. 0: they are not, on this machine: all of
 * them together took about as long as direct. */
static double fit_winograd(Arena *arena, const Fit *direct, const Fit *by_rule, double compute, double bandwidth,
                           double overhead)
{
    static const double much_faster = 0.9;
    double *of = arena_alloc(arena, sizeof *of * (size_t)(direct->graph->nnodes + 1));
    double slow = 0, fast = 0;
    int count = 0;
    for (NodeId i = 0; i < direct->graph->nnodes; i++) {
        if (!tiles_of(direct, i) || !(direct->forward[i] > 0 && by_rule->forward[i] > 0))
            continue;
        slow += direct->forward[i] + direct->backward_time[i];
        fast += by_rule->forward[i] + by_rule->backward_time[i];
        double low = log(least_efficiency), high = log(most_efficiency);
        Fit asked = *by_rule;
        for (int step = 0; step < 40; step++) {
            asked.winograd = exp((low + high) / 2);
            const NodeTime *time = ask(arena, &asked, compute, bandwidth, overhead, NULL);
            if (passes_time(&time[i]) > by_rule->forward[i] + by_rule->backward_time[i])
                low = (low + high) / 2;
            else
                high = (low + high) / 2;
        }
        of[count++] = exp(high);
    }
    const double share = count && fast < much_faster * slow ? median(of, count) : 0;
    return share < 0.99 * most_efficiency ? share : 0; /* at the bound: all is transforms */
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
               arena_alloc(arena, sizeof(double) * nodes),
               0};
    for (NodeId i = 0; i < pipe->graph->nnodes; i++)
        for (int m = 0; m < measured->nnodes; m++)
            if (!strcmp(measured->node[m].name, pipe->graph->node[i].name)) {
                fit.forward[i] = 1e-6 * measured->node[m].pass[PASS_FORWARD].middle;
                fit.backward_time[i] = 1e-6 * measured->node[m].pass[PASS_BACKWARD].middle;
            }
    return fit;
}

static void write_device(Text *out, const Fit *fit, const Fit *by_rule, int workers)
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
    const double winograd = by_rule ? fit_winograd(arena, fit, by_rule, compute, bandwidth, overhead) : 0;
    if (winograd > 0)
        text_printf(out,
                    "        winograd  = %.3g  # share of compute of the products of 3x3 convolutions by Winograd\n",
                    winograd);
    text_printf(out, "        efficiency {  # share of compute, where the bandwidth does not limit\n");
    for (int op = 0; op < op_count; op++) {
        const double efficiency = fit_op(arena, fit, op, compute, bandwidth, overhead);
        /* At a bound, efficiency changes nothing: the op counts no FLOPs, or is as fast as the bandwidth. */
        if (efficiency > 1.1 * least_efficiency && efficiency < 0.99 * most_efficiency)
            text_printf(out, "            %s = %.3g\n", op_table[op]->name, efficiency);
    }
    text_printf(out, "        }\n    }\n");
}

void calibrate_write(Text *out, const Plan *plan, int states, const Measurement *direct, const Measurement *by_rule,
                     int workers, const double *rate)
{
    Arena *arena = out->arena;
    const Fit fit = fit_new(arena, plan, states, direct);
    const Fit ruled = by_rule ? fit_new(arena, plan, states, by_rule) : fit;
    const char *name = machine_name(arena);
    text_printf(out, "# %s: this machine, measured by `pnetc calibrate` on %s with pnetc %s, target %s (%s).\n", name,
                date_today(arena), PNETC_VERSION, plan->target->name, direct->library);
    text_printf(out, "# Use it with --machine FILE. Measure again after a change of the machine or of a library.\n");
    for (int w = 0; w < workers && rate; w++)
        text_printf(out, "# memory bandwidth of each worker outside the caches, %d running: %.3g GB/s\n", w + 1,
                    rate[w] / 1e9);
    text_printf(out, "machine %s {\n", name);
    write_device(out, &fit, by_rule ? &ruled : NULL, workers);
    text_printf(out, "    link memory {  # between threads, zero copy\n");
    if (direct->handover >= 0)
        text_printf(out, "        latency = %.3g us  # a register's hand-over to a stage that waits for it\n",
                    direct->handover);
    text_printf(out, "        overlap = yes\n    }\n}\n");
}
