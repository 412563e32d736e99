/* exchange.c: what crosses between GPUs of several processes: NCCL, opened when there are several.
 *
 * An exchange is all that a rank sends and receives in a round, in one group: no order among its parts, so no circle of
 * waits. It goes into the graph of the step that carries it, as one node, or into a graph of its own; both ends of NCCL
 * must be captured or neither, and all are. What orders it against the steps are the events of the slots (order.c): it
 * waits for what it sends to be given and for what it overwrites to be freed, and does the same for its peers' slots
 * here. All plans and kernels are made before NCCL begins (cuDNN may load code, which waits for the kernels of NCCL
 * that run), and code is loaded eagerly. All ranks begin their exchanges in the order of the rounds, so a host may wait
 * for its device at any time: the peers of what is begun need nothing that comes later. One communicator has one
 * exchange at a time, also when they are on the streams of several stages. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/cuda.h"
#include "world/world.h"

/* As in nccl.h, whose C interface has kept these since NCCL 2.7. */
typedef struct ncclComm *Comm;
typedef struct {
    char bytes[128];
} Id;
enum { SUCCESS = 0, IN_PROGRESS = 7, FLOAT32 = 7, BFLOAT16 = 9, LEAST_VERSION = 20900 /* captures sends */ };
typedef struct {
    int (*version)(int *version);
    const char *(*error_text)(int error);
    int (*make_id)(Id *id);
    int (*connect)(Comm *comm, int ranks, Id id, int rank);
    int (*begin)(void);
    int (*end)(void);
    int (*send)(const void *from, size_t count, int type, int peer, Comm comm, cudaStream_t stream);
    int (*receive)(void *to, size_t count, int type, int peer, Comm comm, cudaStream_t stream);
    int (*async_error)(Comm comm, int *error);
    int (*abort)(Comm comm);
} Nccl;
static const char *const names[] = {
    "ncclGetVersion", "ncclGetErrorString", "ncclGetUniqueId", "ncclCommInitRank",      "ncclGroupStart",
    "ncclGroupEnd",   "ncclSend",           "ncclRecv",        "ncclCommGetAsyncError", "ncclCommAbort"};

enum { MOST_EXCHANGES = 512, MOST_PARTS = 8192, AHEAD = 4 /* rounds */ };
struct cuda_exchange {
    pn_transfer *part; /* n: the slot */
    int parts;
    cudaGraphExec_t alone; /* without a step; NULL: not captured yet */
};
struct cuda_ranks {
    Nccl nccl;
    pthread_mutex_t busy; /* a call of NCCL, or the abort */
    Comm comm;            /* NULL: none yet, or aborted */
    cudaEvent_t last;     /* behind the last exchange */
    cuda_exchange exchange[MOST_EXCHANGES];
    int exchanges, parts;
    pn_transfer part[MOST_PARTS];
    float *probe; /* for the first exchange: one to send, one to receive, for each side */
};

/* ---- the library ---- */

/* Symbols that are loaded already are preferred: the simulator of the tests has its own. */
static void open_library(cuda_ranks *ranks)
{
    void *function[PN_COUNT(names)], *library = NULL;
    for (int i = 0; i < PN_COUNT(names); i++) {
        function[i] = dlsym(RTLD_DEFAULT, names[i]);
        if (!function[i] && !library)
            library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!function[i] && !library)
            pn_fail(NULL, "several ranks talk through NCCL, which cannot be loaded: %s", dlerror());
        if (!function[i])
            function[i] = dlsym(library, names[i]);
        if (!function[i])
            pn_fail(NULL, "libnccl.so.2 has no %s", names[i]);
    }
    memcpy(&ranks->nccl, function, sizeof ranks->nccl);
    int version = 0;
    if (ranks->nccl.version(&version) != SUCCESS || version < LEAST_VERSION)
        pn_fail(NULL, "libnccl.so.2 is version %d, at least %d is wanted", version, LEAST_VERSION);
}

static cuda_ranks *ranks_of(const pn_stage *stage)
{
    return ((cuda_device *)stage->run->target)->ranks;
}

