/* report.c: losses from the GPU to the log, without waiting for each.
 *
 * A loss leaves two sums in a slot of pinned memory; an event says when they are there. The host hands them to the log in
 * order, some steps later: it waits only when all slots are taken, and at the end of a test, whose result belongs to the
 * weights of that moment. That wait also bounds how far the host runs ahead of the GPU. */
#include "cuda/cuda.h"

enum { SLOTS = 8 };
typedef struct {
    cudaEvent_t there;
    int64_t n, count;
    bool test, classifies;
} Report;
struct cuda_reports {
    double *sums;   /* on the device: loss, right answers */
    double *result; /* pinned: [SLOTS][2] */
    Report report[SLOTS];
    int64_t begun, handed; /* numbers of reports */
};

/* Every stage may have the loss; only the one that has reports. */
void cuda_reports_open(cuda_stage *cuda)
{
    pn_stage *stage = cuda->stage;
    struct cuda_reports *r = pn_alloc(sizeof *r);
    r->sums = cuda_alloc(stage, 2 * sizeof *r->sums, "the loss");
    CU(stage, "the loss", cudaMallocHost((void **)&r->result, sizeof *r->result * 2 * SLOTS));
    for (int i = 0; i < SLOTS; i++)
        CU(stage, "the loss", cudaEventCreateWithFlags(&r->report[i].there, cudaEventDisableTiming));
    cuda->reports = r;
}

void cuda_report(pn_stage *stage, const char *op, const float *rows, int64_t count, int64_t n, bool test,
                 bool classifies)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    struct cuda_reports *r = cuda->reports;
    if (r->begun - r->handed == SLOTS)
        pn_fail(stage, "internal error: %s: no slot for its result", op);
    const int slot = (int)(r->begun % SLOTS);
    double *sums = r->sums;
    int samples = (int)count;
    CUDA_LAUNCH(stage, &cuda->loss_sum, 1, &sums, &rows, &samples);
    CU(stage, op, cudaMemcpyAsync(r->result + 2 * slot, sums, 2 * sizeof *sums, cudaMemcpyDeviceToHost, cuda->stream));
    CU(stage, op, cudaEventRecord(r->report[slot].there, cuda->stream));
    r->report[slot].n = n;
    r->report[slot].count = count;
    r->report[slot].test = test;
    r->report[slot].classifies = classifies;
    r->begun++;
    if (test && pn_test_count(stage, n + 1) <= 0)
        cuda_reports_collect(cuda, true);
}

static bool is_there(pn_stage *stage, const Report *report, bool wait)
{
    const cudaError_t error = wait ? cudaEventSynchronize(report->there) : cudaEventQuery(report->there);
    if (error == cudaErrorNotReady)
        return false;
    cuda_check(stage, error, "the loss", wait ? "cudaEventSynchronize" : "cudaEventQuery");
    return true;
}

void cuda_reports_collect(cuda_stage *cuda, bool all)
{
    struct cuda_reports *r = cuda->reports;
    while (r->handed < r->begun) {
        const int slot = (int)(r->handed % SLOTS);
        const Report *report = &r->report[slot];
        if (!is_there(cuda->stage, report, all || r->begun - r->handed == SLOTS))
            return;
        const double loss = r->result[2 * slot];
        const int64_t right = report->classifies ? (int64_t)r->result[2 * slot + 1] : -1;
        r->handed++;
        if (report->test)
            pn_report_test(cuda->stage, report->n, loss, right, report->count);
        else
            pn_report_loss(cuda->stage, report->n, loss / (double)report->count, right, report->count);
    }
}
