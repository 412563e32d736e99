// dnn.h: what is remembered of cuDNN's descriptors (dnn.cpp) for the arithmetic (dnn_run.cpp).
#pragma once
#include "sim.h"

#include <cudnn.h>

namespace sim
{
struct Descriptor;
using DescriptorRef = std::shared_ptr<const Descriptor>;
struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count = 0;
    std::vector<unsigned char> bytes;
    std::vector<DescriptorRef> descriptors; // as they were when set; they outlive cudnnBackendDestroyDescriptor
};
struct Descriptor {
    cudnnBackendDescriptorType_t type;
    std::map<int, Attribute> attributes;
    DescriptorRef graph; // of an engine configuration that heuristics gave
    int64_t engine = 0;  // of an execution plan: its number

    const Attribute *find(int name) const
    {
        auto found = attributes.find(name);
        return found == attributes.end() ? nullptr : &found->second;
    }
    // One value of an attribute; `otherwise` when it was not set.
    template <class T> T value(int name, T otherwise, size_t i = 0) const
    {
        const Attribute *attribute = find(name);
        if (!attribute || attribute->bytes.size() < (i + 1) * sizeof(T))
            return otherwise;
        T result;
        __builtin_memcpy(&result, attribute->bytes.data() + i * sizeof(T), sizeof(T));
        return result;
    }
    const Descriptor *sub(int name, size_t i = 0) const
    {
        const Attribute *attribute = find(name);
        return attribute && i < attribute->descriptors.size() ? attribute->descriptors[i].get() : nullptr;
    }
};

struct DnnJob {
    DescriptorRef graph;
    std::map<int64_t, void *> pointers; // by unique id
    void *workspace = nullptr;
    int64_t workspace_bytes = 0;
};
// "cuDNN convolution forward"; empty: there is no arithmetic for one of the operations.
std::string dnn_label(const Descriptor &graph);
// What can be said before it runs: a tensor without a pointer, one that is not aligned as promised, or is too short.
bool dnn_job_ok(const DnnJob &job);
void dnn_run(const DnnJob &job);
} // namespace sim
