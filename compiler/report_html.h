/* report_html.h: `pnetc report`: all that the compiler knows of a program, as one page for people (html.h).
 *
 * One file, nothing loaded; same input, same bytes. A section a file, each reads finished structures only. */
#ifndef PNETC_REPORT_HTML_H
#define PNETC_REPORT_HTML_H

#include "balance.h"
#include "draw.h"
#include "html.h"
#include "place_report.h"
#include "trace.h"

typedef struct {
    const Balance *balance;
    const Graph *written;
    const Settings *settings;
    const Front *front;       /* NULL: the wishes of auto(...) cannot be met */
    const Trace *trace;       /* of a run; NULL: none */
    const TimedWindow *steps; /* of the steady state, predicted */
} Page;

enum { PAGE_UPDATES = 3 }; /* in the stretches of the predicted and of the measured run */

void report_html(const Page *page, Text *out);

/* ---- for report_html*.c ---- */
enum { PAGE_WIDTH = 1120 }; /* pixels of a chart that fills the page */
typedef long long Int;

void page_network(const Page *page, Text *out);   /* what each stage holds, what each layer costs */
void page_layers(const Page *page, Text *out);    /* the same as tables */
void page_balance(const Page *page, Text *out);   /* time of the stages */
void page_staleness(const Page *page, Text *out); /* of the weights, by stage */
void page_registers(const Page *page, Text *out); /* what crosses the cuts */
void page_memory(const Page *page, Text *out);    /* every byte of every stage */
void page_schedule(const Page *page, Text *out);  /* space and time */
void page_measured(const Page *page, Text *out);  /* predicted beside measured */
void page_choices(const Page *page, Text *out);   /* other placements, other schedules */

/* Where the nodes of the network stand in charts over its program order. */
typedef struct {
    NodeId *node; /* without inputs */
    int *column;  /* per node of the graph; -1: an input */
    int count;
    double left, pitch, width;
} Columns;
Columns page_columns(Arena *arena, const Graph *graph);
/* Stages as headed bands from `top` to `bottom`, registers between them. */
void page_bands(const Page *page, const Columns *columns, double top, double bottom, Text *out);
/* Names under the columns where there is room, else the numbers of weighted layers. */
void page_names(const Page *page, const Columns *columns, double y, Text *out);
/* Time of each node on the device of its stage. */
const NodeTime *page_times(Arena *arena, const Page *page);
const char *plural(int64_t count);          /* "" or "s" */
const char *page_slice(const Graph *graph); /* what a forward takes: "minibatch", or "microbatch" where it is sliced */

#endif
