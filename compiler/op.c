/* op.c: the table of ops and what their descriptors answer: look-up by name, attributes of a node, errors and
 * parameters of shape inference, the text of `pnetc list ops`. */
#include <string.h>

#include "op.h"

#define OP(name) extern const OpDef op_##name;
#include "ops/ops.def"
#undef OP

const OpDef *const op_table[] = {
#define OP(name) &op_##name,
#include "ops/ops.def"
#undef OP
};
const int op_count = COUNT(op_table);

const OpDef *op_find(const char *name)
{
    for (int i = 0; i < op_count; i++)
        if (strcmp(op_table[i]->name, name) == 0)
            return op_table[i];
    return NULL;
}

const char *op_nearest(const char *name)
{
    const char *names[COUNT(op_table)];
    for (int i = 0; i < op_count; i++)
        names[i] = op_table[i]->name;
    return nearest(name, names, op_count);
}

const AttrDef *op_attr(const OpDef *op, const char *name)
{
    for (int i = 0; i < op->nattrs; i++)
        if (strcmp(op->attr[i].name, name) == 0)
            return &op->attr[i];
    return NULL;
}

int64_t op_aux_bytes(const Graph *graph, const Node *node)
{
    int64_t bytes = node->op->aux ? node->op->aux(graph, node) : 0;
    if (!node->op->aux_of_minibatch && !checked_mul(bytes, graph->batch, &bytes))
        return INT64_MAX;
    return bytes;
}

static const Attr *attr_of(const Node *node, const char *name)
{
    const AttrDef *def = op_attr(node->op, name);
    if (def == NULL)
        ICE("op %s has no attribute %s", node->op->name, name);
    return &node->attr[def - node->op->attr];
}

int64_t attr_int(const Node *node, const char *name)
{
    return attr_of(node, name)->i;
}

double attr_real(const Node *node, const char *name)
{
    return attr_of(node, name)->f;
}

Init attr_init(const Node *node, const char *name)
{
    return attr_of(node, name)->init;
}

/* ---- for shape() ---- */

const Shape *shape_in(const ShapeContext *c, int i)
{
    return &c->graph->node[c->node->in[i]].shape;
}

bool shape_error(ShapeContext *c, Code code, int attr, int in, const char *format, ...)
{
    const Node *node = c->node;
    const Span span = attr >= 0 && node->attr[attr].given ? node->attr[attr].span : node->span;
    Text message = text_new(c->arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&message, format, args);
    va_end(args);
    diag_error(c->diags, code, span, "%s", message.data);
    if (in >= 0) {
        const Node *producer = &c->graph->node[node->in[in]];
        const char *name = producer->value_name != NULL ? producer->value_name : producer->name;
        diag_note(c->diags, producer->span, "%s is %s", name, shape_text(c->arena, &producer->shape));
    }
    return false;
}

/* The room of Graph.param is the power of two at or above nparams: only this function appends. */
void shape_param(ShapeContext *c, const char *suffix, Init init, int64_t fan_in, int64_t fan_out, int rank,
                 const int64_t *dim)
{
    Graph *graph = c->graph;
    Node *node = c->node;
    if (node->nparams == MAX_PARAMS || rank > COUNT(graph->param->dim))
        ICE("%s: too many parameters or dimensions", node->name);
    if ((graph->nparams & (graph->nparams - 1)) == 0) {
        Param *grown = arena_alloc(c->arena, sizeof *grown * (size_t)(graph->nparams > 0 ? 2 * graph->nparams : 1));
        if (graph->nparams > 0)
            memcpy(grown, graph->param, sizeof *grown * (size_t)graph->nparams);
        graph->param = grown;
    }
    /* A node still being built is not in Graph.node yet: it will be the next one. */
    const uintptr_t first = (uintptr_t)graph->node, at = (uintptr_t)node;
    const bool inside = at >= first && at < first + sizeof *node * (size_t)graph->nnodes;
    Param *param = &graph->param[graph->nparams];
    *param = (Param){.name = name_of(c->arena, arena_printf(c->arena, "%s.%s", node->name, suffix)),
                     .rank = rank,
                     .init = init,
                     .fan_in = fan_in,
                     .fan_out = fan_out,
                     .node = inside ? (NodeId)(node - graph->node) : graph->nnodes};
    for (int i = 0; i < rank; i++)
        param->dim[i] = dim[i];
    node->param[node->nparams++] = graph->nparams++;
}

void shape_running(ShapeContext *c, const char *suffix, double initial, int64_t count)
{
    shape_param(c, suffix, (Init){.kind = INIT_CONSTANT, .a = initial}, 0, 0, 1, &count);
    c->graph->param[c->graph->nparams - 1].running = true;
}

/* ---- pnetc list ops ---- */

static void list_default(Text *out, const AttrDef *attr)
{
    switch (attr->kind) {
    case ATTR_INT:
        if (attr->fallback >= attr->low)
            text_printf(out, " = %.0f", attr->fallback);
        else
            text_printf(out, " = ..."); /* depends on others: the doc says how */
        break;
    case ATTR_REAL:
        text_printf(out, " = %g", attr->fallback);
        break;
    case ATTR_BOOL:
        text_printf(out, " = %s", attr->fallback != 0 ? "true" : "false");
        break;
    case ATTR_INIT:
        switch (attr->init.kind) {
        case INIT_HE:
            text_printf(out, " = he");
            break;
        case INIT_XAVIER:
            text_printf(out, " = xavier");
            break;
        case INIT_GAUSSIAN:
            text_printf(out, " = gaussian(%g, %g)", attr->init.a, attr->init.b);
            break;
        case INIT_UNIFORM:
            text_printf(out, " = uniform(%g, %g)", attr->init.a, attr->init.b);
            break;
        case INIT_CONSTANT:
            text_printf(out, " = constant(%g)", attr->init.a);
            break;
        }
    }
}

static void list_one(Text *out, const OpDef *op)
{
    text_printf(out, "%s(", op->name);
    const char *comma = "";
    for (int i = 0; i < op->min_in; i++) {
        const bool target = (op->flags & OP_LOSS) != 0 && i == op->min_in - 1;
        text_printf(out, target ? "%starget" : "%sx", comma);
        if (!target && op->max_in > 1 && (op->flags & OP_LOSS) == 0)
            text_printf(out, "%d", i + 1);
        comma = ", ";
    }
    if (op->max_in > op->min_in)
        text_printf(out, ", ...");
    for (int i = 0; i < op->nattrs; i++) {
        text_printf(out, "%s%s", comma, op->attr[i].name);
        if (!op->attr[i].required)
            list_default(out, &op->attr[i]);
        comma = ", ";
    }
    text_printf(out, ")\n    %s\n", op->doc);
    for (int i = 0; i < op->nattrs; i++)
        text_printf(out, "        %-14s %s\n", op->attr[i].name, op->attr[i].doc);
}

void op_list(Text *out)
{
    for (int i = 0; i < op_count; i++)
        list_one(out, op_table[i]);
}

void init_print(Text *out, const Init *init)
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

void attr_print(Text *out, AttrKind kind, const Attr *attr)
{
    switch (kind) {
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
        init_print(out, &attr->init);
        break;
    }
}
