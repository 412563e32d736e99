/* scan.c: text -> raw tokens, by the scanner of grammar/pnet.l. Reports wrong characters, each once, and turns them
 * into what was meant or into an error token, which the grammar skips in silence. Comments are collected on the way. */
#include "parser.h"

#include <string.h>

#include "pnet.tab.h"
/* behind pnet.tab.h, which it needs */
#include "pnet.lex.h"

int scan_token(yyscan_t scanner); /* the scanner's one function; pnet.l names it */

Span token_span(const Parser *p, Token token)
{
    return (Span){p->file->base + token.at, p->file->base + token.end};
}

const char *token_text(const Parser *p, Token token, int *length)
{
    *length = (int)(token.end - token.at);
    return p->file->text + token.at;
}

static void bad_symbol(Parser *p, Token *token)
{
    static const struct {
        const char *wrong, *hint;
        int meant; /* what the grammar reads; 0: an error that is not reported again */
    } symbols[] = {
        {"&&", "write `and`", T_AND},
        {"||", "write `or`", T_OR},
        {"|", "a chain is written with `|>`", T_PIPE},
        {"!", "write `not`", T_NOT},
        {";", "the end of the line ends a statement", T_NEWLINE},
        {"//", "a comment begins with `#`", 0},
        {"`", "texts stand in double quotes: \"data/mnist\"", 0},
        {"->", "a chain is written with `|>`, a range with `..`", 0},
        {"**", "there is no power operator: multiply", 0},
        {"^", "there is no power operator: multiply", 0},
        {".", "a range is written `0..4`, a real number `0.5`", 0},
    };
    int length, meant = 0;
    const char *text = token_text(p, *token, &length), *hint = NULL;
    if (text[0] == '\'') {
        diag_error(p->diags, P0101, token_span(p, *token), "texts stand in double quotes");
        token->kind = T_TEXT;
        return;
    }
    for (int i = 0; i < COUNT(symbols); i++)
        if ((int)strlen(symbols[i].wrong) == length && strncmp(symbols[i].wrong, text, (size_t)length) == 0) {
            meant = symbols[i].meant;
            hint = symbols[i].hint;
        }
    diag_error(p->diags, P0101, token_span(p, *token), "'%.*s' means nothing here", length, text);
    if (hint)
        diag_hint(p->diags, "%s", hint);
    token->kind = meant ? meant : T_GRAMMAR_error;
}

/* Bytes beyond ASCII: the first character of the run by its code point. */
static void bad_bytes(Parser *p, Token token)
{
    int length;
    const unsigned char *text = (const unsigned char *)token_text(p, token, &length);
    int bytes = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : text[0] >= 0xC2 ? 2 : 0;
    bool valid = bytes && bytes <= length;
    uint32_t point = bytes ? text[0] & (0xFFu >> (bytes + 1)) : 0;
    for (int i = 1; valid && i < bytes; i++) {
        valid = (text[i] & 0xC0) == 0x80;
        point = point << 6 | (text[i] & 0x3F);
    }
    if (!valid || point < 0xA0) {
        diag_error(p->diags, P0106, token_span(p, token), "the byte 0x%02X is not valid UTF-8 text", text[0]);
        return;
    }
    diag_error(p->diags, P0101, token_span(p, token), "'%.*s' (U+%04X) means nothing here", bytes, (const char *)text,
               (unsigned)point);
    if (point == 0xA0 || (point >= 0x2000 && point <= 0x200F) || point == 0xFEFF)
        diag_hint(p->diags, "it looks like a blank; replace it by one");
    else if (point >= 0x2018 && point <= 0x201F)
        diag_hint(p->diags, "texts stand in plain double quotes: \"data/mnist\"");
    else
        diag_hint(p->diags, "names are made of a-z, A-Z, 0-9 and _");
}

