/* ast.h: exactly what was written, resolved to nothing. Written by the parser, const afterwards.
 *
 * The grammar knows no op, schedule, data set or target: they are names. Units appear only in machine blocks. */
#ifndef PNETC_AST_H
#define PNETC_AST_H

#include "diag.h"

typedef enum {
    EXPR_INTEGER,  /* integer                                   */
    EXPR_REAL,     /* real                                      */
    EXPR_TEXT,     /* text: "..." with escapes resolved         */
    EXPR_BOOL,     /* integer 0 or 1: yes/no, true/false        */
    EXPR_NAME,     /* text: the name                            */
    EXPR_CALL,     /* text: callee, args                        */
    EXPR_PIPE,     /* left |> callee(args); text: callee; `bare` when written without parentheses */
    EXPR_UNARY,    /* op, left                                  */
    EXPR_BINARY,   /* op, left, right                           */
    EXPR_LIST,     /* (a, b, ...) of two or more: args, all positional */
    EXPR_QUANTITY, /* real, text: the unit ("GB/s")             */
    EXPR_ERROR,    /* a syntax error stood here; already reported */
} ExprKind;

typedef enum {
    OP_NEG,
    OP_NOT,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_AND,
    OP_OR
} Operator;

typedef struct Expr Expr;
typedef struct {
    Name key; /* NULL: positional */
    Span key_span;
    Expr *value;
} Arg;
struct Expr {
    ExprKind kind;
    Operator op;
    bool bare;      /* PIPE written without parentheses */
    bool parens;    /* the source has parentheses around it; printed back by fmt */
    Span span;      /* the whole expression          */
    Span name_span; /* CALL, PIPE: the callee's name; others: the expression without the parentheses around it */
    int64_t integer;
    double real;
    Name text;
    int height; /* of this tree, 1 for a leaf; at most 2000: recursion over it is safe */
    Expr *left, *right;
    Arg *arg;
    int nargs;
};

typedef enum { TYPE_F32, TYPE_CLASS } TypeKind;
typedef struct {
    Name name;  /* as written: "f32", "class"; resolved later */
    Expr **dim; /* inside [] */
    int ndims;
    Span span;
} TypeExpr;

typedef struct Stmt Stmt;
typedef struct {
    Stmt *stmt;
    int count;
    Span span;
} Body;
typedef enum { STMT_INPUT, STMT_ASSIGN, STMT_REGISTER, STMT_LOSS, STMT_FOR, STMT_IF, STMT_RETURN } StmtKind;
struct Stmt {
    StmtKind kind;
    Span span;
    Name name; /* INPUT, ASSIGN, FOR */
    Span name_span;
    TypeExpr type; /* INPUT */
    Expr *value;   /* ASSIGN, LOSS, RETURN, IF condition, FOR lower bound */
    Expr *limit;   /* FOR upper bound, exclusive */
    Body body;     /* FOR, IF */
    Body other;    /* IF: else branch; `else if` is a body of one IF */
    bool has_other;
};

typedef struct {
    Name name;
    Span span;
    Expr *initial; /* NULL: required */
} ParamDecl;

/* name = value, or a nested block `device cpu0 { ... }` (machine blocks only) */
typedef struct Setting Setting;
struct Setting {
    Name name;
    Span name_span, span;
    Expr *value; /* NULL for a block */
    Name label;  /* block: its own name, may be NULL */
    Span body;   /* block: from { to } */
    Setting *inner;
    int ninner;
};

typedef enum { ITEM_NETWORK, ITEM_DEF, ITEM_USE, ITEM_PARAM, ITEM_TRAIN, ITEM_PIPELINE, ITEM_MACHINE } ItemKind;
typedef struct {
    ItemKind kind;
    Name name; /* NETWORK, DEF, PARAM, MACHINE (may be NULL) */
    Span name_span, span;
    Span keyword;     /* the word that opens the item */
    ParamDecl *param; /* NETWORK, DEF */
    int nparams;
    Body body;        /* NETWORK, DEF; of TRAIN, PIPELINE, MACHINE the span only */
    Expr *value;      /* PARAM default; USE: the path as EXPR_TEXT */
    Setting *setting; /* TRAIN, PIPELINE, MACHINE */
    int nsettings;
} Item;

typedef struct {
    Span span;     /* from '#' to before the newline */
    bool own_line; /* nothing but blanks before it on its line */
} Comment;

typedef struct {
    Item *item;
    int nitems;
    Comment *comment; /* in source order; for fmt */
    int ncomments;
    const SourceFile *file;
} Ast;

/* parse.c: text -> Ast. Reports every syntax error it can recover from. Never NULL; after errors the Ast holds what
 * could be read. `use` items are not followed (load.c does). */
Ast *parse(Arena *arena, Diags *diags, const SourceFile *file);
/* One expression, for --set and -D values. NULL after errors. */
Expr *parse_expr(Arena *arena, Diags *diags, const SourceFile *file);

/* load.c: reads `path` (- is standard input), parses it and everything it uses (paths relative to the using file;
 * cycles and unreadable files are errors at the `use`), and joins all items into one Ast: used files first. */
Ast *load(Arena *arena, Diags *diags, Sources *sources, const char *path);

/* load.c: reads one file (- is standard input) into `sources`; NULL after an error (unreadable, a folder, too large).
 */
const SourceFile *load_text(Arena *arena, Diags *diags, Sources *sources, const char *path);
/* The same, at most `most` bytes of it: the caller refuses a file that has as many. */
const SourceFile *load_long_text(Arena *arena, Diags *diags, Sources *sources, const char *path, size_t most);

void ast_dump(const Ast *ast, Text *out); /* stable tree text, one node a line, indented */

/* format.c: the canonical form of one file, comments kept; idempotent. Only for an Ast without errors. */
void format(const Ast *ast, Text *out);

#endif
