// graph.cpp: stream capture, and graphs made by it. A launched graph is run as a graph: only its own edges order its nodes, so an edge
// that capture missed is seen. Each chain of nodes is a lane with a timeline of its own; launches of one graph follow each other.
#include "stream.h"

#include <algorithm>
#include <cstring>

struct CUgraph_st {
    std::vector<sim::Node> nodes;
};
struct CUgraphExec_st {
    std::vector<sim::Node> nodes;
    std::vector<int> timelines;
    sim::OpRef last;
};

namespace sim
{
namespace
{
std::vector<bool> reached(const Capture &capture, std::vector<int> open)
{
    std::vector<bool> found(capture.nodes.size());
    while (!open.empty()) {
        int node = open.back();
        open.pop_back();
        if (found[size_t(node)])
            continue;
        found[size_t(node)] = true;
        for (int earlier : capture.nodes[size_t(node)].needs)
            open.push_back(earlier);
    }
    return found;
}

void leave(const CaptureRef &capture)
{
    for (CUstream_st *stream : streams())
        if (stream->capture == capture) {
            stream->capture = nullptr;
            stream->needs.clear();
        }
}

int assign_lanes(std::vector<Node> &nodes)
{
    std::vector<int> ends; // last node of each lane
    for (size_t i = 0; i < nodes.size(); i++) {
        nodes[i].lane = -1;
        for (int earlier : nodes[i].needs)
            if (ends[size_t(nodes[size_t(earlier)].lane)] == earlier)
                nodes[i].lane = nodes[size_t(earlier)].lane;
        if (nodes[i].lane < 0) {
            nodes[i].lane = int(ends.size());
            ends.push_back(0);
        }
        ends[size_t(nodes[i].lane)] = int(i);
    }
    return int(ends.size());
}

cudaError_t instantiate(cudaGraphExec_t *result, cudaGraph_t graph, bool fails)
{
    if (fails || !graph)
        return cudaErrorInvalidValue;
    CUgraphExec_st *made = new CUgraphExec_st;
    made->nodes = graph->nodes;
    for (int lane = assign_lanes(made->nodes); lane > 0; lane--)
        made->timelines.push_back(new_timeline());
    *result = made;
    return cudaSuccess;
}

void launch(CUgraphExec_st *graph, CUstream_st *stream)
{
    OpRef begin = stream_op(stream, Work());
    need(begin, graph->last);
    submit(begin);
    std::vector<OpRef> made;
    for (const Node &node : graph->nodes) {
        OpRef op =
            make_op(node.work, node.device, graph->timelines[size_t(node.lane)], "graph, captured on " + node.where);
        op->from_graph = true;
        for (int earlier : node.needs)
            need(op, made[size_t(earlier)]);
        need(op, begin);
        made.push_back(op);
        submit_in_order(op);
    }
    OpRef end = stream_op(stream, Work());
    for (const OpRef &one : made)
        need(end, one);
    graph->last = end;
    submit(end);
}
} // namespace

void add_node(CUstream_st *stream, const Work &work)
{
    auto &nodes = stream->capture->nodes;
    nodes.push_back({work, stream->device, "", stream->needs});
    stream->needs = {int(nodes.size()) - 1};
}

void submit_in_order(const OpRef &op)
{
    if (op->work.exchange)
        order_exchange(op);
    submit(op);
}

bool forbidden_in_capture(const char *name)
{
    bool found = false;
    for (CUstream_st *stream : streams()) {
        const CaptureRef &capture = stream->capture;
        if (!capture || capture->invalid || capture->mode == cudaStreamCaptureModeRelaxed ||
            (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread != std::this_thread::get_id()))
            continue;
        report(std::string("capture ") + name,
               text("%s is called while stream '%s' is captured", name, stream->name.c_str()));
        capture->invalid = true;
        found = true;
    }
    return found;
}
} // namespace sim

using namespace sim;

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    Call call("cudaStreamBeginCapture");
    CUstream_st *stream = call.fails ? nullptr : resolve(handle);
    if (!stream)
        return last(cudaErrorInvalidResourceHandle);
    if (stream->legacy || stream->capture)
        return last(stream->legacy ? cudaErrorStreamCaptureUnsupported : cudaErrorIllegalState);
    stream->capture = std::make_shared<Capture>();
    stream->capture->origin = stream;
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->needs.clear();
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    Call call("cudaStreamEndCapture");
    CUstream_st *stream = resolve(handle);
    if (!stream || !stream->capture || stream->capture->origin != stream)
        return last(stream && stream->capture ? cudaErrorStreamCaptureUnmatched : cudaErrorIllegalState);
    CaptureRef capture = stream->capture;
    std::vector<bool> joined = reached(*capture, stream->needs);
    leave(capture);
    *graph = nullptr;
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
        return last(cudaErrorStreamCaptureWrongThread);
    if (capture->invalid || call.fails)
        return last(cudaErrorStreamCaptureInvalidated);
    for (size_t i = 0; i < joined.size(); i++)
        if (!joined[i]) {
            const Node &node = capture->nodes[i];
            report("unjoined " + node.work.label,
                   text("capture of stream '%s' ends, but %s (%s) was not joined to it", stream->name.c_str(),
                        node.work.label.c_str(), node.where.c_str()));
            return last(cudaErrorStreamCaptureUnjoined);
        }
    *graph = new CUgraph_st{capture->nodes};
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status)
{
    Call call("cudaStreamIsCapturing");
    CUstream_st *stream = call.fails ? nullptr : resolve(handle);
    if (!stream)
        return last(cudaErrorInvalidResourceHandle);
    *status = !stream->capture           ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t graph, unsigned long long)
{
    Call call("cudaGraphInstantiate");
    return last(instantiate(result, graph, call.fails));
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *result, cudaGraph_t graph, unsigned long long)
{
    Call call("cudaGraphInstantiateWithFlags");
    return last(instantiate(result, graph, call.fails));
}

EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    Call call("cudaGraphUpload");
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle)
{
    Call call("cudaGraphLaunch");
    if (call.dropped)
        return last(cudaSuccess);
    CUstream_st *stream = call.fails || !graph ? nullptr : resolve(handle);
    if (!stream)
        return last(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        report("child graph", "cudaGraphLaunch during capture: the double has no child graphs");
        stream->capture->invalid = true;
        return last(cudaErrorStreamCaptureUnsupported);
    }
    launch(graph, stream);
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *number)
{
    Call call("cudaGraphGetNodes");
    if (call.fails || nodes) // only the number is known: nodes have no handles here
        return last(cudaErrorInvalidValue);
    *number = graph->nodes.size();
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    Call call("cudaGraphDestroy");
    delete graph;
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    Call call("cudaGraphExecDestroy");
    if (graph && graph->last)
        wait_for(graph->last);
    delete graph;
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}
