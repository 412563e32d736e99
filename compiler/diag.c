/* diag.c: sources, and diagnostics kept as data until they are rendered. See diag.h.
 *
 * Rendering is safe for any input bytes: control characters and invalid UTF-8 are shown as one replacement character
 * each, so a source line can neither move the cursor nor break the underline. */
#include "diag.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN = 20,   /* of each severity in one run */
    KEPT = 1000,  /* of each severity; more are only counted */
    WINDOW = 110, /* columns of a source line */
    CONTEXT = 30, /* columns kept in front of the span when a line is shortened */
    MAX_TOTAL = 1 << 30,
};

/* ---- sources ---- */

const SourceFile *source_add(Arena *arena, Sources *sources, const char *path, const char *text, size_t length)
{
    const SourceFile *last = sources->count ? &sources->file[sources->count - 1] : NULL;
    size_t base = last ? (size_t)last->base + last->length + 1 : 1;
    if (length > MAX_TOTAL || base + length > MAX_TOTAL)
        return NULL;
    sources->file = arena_grow(arena, sources->file, sizeof *sources->file, sources->count, &sources->room);
    SourceFile *file = &sources->file[sources->count++];
    *file = (SourceFile){
        .path = arena_text(arena, path, strlen(path)),
        .text = arena_text(arena, text, length),
        .base = (uint32_t)base,
        .length = (uint32_t)length,
    };
    return file;
}

const SourceFile *source_of(const Sources *sources, uint32_t at)
{
    int low = 0, high = sources->count - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        const SourceFile *file = &sources->file[middle];
        if (at < file->base)
            high = middle - 1;
        else if (at > file->base + file->length)
            low = middle + 1;
        else
            return file;
    }
    return NULL;
}

