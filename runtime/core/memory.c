/* Memory outside the generated code's static arrays: all of it is taken before the first step and kept to the end of
 * the process. Running out ends the program with the need in bytes. */
#define _DEFAULT_SOURCE /* madvise */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/memory.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

/* Every block stays reachable from here, so that leak checkers report only what is lost. */
typedef struct Block {
    void *memory;
    struct Block *next;
} Block;
static Block *blocks;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(void *memory)
{
    Block *block = malloc(sizeof *block);
    if (!block)
        pn_fail(NULL, "out of memory: need %zu bytes", sizeof *block);
    pthread_mutex_lock(&blocks_lock);
    *block = (Block){memory, blocks};
    blocks = block;
    pthread_mutex_unlock(&blocks_lock);
}

/* Static arrays are nearly all of a program's memory; linkers of ELF programs say where those without initial values
 * begin and end. */
#if defined __linux__
extern char __bss_start[] __attribute__((weak)), _end[] __attribute__((weak));

void memory_advise_static(void)
{
    const uintptr_t first = ((uintptr_t)__bss_start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t last = (uintptr_t)_end / HUGE_PAGE * HUGE_PAGE;
    if (first < last)
        (void)madvise((void *)first, last - first, MADV_HUGEPAGE);
}
#else
void memory_advise_static(void) {}
#endif

void *pn_alloc(int64_t bytes)
{
    if (bytes < 0 || (uint64_t)bytes > SIZE_MAX - HUGE_PAGE)
        pn_fail(NULL, "out of memory: a size beyond the address space was asked for");
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    void *memory = NULL;
    int error = posix_memalign(&memory, align, size);
    if (error)
        pn_fail(NULL, "out of memory: need %lld bytes in one block (%s)", (long long)bytes, strerror(error));
    /* Advice before the first touch; a kernel without huge pages says no, and small pages do as well. */
    if (align == HUGE_PAGE)
        (void)madvise(memory, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    memset(memory, 0, size);
    remember(memory);
    return memory;
}

void pn_scratch_need(pn_stage *stage, int64_t bytes)
{
    if (bytes > stage->scratch_bytes)
        stage->scratch_bytes = bytes;
}
