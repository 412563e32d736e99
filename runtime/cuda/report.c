/* report.c: losses from the GPU to the log, without waiting for each.
 *
 * A loss leaves two sums in a slot of pinned memory; an event says when they are there. The host hands them to the log
 * in order, some steps later: it waits only when all slots are taken, and at the end of a test, whose result belongs to
 * the weights of that moment. That wait also bounds how far the host runs ahead of the GPU. */
#include "cuda/cuda.h"

enum { SLOTS = 8 };
typedef struct {
    cudaEvent_t there;
    cuda_loss loss;
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
    char name[32];
    snprintf(name, sizeof name, "stage %d losses, pinned", stage->index);
    cuda_region(r->result, sizeof *r->result * 2 * SLOTS, name);
    for (int i = 0; i < SLOTS; i++)
        CU(stage, "the loss", cudaEventCreateWithFlags(&r->report[i].there, cudaEventDisableTiming));
    cuda->reports = r;
}

void cuda_report(pn_stage *stage, const float *rows, int64_t count, int64_t n, bool test, bool classifies)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    if (stage->recomputing)
        return; /* it has been told */
    double *sums = cuda->reports->sums;
    int samples = (int)count;
    CUDA_LAUNCH(stage, &cuda->loss_sum, 1, &sums, &rows, &samples);
    cuda->loss = (cuda_loss){n, count, test, classifies};
}

void cuda_reports_send(cuda_stage *cuda)
{
    struct cuda_reports *r = cuda->reports;
    pn_stage *stage = cuda->stage;
    if (cuda->loss.count == 0)
        return;
    Report *report = &r->report[r->begun % SLOTS];
    double *to = r->result + 2 * (r->begun % SLOTS);
    CU(stage, "the loss", cudaMemcpyAsync(to, r->sums, 2 * sizeof *to, cudaMemcpyDeviceToHost, cuda->stream));
    CU(stage, "the loss", cudaEventRecord(report->there, cuda->stream));
    report->loss = cuda->loss;
    r->begun++;
    if (cuda->loss.test && pn_test_count(stage, cuda->loss.n + 1) <= 0)
        cuda_reports_collect(cuda, true);
}

static bool is_there(pn_stage *stage, const Report *report, bool wait)
{
    if (wait) {
        cuda_wait(stage, report->there, "the loss");
        return true;
    }
    const cudaError_t error = cudaEventQuery(report->there);
    if (error == cudaErrorNotReady)
        return false;
    cuda_check(stage, error, "the loss", "cudaEventQuery");
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
        const int64_t right = report->loss.classifies ? (int64_t)r->result[2 * slot + 1] : -1;
        r->handed++;
        if (report->loss.test)
            pn_report_test(cuda->stage, report->loss.n, loss, right, report->loss.count);
        else
            pn_report_loss(cuda->stage, report->loss.n, loss / (double)report->loss.count, right, report->loss.count);
    }
}
