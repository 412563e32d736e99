/* choose.c: measures the passes that have two algorithms, each call whole, with its reorders, in memory of its own: the
 * slots of the stage are not touched. Time is that of the processor, as in profiles. */
#define _DEFAULT_SOURCE /* madvise */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

/* Shapes of all ports tell the stride as well. */
static bool alike(const cpu_call *a, const cpu_call *b)
{
    if (a->nports != b->nports)
        return false;
    for (int i = 0; i < a->nports; i++)
        if (a->port[i].argument != b->port[i].argument || !dnn_same(a->port[i].bank->layout, b->port[i].bank->layout))
            return false;
    return true;
}

cpu_choice *cpu_choice_new(cpu_call *call, const char *pass)
{
    cpu_stage *state = cpu_open(call->stage);
    cpu_choice *choice = pn_alloc(sizeof *choice);
    choice->op = call->name;
    choice->pass = pass;
    choice->call = call;
    for (const cpu_choice *other = state->choices; other && !choice->twin; other = other->next)
        if (!other->twin && strcmp(other->pass, pass) == 0 && alike(other->call, call))
            choice->twin = other;
    choice->next = state->choices;
    state->choices = choice;
    return choice;
}

static int64_t port_bytes(const cpu_call *call)
{
    int64_t bytes = 0;
    for (int i = 0; i < call->nports; i++)
        bytes += (call->port[i].bank->bytes + LINE - 1) / LINE * LINE;
    return bytes;
}

static void open_room(pn_stage *stage)
{
    cpu_stage *state = stage->target;
    void *room = NULL;
    for (const cpu_choice *choice = state->choices; choice; choice = choice->next)
        if (port_bytes(choice->call) > state->room_bytes)
            state->room_bytes = port_bytes(choice->call);
    const size_t size = ((size_t)state->room_bytes / HUGE_PAGE + 1) * HUGE_PAGE;
    if (posix_memalign(&room, HUGE_PAGE, size) != 0)
        pn_fail(stage, "out of memory: need %zu bytes to measure algorithms", size);
    (void)madvise(room, size, MADV_HUGEPAGE); /* as the arrays of the run */
    state->room = room;
}

/* Small numbers, neither zero nor ever denormal in a sum of their products. */
static void fill(float *at, int64_t bytes)
{
    for (int64_t i = 0; i < bytes / (int64_t)sizeof *at; i++)
        at[i] = (float)(i % 31 - 15) / 16.0f;
}

static double seconds_of(const cpu_call *call, const dnnl_memory_t *slot)
{
    const double begin = pn_work_seconds();
    cpu_run_on(call, slot);
    return pn_work_seconds() - begin;
}

static void measure(cpu_stage *state, cpu_choice *choice)
{
    const cpu_call *call = choice->call;
    dnnl_memory_t slot[CPU_PORTS];
    char *at = (char *)state->room;
    fill(state->room, port_bytes(call));
    for (int i = 0; i < call->nports; i++) {
        const cpu_bank *bank = call->port[i].bank;
        dnn_need(dnnl_memory_create(&slot[i], bank->layout, state->engine, at), "memory");
        at += (bank->bytes + LINE - 1) / LINE * LINE;
    }
    const int round = choice->rounds < CPU_ROUNDS + 1 ? choice->rounds++ : 0; /* 0: nothing is noted */
    for (int i = 0; i < PN_ALGORITHMS; i++) {
        const pn_algorithm algorithm = (i + round) % PN_ALGORITHMS; /* each comes first now and then */
        const cpu_call *way = algorithm == PN_WINOGRAD ? &choice->winograd : call;
        if (!cpu_call_runs(way))
            continue;
        const double seconds = seconds_of(way, slot);
        if (round > 0)
            choice->seconds[algorithm][round - 1] = seconds;
    }
    for (int i = 0; i < call->nports; i++)
        dnn_need(dnnl_memory_destroy(slot[i]), "memory");
}

bool pn_target_measure(pn_stage *stage)
{
    cpu_stage *state = stage->target;
    if (!state || !state->choices)
        return true;
    if (!state->room)
        open_room(stage);
    bool enough = true;
    for (cpu_choice *choice = state->choices; choice; choice = choice->next) {
        if (choice->twin)
            continue;
        measure(state, choice);
        enough = enough && choice->rounds == CPU_ROUNDS + 1;
    }
    return enough;
}

static int order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void settle(cpu_choice *choice)
{
    const bool possible = cpu_call_runs(&choice->winograd);
    double median[PN_ALGORITHMS], sorted[CPU_ROUNDS];
    for (int i = 0; i < PN_ALGORITHMS; i++) {
        memcpy(sorted, (choice->twin ? choice->twin : choice)->seconds[i], sizeof sorted);
        qsort(sorted, CPU_ROUNDS, sizeof *sorted, order);
        median[i] = sorted[CPU_ROUNDS / 2];
    }
    if (pn_algorithm_measured(choice->call->stage, choice->op, choice->pass, possible, median) == PN_WINOGRAD) {
        const cpu_call direct = *choice->call; /* its descriptors stay: layouts are theirs */
        *choice->call = choice->winograd;
        choice->call->next = direct.next;
        cpu_call *const next = choice->winograd.next;
        choice->winograd = direct;
        choice->winograd.next = next;
    }
    choice->winograd.nports = 0; /* the one that lost is never run, nor told of */
    choice->winograd.pass = NULL;
}

void pn_target_settle(pn_stage *stage)
{
    cpu_stage *state = stage->target;
    if (!state)
        return;
    cpu_choice *first = NULL; /* in the order of the program */
    for (cpu_choice *choice = state->choices, *next; choice; choice = next) {
        next = choice->next;
        choice->next = first;
        first = choice;
    }
    for (cpu_choice *choice = first; choice; choice = choice->next)
        settle(choice);
    state->choices = NULL;
    free(state->room);
    state->room = NULL;
}
