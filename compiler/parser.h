/* parser.h: what the files of the language room share (parse.c, scan.c, layout.c, nodes.c, syntax.c,
 * grammar/). Private to it.
 *
 * text -> raw tokens (grammar/pnet.l, scan.c) -> tokens with layout resolved (layout.c) -> Ast (grammar/pnet.y,
 * nodes.c). The tokens that the grammar sees are balanced: every bracket has its partner, every statement its newline.
 */
#ifndef PNETC_PARSER_H
#define PNETC_PARSER_H

#include "ast.h"

enum {
    MAX_SOURCE = 16 << 20, /* bytes of one file */
    MAX_NESTING = 200,     /* open brackets, braces, `else if` and signs in a row: recursive passes stay shallow */
    MAX_HEIGHT = 2000,     /* of an expression tree: a chain of operators or |> is a deep tree, too */
};

typedef struct {
    int kind;         /* of pnet.tab.h */
    uint32_t at, end; /* at == end: not in the text but supplied by layout.c */
    bool reported;    /* wrong, and said so: no further error about it */
} Token;
typedef VEC(Token) TokenList;

typedef VEC(Expr *) ExprList;
typedef VEC(Arg) ArgList;
typedef VEC(ParamDecl) ParamList;
typedef VEC(Stmt) StmtList;
typedef VEC(Setting) SettingList;

typedef struct {
    Arena *arena;
    Diags *diags;
    const SourceFile *file;
    TokenList token;
    int next;      /* the token that the grammar reads next */
    uint32_t cut;  /* reading stopped here, reported: no syntax errors at or behind it; 0: read to the end */
    bool too_high; /* MAX_HEIGHT was reported */
    VEC(Item) item;
    VEC(Comment) comment;
    Expr *expression; /* the result of parse_expr */
} Parser;

/* scan.c: false: no text, reported */
bool scan_file(Parser *p, TokenList *raw);
Span token_span(const Parser *p, Token token);
const char *token_text(const Parser *p, Token token, int *length);

/* layout.c: fills p->token; start: the token that chooses what is parsed. False: no text, reported. */
bool tokens_read(Parser *p, int start);

/* syntax.c: a syntax error at the token read last; `expected` are token names of pnet.y. */
void syntax_error(Parser *p, const char *const *expected, int count);

/* nodes.c: nodes of the Ast. Spans: see ast.h. */
Expr *build_expr(Parser *p, ExprKind kind, Span span);
Expr *build_text(Parser *p, Name text, Span span); /* text NULL: an error was reported */
Expr *build_name(Parser *p, Name name, Span span);
Expr *build_call(Parser *p, Name callee, Span name_span, const ArgList *args, Span span);
Expr *build_pipe(Parser *p, Expr *left, Name callee, Span name_span, const ArgList *args, Span span);
Expr *build_unary(Parser *p, Operator op, Expr *operand, Span span);
Expr *build_binary(Parser *p, Operator op, Expr *left, Expr *right);
Expr *build_list(Parser *p, Expr *first, const ExprList *rest, Span span);
Expr *build_quantity(Parser *p, double number, const char *unit, Span span);
ExprList *exprs_add(Parser *p, ExprList *list, Expr *expr);
ArgList *args_add(Parser *p, ArgList *list, Name key, Span key_span, Expr *value);
ParamList *params_add(Parser *p, ParamList *list, Name name, Span span, Expr *initial);
StmtList *stmts_add(Parser *p, StmtList *list, const Stmt *stmt);
SettingList *settings_add(Parser *p, SettingList *list, const Setting *setting);
Body build_body(const StmtList *list, Span span);
void item_add(Parser *p, Item item, const ParamList *params, const SettingList *settings);

#endif
