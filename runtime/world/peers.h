/* peers.h: what the files of world/ share: who the ranks are, the frames between them, and what a rank keeps of the
 * others. */
#ifndef PN_WORLD_PEERS_H
#define PN_WORLD_PEERS_H

#include <pthread.h>

#include "world/world.h"

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
    void *incoming;      /* likewise: for a frame of at most `largest` bytes */
    int64_t largest;
    void *outgoing; /* of other ranks than 0: room for a stage's values, of the thread that trains */
    bool quits;
    bool over;              /* all ranks have ended */
    bool told;              /* a failure has gone round */
    int status;             /* of the first failure; 0: none */
    char doing[WORLD_TEXT]; /* this rank */
    bool agreed;            /* on the last minibatch */
    atomic_int begins;      /* 1: run->begun is meant */
    atomic_int wishes;      /* 1: an interrupt has come here; 2: rank 0 knows */
    bool asked, answered;   /* of the watcher: all say how many minibatches they have begun; this rank has said so */
    int answers;            /* rank 0, of the watcher: how many have said so */
    int64_t most;           /* likewise: the most of them */
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
