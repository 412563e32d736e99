/* world.h: several processes, the ranks, that run one program together: each a contiguous group of its stages, on a device
 * of its own.
 *
 * Ranks are started by mpirun, srun or torchrun, or by hand with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
 * (launch.c). Rank r of R runs stages r S/R .. (r + 1) S/R - 1. Every rank keeps a TCP connection to rank 0; what stages
 * give each other goes another way (pn_target_exchange). Rank 0 prints, and writes all files: losses and weights come to it.
 *
 * Its life:
 *   world_open    before the device is opened: all ranks have come, and run the same program with the same options
 *   world_meet    each knows its device: rank 0 prints the table of ranks; no two share a device
 *   world_ready   operations, plans and kernels are made, weights are set: now the ranks are connected (NCCL), and a thread
 *                 begins to watch over the connections
 *   world_end     this rank is done; returns when all are
 *
 * The first failure of any rank ends all of them: its message goes to all, what waits for others is aborted. So does a rank
 * that is gone (its connection ends), and a run of which no rank does a step in run->timeout seconds. */
#ifndef PN_WORLD_H
#define PN_WORLD_H

#include "core/log.h"
#include "core/options.h"
#include "rt.h"

enum { WORLD_TEXT = 192 };
/* How this process was started. */
typedef struct {
    int rank, size;
    int local;      /* number among the ranks of this host: which of its devices */
    char host[256]; /* of rank 0 */
    int port;
    const char *by; /* the variables that say so, for messages */
} Launch;
/* False: the process is alone. Ends the program when the variables contradict each other. */
bool launch_read(Launch *launch);

/* NULL in run->world: one process, or a target that knows no ranks. Takes from `options` what other ranks than 0 must not
 * do. Ends the program when the ranks do not come together. */
void world_open(pn_run *run, pn_options *options);
void world_meet(pn_run *run, bool quiet);
bool world_ready(pn_run *run); /* false: the run has been stopped */
bool world_end(pn_run *run);   /* likewise */

int world_rank(const pn_run *run);                   /* 0 without a world */
int world_first(const pn_world *world, int rank);    /* its first stage */
int world_rank_of(const pn_world *world, int stage); /* which rank runs it */
int world_local(const pn_run *run);                  /* number of the device; 0 without a world */

/* This rank has failed (run->error): tells the others, once. Gives the exit status: that of the rank that failed first. */
int world_failed(pn_run *run, int status);

/* At the beginning of a round: if somebody was interrupted, all ranks agree on the last minibatch, and close run->begun
 * behind it. False: the run has been stopped. */
bool world_agree(pn_run *run);
void world_interrupt(pn_run *run); /* from the signal handler */

/* What the rank does, in a few words, for the watchdog's message. */
void world_doing(pn_run *run, const char *text);

/* To rank 0 and its log. */
void world_interval(pn_run *run, const Interval *interval, int phase);
void world_test(pn_run *run, const TestResult *result, double images_per_second);
/* To rank 0: the values of a stage, for the checkpoint of this step. */
void world_checkpoint(pn_stage *stage);

/* ---- private to world/ ---- */
typedef struct {
    int socket;             /* -1: none */
    char about[WORLD_TEXT]; /* "node1, GPU 0 NVIDIA H200": as messages name it */
    bool ended;             /* it has done all its steps */
    long long progress;     /* as it said last */
    double heard;           /* when; pn_seconds */
    char doing[WORLD_TEXT]; /* what it did */
} Peer;
struct pn_world {
    pn_run *run;
    Launch launch;
    bool wants_values; /* rank 0 writes weights at the end */
    Peer *peer;        /* of rank 0: one a rank; of the others: rank 0 alone */
    pthread_mutex_t sending, lock;
    pthread_cond_t changed; /* what follows, under the lock */
    pthread_t watcher;
    struct pollfd *poll; /* room for the watcher */
    bool quits;
    bool over;                  /* all ranks have ended */
    bool told;                  /* a failure has gone round */
    int status;                 /* of the first failure; 0: none */
    char doing[WORLD_TEXT];     /* this rank */
    atomic_int wishes;          /* 1: an interrupt has come here; 2: rank 0 knows */
    atomic_int asked;           /* 1: all ranks say how many minibatches they have begun */
    atomic_int answered, ended; /* this rank has said so; it has done all its steps */
    int answers;                /* rank 0: how many have said so */
    int64_t most, agreed;       /* rank 0: the most of them; the result, -1: none yet */
};
typedef enum {
    WORLD_HELLO = 1,
    WORLD_WELCOME,
    WORLD_ABOUT,
    WORLD_READY,
    WORLD_ID,
    WORLD_BEAT,
    WORLD_FAIL,
    WORLD_INTERVAL,
    WORLD_TEST,
    WORLD_CHECKPOINT,
    WORLD_STAGE,
    WORLD_WISH,
    WORLD_ASK,
    WORLD_BEGUN,
    WORLD_AGREED,
    WORLD_END,
    WORLD_OVER
} WorldKind;
typedef struct {
    uint32_t mark, kind;
    int64_t bytes;
} Frame;
typedef struct {
    int32_t status;
    char text[1024];
} FailFrame;

/* wire.c: all of a frame, or why not; seconds: until it gives up. */
const char *wire_send(int to, WorldKind kind, const void *data, int64_t bytes);
const char *wire_receive(int from, void *data, int64_t bytes, double seconds);
int wire_listen(int port);
int wire_accept(int listener, double seconds); /* -1: nobody came */
int wire_connect(const char *host, int port, double seconds);

/* Sends to a rank (of rank 0) or to rank 0; a lost connection is found by who reads from it. */
void world_send(pn_world *world, int rank, WorldKind kind, const void *data, int64_t bytes);
void world_send_all(pn_world *world, WorldKind kind, const void *data, int64_t bytes); /* of rank 0 */
void world_watch(pn_world *world); /* control.c: starts the thread */

#endif
