/* emit_names.c: identifiers that never clash, and text that is safe where it is printed. */
#include "emit_state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct Names {
    Arena *arena;
    const Names *outer;
    const char **slot; /* open addressing; a power of two, at most half full */
    int count, room;
};

static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* The slot that holds `text`, or the free one where it belongs. */
static int find(const Names *names, const char *text)
{
    int at = (int)(hash(text) & (uint32_t)(names->room - 1));
    while (names->slot[at] && strcmp(names->slot[at], text))
        at = (at + 1) & (names->room - 1);
    return at;
}

static bool taken(const Names *names, const char *text)
{
    for (; names; names = names->outer)
        if (names->slot[find(names, text)])
            return true;
    return false;
}

static void insert(Names *names, const char *text)
{
    if (2 * (names->count + 1) > names->room) {
        const Names old = *names;
        names->room *= 2;
        names->slot = arena_alloc(names->arena, (size_t)names->room * sizeof *names->slot);
        for (int i = 0; i < old.room; i++)
            if (old.slot[i])
                names->slot[find(names, old.slot[i])] = old.slot[i];
    }
    names->slot[find(names, text)] = text;
    names->count++;
}

Names *names_new(Arena *arena, const Names *outer)
{
    Names *names = arena_alloc(arena, sizeof *names);
    *names = (Names){.arena = arena, .outer = outer, .room = 64};
    names->slot = arena_alloc(arena, (size_t)names->room * sizeof *names->slot);
    return names;
}

const char *names_take(Names *names, const char *wanted)
{
    const char *name = wanted;
    for (int i = 2; taken(names, name); i++)
        name = arena_printf(names->arena, "%s_%d", wanted, i);
    insert(names, name);
    return name;
}

const char *quoted(Arena *arena, const char *text)
{
    Text out = text_new(arena);
    text_append(&out, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c == '?') /* ?: no trigraphs */
            text_printf(&out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            text_printf(&out, "\\%03o", (unsigned)*c);
        else
            text_append(&out, (const char *)c, 1);
    }
    text_append(&out, "\"", 1);
    return out.data;
}

const char *comment_safe(Arena *arena, const char *text)
{
    char *copy = arena_text(arena, text, strlen(text));
    for (char *c = copy; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == '?')
            *c = '_';
        else if (c > copy && ((c[-1] == '*' && *c == '/') || (c[-1] == '/' && *c == '*')))
            *c = '_';
    }
    return copy;
}

const char *upper(Arena *arena, const char *text)
{
    char *copy = arena_text(arena, text, strlen(text));
    for (char *c = copy; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return copy;
}

const char *number_text(Arena *arena, double number)
{
    char *text = NULL;
    for (int digits = 6; digits <= 17; digits++) {
        text = arena_printf(arena, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}

void text_wrapped(Text *out, const char *const *word, int count, const char *between, const char *indent, int column)
{
    enum { RIGHT = 112 };
    for (int i = 0; i < count; i++) {
        const int width = (int)(strlen(word[i]) + strlen(between));
        if (i && column + width > RIGHT) {
            text_printf(out, "\n%s", indent);
            column = (int)strlen(indent);
        }
        const bool last = i + 1 == count;
        /* no blank at the end of a line */
        const bool breaks = !last && column + width + (int)(strlen(word[i + 1]) + strlen(between)) > RIGHT;
        size_t length = last ? 0 : strlen(between);
        while (breaks && length && between[length - 1] == ' ')
            length--;
        text_printf(out, "%s%.*s", word[i], (int)length, between);
        column += width;
    }
}

const char *padded(Arena *arena, const char *text, int width)
{
    return arena_printf(arena, "%-*s", width, text);
}

const char *stage_file(Emit *e, int stage, int replica)
{
    return replica ? arena_printf(e->arena, "stage%d_replica%d", stage, replica)
                   : arena_printf(e->arena, "stage%d", stage);
}

const char *stage_symbol(Emit *e, int stage, int worker)
{
    const char *name = arena_printf(e->arena, "%s_stage%d", e->net, stage);
    if (e->pipe->stage[stage].halves)
        return arena_printf(e->arena, "%s_%s", name, worker ? "backward" : "forward");
    return e->pipe->stage[stage].replicas > 1 ? arena_printf(e->arena, "%s_%d", name, worker) : name;
}
