/* pnet.y: the grammar of a .pnet file; REFERENCE.md explains it to people.
 *
 * What it does not know: the name of any layer, schedule, optimiser, data set, device or unit. Those are names, resolved by
 * later passes; adding one never touches this file. It looks at nothing but tokens, folds nothing and counts nothing.
 *
 * layout.c has balanced all brackets and ended every statement by NEWLINE, so the error rules below always find their
 * token. Conflicts are to be removed, not expected. Bison's own stacks are malloc'd and freed by the parser; all nodes are
 * the arena's. */
%require "3.8"
%define api.pure full
%define api.prefix {grammar_}
%define api.token.prefix {T_}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {Parser *p}

%code requires {
#include "parser.h"
}

/* parse.c: the next token and its value. */
%code provides {
int grammar_lex(GRAMMAR_STYPE *value, Span *span, Parser *p);
}

%code {
#define YYLLOC_DEFAULT(current, rhs, n)                                                             \
    ((current) = (n) ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n))                                \
                     : (Span){YYRHSLOC(rhs, 0).end, YYRHSLOC(rhs, 0).end})

static void grammar_error(Span *span, Parser *p, const char *message);
}

%union {
    Name name;
    int64_t integer;
    double real;
    Operator op;
    Expr *expr;
    ExprList *exprs;
    ArgList *args;
    ParamList *params;
    Stmt stmt;
    StmtList *stmts;
    Body body;
    Setting setting;
    SettingList *settings;
    TypeExpr type;
}

/* Choose what is parsed; never in a text. */
%token START_FILE START_EXPR

%token END 0 "the end of the file"
%token NEWLINE "the end of the line"
%token <name> NAME "a name" PATH "a dotted name" TEXT "a text"
%token <integer> INTEGER "an integer"
%token <real> REAL "a number"

%token <name> NETWORK "'network'" DEF "'def'" USE "'use'" PARAM "'param'" INPUT "'input'" REGISTER "'register'"
%token <name> LOSS "'loss'" TRAIN "'train'" PIPELINE "'pipeline'" MACHINE "'machine'" FOR "'for'" IN "'in'" IF "'if'"
%token <name> ELSE "'else'" RETURN "'return'" AND "'and'" OR "'or'" NOT "'not'" YES "'yes'" NO "'no'"

%token PIPE "'|>'" RANGE "'..'" EQ "'=='" NE "'!='" LE "'<='" GE "'>='"

/* Of the scanner only: scan.c turns them into the above, or into an error. */
%token BLANK COMMENT BAD_NAME BAD_NUMBER BAD_TEXT BAD_SYMBOL BAD_BYTES BAD_CONTROL

%type <name> key keyword optional_name unit
%type <op> comparison_operator
%type <expr> expr disjunction conjunction negation comparison sum product unary primary machine_value
%type <exprs> exprs
%type <args> arguments args
%type <params> parameters optional_parameters parameter_list
%type <stmt> statement if_statement
%type <stmts> statements
%type <body> body
%type <setting> setting machine_setting
%type <settings> settings setting_list machine_settings machine_setting_list
%type <type> type

%start start

%%

start
    : START_FILE items
    | START_EXPR expr NEWLINE                   { p->expression = $expr; }
    | START_EXPR error NEWLINE
    ;

/* ---- the top level ---- */

/* No yyerrok here: of several stray lines in a row only the first is reported. */
items
    : %empty
    | items item NEWLINE
    | items error NEWLINE
    | items error body NEWLINE
    ;

item
    : NETWORK NAME optional_parameters body
        { item_add(p, (Item){.kind = ITEM_NETWORK, .name = $2, .name_span = @2, .span = @$, .keyword = @1, .body = $4},
                   $3, NULL); }
    | DEF NAME parameters body
        { item_add(p, (Item){.kind = ITEM_DEF, .name = $2, .name_span = @2, .span = @$, .keyword = @1, .body = $4},
                   $3, NULL); }
    | USE TEXT
        { if ($2)
              item_add(p, (Item){.kind = ITEM_USE, .span = @$, .keyword = @1, .value = build_text(p, $2, @2)},
                       NULL, NULL); }
    | PARAM NAME
        { item_add(p, (Item){.kind = ITEM_PARAM, .name = $2, .name_span = @2, .span = @$, .keyword = @1}, NULL, NULL); }
    | PARAM NAME '=' expr
        { item_add(p, (Item){.kind = ITEM_PARAM, .name = $2, .name_span = @2, .span = @$, .keyword = @1, .value = $4},
                   NULL, NULL); }
    | TRAIN settings
        { item_add(p, (Item){.kind = ITEM_TRAIN, .span = @$, .keyword = @1, .body.span = @2}, NULL, $2); }
    | PIPELINE settings
        { item_add(p, (Item){.kind = ITEM_PIPELINE, .span = @$, .keyword = @1, .body.span = @2}, NULL, $2); }
    | MACHINE optional_name machine_settings
        { item_add(p, (Item){.kind = ITEM_MACHINE, .name = $2, .name_span = @2, .span = @$, .keyword = @1, .body.span = @3},
                   NULL, $3); }
    ;

