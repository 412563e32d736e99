/* settings.h: the train, pipeline and machine blocks, resolved and checked. */
#ifndef PNETC_SETTINGS_H
#define PNETC_SETTINGS_H

#include "ast.h"
#include "graph.h"

/* A named thing with numeric or text arguments, resolved against its schema (data source, optimiser, lr policy). */
typedef struct {
    const char *name;
    struct {
        const char *key;
        bool is_text, given;
        double number;
        const char *text;
        int nlist; /* lists, as multistep's steps */
        double *list;
    } arg[12];
    int nargs;
    Span span;
} Choice;

typedef struct {
    Choice data, optimizer, lr;
    int64_t warmup;               /* steps of linear warm-up of the rate; 0: none */
    int64_t batch, steps, epochs; /* epochs 0: steps count */
    int64_t test_every;           /* in steps; 0: only at the end */
    uint64_t seed;
    Precision precision;
    Span precision_span;
} Train;

/* cure = auto | none | corrections. */
typedef struct {
    const struct CorrectionDef *def; /* correction.h */
    double arg[3];                   /* CORRECTION_ARGS */
    Span span;
} CorrectionChoice;
typedef struct {
    bool given, automatic;
    CorrectionChoice correction[8]; /* in the order of corrections.def */
    int count;
    Span span;
} CureChoice;

/* One phase of the run. hybrid(A, steps = n, then = B) is two. */
typedef struct {
    const struct OrderDef *order; /* sched.h */
    const struct RuleDef *rule;
    const char *preset;   /* as the user named it */
    int64_t minibatches;  /* 0: all that remain; with a plateau: the fewest */
    int plateau_tests;    /* it ends when so many tests in a row do not lower the loss; 0: it does not */
    double plateau_least; /* part by which a loss is to be lower */
    bool own_lr;          /* lr: the policy from its beginning on */
    Choice lr;
    Span span;
    int64_t microbatches; /* of a minibatch, as this phase says; 0: as the others say */
    Span microbatches_span;
    bool recompute;   /* asked for here, of all stages */
    bool *recomputes; /* of each; NULL: not said so */
    int nrecomputes;
    Span recompute_span;
} PhaseChoice;

/* registers = auto(...): the compiler places them (place.h). Cuts stand before nodes of the graph as written. */
typedef struct {
    bool wanted;
    int stages;                /* exactly so many; 0: not stated */
    int workers;               /* at most so many, replicas counted; 0: not stated */
    bool no_replicas;          /* each stage has one worker */
    double max_stale;          /* < 0: no limit */
    int64_t memory;            /* bytes of a stage; 0: no limit */
    double balance;            /* slowest stage over the mean, at most; 0: no limit */
    bool least_memory;         /* minimize = memory */
    bool limited;              /* registers stand only at `allow` */
    Cut *allow, *forbid, *pin; /* ascending */
    int nallow, nforbid, npin;
    Span span, count_span, workers_span, max_stale_span, memory_span, balance_span;
} AutoRegisters;

typedef struct {
    PhaseChoice phase[4];
    int nphases;
    int64_t microbatches;   /* that the phases agree on; 1: minibatches are not sliced */
    bool recompute;         /* all stages keep what they take, and make the rest again before each backward */
    const bool *recomputes; /* these do; NULL: none besides */
    int nrecomputes;
    Span recompute_span;
    CureChoice cure;
    double balance;   /* warn when the slowest stage exceeds the mean by more than this factor */
    double max_stale; /* warn when more of the weights are stale; < 0: no limit */
    int64_t memory;   /* warn when a stage needs more bytes; 0: no limit */
    int64_t threads;  /* of each stage */
    bool split;       /* mapping = split */
    AutoRegisters automatic;
    Span span, max_stale_span, memory_span, threads_span, mapping_span;
} Pipeline;

typedef struct {
    Name name;
    const Setting *setting; /* units checked; used by the cost model */
    int nsettings;
    Span span; /* of the word that opens the block */
} Machine;

typedef struct {
    Train train;
    Pipeline pipeline;
    Machine *machine;
    int nmachines;
} Settings;

/* -D name=value and --set block.key=value from the command line, in order. Their texts are Sources named
 * "-D depth" and "--set train.batch", so diagnostics can point into them. */
typedef struct {
    Name name, block; /* block NULL for -D */
    Expr *value;
    Span span;
    bool used;
} Override;

/* lower.c: Ast -> Graph and Settings. The network is the last one in the file, or `network` by name when not NULL.
 * Needs load(). Reports every name, argument, shape and setting error; NULL after errors.
 * Naming: an assigned value whose outermost call is an op gives its node the variable's name (when it is bound once in
 * its scope); other nodes are op + number ("conv1"), instances of a def are def + number and scope what is inside
 * ("group2.unit1.conv1"). Explicit names win; automatic numbers skip taken names. Names are unique. */
Graph *lower(Arena *arena, Diags *diags, const Sources *sources, const Ast *ast, Name network, Override *overrides,
             int noverrides, Settings *settings);

/* choices.c: pnetc list data: data sources, optimisers and rate policies with their arguments. */
void choices_list(Text *out);
int optimizer_states(const Choice *optimizer); /* state arrays as large as the weights: 1 for momentum */
typedef struct {
    double momentum; /* part of the velocity that an update keeps */
    bool averages;   /* the velocity is a mean of gradients, steps are normalised: Adam */
    bool nesterov;
} Momentum;
Momentum optimizer_momentum(const Choice *optimizer);
double choice_number(const Choice *choice, const char *key, double otherwise);

#endif
