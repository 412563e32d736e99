/* graph.c: shapes as text, names for C, and the check and dump of a graph. See graph.h. */
#include "op.h"

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

/* ---- check ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const Name *)a, *(const Name *)b);
}

static void check_unique(const Graph *graph)
{
    Name *names = malloc((size_t)(graph->nnodes + 1) * sizeof *names);
    if (!names)
        ICE("graph: out of memory in the check");
    for (int i = 0; i < graph->nnodes; i++)
        names[i] = graph->node[i].name;
    qsort(names, (size_t)graph->nnodes, sizeof *names, compare_names);
    for (int i = 1; i < graph->nnodes; i++)
        if (!strcmp(names[i - 1], names[i]))
            ICE("graph: two nodes are named %s", names[i]);
    free(names);
}

static void check_node(const Graph *graph, NodeId id)
{
    const Node *n = &graph->node[id];
    if (!n->name || !n->value_name)
        ICE("graph: node %d has no name", id);
    if (n->shape.rank < 0 || n->shape.rank > MAX_RANK)
        ICE("graph: %s has rank %d", n->name, n->shape.rank);
    for (int i = 0; i < n->shape.rank; i++)
        if (n->shape.dim[i] < 1)
            ICE("graph: %s has dimension %d of %lld", n->name, i, (long long)n->shape.dim[i]);
    if (!n->op) {
        if (n->nin || n->nparams)
            ICE("graph: the input %s has inputs or parameters", n->name);
        return;
    }
    if (n->nin < n->op->min_in || n->nin > n->op->max_in)
        ICE("graph: %s has %d inputs", n->name, n->nin);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] < 0 || n->in[i] >= id)
            ICE("graph: %s reads node %d, which is not before it", n->name, n->in[i]);
    for (int i = 0; i < n->nparams; i++)
        if (n->param[i] < 0 || n->param[i] >= graph->nparams || graph->param[n->param[i]].node != id)
            ICE("graph: parameter %d of %s is not its own", i, n->name);
}

void graph_check(const Graph *graph)
{
    if (graph->batch < 1)
        ICE("graph: batch %lld", (long long)graph->batch);
    for (NodeId id = 0; id < graph->nnodes; id++)
        check_node(graph, id);
    check_unique(graph);
    for (int i = 0; i < graph->ninputs; i++)
        if (graph->input[i] < 0 || graph->input[i] >= graph->nnodes || graph->node[graph->input[i]].op)
            ICE("graph: input %d is no input node", i);
    if (graph->loss < 0 || graph->loss >= graph->nnodes || !graph->node[graph->loss].op ||
        !(graph->node[graph->loss].op->flags & OP_LOSS))
        ICE("graph: the loss is node %d", graph->loss);
    for (int i = 0; i < graph->ncuts; i++)
        if (graph->cut[i].before <= (i ? graph->cut[i - 1].before : 0) || graph->cut[i].before >= graph->nnodes)
            ICE("graph: cut %d stands before node %d", i, graph->cut[i].before);
}

/* ---- dump ---- */

static void dump_init(Text *out, const Init *init)
{
    switch (init->kind) {
    case INIT_HE:
        text_printf(out, "he");
        break;
    case INIT_XAVIER:
        text_printf(out, "xavier");
        break;
    case INIT_GAUSSIAN:
        text_printf(out, "gaussian(std = %g, mean = %g)", init->b, init->a);
        break;
    case INIT_UNIFORM:
        text_printf(out, "uniform(%g, %g)", init->a, init->b);
        break;
    case INIT_CONSTANT:
        text_printf(out, "constant(%g)", init->a);
        break;
    }
}

static void dump_attrs(Text *out, const Node *node)
{
    for (int i = 0; i < node->op->nattrs; i++) {
        const AttrDef *def = &node->op->attr[i];
        const Attr *attr = &node->attr[i];
        text_printf(out, ", %s = ", def->name);
        switch (def->kind) {
        case ATTR_INT:
            text_printf(out, "%lld", (long long)attr->i);
            break;
        case ATTR_REAL:
            text_printf(out, "%g", attr->f);
            break;
        case ATTR_BOOL:
            text_printf(out, "%s", attr->i ? "true" : "false");
            break;
        case ATTR_INIT:
            dump_init(out, &attr->init);
            break;
        }
    }
}

static void dump_node(const Graph *graph, NodeId id, Text *out)
{
    const Node *n = &graph->node[id];
    text_printf(out, "%4d  %s: %s", id, n->name, shape_text(out->arena, &n->shape));
    if (!n->op) {
        text_printf(out, " = input\n");
        return;
    }
    text_printf(out, " = %s(", n->op->name);
    for (int i = 0; i < n->nin; i++)
        text_printf(out, "%s%s", i ? ", " : "", graph->node[n->in[i]].name);
    dump_attrs(out, n);
    text_printf(out, ")");
    for (int i = 0; i < n->nchain; i++)
        text_printf(out, " |> %s", n->chain[i]->name);
    if (n->relu)
        text_printf(out, " + relu");
    if (n->fused)
        text_printf(out, "  fused %s", n->fused);
    if (strcmp(n->value_name, n->name))
        text_printf(out, "  value %s", n->value_name);
    text_printf(out, "  line %d\n", graph_line(graph, n->span));
    for (int i = 0; i < n->nparams; i++) {
        const Param *p = &graph->param[n->param[i]];
        text_printf(out, "      %s %s ", p->name, dims_text(out->arena, "f32", p->rank, p->dim, NULL));
        dump_init(out, &p->init);
        text_printf(out, " fan %lld/%lld\n", (long long)p->fan_in, (long long)p->fan_out);
    }
}

void graph_dump(const Graph *graph, Text *out)
{
    text_printf(out, "network %s, batch %lld\n", graph->name, (long long)graph->batch);
    int cut = 0;
    for (NodeId id = 0; id < graph->nnodes; id++) {
        for (; cut < graph->ncuts && graph->cut[cut].before == id; cut++)
            text_printf(out, "----  register %d  line %d\n", cut, graph_line(graph, graph->cut[cut].span));
        dump_node(graph, id, out);
    }
    text_printf(out, "loss %s\n", graph->node[graph->loss].name);
}
