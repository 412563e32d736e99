/* graph.c: shapes as text, and names for C. See graph.h. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

int64_t shape_count(const Shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        if (!checked_mul(count, shape->dim[i], &count))
            return INT64_MAX;
    return count;
}

bool shape_equal(const Shape *a, const Shape *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || (a->dtype == DTYPE_CLASS && a->classes != b->classes))
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static const char *dims_text(Arena *arena, const char *type, int rank, const int64_t *dim, const int64_t *batch)
{
    Text text = text_new(arena);
    text_printf(&text, "%s[", type);
    if (batch)
        text_printf(&text, "%lld", (long long)*batch);
    for (int i = 0; i < rank; i++)
        text_printf(&text, "%s%lld", i || batch ? "," : "", (long long)dim[i]);
    text_printf(&text, "]");
    return text.data;
}

const char *shape_text(Arena *arena, const Shape *shape)
{
    return shape->dtype == DTYPE_CLASS ? dims_text(arena, "class", 1, &shape->classes, NULL)
                                       : dims_text(arena, "f32", shape->rank, shape->dim, NULL);
}

const char *shape_text_batch(Arena *arena, const Shape *shape, int64_t batch)
{
    return shape->dtype == DTYPE_CLASS ? dims_text(arena, "class", 1, &shape->classes, NULL)
                                       : dims_text(arena, "f32", shape->rank, shape->dim, &batch);
}

int graph_replicas(const Graph *graph, int stage)
{
    return graph->replicas && graph->nreplicas == graph->ncuts + 1 ? graph->replicas[stage] : 1;
}

int graph_line(const Graph *graph, Span span)
{
    const SourceFile *file = source_of(graph->sources, span.at);
    int line = 0, column;
    if (file)
        source_locate(file, span.at, &line, &column);
    return line;
}

int64_t graph_param_count(const Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    int64_t sum = 0;
    for (int i = 0; i < n->nparams; i++) {
        const Param *p = &graph->param[n->param[i]];
        if (p->running)
            continue;
        int64_t count = 1;
        for (int d = 0; d < p->rank; d++)
            count *= p->dim[d];
        sum += count;
    }
    return sum;
}

/* Words that a file-scope variable of the generated code must not be called: C11 keywords, names that every generated
 * file declares or its headers do, and the short names of C's built-in functions (compilers warn when those are
 * redeclared). */
/* clang-format off */
static const char *const reserved_words[] = { /* sorted by strcmp */
    "NULL", "abort", "abs", "acos", "acosh", "alignas", "alignof", "asin", "asinh", "asm", "atan", "atan2", "atanh",
    "auto", "b", "backward", "batch", "bool", "break", "calloc", "case", "cbrt", "ceil", "char", "const", "continue",
    "copysign", "cos", "cosh", "data", "default", "div", "do", "double", "else", "enum", "erf", "erfc", "exit", "exp",
    "exp2", "expm1", "extern", "fabs", "false", "fdim", "float", "floor", "fma", "fmax", "fmin", "fmod", "for",
    "forward", "fprintf", "fputc", "fputs", "free", "frexp", "fwrite", "g", "gamma", "goto", "gradient", "gx", "gy",
    "hypot", "i", "if", "ilogb", "imaxabs", "index", "init", "inline", "int", "int32_t", "int64_t", "int8_t",
    "isalnum", "isalpha", "iscntrl", "isdigit", "isgraph", "islower", "isprint", "ispunct", "isspace", "isupper",
    "isxdigit", "j0", "j1", "jn", "k", "labs", "ldexp", "lgamma", "linux", "llabs", "llrint", "llround", "log",
    "log10", "log1p", "log2", "logb", "long", "lrint", "lround", "main", "malloc", "memchr", "memcmp", "memcpy",
    "memmove", "memset", "modf", "n", "nan", "nearbyint", "nextafter", "noreturn", "param", "phases", "pow", "printf",
    "program", "ptrdiff_t", "putc", "putchar", "puts", "realloc", "register", "registers", "remainder", "remquo",
    "restrict", "return", "rint", "round", "scalbn", "short", "signed", "sin", "sinh", "size_t", "sizeof", "snprintf",
    "sprintf", "sqrt", "stage", "stages", "state", "static", "static_assert", "strcat", "strchr", "strcmp", "strcpy",
    "strlen", "strncat", "strncmp", "strncpy", "strpbrk", "strrchr", "strspn", "strstr", "struct", "switch", "tan",
    "tanh", "test", "tgamma", "thread_local", "tolower", "toupper", "true", "trunc", "typedef", "typeof", "uint64_t",
    "uint8_t", "union", "unix", "unsigned", "update", "void", "volatile", "w", "weights", "while", "x", "y", "y0",
    "y1", "yn",
};
/* clang-format on */

static int compare_words(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

const char *c_name(Arena *arena, Name name)
{
    Text text = text_new(arena);
    /* pn_, PN_: the runtime's; a leading underscore: the C library's. Value names cannot begin with these after "v_".
     */
    if (!strncmp(name, "pn_", 3) || !strncmp(name, "PN_", 3) || name[0] == '_')
        text_printf(&text, "v_");
    for (const char *c = name; *c; c++)
        text_append(&text, *c == '.' ? "_" : c, 1);
    if (bsearch(text.data, reserved_words, COUNT(reserved_words), sizeof *reserved_words, compare_words))
        text_append(&text, "_", 1);
    return text.data;
}
