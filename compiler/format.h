/* format.h: what format.c and format_lines.c share; private to them. Lines are made first, then aligned and printed. */
#ifndef PNETC_FORMAT_H
#define PNETC_FORMAT_H

#include "ast.h"

enum { WIDTH = 100, INDENT = 4, MAX_PAD = 24, MAX_CHAIN_COLUMN = 40 };

/* A place where a line may be broken. Level: 2 * bracket depth for |>, one less behind a comma: arguments
 * part before chains. */
typedef struct {
    size_t at;
    int level;
    bool kept; /* the source has a newline here */
} Break;

typedef struct {
    const char *text; /* without indent; "" is a blank line */
    const char *comment;
    int indent;
} Line;

typedef struct {
    Arena *arena;
    const Ast *ast;
    int next; /* the first comment not yet printed */
    int indent;
    VEC(Line) line;
    VEC(Break) brk; /* of the statement under construction */
    int depth;      /* of brackets in it */
} Format;

/* Places in the source. */
const char *format_source(const Format *f, uint32_t at);
bool format_newline_between(const Format *f, uint32_t from, uint32_t to);
bool format_blank_before(const Format *f, uint32_t at);

/* Comments. Those that begin before `at` get lines of their own, `blank` asks for a blank line before the first; the
 * one just behind `end` joins the line printed last. */
bool format_comments(Format *f, uint32_t at, bool blank);
void format_trailing_comment(Format *f, uint32_t end);
/* Comments in front of and inside [at, end), then the blank line that the source has. */
void format_lead(Format *f, uint32_t at, uint32_t end, bool blank);

/* Lines. */
size_t format_columns(const char *text, size_t length);
void format_line(Format *f, const char *text);
void format_statement(Format *f, const Text *text); /* broken at f->brk */
void format_print(const Format *f, Text *out);

#endif
