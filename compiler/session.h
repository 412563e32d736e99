/* session.h: one run of pnetc: the command line, what was read and made so far, and what is said about it.
 *
 * main.c has the passes and the table of commands; a command is one function of commands_*.c that returns the exit
 * code. */
#ifndef PNETC_SESSION_H
#define PNETC_SESSION_H

#include "options.h"
#include "report.h"

typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
    Options options;
    const char *self;
    const Ast *ast;
    Override *overrides;
    const Graph *written; /* with its registers */
    bool single;          /* replicas are left out: times of nodes are of a whole minibatch */
    Settings settings;
    const CostModel *model;
    const Balance *balance;
} Session;

/* text -> Ast -> Graph, settings and cost model. False after errors, or when a dump (into `out`) ended it early. */
bool elaborate(Session *s, Text *out);
/* Further -> Pipe -> Sched -> Plan, and its balance. NULL after errors, or when a dump (into `out`) ended it early. */
const Plan *compile(Session *s, Text *out);

/* Prints what was reported; true if there were errors. */
bool session_errors(Session *s);
/* Standard output reaches its end, or the command has failed. */
int session_finish(int status);
/* A result to -o or to standard output. */
int session_deliver(Session *s, const Text *result);

int command_check(Session *s); /* and plan */
int command_place(Session *s);
int command_build(Session *s); /* and run */
int command_fmt(Session *s);
int command_explain(Session *s);
int command_doctor(Session *s);
int command_list(Session *s);
int command_flags(Session *s);
int command_kernels(Session *s);
int command_draw(Session *s);
int command_plot(Session *s);
int command_report(Session *s);
int command_profile(Session *s);
int command_calibrate(Session *s);

#endif
