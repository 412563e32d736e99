/* base.c: see base.h. The arena is a list of zeroed chunks; its name table is an open-addressing hash table that lives
 * in the arena itself. Everything here is independent of the language. */
#include "base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Chunks grow from the first size to the last. */
enum { FIRST_CHUNK = 4 * 1024, LAST_CHUNK = 1024 * 1024, ALIGNMENT = _Alignof(max_align_t) };

typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    size_t used, room;
    _Alignas(max_align_t) char data[];
};

typedef struct {
    uint64_t hash;
    const char *text;
    size_t length;
} Interned;

struct Arena {
    Chunk *chunk; /* the newest first */
    Interned *name;
    size_t names, name_room; /* room is a power of two, at most half of it used */
};

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "pnetc: error: out of memory (%zu bytes wanted)\n", bytes);
    exit(1);
}

Arena *arena_new(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        out_of_memory(sizeof *arena);
    return arena;
}

void arena_free(Arena *arena)
{
    if (!arena)
        return;
    for (Chunk *chunk = arena->chunk, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

void *arena_alloc(Arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        out_of_memory(bytes);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Chunk *chunk = arena->chunk;
    if (!chunk || chunk->room - chunk->used < bytes) {
        size_t usual = !chunk ? FIRST_CHUNK : chunk->room < LAST_CHUNK / 2 ? 2 * chunk->room : LAST_CHUNK;
        size_t room = bytes > usual / 4 ? bytes : usual;
        Chunk *fresh = calloc(1, sizeof *fresh + room);
        if (!fresh)
            out_of_memory(room);
        fresh->room = room;
        if (chunk && room == bytes) { /* a large block of its own: the open chunk stays in front */
            fresh->next = chunk->next;
            chunk->next = fresh;
        } else {
            fresh->next = chunk;
            arena->chunk = fresh;
        }
        chunk = fresh;
    }
    void *result = chunk->data + chunk->used;
    chunk->used += bytes;
    return result;
}

char *arena_text(Arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (length)
        memcpy(copy, text, length);
    return copy;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    Text text = text_new(arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    return text.data;
}

void *arena_grow(Arena *arena, void *data, size_t item, int count, int *room)
{
    if (count < *room)
        return data;
    if (*room > INT32_MAX / 2)
        out_of_memory(SIZE_MAX);
    int larger = *room ? *room * 2 : 8;
    void *copy = arena_alloc(arena, (size_t)larger * item);
    if (count)
        memcpy(copy, data, (size_t)count * item);
    *room = larger;
    return copy;
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static void grow_names(Arena *arena)
{
    size_t room = arena->name_room ? arena->name_room * 2 : 256;
    Interned *table = arena_alloc(arena, room * sizeof *table);
    for (size_t i = 0; i < arena->name_room; i++) {
        if (!arena->name[i].text)
            continue;
        size_t slot = arena->name[i].hash & (room - 1);
        while (table[slot].text)
            slot = (slot + 1) & (room - 1);
        table[slot] = arena->name[i];
    }
    arena->name = table;
    arena->name_room = room;
}

Name name_intern(Arena *arena, const char *text, size_t length)
{
    if (2 * arena->names >= arena->name_room)
        grow_names(arena);
    uint64_t hash = hash_of(text, length);
    size_t slot = hash & (arena->name_room - 1);
    for (;; slot = (slot + 1) & (arena->name_room - 1)) {
        Interned *entry = &arena->name[slot];
        if (!entry->text) {
            *entry = (Interned){hash, arena_text(arena, text, length), length};
            arena->names++;
            return entry->text;
        }
        if (entry->hash == hash && entry->length == length && memcmp(entry->text, text, length) == 0)
            return entry->text;
    }
}

Name name_of(Arena *arena, const char *text)
{
    return name_intern(arena, text, strlen(text));
}

/* ---- text ---- */

Text text_new(Arena *arena)
{
    return (Text){.arena = arena, .data = arena_alloc(arena, 64), .room = 64};
}

static void text_reserve(Text *text, size_t more)
{
    if (more < text->room - text->length)
        return;
    size_t room = text->room * 2;
    while (room - text->length <= more)
        room *= 2;
    char *data = arena_alloc(text->arena, room);
    memcpy(data, text->data, text->length);
    text->data = data;
    text->room = room;
}

void text_append(Text *text, const char *data, size_t length)
{
    text_reserve(text, length);
    if (length)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_vprintf(Text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(text->data + text->length, text->room - text->length, format, args);
    if (length < 0)
        ICE("a format that cannot be printed: %s", format);
    if ((size_t)length >= text->room - text->length) {
        text_reserve(text, (size_t)length);
        if (vsnprintf(text->data + text->length, text->room - text->length, format, again) != length)
            ICE("a format that prints differently twice: %s", format);
    }
    va_end(again);
    text->length += (size_t)length;
}

void text_printf(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

/* ---- numbers ---- */

bool checked_mul(int64_t a, int64_t b, int64_t *result)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *result = product;
    return true;
}

bool checked_add(int64_t a, int64_t b, int64_t *result)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *result = sum;
    return true;
}

/* Three significant digits and the power of 1000 that leaves one to three digits before the point. */
static const char *human(Arena *arena, double value, const char *const *unit, int units)
{
    double size = value < 0 ? -value : value;
    int power = 0;
    while (power + 1 < units && size >= 999.5) {
        size /= 1000;
        power++;
    }
    const char *sign = value < 0 ? "-" : "";
    if (power == 0)
        return arena_printf(arena, "%s%.0f%s", sign, size, unit[0]);
    int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    return arena_printf(arena, "%s%.*f%s", sign, decimals, size, unit[power]);
}

const char *human_bytes(Arena *arena, int64_t bytes)
{
    static const char *const unit[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
    return human(arena, (double)bytes, unit, COUNT(unit));
}

const char *human_count(Arena *arena, double count)
{
    static const char *const unit[] = {"", " k", " M", " G", " T", " P", " E"};
    return human(arena, count, unit, COUNT(unit));
}

/* ---- the nearest word ---- */

enum { MAX_WORD = 64 };

static int lower_case(char c)
{
    return tolower((unsigned char)c);
}

/* Optimal string alignment distance (Damerau-Levenshtein without overlapping swaps), blind to case; three rows. */
static int edit_distance(const char *a, int na, const char *b, int nb)
{
    int row[3][MAX_WORD + 1];
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *two_before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = before[j - 1] + (lower_case(a[i - 1]) != lower_case(b[j - 1]));
            if (before[j] + 1 < best)
                best = before[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && lower_case(a[i - 1]) == lower_case(b[j - 2]) &&
                lower_case(a[i - 2]) == lower_case(b[j - 1]) && two_before[j - 2] + 1 < best)
                best = two_before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

/* Near: a third of the letters wrong at most; or, as a last resort, one is the beginning of the other. */
const char *nearest(const char *word, const char *const *candidates, int count)
{
    const char *best = NULL;
    int best_distance = MAX_WORD;
    size_t length = strlen(word);
    if (length > MAX_WORD)
        return NULL;
    for (int i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > MAX_WORD)
            continue;
        size_t longer = length > other ? length : other, shorter = length > other ? other : length;
        int distance = edit_distance(word, (int)length, candidates[i], (int)other);
        bool near = distance <= (int)longer / 3;
        bool begins = shorter >= 3 && strncmp(word, candidates[i], shorter) == 0;
        if ((near || begins) && distance < best_distance) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

void internal_error(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "pnetc: internal error: %s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nThis is a bug of pnetc, not of your file. Please report it with the input that shows it.\n");
    va_end(args);
    exit(70);
}
