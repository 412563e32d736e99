/* layout.c: raw tokens -> balanced tokens.
 *
 *   newlines    stay only where they end a statement: none inside ( ) and [ ], none in front of |>, none that repeat
 *   brackets    an opening one without a partner is reported once, at its place, and closed where its line ends; a
 *               closing one without a partner is reported and left out
 *   braces      a word that opens an item in the first column closes every brace before it; a header without { gets one
 *
 * so one forgotten bracket is one message, and pnet.y never sees an unbalanced text. Linear in the text. */
#include "parser.h"

#include "pnet.tab.h"

typedef struct {
    int kind;
    bool matched;
    int token;    /* index of the opening one among the raw tokens */
    int signs;    /* - and not right in front of it */
    int else_ifs; /* in the chain that is open in it */
} Open;

typedef struct {
    Parser *p;
    TokenList raw;
    VEC(Open) open;
    int *partner;     /* per raw token: the partner of a bracket; -1: none */
    int depth, signs; /* as MAX_NESTING counts; signs in a row right now */
    bool quiet;       /* until the newline: wrong text may have swallowed brackets */
} Layout;

static bool first_column(const Parser *p, Token token)
{
    return token.at == 0 || p->file->text[token.at - 1] == '\n' || (unsigned char)p->file->text[token.at - 1] == 0xBF;
}

/* A word that opens an item, in the first column and not used as a key: every open bracket ends before it. */
static bool opens_item(const Layout *l, int i)
{
    switch (l->raw.at[i].kind) {
    case T_NETWORK:
    case T_DEF:
    case T_USE:
    case T_PARAM:
    case T_TRAIN:
    case T_PIPELINE:
    case T_MACHINE:
        return first_column(l->p, l->raw.at[i]) && (i + 1 == l->raw.count || l->raw.at[i + 1].kind != '=');
    default:
        return false;
    }
}

/* Words whose line must have a brace, at the start of a statement and not used as a key. */
static bool wants_brace(const Layout *l, int i)
{
    int before = i > 0 ? l->raw.at[i - 1].kind : T_NEWLINE;
    bool key = i + 1 < l->raw.count && l->raw.at[i + 1].kind == '=';
    switch (l->raw.at[i].kind) {
    case T_NETWORK:
    case T_DEF:
    case T_TRAIN:
    case T_PIPELINE:
    case T_MACHINE:
    case T_FOR:
    case T_IF:
        return !key && (before == T_NEWLINE || before == '{');
    case T_ELSE:
        return !key && (before == T_NEWLINE || before == '}') &&
               !(i + 1 < l->raw.count && l->raw.at[i + 1].kind == T_IF);
    default:
        return false;
    }
}

/* Gives a header without `{` one at the end of its line, reported here; a `{` on the next line is joined to the header.
 */
static void supply_braces(Layout *l)
{
    Arena *arena = l->p->arena;
    TokenList out = {0};
    bool header = false;
    int inside = 0; /* round and square brackets open in the header */
    for (int i = 0; i < l->raw.count; i++) {
        Token token = l->raw.at[i];
        if (wants_brace(l, i) && !(header && inside)) {
            header = true;
            inside = 0;
        }
        inside += header && (token.kind == '(' || token.kind == '[');
        inside -= header && (token.kind == ')' || token.kind == ']');
        if (token.kind == '{' || token.kind == '}')
            header = false;
        if (token.kind == T_NEWLINE && header && inside <= 0) {
            int next = i;
            while (next < l->raw.count && l->raw.at[next].kind == T_NEWLINE)
                next++;
            int follows = next < l->raw.count ? l->raw.at[next].kind : T_END;
            if (follows == '{' || follows == T_PIPE)
                continue;
            uint32_t at = out.at[out.count - 1].end;
            diag_error(l->p->diags, P0102, token_span(l->p, (Token){.at = at, .end = at}),
                       "expected '{' before the end of the line");
            *vec_push(arena, &out) = (Token){.kind = '{', .at = at, .end = at, .reported = true};
            header = false;
        }
        *vec_push(arena, &out) = token;
    }
    l->raw = out;
}

static int closing(int kind)
{
    return kind == '(' ? ')' : kind == '[' ? ']' : '}';
}

