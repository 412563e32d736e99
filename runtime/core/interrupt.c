/* The agreement is one atomic number, run->begun = ONE (minibatches begun by any stage) + CLOSED, HELD or neither. To
 * begin a minibatch first is to raise it, which fails once it is closed, and waits while ranks agree where to close it;
 * to close or to hold it is one `or`, safe in a signal handler. */
#include "core/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "world/world.h"

enum { CLOSED = 1, HELD = 2, ONE = 4 };

void interrupt_open(pn_run *run, int64_t first)
{
    atomic_store(&run->begun, ONE * first);
}

bool interrupt_may_begin(pn_run *run, int64_t n)
{
    if (n >= run->steps)
        return false;
    long long begun = atomic_load(&run->begun);
    while (begun / ONE <= n) {
        if (begun & CLOSED)
            return false;
        if (begun & HELD) {
            if (!world_agreed(run))
                return false;
            begun = atomic_load(&run->begun);
        } else if (atomic_compare_exchange_weak(&run->begun, &begun, ONE * (n + 1))) {
            break;
        }
    }
    return true;
}

void interrupt_close(pn_run *run)
{
    atomic_fetch_or(&run->begun, CLOSED);
}

int64_t interrupt_hold(pn_run *run)
{
    return atomic_fetch_or(&run->begun, HELD) / ONE;
}

void interrupt_close_behind(pn_run *run, int64_t minibatches)
{
    atomic_store(&run->begun, ONE * minibatches + CLOSED);
}

int64_t interrupt_steps(pn_run *run)
{
    long long begun = atomic_load(&run->begun);
    return begun & CLOSED ? begun / ONE : run->steps;
}

/* A handler is given no argument: this is the one way to hand it the run. */
static _Atomic(pn_run *) interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    pn_run *run = atomic_load(&interrupted);
    if (run && run->world)
        world_interrupt(run);
    else if (run)
        interrupt_close(run);
    static const char text[] = "\ninterrupt: ending after the minibatches in flight (again: at once, nothing saved)\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written; /* nobody is left to tell */
}

void interrupt_install(pn_run *run)
{
    atomic_store(&interrupted, run);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, &action, NULL) != 0)
        pn_fail(NULL, "cannot install the interrupt handler");
}

void interrupt_remove(void)
{
    signal(SIGINT, SIG_DFL);
    atomic_store(&interrupted, NULL);
}
