/* diag.h: diagnostics are data. Passes report and go on; main renders once, sorted by place, capped at 20.
 *
 * Rendering:  file:line:col: error: text [P0301]
 *             the source line, the underline of the span (tabs and UTF-8 kept in column)
 *             file:line:col: note: ...       (where the other half is)
 *             hint: what to type
 * Duplicates (same code, same span) are dropped. Messages about no place print "pnetc: error: text [Pxxxx]". */
#ifndef PNETC_DIAG_H
#define PNETC_DIAG_H

#include "base.h"

/* Stable codes, one list per area: codes/<area>.def holds CODE(P0301, "title", "explanation with an example"). */
typedef enum {
#define CODE(code, title, text) code,
#include "codes.def"
#undef CODE
    CODE_COUNT
} Code;

/* All files read in one run share one offset space; file i covers [base, base + length]. */
typedef struct {
    const char *path; /* as the user wrote it */
    const char *text; /* NUL-terminated; may contain NUL bytes before `length` */
    uint32_t base, length;
} SourceFile;
typedef struct {
    SourceFile *file;
    int count, room;
} Sources;
/* Adds a text; returns its file. Total over 1 GiB is refused with NULL. */
const SourceFile *source_add(Arena *arena, Sources *sources, const char *path, const char *text, size_t length);
const SourceFile *source_of(const Sources *sources, uint32_t at); /* NULL: no file */
/* 1-based line and column (column counts UTF-8 characters) of an offset. */
void source_locate(const SourceFile *file, uint32_t at, int *line, int *column);

typedef struct Diags Diags;
Diags *diags_new(Arena *arena, Sources *sources);
void diag_error(Diags *diags, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
void diag_warning(Diags *diags, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
/* Attach to the diagnostic reported last (also when that one was a duplicate: then they are dropped). */
void diag_note(Diags *diags, Span span, const char *format, ...) PRINTF_LIKE(3, 4);
void diag_hint(Diags *diags, const char *format, ...) PRINTF_LIKE(2, 3);
int diag_errors(const Diags *diags); /* how many errors so far */
void diags_render(const Diags *diags, FILE *out, bool colour);

/* pnetc explain: "P0301" -> its text on `out`; false and a hint on unknown codes. NULL lists all codes. */
bool diag_explain(const char *code, FILE *out);

#endif
