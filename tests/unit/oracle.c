/* oracle.c: the evaluator against what PyTorch computed in double (tests/oracle/make_oracle.py writes the cases and
 * says how they read). Stated tolerance: each number within 4e-7 of the largest of its tensor (at least 1): about 3
 * units of f32. The margin is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "ref/kernels.h"

static const double tolerance = 4e-7;

/* A case as read: numbers in order of appearance. */
typedef struct {
    char name[160], op[40], attrs[120];
    int64_t batch;
    bool relu;
    VEC(Shape) input;
    VEC(double) number;
    struct {
        char what;     /* i input, l label, p param, o out, s loss, g gradient, r running, t test */
        int at, count; /* in number */
    } part[16];
    int nparts;
} Case;

static FILE *open_file(const char *name)
{
    /* From the repository's root (make test), or wherever ROOT says it is. */
    char path[1024];
    const char *root = getenv("ROOT");
    snprintf(path, sizeof path, "%s/tests/oracle/%s", root ? root : ".", name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail_msg("cannot read %s", path);
    return file;
}

static void add_part(Case *c, char what)
{
    if (c->nparts == COUNT(c->part))
        fail_msg("%s: too many parts", c->name);
    c->part[c->nparts].what = what;
    c->part[c->nparts++].at = c->number.count;
}

/* false: the end of the file */
static bool read_case(Arena *arena, FILE *file, Case *c)
{
    char line[4096], shape[64];
    *c = (Case){0};
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "end") == 0)
            return true;
        if (sscanf(line, "case %159[^\n]", c->name) == 1)
            continue;
        if (sscanf(line, "op %39s %119[^\n]", c->op, c->attrs) >= 1)
            continue;
        if (sscanf(line, "batch %lld", (long long *)&c->batch) == 1)
            continue;
        if (strcmp(line, "relu") == 0) {
            c->relu = true;
        } else if (sscanf(line, "input %63s", shape) == 1) {
            *vec_push(arena, &c->input) = net_shape(shape);
            add_part(c, 'i');
        } else if (sscanf(line, "label %63s", shape) == 1) {
            *vec_push(arena, &c->input) = (Shape){.dtype = DTYPE_CLASS, .classes = atoll(shape)};
            add_part(c, 'l');
        } else if (strcmp(line, "param") == 0) {
            add_part(c, 'p');
        } else if (strcmp(line, "out") == 0) {
            add_part(c, 'o');
        } else if (strcmp(line, "loss") == 0) {
            add_part(c, 's');
        } else if (strcmp(line, "gradient") == 0) {
            add_part(c, 'g');
        } else if (strcmp(line, "running") == 0) {
            add_part(c, 'r');
        } else if (strcmp(line, "test") == 0) {
            add_part(c, 't');
        } else {
            char *at = line, *next;
            for (double value = strtod(at, &next); next != at; value = strtod(at = next, &next)) {
                *vec_push(arena, &c->number) = value;
                c->part[c->nparts - 1].count++;
            }
            if (*at != '\0')
                fail_msg("%s: cannot read \"%s\"", c->name, at);
        }
    }
    return false;
}

/* The worst difference of a part, in units of the tolerance. */
static double compare(const Case *c, int part, const float *got, int64_t n)
{
    double largest = 1, worst = 0;
    assert_int_equal(c->part[part].count, n);
    const double *wanted = c->number.at + c->part[part].at;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(wanted[i]));
        worst = fmax(worst, fabs(wanted[i] - got[i]));
    }
    return worst / largest / tolerance;
}

/* The running statistics of batch_norm after this minibatch, from 0 and 1. */
static void track(Net *net, Eval *eval, NodeId norm)
{
    const Node *node = &net->node[norm];
    const int64_t channels = node->shape.dim[0];
    const ref_channels all = {net->graph.batch, channels, shape_count(&node->shape) / channels};
    float *mean = eval->param[node->param[2]], *variance = eval->param[node->param[3]];
    for (int64_t k = 0; k < channels; k++) {
        mean[k] = 0;
        variance[k] = 1;
    }
    ref_norm_track(&all, attr_real(node, "momentum"), eval->aux[norm], (float *)eval->aux[norm] + channels, mean,
                   variance);
}

