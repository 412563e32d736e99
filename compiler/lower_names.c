/* lower_names.c: what a name means, and what nodes are called.
 *
 * A body (network or def) is one scope: `for` and `if` open none, so a name bound again in a loop is the newer value.
 * Variables win over automatic names: a scope reserves all names that its body binds before it is elaborated. Node
 * names are unique, and so are their C forms (`a.b` and `a_b` cannot both occur). */
#include "lower.h"

#include <string.h>

/* ---- maps ---- */

static int map_slot(const NameMap *map, Name key)
{
    /* Names are interned: the address is the identity. Its order decides nothing but the slot. */
    const uint64_t hash = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    int slot = (int)(hash >> 40) & (map->room - 1);
    while (map->key[slot] && map->key[slot] != key)
        slot = (slot + 1) & (map->room - 1);
    return slot;
}

int map_get(const NameMap *map, Name key)
{
    if (!map->room)
        return -1;
    const int slot = map_slot(map, key);
    return map->key[slot] ? map->value[slot] : -1;
}

void map_set(Arena *arena, NameMap *map, Name key, int value)
{
    if (2 * map->count >= map->room) {
        NameMap larger = {.room = map->room ? 2 * map->room : 16};
        larger.key = arena_alloc(arena, (size_t)larger.room * sizeof *larger.key);
        larger.value = arena_alloc(arena, (size_t)larger.room * sizeof *larger.value);
        for (int i = 0; i < map->room; i++)
            if (map->key[i])
                map_set(arena, &larger, map->key[i], map->value[i]);
        *map = larger;
    }
    const int slot = map_slot(map, key);
    map->count += !map->key[slot];
    map->key[slot] = key;
    map->value[slot] = value;
}

/* ---- what a body binds ---- */

static void add_bound(Arena *arena, BoundNames *names, Name name, Span span, int times)
{
    if (!name)
        return;
    int at = map_get(&names->index, name);
    if (at < 0) {
        at = names->bound.count;
        *vec_push(arena, &names->bound) = (Bound){name, 0, span};
        map_set(arena, &names->index, name, at);
    }
    names->bound.at[at].times += times;
}

/* Nesting of bodies is bounded by the parser. */
static void add_body(Arena *arena, BoundNames *names, const Body *body, bool in_loop)
{
    for (int i = 0; i < body->count; i++) {
        const Stmt *s = &body->stmt[i];
        if (s->kind == STMT_ASSIGN || s->kind == STMT_INPUT)
            add_bound(arena, names, s->name, s->name_span, in_loop ? 2 : 1);
        if (s->kind == STMT_FOR)
            add_bound(arena, names, s->name, s->name_span, 2);
        add_body(arena, names, &s->body, in_loop || s->kind == STMT_FOR);
        add_body(arena, names, &s->other, in_loop);
    }
}

const BoundNames *names_of_body(Lower *l, const ParamDecl *param, int nparams, const Body *body)
{
    BoundNames *names = arena_alloc(l->arena, sizeof *names);
    for (int i = 0; i < nparams; i++)
        add_bound(l->arena, names, param[i].name, param[i].span, 2);
    add_body(l->arena, names, body, false);
    return names;
}

/* ---- scopes ---- */

const Binding *scope_find(const Scope *scope, Name name)
{
    for (; scope; scope = scope->outer) {
        const int at = map_get(&scope->index, name);
        if (at >= 0 && !scope->binding.at[at].hidden)
            return &scope->binding.at[at];
    }
    return NULL;
}

void scope_bind(Lower *l, Scope *scope, Name name, Span span, Value value)
{
    int at = map_get(&scope->index, name);
    if (at < 0) {
        at = scope->binding.count;
        (void)vec_push(l->arena, &scope->binding);
        map_set(l->arena, &scope->index, name, at);
    }
    scope->binding.at[at] = (Binding){name, value, span, false};
}

const char *scope_nearest(Lower *l, const Scope *scope, Name name)
{
    VEC(const char *) names = {0};
    for (; scope; scope = scope->outer)
        for (int i = 0; i < scope->binding.count; i++)
            if (!scope->binding.at[i].hidden)
                *vec_push(l->arena, &names) = scope->binding.at[i].name;
    return nearest(name, names.at, names.count);
}

bool scope_binds_once(const Scope *scope, Name name)
{
    const int at = scope->names ? map_get(&scope->names->index, name) : -1;
    return at >= 0 && scope->names->bound.at[at].times == 1;
}

/* ---- names of nodes and instances ---- */

Name name_scoped(Lower *l, const Scope *scope, Name name)
{
    return scope->prefix ? name_of(l->arena, arena_printf(l->arena, "%s.%s", scope->prefix, name)) : name;
}

static Name c_form(Lower *l, Name scoped)
{
    return name_of(l->arena, c_name(l->arena, scoped));
}

void scope_reserve(Lower *l, const Scope *scope)
{
    for (int i = 0; i < scope->names->bound.count; i++)
        map_set(l->arena, &l->reserved, c_form(l, name_scoped(l, scope, scope->names->bound.at[i].name)), 1);
}

Name name_automatic(Lower *l, Scope *scope, const char *base)
{
    const Name key = name_of(l->arena, base);
    const int last = map_get(&scope->number, key);
    for (int number = last < 0 ? 1 : last + 1;; number++) {
        const Name scoped = name_scoped(l, scope, arena_printf(l->arena, "%s%d", base, number));
        const Name form = c_form(l, scoped);
        if (map_get(&l->taken, form) >= 0 || map_get(&l->reserved, form) >= 0)
            continue;
        map_set(l->arena, &l->taken, form, 1);
        map_set(l->arena, &scope->number, key, number);
        return name_of(l->arena, scoped);
    }
}

Name name_explicit(Lower *l, Scope *scope, Name name, const char *base)
{
    const Name scoped = name_scoped(l, scope, name);
    const Name form = c_form(l, scoped);
    if (map_get(&l->taken, form) >= 0)
        return name_automatic(l, scope, base);
    map_set(l->arena, &l->taken, form, 1);
    return scoped;
}