/* Finds the partner of every bracket; what stays -1 has none. Round and square brackets never enclose braces. */
static void match(Layout *l)
{
    Arena *arena = l->p->arena;
    VEC(int) stack = {0};
    l->partner = arena_alloc(arena, ((size_t)l->raw.count + 1) * sizeof *l->partner);
    for (int i = 0; i < l->raw.count; i++) {
        int kind = l->raw.at[i].kind, top;
        l->partner[i] = -1;
        if (opens_item(l, i))
            stack.count = 0;
        switch (kind) {
        case '{':
            while (stack.count && l->raw.at[stack.at[stack.count - 1]].kind != '{')
                stack.count--;
            *vec_push(arena, &stack) = i;
            break;
        case '(':
        case '[':
            *vec_push(arena, &stack) = i;
            break;
        case ')':
        case ']':
        case '}':
            top = stack.count - 1;
            while (top >= 0 && closing(l->raw.at[stack.at[top]].kind) != kind &&
                   (kind == '}' || l->raw.at[stack.at[top]].kind != '{'))
                top--;
            if (kind != '}' && (top < 0 || l->raw.at[stack.at[top]].kind == '{'))
                top = stack.count - 1; /* of the wrong kind, but meant for the bracket opened last */
            if (top >= 0 && (l->raw.at[stack.at[top]].kind == '{') == (kind == '}')) {
                l->partner[stack.at[top]] = i;
                l->partner[i] = stack.at[top];
                stack.count = top;
            }
            break;
        default:
            break;
        }
    }
}

static int last_kind(const Layout *l)
{
    return l->p->token.count ? l->p->token.at[l->p->token.count - 1].kind : T_NEWLINE;
}

static void put(Layout *l, int kind, uint32_t at, uint32_t end)
{
    *vec_push(l->p->arena, &l->p->token) = (Token){.kind = kind, .at = at, .end = end};
}

static uint32_t last_end(const Layout *l)
{
    return l->p->token.count ? l->p->token.at[l->p->token.count - 1].end : 0;
}

static void put_newline(Layout *l)
{
    if (last_kind(l) == T_NEWLINE || last_kind(l) == '{')
        return;
    put(l, T_NEWLINE, last_end(l), last_end(l));
}

static Open *top_open(const Layout *l)
{
    return l->open.count ? &l->open.at[l->open.count - 1] : NULL;
}

static void pop(Layout *l)
{
    const Open *open = top_open(l);
    l->depth -= 1 + open->signs + open->else_ifs;
    l->open.count--;
}

/* Supplies the partner of the bracket opened last. `next`: the item that shows it to be open, or -1. */
static void close_open(Layout *l, int next, bool report)
{
    const Open *open = top_open(l);
    bool supplied = l->raw.at[open->token].at == l->raw.at[open->token].end;
    if (report && !supplied) {
        diag_error(l->p->diags, P0107, token_span(l->p, l->raw.at[open->token]), "this '%c' is never closed",
                   open->kind);
        if (next >= 0) {
            int length;
            const char *text = token_text(l->p, l->raw.at[next], &length);
            diag_note(l->p->diags, token_span(l->p, l->raw.at[next]), "'%.*s' begins a new block here", length, text);
        }
    }
    if (open->kind == '{')
        put_newline(l);
    put(l, closing(open->kind), last_end(l), last_end(l));
    bool brace = open->kind == '{';
    pop(l);
    if (brace)
        put_newline(l);
}

/* Closes round and square brackets without a partner on top of the stack. */
static void close_unmatched(Layout *l)
{
    while (top_open(l) && top_open(l)->kind != '{' && !top_open(l)->matched)
        close_open(l, -1, !l->quiet);
}

