/* watchdog.h: the main thread while stage threads run. Silence becomes a message that says for every stage what it
 * waits for. */
#ifndef PN_WATCHDOG_H
#define PN_WATCHDOG_H

#include <pthread.h>

#include "rt.h"

enum { WATCHDOG_TICK_MS = 50, WATCHDOG_GRACE_SECONDS = 10 };

typedef struct {
    pn_run *run;
    pthread_mutex_t lock;
    pthread_cond_t one_ended;
    int ended;
} Watchdog;

void watchdog_open(Watchdog *watchdog, pn_run *run);
void watchdog_close(Watchdog *watchdog);
void watchdog_ended(Watchdog *watchdog); /* by each stage thread, last */
/* Returns when `count` threads have ended. No finished step in run->timeout seconds (0: any time) stops the run. A
 * thread that does not see a stopped run within the grace, because it hangs in a kernel, ends the process. */
void watchdog_watch(Watchdog *watchdog, int count);

#endif