static double run(const Case *c)
{
    Net *net = net_new(c->batch);
    const bool loss = (op_find(c->op)->flags & OP_LOSS) != 0;
    const int reads = c->input.count - (loss ? 0 : 1);
    NodeId in[8], out;
    for (int i = 0; i < reads; i++)
        in[i] = net_input(net, c->input.at[i]);
    out = net_op(net, c->op, reads, in, c->attrs);
    if (out < 0)
        fail_msg("%s: %s", c->name, net_errors(net));
    net->node[out].relu = c->relu;
    if (!loss) {
        in[reads] = net_input(net, c->input.at[reads]);
        assert_true(net_op(net, "mse", 2, (NodeId[]){out, in[reads]}, "") >= 0);
    }
    Eval *eval = eval_new(net->arena, &net->graph);
    int inputs = 0, params = 0;
    for (int p = 0; p < c->nparts; p++) {
        const double *number = c->number.at + c->part[p].at;
        const char what = c->part[p].what;
        if (what == 'i' || what == 'l')
            inputs++;
        for (int i = 0; i < c->part[p].count; i++)
            if (what == 'i')
                eval->value[in[inputs - 1]][i] = (float)number[i];
            else if (what == 'l')
                ((int32_t *)eval->value[in[inputs - 1]])[i] = (int32_t)number[i];
            else if (what == 'p')
                eval->param[params][i] = (float)number[i];
        params += what == 'p';
    }
    for (int i = 0; i < net->graph.nparams; i++)
        params += net->graph.param[i].running;
    assert_int_equal(params, net->graph.nparams);
    eval_forward(eval, true, 9, 4);
    eval_backward(eval, 9, 4);

    double worst = 0;
    int gradients = 0, compared = 0, statistics = 0;
    const int gradient_inputs =
        c->input.count - (c->input.at[c->input.count - 1].dtype == DTYPE_CLASS || !loss ? 1 : 0);
    for (int p = 0; p < c->nparts; p++) {
        const float *got = NULL;
        int64_t n = c->part[p].count;
        if (c->part[p].what == 'o') {
            got = eval->value[out];
            n = c->batch * shape_count(&net->node[out].shape);
        } else if (c->part[p].what == 's') {
            got = eval->value[net->graph.loss];
        } else if (c->part[p].what == 'r') {
            if (statistics == 0)
                track(net, eval, out);
            got = eval->param[net->node[out].param[2 + statistics++]];
        } else if (c->part[p].what == 't') {
            eval_forward(eval, false, 9, 4);
            got = eval->value[out];
        } else if (c->part[p].what == 'g') {
            const int k = gradients++;
            got = k < gradient_inputs ? eval->gradient[in[k]] : eval->param_gradient[k - gradient_inputs];
        }
        if (got != NULL) {
            worst = fmax(worst, compare(c, p, got, n));
            compared++;
        }
    }
    assert_true(compared >= 2);
    arena_free(net->arena);
    return worst;
}

static void all_of(const char *name, int at_least)
{
    Arena *arena = arena_new();
    FILE *file = open_file(name);
    Case c;
    double worst = 0;
    int count = 0;
    for (; read_case(arena, file, &c); count++) {
        const double margin = run(&c);
        worst = fmax(worst, margin);
        if (!(margin <= 1))
            fail_msg("%s: %.2f times the tolerance of %.0e", c.name, margin, tolerance);
    }
    fclose(file);
    print_message("# %s: %d cases, worst %.2f of the tolerance of %.0e\n", name, count, worst, tolerance);
    assert_true(count >= at_least);
    arena_free(arena);
}

static void conv(void **state)
{
    (void)state;
    all_of("conv.txt", 10);
}

static void linear(void **state)
{
    (void)state;
    all_of("linear.txt", 4);
}

static void pool(void **state)
{
    (void)state;
    all_of("pool.txt", 19);
}

static void norm(void **state)
{
    (void)state;
    all_of("norm.txt", 11);
}

static void others(void **state)
{
    (void)state;
    all_of("others.txt", 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(conv), cmocka_unit_test(linear), cmocka_unit_test(pool),
                                       cmocka_unit_test(norm), cmocka_unit_test(others)};
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
