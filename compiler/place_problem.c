/* place_problem.c: per stage its choices of replicas with their work and memory, the link behind it, and its ring, as
 * the schedule has them. See place_problem.h. */
#include "place_problem.h"

/* ---- stages under the schedule ---- */

/* The ring of stage s and the bytes that its copies of a weight take; true if it has no replicas: it reads weights
 * ahead, or its loss says when a phase ends (plan.c and sched.c refuse these). */
static bool add_stage(const Placing *p, Arena *scratch, int s, int nstages, int *first_delay, bool *stale,
                      PlaceStage *out, int *bytes)
{
    const Pipeline *pipeline = &p->settings->pipeline;
    const int64_t microbatches = p->graph->microbatches;
    int versions = 1, ahead = 0;
    out->ring = 1;
    for (int i = 0; i < pipeline->nphases; i++) {
        StageOrder order = {0}, first = {0};
        pipeline->phase[i].order->order((OrderPlace){s, nstages, (int)microbatches}, &order);
        pipeline->phase[i].order->order((OrderPlace){0, nstages, (int)microbatches}, &first);
        const OrderFacts facts =
            order_measure(scratch, &order, pipeline->phase[i].rule->forward_reads, &first, microbatches);
        const int staleness = facts.staleness, in_flight = facts.in_flight;
        const int kept = pipeline->phase[i].rule->versions(staleness);
        out->ring = in_flight > out->ring ? in_flight : out->ring;
        versions = kept > versions ? kept : versions;
        first_delay[i] = s == 0 ? staleness : first_delay[i];
        const Cure cure =
            cure_of(p->settings, &pipeline->phase[i], staleness, first_delay[i], true); /* for its copies */
        ahead = cure_ahead_copies(&cure) > ahead ? cure_ahead_copies(&cure) : ahead;
        *stale |= i == 0 && staleness > 0;
    }
    const bool bf16 = p->graph->precision == PRECISION_BF16; /* as if all weights were (element.h) */
    *bytes = (versions + ahead + 1) * (int)element_bytes(bf16 ? ELEMENT_BF16 : ELEMENT_F32) +
             4 * ((microbatches > 1) + p->model->states + bf16);
    bool judges = false;
    for (int i = 0; i < pipeline->nphases; i++)
        judges |= s == nstages - 1 && pipeline->phase[i].plateau_tests;
    return ahead > 0 || judges;
}

static bool makes_again(const Pipeline *pipeline, int s)
{
    return pipeline->recompute || (pipeline->recomputes && s < pipeline->nrecomputes && pipeline->recomputes[s]);
}

/* ---- choices ---- */

/* By number of replicas and first worker: the work, where all its workers are of one kind. */
static const int64_t ***work_by_worker(const Placing *p, int64_t ***of, int workers, bool given)
{
    const Hardware *hardware = p->model->hardware;
    const int64_t ***work = arena_alloc(p->arena, sizeof *work * (size_t)p->nreplicas);
    for (int c = 0; c < p->nreplicas; c++) {
        work[c] = arena_alloc(p->arena, sizeof **work * (size_t)workers);
        for (int w = 0; w < workers; w++) {
            const int last = w + p->replicas[c] - 1 < workers ? w + p->replicas[c] - 1 : workers - 1;
            const int kind = hardware_kind(hardware, hardware_worker(hardware, w, workers));
            const int last_kind = hardware_kind(hardware, hardware_worker(hardware, last, workers));
            work[c][w] = given || kind == last_kind ? of[kind][c] : NULL;
        }
    }
    return work;
}

static void add_choices(const Placing *p, PlaceStage *stage, PlaceChoice *list, int least, int most, int bytes,
                        bool sums, const int64_t ***work)
{
    stage->choice = list;
    for (int c = 0; c < p->nreplicas; c++) {
        const int r = p->replicas[c];
        if (r < least || r > most)
            continue;
        list[stage->nchoices++] = (PlaceChoice){.replicas = r,
                                                .work = (const int64_t *const *)work[c],
                                                .copies = bytes + 4 * (r - 1) * (1 + sums),
                                                .memory = -1};
    }
}

/* The mean of the stages is all work over their number where they run on devices of one kind, however it is cut; on
 * several kinds, or where some make values again, it is at most that of the slowest, and placing_solve looks at what
 * came out. */
static void cap_work(Problem *made, double balance)
{
    int64_t all = 0;
    const int nstages = made->in.nstages, n = made->in.n;
    for (int s = 0; s < nstages; s++) {
        const int64_t work = made->choice[s][0].work[s][n];
        all = work > all ? work : all;
    }
    const double most = balance * (double)all / nstages * (1 + 1e-12);
    for (int s = 0; s < nstages; s++)
        made->stage[s].most_work = most < (double)all ? (int64_t)most : all;
}

