/* hello.h: how a rank introduces itself to rank 0. Private to world/. */
#ifndef PN_HELLO_H
#define PN_HELLO_H

#include "world/peers.h"

/* What must be the same on all ranks, and what each says of itself. */
typedef struct {
    char version[32], program[64];
    int32_t rank, size;
    uint64_t build, options;
    char host[64];
} Hello;
Hello world_hello(const pn_world *world, const pn_options *options);
/* False: it does not fit to rank 0's own, and why not. */
bool world_fits(const pn_world *world, const Hello *own, const Hello *hello, char *text, size_t size);

#endif