static void bad_control(Parser *p, Token token)
{
    int length;
    unsigned char byte = (unsigned char)*token_text(p, token, &length);
    if (byte == '\r')
        diag_error(p->diags, P0105, token_span(p, token), "a carriage return that is not part of a line end");
    else
        diag_error(p->diags, P0105, token_span(p, token), "the control character 0x%02X", byte);
}

/* Reports what is wrong with a raw token and turns it into what was meant; false: it is left out. */
static bool accept_raw(Parser *p, Token *token)
{
    int length;
    const char *text = token_text(p, *token, &length);
    token->reported = token->kind >= T_BAD_NAME && token->kind <= T_BAD_CONTROL;
    switch (token->kind) {
    case T_BLANK:
        return false;
    case T_COMMENT: {
        uint32_t line = token->at;
        while (line > 0 && (p->file->text[line - 1] == ' ' || p->file->text[line - 1] == '\t'))
            line--;
        bool own_line = line == 0 || p->file->text[line - 1] == '\n' || (unsigned char)p->file->text[line - 1] == 0xBF;
        while (length > 0 && strchr(" \t\r", text[length - 1]))
            length--;
        Span span = {p->file->base + token->at, p->file->base + token->at + (uint32_t)length};
        *vec_push(p->arena, &p->comment) = (Comment){span, own_line};
        return false;
    }
    case T_BAD_TEXT:
        diag_error(p->diags, P0104, token_span(p, *token), "this text has no closing \" on its line");
        return true; /* stays BAD_TEXT: layout() needs to know */
    case T_BAD_NUMBER:
        diag_error(p->diags, P0103, token_span(p, *token), "'%.*s' is not a number", length, text);
        diag_hint(p->diags, "numbers look like 5, 0.5, 5e-4: digits stand on both sides of the point");
        token->kind = T_REAL;
        return true;
    case T_BAD_NAME:
        diag_error(p->diags, P0101, token_span(p, *token), "a name must follow the '.' in '%.*s'", length, text);
        token->kind = T_NAME;
        return true;
    case T_BAD_SYMBOL:
        bad_symbol(p, token);
        return true;
    case T_BAD_BYTES:
        bad_bytes(p, *token);
        token->kind = T_GRAMMAR_error;
        return true;
    case T_BAD_CONTROL:
        bad_control(p, *token);
        token->kind = T_GRAMMAR_error;
        return true;
    default:
        return true;
    }
}

/* A file with NUL bytes is no text; what else is wrong with it would be noise. */
static bool is_text(Parser *p)
{
    const char *nul = memchr(p->file->text, 0, p->file->length);
    if (!nul)
        return true;
    uint32_t at = (uint32_t)(nul - p->file->text);
    diag_error(p->diags, P0105, token_span(p, (Token){.at = at, .end = at + 1}), "a NUL byte: this is not a text file");
    if (at < 4)
        diag_hint(p->diags, "it may be saved as UTF-16; a .pnet file is UTF-8");
    return false;
}

bool scan_file(Parser *p, TokenList *raw)
{
    if (!is_text(p))
        return false;
    size_t skip = p->file->length >= 3 && memcmp(p->file->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    yyscan_t scanner;
    if (scan_lex_init_extra(p->arena, &scanner) != 0)
        ICE("the scanner did not start");
    scan__scan_bytes(p->file->text + skip, (int)(p->file->length - skip), scanner);
    bool comment_follows = false;
    uint32_t at = (uint32_t)skip;
    for (int kind; (kind = scan_token(scanner)) != T_END;) {
        Token token = {.kind = kind, .at = at, .end = at + (uint32_t)scan_get_leng(scanner)};
        at = token.end;
        bool slashes = kind == T_BAD_SYMBOL && token.end - token.at == 2 && p->file->text[token.at] == '/';
        if (comment_follows && kind != T_NEWLINE)
            continue; /* the rest of a line behind // */
        comment_follows = slashes;
        if (accept_raw(p, &token))
            *vec_push(p->arena, raw) = token;
    }
    scan_lex_destroy(scanner);
    return true;
}
