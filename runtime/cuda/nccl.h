/* nccl.h: the connection of a rank to the others, and the exchanges that go through it. Private to nccl.c, which opens it,
 * waits, and ends it, and exchange.c. */
#ifndef PN_CUDA_NCCL_H
#define PN_CUDA_NCCL_H

#include <pthread.h>

#include "cuda/cuda.h"

/* As in NCCL's own header, whose C interface has kept these since NCCL 2.7. */
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
enum { MOST_EXCHANGES = 512, MOST_PARTS = 8192 };
struct cuda_exchange {
    const pn_transfer *part; /* the table's; of one that passes, the caller's, for the round */
    int parts;
    cudaGraphExec_t alone; /* without a step; NULL: not captured yet */
};
struct cuda_ranks {
    Nccl nccl;
    pthread_mutex_t busy; /* a call of NCCL, or the abort */
    Comm comm;            /* NULL: none yet, or aborted */
    cudaEvent_t last;     /* behind the last exchange */
    cuda_exchange exchange[MOST_EXCHANGES];
    cuda_exchange passing[CUDA_AHEAD + 1]; /* of a round each, without room in the table */
    int exchanges, parts;
    int64_t passed;
    pn_transfer part[MOST_PARTS];
    float *probe; /* for the first exchange: one to send, one to receive, for each side */
};

cuda_ranks *cuda_ranks_of(const pn_stage *stage);

/* Between lock and unlock a call of NCCL may be made. `check` while the lock is held: what failed because the run was
 * stopped is no news. */
void nccl_lock(pn_stage *stage);
void nccl_unlock(pn_stage *stage);
void nccl_check(pn_stage *stage, int result, const char *call);

#endif
