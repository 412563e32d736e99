/* The loader thread: gathers and augments the samples of the next training minibatches, so that a stage only normalises
 * them into its buffer. A ring of raw samples for each tensor input.
 *
 * No stage ever waits for it. A stage that asks for minibatch n takes it from the ring when it is there; otherwise it
 * gathers n itself, and the time is counted (pn_stage.data_seconds). The loader works on the minibatches behind the
 * highest that any stage has asked for: a stage that lags behind another one on the same input gathers for itself, too.
 * What is seen of minibatch n is the same either way.
 *
 * Raw, not normalised, because that is where the time goes: for 128 samples of CIFAR gathering takes 20 to 75 us as the
 * caches are, with crops and mirrors 150 us; normalising takes 23 us, and copying normalised ones would take 33 us (one
 * core with AVX-512). The ring is a quarter of the size besides.
 *
 * A slot is free, being filled, or holds a number; readers keep it from being filled again. All of that changes under
 * one lock, which is held for some loads and stores only. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "data/data.h"

typedef struct {
    int64_t number; /* the microbatch it holds; -1: none */
    int readers;
} Slot;
typedef struct {
    Slot *slot; /* one more than are decoded ahead; NULL: labels, which are looked up as fast as copied */
    uint8_t *memory;
    int64_t asked; /* the highest microbatch that a stage has asked for */
    int64_t next;  /* the next to be filled */
} Ring;
typedef struct pn_loader pn_loader;
struct pn_loader {
    pn_run *run;
    Ring *ring; /* by input */
    int ahead;
    int64_t bytes; /* of a raw microbatch */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* there may be something to do */
    pthread_t thread;
    bool closing;
};

/* From here on, and always when samples are augmented, a minibatch is worth a thread. Measured with LeNet-5 on 100
 * images (76 KiB): gathered by the stage they take 0.6 % of its time, augmented 1.5 %; images/s differ by less than the
 * noise. */
enum { WORTH_BYTES = 128 << 10, MOST_AHEAD = 64, USUAL_AHEAD = 2 };

static int64_t slots(const pn_loader *loader)
{
    return loader->ahead + 1;
}

void pn_loader_open(pn_run *run, int64_t ahead)
{
    const pn_program *program = run->program;
    const int64_t bytes = pn_raw_bytes(run->data) * pn_slice(program);
    if (ahead < 0)
        ahead = bytes >= WORTH_BYTES || run->data->moved ? USUAL_AHEAD : 0;
    if (ahead == 0)
        return;
    pn_loader *loader = pn_alloc((int64_t)sizeof *loader);
    loader->run = run;
    loader->bytes = bytes;
    loader->ahead = (int)(ahead < MOST_AHEAD ? ahead : MOST_AHEAD);
    loader->ring = pn_alloc((int64_t)sizeof *loader->ring * program->ninputs);
    for (int i = 0; i < program->ninputs; i++) {
        if (program->input[i].label)
            continue;
        Ring *ring = &loader->ring[i];
        ring->memory = pn_alloc(bytes * slots(loader));
        run->loader_bytes += bytes * slots(loader);
        ring->slot = pn_alloc((int64_t)sizeof *ring->slot * slots(loader));
        for (int64_t s = 0; s < slots(loader); s++)
            ring->slot[s].number = -1;
        ring->next = run->first * pn_microbatches(program);
        ring->asked = ring->next - 1;
    }
    if (pthread_mutex_init(&loader->lock, NULL) != 0 || pthread_cond_init(&loader->wake, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of the loader");
    run->loader = loader;
}

/* The ring and slot to fill next, NULL: nothing to do. Called with the lock. */
static Ring *find_work(pn_loader *loader)
{
    for (int i = 0; i < loader->run->program->ninputs; i++) {
        Ring *ring = &loader->ring[i];
        if (!ring->slot)
            continue;
        if (ring->next <= ring->asked)
            ring->next = ring->asked + 1;
        if (ring->next <= ring->asked + loader->ahead &&
            ring->next < loader->run->steps * pn_microbatches(loader->run->program) &&
            ring->slot[ring->next % slots(loader)].readers == 0)
            return ring;
    }
    return NULL;
}

static void fill(const pn_loader *loader, int64_t n, uint8_t *to)
{
    const pn_run *run = loader->run;
    const pn_dataset *data = run->data;
    const int64_t bytes = pn_raw_bytes(data);
    const uint8_t *samples = data->train_pixels ? data->train_pixels : (const void *)data->train_values;
    for (int64_t i = 0; i < pn_slice(run->program); i++) {
        int64_t sample = pn_sample_of(run, n, i);
        if (data->moved)
            pn_move_sample(data, pn_move_of(data, run->seed, n / pn_microbatches(run->program), pn_place_of(run, n, i)),
                           sample, to + i * bytes);
        else
            memcpy(to + i * bytes, samples + sample * bytes, (size_t)bytes);
    }
}

static void *work(void *argument)
{
    pn_loader *loader = argument;
    pthread_mutex_lock(&loader->lock);
    while (!loader->closing) {
        Ring *ring = find_work(loader);
        if (!ring) {
            pthread_cond_wait(&loader->wake, &loader->lock);
            continue;
        }
        int64_t n = ring->next++;
        Slot *slot = &ring->slot[n % slots(loader)];
        slot->number = -1;
        pthread_mutex_unlock(&loader->lock);
        fill(loader, n, ring->memory + n % slots(loader) * loader->bytes);
        pthread_mutex_lock(&loader->lock);
        slot->number = n;
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* SIGINT is for the main thread. */
void pn_loader_start(pn_run *run)
{
    pn_loader *loader = run->loader;
    if (!loader)
        return;
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    int error = pthread_create(&loader->thread, NULL, work, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        pn_fail(NULL, "cannot start the loader's thread: %s (--prefetch 0 does without)", strerror(error));
}

void pn_loader_stop(pn_run *run)
{
    pn_loader *loader = run->loader;
    if (!loader)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->closing = true;
    pthread_cond_signal(&loader->wake);
    pthread_mutex_unlock(&loader->lock);
    pthread_join(loader->thread, NULL);
    pthread_cond_destroy(&loader->wake);
    pthread_mutex_destroy(&loader->lock);
    run->loader = NULL;
}

const void *pn_ready(pn_stage *stage, int64_t n, int input)
{
    pn_loader *loader = stage->run->loader;
    if (!loader)
        return NULL;
    Ring *ring = &loader->ring[input];
    Slot *slot = &ring->slot[n % slots(loader)];
    pthread_mutex_lock(&loader->lock);
    bool there = slot->number == n;
    if (there)
        slot->readers++;
    if (n > ring->asked) {
        ring->asked = n;
        pthread_cond_signal(&loader->wake);
    }
    pthread_mutex_unlock(&loader->lock);
    return there ? ring->memory + n % slots(loader) * loader->bytes : NULL;
}

void pn_ready_done(pn_stage *stage, int64_t n, int input)
{
    pn_loader *loader = stage->run->loader;
    pthread_mutex_lock(&loader->lock);
    loader->ring[input].slot[n % slots(loader)].readers--;
    pthread_cond_signal(&loader->wake);
    pthread_mutex_unlock(&loader->lock);
}