static void newline(Layout *l, int i)
{
    int next = i + 1;
    while (next < l->raw.count && l->raw.at[next].kind == T_NEWLINE)
        next++;
    int follows = next < l->raw.count ? l->raw.at[next].kind : T_END;
    if (top_open(l) && top_open(l)->kind != '{' && !top_open(l)->matched)
        close_unmatched(l);
    l->quiet = false;
    if ((top_open(l) && top_open(l)->kind != '{') || follows == T_PIPE)
        return;
    if (last_kind(l) == T_PIPE && follows == T_NAME && next + 1 < l->raw.count && l->raw.at[next + 1].kind != '=') {
        diag_error(l->p->diags, P0102, (Span){l->p->file->base + last_end(l), l->p->file->base + last_end(l) + 1},
                   "expected a name before the end of the line");
        diag_hint(l->p->diags, "a chain goes on when the next line begins with `|>`");
        return;
    }
    if (follows == T_ELSE && last_kind(l) == '}')
        return;
    if (top_open(l) && last_kind(l) != T_NEWLINE && last_kind(l) != '{') {
        l->depth -= top_open(l)->else_ifs;
        top_open(l)->else_ifs = 0;
    }
    if (last_kind(l) != T_NEWLINE && last_kind(l) != '{')
        put(l, T_NEWLINE, last_end(l), last_end(l) + 1);
}

static void open_bracket(Layout *l, int i, Token token)
{
    if (token.kind == '{')
        close_unmatched(l);
    *vec_push(l->p->arena, &l->open) =
        (Open){.kind = token.kind, .matched = l->partner[i] >= 0, .token = i, .signs = l->signs};
    l->depth++; /* the signs are counted already */
    l->signs = 0;
    *vec_push(l->p->arena, &l->p->token) = token;
}

static void close_bracket(Layout *l, int i, Token token)
{
    if (l->partner[i] < 0) {
        diag_error(l->p->diags, P0108, token_span(l->p, token), "this '%c' closes nothing", token.kind);
        return;
    }
    while (top_open(l) && top_open(l)->token != l->partner[i])
        close_open(l, -1, !l->quiet);
    if (!top_open(l))
        ICE("the partner of the bracket at byte %u is not open", token.at);
    if (token.kind == '}')
        put_newline(l);
    const Open *open = top_open(l);
    int kind = closing(open->kind);
    if (kind != token.kind) {
        diag_error(l->p->diags, P0108, token_span(l->p, token), "this '%c' does not close the '%c'", token.kind,
                   open->kind);
        diag_note(l->p->diags, token_span(l->p, l->raw.at[open->token]), "opened here");
    }
    pop(l);
    put(l, kind, token.at, token.end);
}

static void count_nesting(Layout *l, int i)
{
    int kind = l->raw.at[i].kind;
    if (kind == '-' || kind == T_NOT) {
        l->signs++;
        l->depth++;
    } else if (kind != '(' && kind != '[' && kind != '{') {
        l->depth -= l->signs;
        l->signs = 0;
    }
    if (kind == T_IF && i > 0 && l->raw.at[i - 1].kind == T_ELSE && top_open(l)) {
        top_open(l)->else_ifs++;
        l->depth++;
    }
}

static void layout(Layout *l)
{
    Parser *p = l->p;
    for (int i = 0; i < l->raw.count; i++) {
        Token token = l->raw.at[i];
        if (opens_item(l, i)) {
            while (l->open.count)
                close_open(l, i, !l->quiet);
            put_newline(l);
        }
        count_nesting(l, i);
        if (l->depth >= MAX_NESTING) {
            diag_error(p->diags, P0109, token_span(p, token), "nested more than %d deep; the rest is not read",
                       MAX_NESTING);
            l->quiet = true;
            p->cut = token.at;
            break;
        }
        switch (token.kind) {
        case T_NEWLINE:
            newline(l, i);
            break;
        case '(':
        case '[':
        case '{':
            open_bracket(l, i, token);
            break;
        case ')':
        case ']':
        case '}':
            close_bracket(l, i, token);
            break;
        case T_BAD_TEXT:
            token.kind = T_TEXT;
            l->quiet = true;
            *vec_push(p->arena, &p->token) = token;
            break;
        default:
            l->quiet = l->quiet || token.kind == T_GRAMMAR_error;
            *vec_push(p->arena, &p->token) = token;
            break;
        }
    }
    while (l->open.count)
        close_open(l, -1, !l->quiet);
    put_newline(l);
    put(l, T_END, p->file->length, p->file->length);
}

bool tokens_read(Parser *p, int start)
{
    Layout l = {.p = p};
    if (!scan_file(p, &l.raw))
        return false;
    supply_braces(&l);
    match(&l);
    put(&l, start, 0, 0);
    p->token.at[0].kind = T_NEWLINE; /* to layout, a text begins like a line */
    layout(&l);
    p->token.at[0].kind = start;
    return true;
}
