/* machine_units.c: units of machine descriptions, with their size. settings_machine.c names the same ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

typedef struct {
    const char *text;
    UnitKind kind;
    double factor;
} Unit;

static const Unit unit_table[] = {
    {"B", UNIT_BYTES, 1},
    {"kB", UNIT_BYTES, 1e3},
    {"MB", UNIT_BYTES, 1e6},
    {"GB", UNIT_BYTES, 1e9},
    {"TB", UNIT_BYTES, 1e12},
    {"KiB", UNIT_BYTES, 1024.0},
    {"MiB", UNIT_BYTES, 1048576.0},
    {"GiB", UNIT_BYTES, 1073741824.0},
    {"TiB", UNIT_BYTES, 1099511627776.0},
    {"B/s", UNIT_BYTES_A_SECOND, 1},
    {"kB/s", UNIT_BYTES_A_SECOND, 1e3},
    {"MB/s", UNIT_BYTES_A_SECOND, 1e6},
    {"GB/s", UNIT_BYTES_A_SECOND, 1e9},
    {"TB/s", UNIT_BYTES_A_SECOND, 1e12},
    {"KiB/s", UNIT_BYTES_A_SECOND, 1024.0},
    {"MiB/s", UNIT_BYTES_A_SECOND, 1048576.0},
    {"GiB/s", UNIT_BYTES_A_SECOND, 1073741824.0},
    {"TiB/s", UNIT_BYTES_A_SECOND, 1099511627776.0},
    {"bit/s", UNIT_BYTES_A_SECOND, 0.125},
    {"kbit/s", UNIT_BYTES_A_SECOND, 125},
    {"Mbit/s", UNIT_BYTES_A_SECOND, 125e3},
    {"Gbit/s", UNIT_BYTES_A_SECOND, 125e6},
    {"Tbit/s", UNIT_BYTES_A_SECOND, 125e9},
    {"FLOP/s", UNIT_FLOPS, 1},
    {"MFLOP/s", UNIT_FLOPS, 1e6},
    {"GFLOP/s", UNIT_FLOPS, 1e9},
    {"TFLOP/s", UNIT_FLOPS, 1e12},
    {"PFLOP/s", UNIT_FLOPS, 1e15},
    {"s", UNIT_SECONDS, 1},
    {"ms", UNIT_SECONDS, 1e-3},
    {"us", UNIT_SECONDS, 1e-6},
    {"ns", UNIT_SECONDS, 1e-9},
    {"Hz", UNIT_OTHER, 1},
    {"kHz", UNIT_OTHER, 1},
    {"MHz", UNIT_OTHER, 1},
    {"GHz", UNIT_OTHER, 1},
    {"W", UNIT_OTHER, 1},
    {"kW", UNIT_OTHER, 1},
};

bool unit_find(const char *text, UnitKind *kind, double *factor)
{
    for (int i = 0; i < COUNT(unit_table); i++)
        if (!strcmp(unit_table[i].text, text)) {
            *kind = unit_table[i].kind;
            *factor = unit_table[i].factor;
            return true;
        }
    return false;
}

const char *unit_nearest(const char *text, UnitKind kind)
{
    const char *names[COUNT(unit_table)];
    int count = 0;
    for (int i = 0; i < COUNT(unit_table); i++)
        if (unit_table[i].kind == kind)
            names[count++] = unit_table[i].text;
    return nearest(text, names, count);
}

static bool is_decimal(const Unit *unit)
{
    return !strchr(unit->text, 'i'); /* neither GiB nor Gbit/s */
}

const char *quantity_text(Arena *arena, double number, UnitKind kind)
{
    const double size = number < 0 || number > 0 ? fabs(number) : 1;
    const Unit *best = NULL, *least = NULL;
    for (const Unit *unit = unit_table; unit < unit_table + COUNT(unit_table); unit++) {
        if (kind == UNIT_OTHER || unit->kind != kind || !is_decimal(unit))
            continue;
        if (unit->factor <= size && (!best || unit->factor > best->factor))
            best = unit;
        if (!least || unit->factor < least->factor)
            least = unit;
    }
    best = best ? best : least;
    return best ? arena_printf(arena, "%g %s", number / best->factor, best->text) : arena_printf(arena, "%g", number);
}

bool bytes_from_text(const char *text, int64_t *bytes)
{
    char *end;
    const double number = strtod(text, &end);
    UnitKind kind;
    double factor;
    if (end == text || strspn(text, "0123456789.") != (size_t)(end - text) || !isfinite(number))
        return false;
    while (*end == ' ')
        end++;
    if (!unit_find(end, &kind, &factor) || kind != UNIT_BYTES || number * factor > 72057594037927936.0)
        return false;
    *bytes = (int64_t)(number * factor);
    return true;
}
