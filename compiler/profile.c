/* profile.c: reads a profile (text, version 1; `pnetc explain P0710` shows one), and hashes the graph it belongs to.
 *
 * Every refusal names the line. Numbers are decimal, in microseconds a minibatch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ast.h"
#include "cost.h"

static const double longest = 3600; /* seconds */

/* ---- the hash: FNV-1a of 64 bits over names, shapes, attributes, edges ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_integer(uint64_t hash, int64_t n)
{
    unsigned char byte[8];
    for (int i = 0; i < 8; i++)
        byte[i] = (unsigned char)((uint64_t)n >> (8 * i));
    return hash_bytes(hash, byte, sizeof byte);
}

const char *graph_hash(Arena *arena, const Graph *graph)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    Arena *scratch = arena_new();
    hash = hash_integer(hash, graph->batch);
    for (NodeId i = 0; i < graph->nnodes; i++) {
        const Node *node = &graph->node[i];
        hash = hash_text(hash, node->op ? node->op->name : "input");
        hash = hash_text(hash, node->name);
        hash = hash_text(hash, shape_text(scratch, &node->shape));
        for (int k = 0; k < node->nin; k++)
            hash = hash_integer(hash, node->in[k]);
        for (int a = 0; node->op && a < node->op->nattrs; a++)
            if (node->op->attr[a].kind != ATTR_INIT)
                hash = hash_text(hash, arena_printf(scratch, "%s %lld %.17g", node->op->attr[a].name,
                                                    (long long)node->attr[a].i, node->attr[a].f));
    }
    arena_free(scratch);
    return arena_printf(arena, "%016llx", (unsigned long long)hash);
}

/* ---- reading ---- */

typedef struct {
    Arena *arena;
    Diags *diags;
    const SourceFile *file;
    const char *at, *end;
    Span span; /* of the line at hand */
    const char *word[5];
    Span word_span[5];
    int words;
} Reader;

static Span span_at(const Reader *r, const char *from, const char *to)
{
    return (Span){r->file->base + (uint32_t)(from - r->file->text), r->file->base + (uint32_t)(to - r->file->text)};
}

/* The next line that counts, split at blanks into at most 4 words; what is left of it is the fifth. */
static bool next_line(Reader *r)
{
    while (r->at < r->end) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *from = r->at, *last = stop ? stop : r->end;
        r->at = stop ? stop + 1 : r->end;
        while (last > from && strchr(" \t\r", last[-1]) && last[-1])
            last--;
        r->words = 0;
        r->span = span_at(r, from, last);
        for (const char *c = from; c < last && r->words < COUNT(r->word);) {
            c += strspn(c, " \t");
            const char *word_end = c;
            while (word_end < last && *word_end != ' ' && *word_end != '\t')
                word_end++;
            if (r->words == COUNT(r->word) - 1)
                word_end = last;
            r->word[r->words] = arena_text(r->arena, c, (size_t)(word_end - c));
            r->word_span[r->words++] = span_at(r, c, word_end);
            c = word_end;
        }
        if (r->words && r->word[0][0] != '#')
            return true;
    }
    r->span = span_at(r, r->end, r->end);
    return false;
}

static bool not_a_profile(Reader *r, Span span, const char *text)
{
    diag_error(r->diags, P0710, span, "%s", text);
    diag_hint(r->diags, "`pnetc explain P0710` shows a profile");
    return false;
}

/* The line "key value"; *value is the rest of the line as written. */
static bool header(Reader *r, const char *key, const char **value, Span *span)
{
    const bool there = next_line(r);
    if (!there || r->words < 2 || strcmp(r->word[0], key))
        return not_a_profile(
            r, r->span,
            arena_printf(r->arena, there ? "expected '%s ...' here" : "the profile ends here, before its line '%s ...'",
                         key));
    *span = (Span){r->word_span[1].at, r->span.end};
    *value = arena_text(r->arena, r->file->text + (span->at - r->file->base), span->end - span->at);
    return true;
}

/* The line "key value" with this value. */
static bool header_is(Reader *r, const char *key, const char *wanted, const char *what)
{
    const char *value;
    Span span;
    if (!header(r, key, &value, &span))
        return false;
    if (!strcmp(value, wanted))
        return true;
    diag_error(r->diags, P0711, span, "the profile is of %s %s; this is %s %s", what, value, what, wanted);
    diag_hint(r->diags, "measure again, or leave --profile away");
    return false;
}

/* A line that may be there: "key value"; false: it is not. */
static bool next_is(Reader *r, const char *key)
{
    const Reader before = *r;
    if (next_line(r) && r->words == 2 && !strcmp(r->word[0], key))
        return true;
    *r = before;
    return false;
}

/* The line "threads n", which is left out for one. */
static bool read_threads(Reader *r, int wanted)
{
    const char *found = next_is(r, "threads") ? r->word[1] : "1";
    if (strcmp(found, arena_printf(r->arena, "%d", wanted))) {
        diag_error(r->diags, P0711, r->span, "the profile is of threads = %s; this is threads = %d", found, wanted);
        diag_hint(r->diags, "measure again, or leave --profile away");
        return false;
    }
    return true;
}

static bool read_time(Reader *r, int word, bool may_be_zero, double *seconds)
{
    char *end;
    const double us = strtod(r->word[word], &end);
    if (end == r->word[word] || *end || !isfinite(us))
        return not_a_profile(r, r->word_span[word], "expected a number of microseconds");
    if (us < 0 || (us <= 0 && !may_be_zero) || us * 1e-6 > longest) {
        diag_error(r->diags, P0712, r->word_span[word], "%s takes %g us%s", r->word[0], us,
                   us < 0   ? ": a time is not negative"
                   : us > 0 ? ": over an hour"
                            : ": a forward takes some time");
        diag_hint(r->diags, us <= 0 && may_be_zero ? "the nearest possible is 0"
                            : us <= 0              ? "the nearest possible is what a clock tells, such as 0.001"
                                                   : "the nearest possible is 3.6e9");
        return false;
    }
    *seconds = us * 1e-6;
    return true;
}