void cuda_ranks_open(pn_run *run)
{
    cuda_device *device = run->target;
    cuda_ranks *ranks = pn_alloc(sizeof *ranks);
    if (pthread_mutex_init(&ranks->busy, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of NCCL");
    open_library(ranks);
    device->ranks = ranks;
}

/* While the lock is held. What fails because the run was stopped is no news. */
static void check(pn_stage *stage, int result, const char *call)
{
    cuda_ranks *ranks = ranks_of(stage);
    if (result == SUCCESS)
        return;
    pthread_mutex_unlock(&ranks->busy);
    fail_check(stage);
    pn_fail(stage, "the exchange between ranks: %s: %s", call, ranks->nccl.error_text(result));
}

static void lock(pn_stage *stage)
{
    cuda_ranks *ranks = ranks_of(stage);
    pthread_mutex_lock(&ranks->busy);
    if (!ranks->comm) {
        pthread_mutex_unlock(&ranks->busy);
        fail_check(stage);
        pn_fail(stage, "internal error: an exchange before the ranks are connected");
    }
}

/* ---- connecting ---- */

void pn_target_make_id(pn_run *run, char *id)
{
    const cuda_ranks *ranks = ((cuda_device *)run->target)->ranks;
    Id made;
    const int result = ranks->nccl.make_id(&made);
    if (result != SUCCESS)
        pn_fail(NULL, "ncclGetUniqueId: %s", ranks->nccl.error_text(result));
    memcpy(id, made.bytes, sizeof made.bytes);
}

/* Slots for what other ranks give: as large as theirs. */
static void place_received(pn_stage *stage, pn_channel *channel)
{
    if (channel->area.slots > 0)
        channel->area.memory = pn_place(stage, channel->name, channel->area.bytes, channel->area.slots);
}

int64_t cuda_received_bytes(const pn_run *run)
{
    const pn_program *program = run->program;
    const int rank = world_rank(run);
    int64_t sum = 0;
    for (int i = 0; run->world && i < program->nregisters; i++) {
        const pn_register *reg = program->reg[i];
        if (world_rank_of(run->world, reg->forward.to) != rank || world_rank_of(run->world, reg->forward.from) == rank)
            continue;
        const pn_area areas[] = {reg->forward.area, reg->gradient.area, reg->test.area};
        for (int k = 0; k < PN_COUNT(areas); k++)
            sum += areas[k].bytes * areas[k].slots;
    }
    return sum;
}

void cuda_ranks_place(pn_stage *stage)
{
    const pn_run *run = stage->run;
    for (int i = 0; run->world && i < run->program->nregisters; i++) {
        pn_register *reg = run->program->reg[i];
        if (reg->forward.to != stage->index || run->stage[reg->forward.from].here)
            continue;
        place_received(stage, &reg->forward);
        place_received(stage, &reg->gradient);
        place_received(stage, &reg->test);
    }
}

/* Sends and receives with a neighbour set up the connections between them, which a capture could not. */
static void probe(pn_stage *stage, int rank, int size)
{
    cuda_ranks *ranks = ranks_of(stage);
    const Nccl *nccl = &ranks->nccl;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    CU(stage, "the exchange", cudaMemsetAsync(ranks->probe, 0, 4 * sizeof *ranks->probe, stream));
    lock(stage);
    check(stage, nccl->begin(), "ncclGroupStart");
    for (int side = 0; side < 2; side++) {
        const int peer = side ? rank + 1 : rank - 1;
        if (peer < 0 || peer >= size)
            continue;
        check(stage, nccl->send(ranks->probe + 2 * side, 1, FLOAT32, peer, ranks->comm, stream), "ncclSend");
        check(stage, nccl->receive(ranks->probe + 2 * side + 1, 1, FLOAT32, peer, ranks->comm, stream), "ncclRecv");
    }
    check(stage, nccl->end(), "ncclGroupEnd");
    pthread_mutex_unlock(&ranks->busy);
    cuda_wait_stream(stage);
}

static pn_stage *first_here(pn_run *run)
{
    int i = 0;
    while (!run->stage[i].here)
        i++;
    return &run->stage[i];
}

bool pn_target_connect(pn_run *run, const char *id, int rank, int size)
{
    cuda_ranks *ranks = ((cuda_device *)run->target)->ranks;
    pn_stage *stage = first_here(run);
    Id made;
    Comm comm = NULL;
    memcpy(made.bytes, id, sizeof made.bytes);
    if (setjmp(stage->escape))
        return false;
    ranks->probe = cuda_alloc(stage, 4 * sizeof *ranks->probe, "the exchange");
    CU(stage, NULL, cudaEventCreateWithFlags(&ranks->last, cudaEventDisableTiming));
    CU(stage, NULL, cudaDeviceSynchronize());
    pthread_mutex_lock(&ranks->busy);
    check(stage, ranks->nccl.connect(&comm, size, made, rank), "ncclCommInitRank");
    ranks->comm = comm;
    pthread_mutex_unlock(&ranks->busy);
    probe(stage, rank, size);
    return true;
}

/* The watcher's last means: a call of NCCL that hangs holds the lock, and then the rank is ended by force. */
void pn_target_abort(pn_run *run)
{
    cuda_device *device = run->target;
    cuda_ranks *ranks = device ? device->ranks : NULL;
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int tries = 0; ranks && tries < 100; tries++) {
        if (pthread_mutex_trylock(&ranks->busy) == 0) {
            if (ranks->comm)
                ranks->nccl.abort(ranks->comm);
            ranks->comm = NULL;
            pthread_mutex_unlock(&ranks->busy);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- waiting: what is waited for may need a rank that is gone ---- */

static void check_peers(pn_stage *stage)
{
    const cuda_ranks *ranks = ranks_of(stage);
    int error = SUCCESS;
    lock(stage);
    check(stage, ranks->nccl.async_error(ranks->comm, &error), "ncclCommGetAsyncError");
    if (error != IN_PROGRESS)
        check(stage, error, "a rank is gone, or its network");
    pthread_mutex_unlock(&((cuda_ranks *)ranks)->busy);
}

void cuda_wait(pn_stage *stage, cudaEvent_t event, const char *what)
{
    const struct timespec pause = {.tv_nsec = 20000};
    if (!ranks_of(stage)) {
        CU(stage, what, cudaEventSynchronize(event));
        return;
    }
    for (int64_t looks = 1;; looks++) {
        const cudaError_t error = cudaEventQuery(event);
        if (error == cudaSuccess)
            return;
        fail_check(stage);
        if (error != cudaErrorNotReady)
            cuda_check(stage, error, what, "cudaEventQuery");
        if (looks > 256)
            nanosleep(&pause, NULL);
        if (looks % 4096 == 0)
            check_peers(stage);
    }
}

void cuda_wait_stream(pn_stage *stage)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    if (!ranks_of(stage)) {
        CU(stage, NULL, cudaStreamSynchronize(cuda->stream));
        return;
    }
    if (!cuda->reached)
        CU(stage, NULL, cudaEventCreateWithFlags(&cuda->reached, cudaEventDisableTiming));
    CU(stage, NULL, cudaEventRecord(cuda->reached, cuda->stream));
    cuda_wait(stage, cuda->reached, "the stream");
}

void pn_target_pace(pn_stage *stage, int64_t round)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    cudaEvent_t *event = &cuda->pace[round % AHEAD];
    if (!*event)
        CU(stage, NULL, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    else
        cuda_wait(stage, *event, "an earlier round");
    CU(stage, NULL, cudaEventRecord(*event, cuda->stream));
}

/* ---- exchanges ---- */

static bool is_same(const cuda_exchange *exchange, const pn_transfer *transfer, int count)
{
    if (exchange->parts != count)
        return false;
    for (int i = 0; i < count; i++)
        if (exchange->part[i].channel != transfer[i].channel ||
            exchange->part[i].n != transfer[i].n % transfer[i].channel->area.slots)
            return false;
    return true;
}

/* NULL: the table is full. */
static cuda_exchange *find(cuda_ranks *ranks, const pn_transfer *transfer, int count)
{
    for (int i = 0; i < ranks->exchanges; i++)
        if (is_same(&ranks->exchange[i], transfer, count))
            return &ranks->exchange[i];
    if (ranks->exchanges == MOST_EXCHANGES || ranks->parts + count > MOST_PARTS)
        return NULL;
    cuda_exchange *exchange = &ranks->exchange[ranks->exchanges++];
    *exchange = (cuda_exchange){.part = ranks->part + ranks->parts, .parts = count};
    ranks->parts += count;
    for (int i = 0; i < count; i++) {
        exchange->part[i] = transfer[i];
        exchange->part[i].n %= transfer[i].channel->area.slots;
    }
    return exchange;
}

void cuda_exchange_enqueue(pn_stage *stage, const cuda_exchange *exchange)
{
    cuda_ranks *ranks = ranks_of(stage);
    const Nccl *nccl = &ranks->nccl;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    lock(stage);
    check(stage, nccl->begin(), "ncclGroupStart");
    for (int i = 0; i < exchange->parts; i++) {
        const pn_transfer *part = &exchange->part[i];
        const pn_area *area = &part->channel->area;
        char *slot = (char *)area->memory + part->n * area->bytes;
        const bool bf16 = part->channel->element == PN_BF16;
        const size_t items = (size_t)area->bytes / (bf16 ? sizeof(pn_bf16) : sizeof(float));
        const int type = bf16 ? BFLOAT16 : FLOAT32;
        if (part->sends)
            check(stage, nccl->send(slot, items, type, part->peer, ranks->comm, stream), "ncclSend");
        else
            check(stage, nccl->receive(slot, items, type, part->peer, ranks->comm, stream), "ncclRecv");
    }
    check(stage, nccl->end(), "ncclGroupEnd");
    pthread_mutex_unlock(&ranks->busy);
}

void cuda_exchange_before(pn_stage *stage, const cuda_exchange *exchange)
{
    for (int i = 0; i < exchange->parts; i++)
        cuda_order_exchange(stage, &exchange->part[i], true);
    CU(stage, "the exchange", cudaStreamWaitEvent(cuda_stage_of(stage)->stream, ranks_of(stage)->last, 0));
}

void cuda_exchange_behind(pn_stage *stage, const cuda_exchange *exchange)
{
    for (int i = 0; i < exchange->parts; i++)
        cuda_order_exchange(stage, &exchange->part[i], false);
    CU(stage, "the exchange", cudaEventRecord(ranks_of(stage)->last, cuda_stage_of(stage)->stream));
}

void cuda_exchange_alone(pn_stage *stage, cuda_exchange *exchange)
{
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    cuda_exchange_before(stage, exchange);
    if (cuda_graphs_wanted(cuda_stage_of(stage))) {
        if (!exchange->alone) {
            cudaGraph_t recorded;
            CU(stage, "the exchange", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            cuda_exchange_enqueue(stage, exchange);
            CU(stage, "the exchange", cudaStreamEndCapture(stream, &recorded));
            CU(stage, "the exchange", cudaGraphInstantiate(&exchange->alone, recorded, 0));
            CU(stage, "the exchange", cudaGraphDestroy(recorded));
        }
        CU(stage, "the exchange", cudaGraphLaunch(exchange->alone, stream));
    } else {
        cuda_exchange_enqueue(stage, exchange);
    }
    cuda_exchange_behind(stage, exchange);
}

void pn_target_exchange(pn_stage *stage, const pn_transfer *transfer, int count, bool with_next)
{
    cuda_exchange *exchange = find(ranks_of(stage), transfer, count);
    if (!exchange)
        pn_fail(stage, "internal error: more than %d exchanges", MOST_EXCHANGES);
    if (with_next)
        cuda_stage_of(stage)->carries = exchange;
    else
        cuda_exchange_alone(stage, exchange);
}
