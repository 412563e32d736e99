/* hello.c: see hello.h. */
#define _DEFAULT_SOURCE
#include "world/hello.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return h;
}

static uint64_t hash_number(uint64_t h, int64_t number)
{
    return hash(h, &number, sizeof number);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    return text ? hash(h, text, strlen(text) + 1) : hash_number(h, -1);
}

static uint64_t hash_build(const pn_program *program)
{
    uint64_t h = hash_text(UINT64_C(14695981039346656037), program->source);
    h = hash_number(h, program->batch);
    h = hash_number(h, program->microbatches);
    for (int i = 0; i < program->nstages; i++) {
        const pn_stage_def *def = program->stage[i];
        h = hash_text(h, def->what);
        h = hash_number(h, def->static_bytes);
        h = hash_number(h, def->ring);
    }
    for (int i = 0; i < program->nphases; i++) {
        h = hash_text(h, program->phase[i].name);
        h = hash_number(h, program->phase[i].minibatches);
        for (int s = 0; s < program->nstages; s++)
            h = hash_text(hash_number(h, program->phase[i].order[s].warmup), program->phase[i].order[s].body);
    }
    return h;
}

static uint64_t hash_options(const pn_options *options)
{
    uint64_t h = hash_number(UINT64_C(14695981039346656037), options->steps);
    h = hash_number(h, options->epochs);
    h = hash_number(h, options->test_every);
    h = hash_number(h, options->checkpoint_every);
    h = hash_number(h, (int64_t)options->seed);
    h = hash_number(h, options->allow_divergence);
    h = hash_text(h, options->data);
    const bool files[] = {options->save,   options->checkpoint, options->load,
                          options->resume, options->report,     options->algorithms};
    const pn_arithmetic *arithmetic = &options->arithmetic;
    const bool loose[] = {arithmetic->exact, arithmetic->tf32, arithmetic->nondeterministic};
    h = hash(hash(h, files, sizeof files), loose, sizeof loose);
    return hash_text(h, getenv("PN_CUDA_EAGER"));
}

Hello world_hello(const pn_world *world, const pn_options *options)
{
    Hello hello = {.rank = world->launch.rank,
                   .size = world->launch.size,
                   .build = hash_build(world->run->program),
                   .options = hash_options(options)};
    snprintf(hello.version, sizeof hello.version, "pnetc %s", PN_VERSION);
    snprintf(hello.program, sizeof hello.program, "%s", world->run->program->name);
    if (gethostname(hello.host, sizeof hello.host - 1) != 0)
        snprintf(hello.host, sizeof hello.host, "?");
    return hello;
}

bool world_fits(const pn_world *world, const Hello *own, const Hello *hello, char *text, size_t size)
{
    *text = '\0';
    if (strcmp(hello->version, own->version) != 0 || strcmp(hello->program, own->program) != 0 ||
        hello->build != own->build)
        snprintf(text, size,
                 "rank %d (%s) runs another program than rank 0: %s of %s, not %s of %s, or another build of it",
                 hello->rank, hello->host, hello->program, hello->version, own->program, own->version);
    else if (hello->size != own->size)
        snprintf(text, size, "rank %d (%s) was told that there are %d ranks, rank 0 that there are %d (%s)",
                 hello->rank, hello->host, hello->size, own->size, world->launch.by);
    else if (hello->rank <= 0 || hello->rank >= own->size || world->peer[hello->rank].socket >= 0)
        snprintf(text, size, "two processes say that they are rank %d; the second one is on %s (%s)", hello->rank,
                 hello->host, world->launch.by);
    else if (hello->options != own->options)
        snprintf(text, size, "rank %d (%s) was started with other options, or another PN_CUDA_EAGER, than rank 0",
                 hello->rank, hello->host);
    return !*text;
}
