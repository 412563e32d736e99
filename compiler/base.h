/* base.h: what every layer stands on: arena, interned names, spans, growable arrays, text, internal errors.
 *
 * One arena lives per compile. Passes never free; arena_free releases everything at the end. All memory is zeroed.
 * Out of memory ends the process with a clear message (exit 1): no caller checks for NULL. */
#ifndef PNETC_BASE_H
#define PNETC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PNETC_VERSION "0.1.0"

#if defined(__GNUC__)
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PRINTF_LIKE(fmt, args)
#endif

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- memory ---- */
typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *arena);
void *arena_alloc(Arena *arena, size_t bytes);                   /* zeroed, aligned for any type */
char *arena_text(Arena *arena, const char *text, size_t length); /* NUL-terminated copy */
char *arena_printf(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
void *arena_grow(Arena *arena, void *data, size_t item, int count, int *room);

/* ---- names: interned per arena, compared with == ---- */
typedef const char *Name;
Name name_intern(Arena *arena, const char *text, size_t length);
Name name_of(Arena *arena, const char *text);

/* ---- places in the source: byte offsets [at, end) in the offset space of all files of a run (diag.h).
 * Offset 0 belongs to no file: {0, 0} means "no place". ---- */
typedef struct {
    uint32_t at, end;
} Span;
static inline Span span_join(Span a, Span b)
{
    return (Span){a.at, b.end};
}

/* ---- growable arrays: VEC(int) v = {0}; *vec_push(arena, &v) = 7; v.at[i], v.count ---- */
#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        int count, room;                                                                                               \
    }
#define vec_push(arena, vec)                                                                                           \
    ((vec)->at = arena_grow((arena), (vec)->at, sizeof *(vec)->at, (vec)->count, &(vec)->room),                        \
     &(vec)->at[(vec)->count++])

/* ---- text under construction; `data` is always NUL-terminated ---- */
typedef struct {
    Arena *arena;
    char *data;
    size_t length, room;
} Text;
Text text_new(Arena *arena);
void text_printf(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_vprintf(Text *text, const char *format, va_list args);
void text_append(Text *text, const char *data, size_t length);

/* ---- arithmetic on sizes: false on overflow, *result untouched ---- */
bool checked_mul(int64_t a, int64_t b, int64_t *result);
bool checked_add(int64_t a, int64_t b, int64_t *result);

/* Rounds n up to a multiple of step. */
static inline int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

/* "6.6 MB"-style text for people: 950 B, 12.3 kB, 1.88 MB, ... (powers of 1000). In the arena. */
const char *human_bytes(Arena *arena, int64_t bytes);
/* "24.6 M"-style text for counts. */
const char *human_count(Arena *arena, double count);

/* The candidate nearest to `word` by edit distance if it is near enough to be meant, else NULL. */
const char *nearest(const char *word, const char *const *candidates, int count);

/* ---- our own bugs: prints "internal error: ..." with file and line, exits with 70. Never for user input. ---- */
_Noreturn void internal_error(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);
#define ICE(...) internal_error(__FILE__, __LINE__, __VA_ARGS__)

#endif
