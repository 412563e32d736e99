// stream.h: streams, events and graphs as the program's handles point to them (stream.cpp, capture.cpp, graph.cpp).
#pragma once
#include "sim.h"

#include <thread>

namespace sim
{
struct Capture {
    std::vector<Node> nodes;
    CUstream_st *origin = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    bool invalid = false;
};
using CaptureRef = std::shared_ptr<Capture>;

std::vector<CUstream_st *> &streams();
OpRef stream_op(CUstream_st *stream, const Work &work); // ordered after what the stream holds; not submitted
void submit_in_order(const OpRef &op);                  // an exchange also comes after its communicator's earlier ones
void add_node(CUstream_st *stream, const Work &work);
} // namespace sim

struct CUstream_st {
    int device = 0;
    bool blocking = true, legacy = false; // with respect to the legacy stream
    std::string name;
    int timeline = 0;
    sim::OpRef tail;
    sim::CaptureRef capture;
    std::vector<int> needs; // nodes of the capture that the next one comes after
};

struct CUevent_st {
    sim::OpRef op;
    uint64_t when = 0;
    sim::CaptureRef capture;
    std::vector<int> needs;
};