optional_name
    : %empty                                    { $$ = NULL; }
    | NAME
    ;

optional_parameters
    : %empty                                    { $$ = NULL; }
    | parameters
    ;

parameters
    : '(' ')'                                   { $$ = NULL; }
    | '(' parameter_list ')'                    { $$ = $2; }
    | '(' parameter_list ',' ')'                { $$ = $2; }
    | '(' error ')'                             { $$ = NULL; }
    ;

parameter_list
    : NAME                                      { $$ = params_add(p, NULL, $1, @1, NULL); }
    | NAME '=' expr                             { $$ = params_add(p, NULL, $1, @1, $3); }
    | parameter_list ',' NAME                   { $$ = params_add(p, $1, $3, @3, NULL); }
    | parameter_list ',' NAME '=' expr          { $$ = params_add(p, $1, $3, @3, $5); }
    ;

/* ---- settings ---- */

settings
    : '{' setting_list '}'                      { $$ = $2; }
    ;

setting_list
    : %empty                                    { $$ = NULL; }
    | setting_list setting NEWLINE              { $$ = settings_add(p, $1, &$2); }
    | setting_list error NEWLINE                { $$ = $1; yyerrok; }
    | setting_list error body NEWLINE           { $$ = $1; yyerrok; }
    ;

setting
    : key '=' expr                              { $$ = (Setting){.name = $1, .name_span = @1, .span = @$, .value = $3}; }
    ;

machine_settings
    : '{' machine_setting_list '}'              { $$ = $2; }
    ;

machine_setting_list
    : %empty                                    { $$ = NULL; }
    | machine_setting_list machine_setting NEWLINE
                                                { $$ = settings_add(p, $1, &$2); }
    | machine_setting_list error NEWLINE        { $$ = $1; yyerrok; }
    | machine_setting_list error body NEWLINE   { $$ = $1; yyerrok; }
    ;

machine_setting
    : key '=' machine_value                     { $$ = (Setting){.name = $1, .name_span = @1, .span = @$, .value = $3}; }
    | NAME optional_name machine_settings
        { $$ = (Setting){.name = $1, .name_span = @1, .span = @$, .label = $2, .body = @3,
                         .inner = $3 ? $3->at : NULL, .ninner = $3 ? $3->count : 0}; }
    ;

machine_value
    : expr
    | INTEGER unit                              { $$ = build_quantity(p, (double)$1, $2, @$); }
    | REAL unit                                 { $$ = build_quantity(p, $1, $2, @$); }
    | '-' INTEGER unit                          { $$ = build_quantity(p, -(double)$2, $3, @$); } /* for its message */
    | '-' REAL unit                             { $$ = build_quantity(p, -$2, $3, @$); }
    ;

unit
    : NAME
    | NAME '/' NAME                             { $$ = name_of(p->arena, arena_printf(p->arena, "%s/%s", $1, $3)); }
    ;

/* A key stands in front of `=` only: there every word of the language is a name. */
key
    : NAME
    | keyword
    ;

keyword
    : NETWORK | DEF | USE | PARAM | INPUT | REGISTER | LOSS | TRAIN | PIPELINE | MACHINE
    | FOR | IN | IF | ELSE | RETURN | AND | OR | NOT | YES | NO
    ;

/* ---- statements ---- */

body
    : '{' statements '}'                        { $$ = build_body($2, @$); }
    ;

statements
    : %empty                                    { $$ = NULL; }
    | statements statement NEWLINE              { $$ = stmts_add(p, $1, &$2); }
    | statements error NEWLINE                  { $$ = $1; yyerrok; }
    | statements error body NEWLINE             { $$ = $1; yyerrok; }
    ;

statement
    : INPUT NAME ':' type
        { $$ = (Stmt){.kind = STMT_INPUT, .span = @$, .name = $2, .name_span = @2, .type = $4}; }
    | NAME '=' expr
        { $$ = (Stmt){.kind = STMT_ASSIGN, .span = @$, .name = $1, .name_span = @1, .value = $3}; }
    | REGISTER
        { $$ = (Stmt){.kind = STMT_REGISTER, .span = @$}; }
    | LOSS expr
        { $$ = (Stmt){.kind = STMT_LOSS, .span = @$, .value = $2}; }
    | FOR NAME IN expr RANGE expr body
        { $$ = (Stmt){.kind = STMT_FOR, .span = @$, .name = $2, .name_span = @2, .value = $4, .limit = $6, .body = $7}; }
    | RETURN expr
        { $$ = (Stmt){.kind = STMT_RETURN, .span = @$, .value = $2}; }
    | if_statement
    ;