static size_t mark_length(const SourceFile *file)
{
    return file->length >= 3 && memcmp(file->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/* Bytes of the UTF-8 character at text (1 for an invalid byte, then *valid is false). C1 controls count as invalid:
 * terminals obey them. */
static size_t character(const char *text, size_t left, bool *valid)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80   ? 1
                    : byte[0] < 0xC2 ? 0
                    : byte[0] < 0xE0 ? 2
                    : byte[0] < 0xF0 ? 3
                    : byte[0] < 0xF5 ? 4
                                     : 0;
    *valid = length > 0 && length <= left;
    for (size_t i = 1; *valid && i < length; i++)
        *valid = (byte[i] & 0xC0) == 0x80;
    if (*valid && ((length == 2 && byte[0] == 0xC2 && byte[1] < 0xA0) ||  /* C1                 */
                   (length == 3 && byte[0] == 0xE0 && byte[1] < 0xA0) ||  /* too long a form    */
                   (length == 3 && byte[0] == 0xED && byte[1] >= 0xA0) || /* surrogates         */
                   (length == 4 && byte[0] == 0xF0 && byte[1] < 0x90) ||  /* too long a form    */
                   (length == 4 && byte[0] == 0xF4 && byte[1] >= 0x90)))  /* beyond Unicode     */
        *valid = false;
    return *valid ? length : 1;
}

/* [start, end) of the line that holds byte `offset` of the file, without its newline; returns its number. */
static int line_of(const SourceFile *file, size_t offset, size_t *start, size_t *end)
{
    int line = 1;
    *start = 0;
    const char *newline;
    while ((newline = memchr(file->text + *start, '\n', offset - *start))) {
        line++;
        *start = (size_t)(newline - file->text) + 1;
    }
    newline = memchr(file->text + offset, '\n', file->length - offset);
    *end = newline ? (size_t)(newline - file->text) : file->length;
    if (*end > *start && file->text[*end - 1] == '\r')
        --*end;
    if (line == 1 && offset >= mark_length(file))
        *start = mark_length(file);
    return line;
}

void source_locate(const SourceFile *file, uint32_t at, int *line, int *column)
{
    size_t start, end, offset = at - file->base;
    *line = line_of(file, offset, &start, &end);
    *column = 1;
    bool valid;
    for (size_t i = start; i < offset; ++*column)
        i += character(file->text + i, file->length - i, &valid);
}

/* ---- reporting ---- */

typedef struct {
    Span span;
    const char *text;
} Note;

typedef struct {
    bool warning;
    Code code;
    Span span;
    int order; /* of reporting: ties in place keep it */
    const char *text;
    VEC(Note) note;
    VEC(const char *) hint;
} Diag;

struct Diags {
    Arena *arena;
    Sources *sources;
    VEC(Diag) diag;
    bool dropping; /* notes and hints belong to a diagnostic that was dropped */
    int errors, warnings, kept_errors, kept_warnings;
};

Diags *diags_new(Arena *arena, Sources *sources)
{
    Diags *diags = arena_alloc(arena, sizeof *diags);
    diags->arena = arena;
    diags->sources = sources;
    return diags;
}

static bool same_place(Span a, Span b)
{
    return a.at == b.at && a.end == b.end;
}

static const char *formatted(Arena *arena, const char *format, va_list args)
{
    Text text = text_new(arena);
    text_vprintf(&text, format, args);
    return text.data;
}

static void report(Diags *diags, bool warning, Code code, Span span, const char *format, va_list args)
{
    int *total = warning ? &diags->warnings : &diags->errors;
    int *kept = warning ? &diags->kept_warnings : &diags->kept_errors;
    diags->dropping = true;
    if (*kept >= KEPT) {
        ++*total;
        return;
    }
    const char *text = formatted(diags->arena, format, args);
    for (int i = 0; i < diags->diag.count; i++) {
        const Diag *other = &diags->diag.at[i];
        if (other->code == code && same_place(other->span, span) && (span.at || strcmp(other->text, text) == 0))
            return;
    }
    diags->dropping = false;
    ++*total;
    ++*kept;
    *vec_push(diags->arena, &diags->diag) =
        (Diag){.warning = warning, .code = code, .span = span, .order = diags->diag.count, .text = text};
}

void diag_error(Diags *diags, Code code, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(diags, false, code, span, format, args);
    va_end(args);
}

void diag_warning(Diags *diags, Code code, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(diags, true, code, span, format, args);
    va_end(args);
}

void diag_note(Diags *diags, Span span, const char *format, ...)
{
    if (diags->dropping || !diags->diag.count)
        return;
    va_list args;
    va_start(args, format);
    const char *text = formatted(diags->arena, format, args);
    va_end(args);
    *vec_push(diags->arena, &diags->diag.at[diags->diag.count - 1].note) = (Note){span, text};
}

void diag_hint(Diags *diags, const char *format, ...)
{
    if (diags->dropping || !diags->diag.count)
        return;
    va_list args;
    va_start(args, format);
    const char *text = formatted(diags->arena, format, args);
    va_end(args);
    *vec_push(diags->arena, &diags->diag.at[diags->diag.count - 1].hint) = text;
}

int diag_errors(const Diags *diags)
{
    return diags->errors;
}

/* ---- rendering ---- */

static const struct {
    const char *name, *title, *text;
} codes[] = {
#define CODE(code, title, text) {#code, title, text},
#include "codes.def"
#undef CODE
};

typedef struct {
    const char *bold, *error, *warning, *note, *mark, *off;
} Palette;
static const Palette plain = {"", "", "", "", "", ""};
static const Palette coloured = {"\033[1m", "\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1;32m", "\033[0m"};

static void put_character(FILE *out, const char *text, size_t length, bool valid)
{
    unsigned char first = (unsigned char)text[0];
    if (!valid)
        fputs("\xEF\xBF\xBD", out); /* U+FFFD */
    else if (first < 0x20 && first != '\t')
        fprintf(out, "\xE2\x90%c", 0x80 + first); /* control pictures, U+2400 + c */
    else if (first == 0x7F)
        fputs("\xE2\x90\xA1", out);
    else
        fwrite(text, 1, length, out);
}

/* The source line and the underline; a line longer than the window is cut around the span. */
static void render_line(const SourceFile *file, Span span, const Palette *palette, FILE *out)
{
    size_t start, end, at = span.at - file->base, stop = span.end > span.at ? span.end - file->base : at;
    line_of(file, at, &start, &end);
    if (stop > end)
        stop = end;
    int columns = 0, first = 0, mark = -1; /* in characters of the line; the window is [first, first + WINDOW) */
    bool valid;
    for (size_t i = start; i < end; columns++) {
        if (i >= at && mark < 0)
            mark = columns;
        i += character(file->text + i, end - i, &valid);
    }
    if (mark < 0)
        mark = columns;
    if (columns > WINDOW && mark > WINDOW - CONTEXT)
        first = mark - CONTEXT;
    bool cut_before = first > 0, cut_after = columns > first + WINDOW;

    Text under = {0};
    Arena *scratch = arena_new();
    under = text_new(scratch);
    fputs(cut_before ? "    ..." : "    ", out);
    text_append(&under, "       ", cut_before ? 7 : 4);
    int column = 0;
    bool marked = false;
    for (size_t i = start; i < end && column < first + WINDOW; column++) {
        size_t length = character(file->text + i, end - i, &valid);
        if (column >= first) {
            put_character(out, file->text + i, length, valid);
            if (column == mark)
                text_append(&under, "^", 1), marked = true;
            else if (column > mark && i < stop)
                text_append(&under, "~", 1);
            else if (column < mark)
                text_append(&under, file->text[i] == '\t' ? "\t" : " ", 1);
        }
        i += length;
    }
    if (!marked)
        text_append(&under, "^", 1);
    size_t blanks = strspn(under.data, " \t");
    fprintf(out, "%s\n%.*s%s%s%s\n", cut_after ? "..." : "", (int)blanks, under.data, palette->mark,
            under.data + blanks, palette->off);
    arena_free(scratch);
}

static void render_message(const Diags *diags, Span span, const char *colour, const char *kind, const char *text,
                           const char *code, const Palette *palette, FILE *out)
{
    const SourceFile *file = span.at ? source_of(diags->sources, span.at) : NULL;
    if (file) {
        int line, column;
        source_locate(file, span.at, &line, &column);
        fprintf(out, "%s%s:%d:%d:%s ", palette->bold, file->path, line, column, palette->off);
    } else {
        fprintf(out, "%spnetc:%s ", palette->bold, palette->off);
    }
    fprintf(out, "%s%s:%s %s%s%s", colour, kind, palette->off, palette->bold, text, palette->off);
    if (code)
        fprintf(out, " [%s]", code);
    fputc('\n', out);
    if (file)
        render_line(file, span, palette, out);
}

static int by_place(const void *left, const void *right)
{
    const Diag *a = *(const Diag *const *)left, *b = *(const Diag *const *)right;
    if (a->span.at != b->span.at)
        return a->span.at < b->span.at ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

void diags_render(const Diags *diags, FILE *out, bool colour)
{
    const Palette *palette = colour ? &coloured : &plain;
    int count = diags->diag.count, errors = 0, warnings = 0;
    if (!count)
        return;
    const Diag **sorted = arena_alloc(diags->arena, (size_t)count * sizeof *sorted);
    for (int i = 0; i < count; i++)
        sorted[i] = &diags->diag.at[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_place);
    for (int i = 0; i < count; i++) {
        const Diag *diag = sorted[i];
        if (diag->warning ? warnings >= SHOWN : errors >= SHOWN)
            continue;
        *(diag->warning ? &warnings : &errors) += 1;
        render_message(diags, diag->span, diag->warning ? palette->warning : palette->error,
                       diag->warning ? "warning" : "error", diag->text, codes[diag->code].name, palette, out);
        for (int k = 0; k < diag->note.count; k++)
            render_message(diags, diag->note.at[k].span, palette->note, "note", diag->note.at[k].text, NULL, palette,
                           out);
        for (int k = 0; k < diag->hint.count; k++)
            fprintf(out, "%shint:%s %s\n", palette->note, palette->off, diag->hint.at[k]);
    }
    int more_errors = diags->errors - errors, more_warnings = diags->warnings - warnings;
    if (more_errors)
        fprintf(out, "pnetc: %d more error%s\n", more_errors, more_errors == 1 ? "" : "s");
    if (more_warnings)
        fprintf(out, "pnetc: %d more warning%s\n", more_warnings, more_warnings == 1 ? "" : "s");
}

bool diag_explain(const char *code, FILE *out)
{
    if (!code) {
        for (int i = 0; i < COUNT(codes); i++)
            fprintf(out, "%s  %s\n", codes[i].name, codes[i].title);
        return true;
    }
    const char *names[COUNT(codes)];
    for (int i = 0; i < COUNT(codes); i++) {
        names[i] = codes[i].name;
        const char *a = code, *b = codes[i].name;
        while (*a && toupper((unsigned char)*a) == *b)
            a++, b++;
        if (*a || *b)
            continue;
        fprintf(out, "%s: %s\n\n%s\n", codes[i].name, codes[i].title, codes[i].text);
        return true;
    }
    const char *near = nearest(code, names, COUNT(codes));
    fprintf(out, "pnetc: error: there is no code '%s'\n", code);
    if (near)
        fprintf(out, "hint: did you mean %s? `pnetc explain` lists all codes\n", near);
    else
        fprintf(out, "hint: codes look like P0301; `pnetc explain` lists all codes\n");
    return false;
}