static int line_order(const void *x, const void *y)
{
    const uintptr_t a = (uintptr_t)((const ProfileLine *)x)->node, b = (uintptr_t)((const ProfileLine *)y)->node;
    return (a > b) - (a < b);
}

static bool known_node(const Graph *written, const char *name)
{
    for (NodeId i = 0; i < written->nnodes; i++)
        if (!strcmp(written->node[i].name, name) && written->node[i].op)
            return true;
    return false;
}

static const char *nearest_node(const Reader *r, const Graph *written, const char *name)
{
    const char **names = arena_alloc(r->arena, sizeof *names * (size_t)written->nnodes);
    int count = 0;
    for (NodeId i = 0; i < written->nnodes; i++)
        if (written->node[i].op)
            names[count++] = written->node[i].name;
    return nearest(name, names, count);
}

static bool read_lines(Reader *r, const Graph *written, Profile *profile)
{
    VEC(ProfileLine) lines = {0};
    while (next_line(r)) {
        ProfileLine line = {.span = r->span};
        if (r->at == r->end && r->end[-1] != '\n') { /* pnetc ends every line */
            diag_error(r->diags, P0710, r->span, "the profile is cut off in this line");
            diag_hint(r->diags, "measure again; or end the line, if it is whole");
            return false;
        }
        if (r->words != 4)
            return not_a_profile(r, r->span, "expected a node, and its forward, backward and update in us");
        if (!known_node(written, r->word[0])) {
            diag_error(r->diags, P0711, r->word_span[0], "%s has no node %s", written->name, r->word[0]);
            const char *near = nearest_node(r, written, r->word[0]);
            if (near)
                diag_hint(r->diags, "did you mean %s?", near);
            return false;
        }
        line.node = name_of(r->arena, r->word[0]);
        if (!read_time(r, 1, false, &line.forward) || !read_time(r, 2, true, &line.backward) ||
            !read_time(r, 3, true, &line.update))
            return false;
        *vec_push(r->arena, &lines) = line;
    }
    if (lines.count == 0)
        return not_a_profile(r, r->span, "the profile has no times");
    qsort(lines.at, (size_t)lines.count, sizeof *lines.at, line_order);
    for (int i = 1; i < lines.count; i++)
        if (lines.at[i].node == lines.at[i - 1].node) {
            const bool later = lines.at[i].span.at > lines.at[i - 1].span.at;
            diag_error(r->diags, P0712, lines.at[later ? i : i - 1].span, "%s is timed twice", lines.at[i].node);
            diag_note(r->diags, lines.at[later ? i - 1 : i].span, "it is timed here already");
            return false;
        }
    profile->line = lines.at;
    profile->nlines = lines.count;
    return true;
}

const Profile *profile_read(Arena *arena, Diags *diags, Sources *sources, const char *path, const Graph *written,
                            const TargetDef *target, int threads, const char *machine)
{
    const SourceFile *file = load_text(arena, diags, sources, path);
    if (!file)
        return NULL;
    Reader *r = &(Reader){arena, diags, file, file->text, file->text + file->length, {0}, {0}, {{0}}, 0};
    Profile *profile = arena_alloc(arena, sizeof *profile);
    profile->path = path;
    Span span;
    if (!next_line(r) || r->words != 3 || strcmp(r->word[0], "pnet") || strcmp(r->word[1], "profile")) {
        not_a_profile(r, r->span, "this is no profile: it begins with 'pnet profile 1'");
        return NULL;
    }
    if (strcmp(r->word[2], "1")) {
        diag_error(diags, P0711, r->word_span[2], "a profile of version %s; this pnetc reads version 1", r->word[2]);
        diag_hint(diags, "measure again, with this pnetc");
        return NULL;
    }
    if (!header_is(r, "network", written->name, "network") ||
        !header_is(r, "graph", graph_hash(arena, written), "the graph") ||
        !header_is(r, "batch", arena_printf(arena, "%lld", (long long)written->batch), "batch") ||
        !header_is(r, "target", target->name, "target") || !header(r, "machine", &profile->machine, &span))
        return NULL;
    if (machine && strcmp(machine, profile->machine)) {
        diag_error(diags, P0711, span, "the profile is of machine %s; this is machine %s", profile->machine, machine);
        diag_hint(diags, "measure on that machine, or leave --machine or --profile away");
        return NULL;
    }
    if (!read_threads(r, threads) || !header(r, "versions", &profile->versions, &span))
        return NULL;
    const char *ours = "pnetc " PNETC_VERSION;
    const size_t length = strlen(ours);
    if (strncmp(profile->versions, ours, length) || (profile->versions[length] && profile->versions[length] != ',')) {
        diag_error(diags, P0711, span, "the profile is of %s; this is %s", profile->versions, ours);
        diag_hint(diags, "measure again, or leave --profile away");
        return NULL;
    }
    profile->handover = -1;
    if (next_is(r, "handover") && !read_time(r, 1, true, &profile->handover))
        return NULL;
    return read_lines(r, written, profile) ? profile : NULL;
}

const ProfileLine *profile_find(const Profile *profile, Name node)
{
    const ProfileLine wanted = {.node = node};
    return bsearch(&wanted, profile->line, (size_t)profile->nlines, sizeof wanted, line_order);
}
