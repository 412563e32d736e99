/* format_lines.c: the lines of the canonical form: blank lines and comments of the source, breaking, alignment. */
#include "format.h"

#include <string.h>

/* ---- places in the source ---- */

const char *format_source(const Format *f, uint32_t at)
{
    return f->ast->file->text + (at - f->ast->file->base);
}

bool format_newline_between(const Format *f, uint32_t from, uint32_t to)
{
    return to > from && memchr(format_source(f, from), '\n', to - from);
}

/* Does a blank line stand before the line that begins with `at`? */
bool format_blank_before(const Format *f, uint32_t at)
{
    const char *start = f->ast->file->text, *c = format_source(f, at);
    int newlines = 0;
    while (c > start && strchr(" \t\r\n", c[-1]) && c[-1]) {
        newlines += c[-1] == '\n';
        c--;
    }
    return newlines > 1;
}

/* ---- lines ---- */

void format_line(Format *f, const char *text)
{
    *vec_push(f->arena, &f->line) = (Line){.text = text, .indent = f->indent};
}

/* No blank line at the start of a block or of the file, and never two. */
static void add_blank(Format *f)
{
    if (!f->line.count)
        return;
    const Line *last = &f->line.at[f->line.count - 1];
    size_t length = strlen(last->text);
    bool opens = length && last->text[length - 1] == '{' && last->indent < f->indent;
    if (length && !opens)
        *vec_push(f->arena, &f->line) = (Line){.text = ""};
}

static const Comment *next_comment(const Format *f)
{
    return f->next < f->ast->ncomments ? &f->ast->comment[f->next] : NULL;
}

static const char *comment_text(const Format *f, const Comment *comment)
{
    return arena_text(f->arena, format_source(f, comment->span.at), comment->span.end - comment->span.at);
}

/* Comments that begin before `at` get lines of their own; `blank` asks for a blank line before the first. */
bool format_comments(Format *f, uint32_t at, bool blank)
{
    bool any = false;
    for (const Comment *comment; (comment = next_comment(f)) && comment->span.at < at; f->next++) {
        if ((blank && !any) || format_blank_before(f, comment->span.at))
            add_blank(f);
        format_line(f, arena_printf(f->arena, "%s", comment_text(f, comment)));
        any = true;
    }
    return any;
}

/* A comment with only blanks between `end` and itself joins the line printed last. */
void format_trailing_comment(Format *f, uint32_t end)
{
    const Comment *comment = next_comment(f);
    if (!comment || comment->span.at < end)
        return;
    for (const char *c = format_source(f, end); c < format_source(f, comment->span.at); c++)
        if (*c != ' ' && *c != '\t')
            return;
    f->line.at[f->line.count - 1].comment = comment_text(f, comment);
    f->next++;
}

/* Comments in front of and inside [at, end), then the blank line that the source has. */
void format_lead(Format *f, uint32_t at, uint32_t end, bool blank)
{
    bool any = format_comments(f, end, blank);
    if ((blank && !any) || format_blank_before(f, at))
        add_blank(f);
}

/* ---- breaking lines ---- */

size_t format_columns(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* At most `room` columns? Looks no further than it must. */
static bool fits(const Text *text, size_t from, size_t to, size_t room)
{
    return to - from <= 4 * room + 4 && format_columns(text->data + from, to - from) <= room;
}

/* The break to take in text[from..], whose first break is number `first`: one that was written, if the line fits up to
 * it; else, if the line is too long, the last of the lowest level that fits, or the first of all. -1: none. */
static int choose_break(const Format *f, const Text *text, size_t from, int first, size_t room)
{
    int best = -1;
    for (int i = first; i < f->brk.count; i++) {
        const Break *brk = &f->brk.at[i];
        if (!fits(text, from, brk->at, room + 1)) /* the blank before it is dropped */
            return best >= 0 ? best : i;
        if (brk->kept)
            return i;
        if (best < 0 || brk->level <= f->brk.at[best].level)
            best = i;
    }
    return fits(text, from, text->length, room) ? -1 : best;
}

/* Adds a statement's lines. Continuations stand below the first |> if that is near and not itself broken off, else two
 * indents further. */
void format_statement(Format *f, const Text *text)
{
    int outer = f->indent, further = outer + 2 * INDENT, chain = further, first = 0;
    bool chain_printed = false; /* a |> stands on a line: the next one goes below it */
    for (int i = 0; i < f->brk.count; i++)
        if (f->brk.at[i].level == 0) {
            size_t column = (size_t)outer + format_columns(text->data, f->brk.at[i].at);
            chain = column <= MAX_CHAIN_COLUMN ? (int)column : further;
            break;
        }
    size_t from = 0;
    for (;;) {
        int brk = choose_break(f, text, from, first, (size_t)(f->indent < WIDTH ? WIDTH - f->indent : 0));
        size_t end = brk >= 0 ? f->brk.at[brk].at : text->length, length = end - from;
        while (length && text->data[from + length - 1] == ' ')
            length--;
        format_line(f, arena_text(f->arena, text->data + from, length));
        if (brk < 0)
            break;
        for (; first < brk; first++)
            chain_printed = chain_printed || f->brk.at[first].level == 0;
        first = brk + 1;
        if (f->brk.at[brk].level == 0) {
            chain = chain_printed ? chain : further;
            chain_printed = true;
            f->indent = chain;
        } else if (from == 0) {
            f->indent = further;
        }
        from = end;
    }
    f->indent = outer;
}

/* ---- printing ---- */

static size_t width(const Line *line)
{
    return (size_t)line->indent + format_columns(line->text, strlen(line->text));
}

/* Comments of neighbouring lines stand in one column, two blanks behind the longest. */
void format_print(const Format *f, Text *out)
{
    size_t column = 0;
    for (int i = 0, run = 0; i < f->line.count; i++) {
        const Line *line = &f->line.at[i];
        if (line->comment && i >= run) {
            column = 0;
            for (run = i; run < f->line.count && f->line.at[run].comment; run++)
                column = width(&f->line.at[run]) > column ? width(&f->line.at[run]) : column;
        }
        if (*line->text)
            text_printf(out, "%*s%s", line->indent, "", line->text);
        if (line->comment)
            text_printf(out, "%*s%s", (int)(column - width(line)) + 2, "", line->comment);
        text_append(out, "\n", 1);
    }
}