Problem *problem_new(const Placing *p, int nstages, int workers)
{
    Arena *a = p->arena;
    const Hardware *hardware = p->model->hardware;
    const size_t n = (size_t)nstages;
    const int *given = p->written->replicas && p->written->nreplicas == nstages ? p->written->replicas : NULL;
    int all = 0;
    for (int s = 0; s < nstages; s++)
        all += given ? given[s] : 1;
    const bool free = workers > nstages && placing_replicates(p);
    workers = free ? workers : all;
    Problem *made = arena_alloc(a, sizeof *made);
    made->stage = arena_alloc(a, n * sizeof *made->stage);
    made->choice = arena_alloc(a, n * sizeof *made->choice);
    made->sums = p->graph->microbatches > 1;
    const int64_t ***work = work_by_worker(p, p->work, workers, !free && given);
    const int64_t ***again = work_by_worker(p, p->again, workers, !free && given);
    Arena *scratch = arena_new();
    bool stale = false;
    int first_delay[COUNT(p->settings->pipeline.phase)] = {0};
    for (int s = 0; s < nstages; s++) {
        PlaceStage *stage = &made->stage[s];
        const int nlinks = hardware->nlinks;
        *stage = (PlaceStage){.most_work = -1,
                              .transfer = p->transfer[s < nlinks   ? s
                                                      : nlinks > 0 ? nlinks - 1
                                                                   : 0],
                              .overlap = cost_link(p->model, s).overlap};
        int bytes;
        const bool alone = add_stage(p, scratch, s, nstages, first_delay, &stale, stage, &bytes);
        const int least = !free && given ? given[s] : 1;
        const int most = free && !alone ? workers - nstages + 1 : least;
        made->choice[s] = arena_alloc(a, sizeof(PlaceChoice) * (size_t)p->nreplicas);
        const bool recomputes = makes_again(&p->settings->pipeline, s) && stage->ring > 1;
        if (recomputes)
            stage->ring = 0; /* of what it takes, which the solver does not count */
        add_choices(p, stage, made->choice[s], least, most, bytes, made->sums, recomputes ? again : work);
    }
    arena_free(scratch);
    made->in = (PlaceInput){
        .n = p->n,
        .nstages = nstages,
        .workers = workers,
        .stage = made->stage,
        .stale = p->stale,
        .most_stale = stale && p->wishes.max_stale >= 0 ? (int64_t)(p->wishes.max_stale * (double)p->stale[p->n]) : -1,
        .pin = p->pin,
        .saved = p->saved,
        .saved_before = p->saved_before,
        .weights = p->weights,
    };
    made->several_kinds = hardware->ndevices > 1;
    made->cap = p->wishes.memory > 0 ? p->wishes.memory : -1;
    made->device_cap = arena_alloc(a, sizeof *made->device_cap * (size_t)workers);
    for (int w = 0; w < workers; w++) {
        const int64_t memory = hardware->device[hardware_kind(hardware, hardware_worker(hardware, w, workers))].memory;
        made->device_cap[w] = memory > 0 && workers <= hardware->workers ? memory : -1;
    }
    problem_caps(made);
    if (p->wishes.balance > 0 && workers == nstages)
        cap_work(made, p->wishes.balance);
    return made;
}

/* ---- caps ---- */

/* The most that a worker on which such a stage can begin holds; < 0: no cap. */
static int64_t device_cap(const Problem *problem, int stage, int replicas)
{
    if (problem->in.workers == problem->in.nstages)
        return problem->device_cap[stage];
    int64_t most = 0;
    for (int w = 0; w < problem->in.workers && most >= 0; w++)
        most = problem->device_cap[w] < 0 ? -1 : problem->device_cap[w] > most ? problem->device_cap[w] : most;
    int64_t all;
    return most < 0 || !checked_mul(most, replicas, &all) ? -1 : all;
}

void problem_caps(Problem *problem)
{
    for (int s = 0; s < problem->in.nstages; s++)
        for (int c = 0; c < problem->stage[s].nchoices; c++) {
            PlaceChoice *choice = &problem->choice[s][c];
            const int64_t device = device_cap(problem, s, choice->replicas);
            choice->memory = device >= 0 && (problem->cap < 0 || device < problem->cap) ? device : problem->cap;
        }
}

bool problem_capped(const Problem *problem)
{
    bool capped = problem->cap >= 0;
    for (int w = 0; w < problem->in.workers; w++)
        capped |= problem->device_cap[w] >= 0;
    return capped;
}

bool problem_over(const Problem *problem, int worker, int replicas, int64_t bytes, int64_t worker_bytes)
{
    bool over = problem->cap >= 0 && bytes > problem->cap;
    for (int w = worker; w < worker + replicas; w++)
        over |= problem->device_cap[w] >= 0 && worker_bytes > problem->device_cap[w];
    return over;
}

void problem_ban(Arena *arena, Problem *problem, int stage, const int *cut, const int *replicas)
{
    int worker = 0;
    for (int s = 0; s < stage; s++)
        worker += replicas[s];
    *vec_push(arena, &problem->bans) = (PlaceBan){.stage = stage,
                                                  .worker = problem->several_kinds ? worker : -1,
                                                  .replicas = replicas[stage],
                                                  .from = stage ? cut[stage - 1] : 0,
                                                  .to = stage + 1 < problem->in.nstages ? cut[stage] : problem->in.n};
    problem->in.ban = problem->bans.at;
    problem->in.nbans = problem->bans.count;
}

const int64_t *problem_work(const Problem *problem, int stage, int worker, int replicas)
{
    int c = 0;
    while (problem->choice[stage][c].replicas != replicas)
        c++;
    return problem->choice[stage][c].work[worker];
}

double problem_balance(const Problem *problem, const int *cut, const int *replicas)
{
    int64_t most = 0, sum = 0;
    int worker = 0;
    for (int s = 0; s < problem->in.nstages; s++) {
        const int q = s ? cut[s - 1] : 0, p = s + 1 < problem->in.nstages ? cut[s] : problem->in.n;
        const int64_t *sums = problem_work(problem, s, worker, replicas[s]), work = sums[p] - sums[q];
        worker += replicas[s];
        most = work > most ? work : most;
        sum += work;
    }
    return sum > 0 ? (double)most * problem->in.nstages / (double)sum : 1;
}
