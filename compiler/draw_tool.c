/* draw_tool.c: graphviz and gnuplot, which turn our text into SVG where they are installed. See draw.h.
 *
 * They read and write files of a temporary folder, so that what they say does not mix with what they draw. */
#include "draw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "build.h"

typedef struct {
    const char *program, *package, *purpose, *otherwise; /* otherwise: what to do without it; "" */
} Tool;

static bool write_file(Diags *diags, const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(text, 1, length, file) == length;
    if (file && fclose(file))
        good = false;
    if (!good)
        diag_error(diags, P0604, (Span){0}, "cannot write %s: %s", path, strerror(errno));
    return good;
}

static bool read_file(const char *path, Text *out)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    char part[1 << 14];
    size_t n;
    while ((n = fread(part, 1, sizeof part, file)) > 0)
        text_append(out, part, n);
    const bool good = !ferror(file);
    fclose(file);
    return good && out->length;
}

static bool is_there(Arena *arena, Diags *diags, const Tool *tool)
{
    if (find_program(arena, tool->program))
        return true;
    diag_error(diags, P0607, (Span){0}, "%s needs the program '%s', which is not there", tool->purpose, tool->program);
    diag_hint(diags, "install it (apt install %s)%s", tool->package, tool->otherwise);
    return false;
}

/* Runs argv, which reads `source` and writes `picture`. */
static bool draw(Diags *diags, const Tool *tool, char *const *argv, const char *source, const Text *text,
                 const char *picture, Text *out)
{
    if (!write_file(diags, source, text->data, text->length))
        return false;
    Text said = text_new(out->arena);
    const int code = run_captured(argv, &said, NULL);
    if (!code && read_file(picture, out))
        return true;
    diag_error(diags, P0607, (Span){0}, "'%s' has drawn nothing: it ended with exit code %d", tool->program, code);
    if (said.length)
        diag_note(diags, (Span){0}, "what it said:\n%s", said.data);
    return false;
}

bool draw_by_graphviz(Arena *arena, Diags *diags, const Text *dot, Text *out)
{
    static const Tool tool = {"dot", "graphviz", "drawing a network as SVG", ", or take the DOT text: --format=dot"};
    char *folder = is_there(arena, diags, &tool) ? temporary_folder(arena, diags) : NULL;
    if (!folder)
        return false;
    char *source = arena_printf(arena, "%s/picture.dot", folder),
         *picture = arena_printf(arena, "%s/picture.svg", folder);
    char *argv[] = {"dot", "-Tsvg", "-o", picture, source, NULL};
    const bool good = draw(diags, &tool, argv, source, dot, picture, out);
    remove_folder(folder);
    return good;
}

bool draw_by_gnuplot(Arena *arena, Diags *diags, const Text *script, Text *out)
{
    static const Tool tool = {"gnuplot", "gnuplot-nox", "drawing curves", ""};
    char *folder = is_there(arena, diags, &tool) ? temporary_folder(arena, diags) : NULL;
    if (!folder)
        return false;
    char *source = arena_printf(arena, "%s/picture.gnuplot", folder);
    char *picture = arena_printf(arena, "%s/picture.svg", folder);
    Text text = text_new(arena);
    text_printf(&text, "set output '");
    for (const char *c = picture; *c; c++) /* in single quotes only the quote itself is special */
        text_printf(&text, *c == '\'' ? "''" : "%c", *c);
    text_printf(&text, "'\n%s", script->data);
    char *argv[] = {"gnuplot", source, NULL};
    const bool good = draw(diags, &tool, argv, source, &text, picture, out);
    remove_folder(folder);
    return good;
}