if_statement
    : IF expr body
        { $$ = (Stmt){.kind = STMT_IF, .span = @$, .value = $2, .body = $3}; }
    | IF expr body ELSE body
        { $$ = (Stmt){.kind = STMT_IF, .span = @$, .value = $2, .body = $3, .other = $5, .has_other = true}; }
    | IF expr body ELSE if_statement
        { $$ = (Stmt){.kind = STMT_IF, .span = @$, .value = $2, .body = $3, .has_other = true,
                      .other = build_body(stmts_add(p, NULL, &$5), @5)}; }
    ;

type
    : NAME                                      { $$ = (TypeExpr){.name = $1, .span = @$}; }
    | NAME '[' exprs ']'
        { $$ = (TypeExpr){.name = $1, .dim = $3->at, .ndims = $3->count, .span = @$}; }
    | NAME '[' error ']'                        { $$ = (TypeExpr){.name = $1, .span = @$}; }
    ;

/* ---- expressions, from weak to strong ---- */

expr
    : disjunction
    | expr PIPE NAME                            { $$ = build_pipe(p, $1, $3, @3, NULL, @$); $$->bare = true; }
    | expr PIPE NAME arguments                  { $$ = build_pipe(p, $1, $3, @3, $4, @$); }
    ;

disjunction
    : conjunction
    | disjunction OR conjunction                { $$ = build_binary(p, OP_OR, $1, $3); }
    ;

conjunction
    : negation
    | conjunction AND negation                  { $$ = build_binary(p, OP_AND, $1, $3); }
    ;

negation
    : comparison
    | NOT negation                              { $$ = build_unary(p, OP_NOT, $2, @$); }
    ;

comparison
    : sum
    | sum comparison_operator sum               { $$ = build_binary(p, $2, $1, $3); }
    ;

comparison_operator
    : EQ                                        { $$ = OP_EQ; }
    | NE                                        { $$ = OP_NE; }
    | '<'                                       { $$ = OP_LT; }
    | LE                                        { $$ = OP_LE; }
    | '>'                                       { $$ = OP_GT; }
    | GE                                        { $$ = OP_GE; }
    ;

sum
    : product
    | sum '+' product                           { $$ = build_binary(p, OP_ADD, $1, $3); }
    | sum '-' product                           { $$ = build_binary(p, OP_SUB, $1, $3); }
    ;

product
    : unary
    | product '*' unary                         { $$ = build_binary(p, OP_MUL, $1, $3); }
    | product '/' unary                         { $$ = build_binary(p, OP_DIV, $1, $3); }
    | product '%' unary                         { $$ = build_binary(p, OP_MOD, $1, $3); }
    ;

unary
    : primary
    | '-' unary                                 { $$ = build_unary(p, OP_NEG, $2, @$); }
    ;

primary
    : INTEGER                                   { $$ = build_expr(p, EXPR_INTEGER, @$); $$->integer = $1; }
    | REAL                                      { $$ = build_expr(p, EXPR_REAL, @$); $$->real = $1; }
    | TEXT                                      { $$ = build_text(p, $1, @$); }
    | YES                                       { $$ = build_expr(p, EXPR_BOOL, @$); $$->integer = 1; }
    | NO                                        { $$ = build_expr(p, EXPR_BOOL, @$); }
    | NAME                                      { $$ = build_name(p, $1, @$); }
    | PATH                                      { $$ = build_name(p, $1, @$); }
    | NAME arguments                            { $$ = build_call(p, $1, @1, $2, @$); }
    | '(' expr ')'                              { $$ = $2; $$->parens = true; $$->span = @$; }
    | '(' expr ',' exprs ')'                    { $$ = build_list(p, $2, $4, @$); }
    | '(' error ')'                             { $$ = build_expr(p, EXPR_ERROR, @$); }
    ;

exprs
    : expr                                      { $$ = exprs_add(p, NULL, $1); }
    | exprs ',' expr                            { $$ = exprs_add(p, $1, $3); }
    ;

arguments
    : '(' ')'                                   { $$ = NULL; }
    | '(' args ')'                              { $$ = $2; }
    | '(' args ',' ')'                          { $$ = $2; }
    | '(' error ')'                             { $$ = NULL; }
    ;

args
    : expr                                      { $$ = args_add(p, NULL, NULL, (Span){0, 0}, $1); }
    | key '=' expr                              { $$ = args_add(p, NULL, $1, @1, $3); }
    | args ',' expr                             { $$ = args_add(p, $1, NULL, (Span){0, 0}, $3); }
    | args ',' key '=' expr                     { $$ = args_add(p, $1, $3, @3, $5); }
    ;

%%

static int yyreport_syntax_error(const yypcontext_t *context, Parser *p)
{
    yysymbol_kind_t kind[YYNTOKENS];
    const char *name[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, kind, YYNTOKENS);
    for (int i = 0; i < count; i++)
        name[i] = yysymbol_name(kind[i]);
    syntax_error(p, name, count < 0 ? 0 : count);
    return 0;
}

/* Bison calls it for one reason only: its stack is full. MAX_NESTING keeps far below that. */
static void grammar_error(Span *span, Parser *p, const char *message)
{
    (void)p;
    ICE("the parser stopped at byte %u: %s", (unsigned)span->at, message);
}
