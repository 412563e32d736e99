/* launch.c: who started this process says which rank it is, in the environment. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "world/peers.h"

/* In order of preference. The variables of Slurm are those of a step: sbatch alone sets the others of a job. */
typedef struct {
    const char *by, *rank, *size, *local, *local_size;
} Starter;
static const Starter starters[] = {
    {"RANK, WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL},
};
enum { MOST_RANKS = 4096, LAST_PORT = 65535, USUAL_PORT = 29500 };

/* -1: not set. */
static int number_of(const char *name, int most)
{
    const char *text = name ? getenv(name) : NULL;
    if (!text || !*text)
        return -1;
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > most)
        pn_fail(NULL, "%s wants a number from 0 to %d, not '%s'", name, most, text);
    return (int)value;
}

static void set_address(Launch *launch, const Starter *starter)
{
    const char *host = getenv("MASTER_ADDR");
    const int here = number_of(starter->local_size, MOST_RANKS), port = number_of("MASTER_PORT", LAST_PORT);
    const char *nodes = getenv("SLURM_STEP_NUM_NODES");
    const bool one_host = here == launch->size || (!starter->local_size && nodes && strcmp(nodes, "1") == 0);
    if ((!host || !*host) && !one_host)
        pn_fail(
            NULL,
            "%d ranks (%s), perhaps on several hosts: MASTER_ADDR must name the host of rank 0 (and MASTER_PORT a free "
            "port of it, usually %d)",
            launch->size, launch->by, USUAL_PORT);
    if (snprintf(launch->host, sizeof launch->host, "%s", host && *host ? host : "127.0.0.1") >=
        (int)sizeof launch->host)
        pn_fail(NULL, "MASTER_ADDR is no host: it is too long");
    launch->port = port > 0 ? port : USUAL_PORT;
}

bool launch_read(Launch *launch)
{
    for (int i = 0; i < PN_COUNT(starters); i++) {
        const Starter *starter = &starters[i];
        const int rank = number_of(starter->rank, MOST_RANKS), size = number_of(starter->size, MOST_RANKS);
        if (i > 0 && (rank < 0 || size < 0))
            continue;
        if (rank < 0 && size < 0)
            continue;
        if (rank < 0 || size < 0)
            pn_fail(NULL, "%s is set, %s is not: both say which process of how many this is",
                    rank < 0 ? starter->size : starter->rank, rank < 0 ? starter->rank : starter->size);
        if (rank >= size)
            pn_fail(NULL, "%s=%d: ranks of %d go from 0 to %d (%s)", starter->rank, rank, size, size - 1,
                    starter->size);
        if (size == 1)
            return false;
        const int local = number_of(starter->local, MOST_RANKS);
        *launch = (Launch){.rank = rank, .size = size, .local = local, .by = starter->by};
        if (local < 0)
            pn_fail(NULL, "%s is not set: it says which of its host's GPUs rank %d takes", starter->local, rank);
        set_address(launch, starter);
        return true;
    }
    return false;
}
