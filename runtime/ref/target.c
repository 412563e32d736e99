/* target.c: what target ref is, and the verbs that belong to no op. */
#include <string.h>

#include "ref/verbs.h"

const char *const pn_target_name = "ref";

const char *pn_target_version(void)
{
    return "naive C";
}

/* Threads and stages need no preparation: no library, no scratch. */
const int pn_target_most_threads = 1;
void pn_target_thread(const pn_run *run)
{
    (void)run;
}
void pn_target_split(const pn_stage *stage, int64_t count, int64_t unit, pn_part_fn *work, void *data)
{
    (void)stage;
    (void)unit;
    if (count > 0)
        work(data, 0, count);
}

void pn_target_prepare(pn_stage *stage)
{
    (void)stage;
}

/* Plain C, one way for everything, one layout. */
const char *pn_target_isa(const pn_run *run)
{
    (void)run;
    return "unknown";
}

bool pn_target_measure(pn_stage *stage)
{
    (void)stage;
    return true;
}

void pn_target_settle(pn_stage *stage)
{
    (void)stage;
}

/* There is one way to do everything. */
void pn_target_algorithms(const pn_stage *stage, pn_algorithm_fn *tell, void *to)
{
    (void)stage, (void)tell, (void)to;
}

void pn_target_reorders(const pn_stage *stage, pn_reorder_fn *tell, void *to)
{
    (void)stage;
    (void)tell;
    (void)to;
}

int64_t pn_tensor_floats(const pn_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

/* There is one layout. */
pn_layout *pn_layout_of_batch(pn_stage *stage, pn_layout *layout, const pn_tensor *tensor)
{
    (void)stage;
    (void)tensor;
    return layout;
}

static size_t param_bytes(const pn_param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return sizeof(float) * (size_t)count;
}

void pn_param_to_plain(const pn_param *param, const float *stored, float *plain)
{
    memcpy(plain, stored, param_bytes(param));
}

void pn_param_from_plain(const pn_param *param, const float *plain, float *stored)
{
    memcpy(stored, plain, param_bytes(param));
}

void pn_relu_mask(const pn_tensor *t, const float *y, float *gy)
{
    ref_relu_mask(y, gy, pn_tensor_floats(t));
}

void pn_accumulate(const pn_tensor *t, float *to, const float *from)
{
    ref_accumulate(to, from, pn_tensor_floats(t));
}

void pn_copy(const pn_tensor *t, float *to, const float *from)
{
    memcpy(to, from, sizeof *to * (size_t)pn_tensor_floats(t));
}

/* ---- checks shared by all ops ---- */

static pn_layout plain = {"plain"};

pn_op *ref_op_new(pn_stage *stage, const char *name)
{
    pn_op *op = pn_alloc(sizeof *op);
    op->stage = stage;
    op->name = name;
    return op;
}

static void check_area(const pn_op *op, const pn_tensor *t, const char *what, const pn_area *area)
{
    const int64_t need = pn_tensor_floats(t) * (int64_t)sizeof(float);
    if (area->memory != NULL && area->bytes < (area->sliced ? pn_whole_batch(op->stage, need) : need))
        pn_fail(op->stage, "%s: the %s of %s has %lld bytes, needs %lld", op->name, what, t->name,
                (long long)area->bytes, (long long)need);
}

static void check_tensor(const pn_op *op, const pn_tensor *t)
{
    check_area(op, t, "value", &t->value);
    check_area(op, t, "gradient", &t->gradient);
    check_area(op, t, "partial gradient", &t->partial);
    check_area(op, t, "test value", &t->test);
}

void ref_op_reads(pn_op *op, const pn_tensor *x)
{
    check_tensor(op, x);
}

void ref_op_writes(pn_op *op, pn_tensor *y)
{
    check_tensor(op, y);
    y->layout = &plain;
}

static bool is_slot(const pn_op *op, const pn_tensor *t, const pn_area *area, const void *p)
{
    if (area->memory == NULL || p == NULL || area->bytes <= 0)
        return false;
    const int64_t slice = pn_slice_begin(op->stage, pn_tensor_floats(t) * (int64_t)sizeof(float));
    const uintptr_t first = (uintptr_t)area->memory + (area->sliced ? (uintptr_t)slice : 0), at = (uintptr_t)p;
    return at >= first && at < first + (uintptr_t)(area->bytes * area->slots) &&
           (at - first) % (uintptr_t)area->bytes == 0;
}

void ref_op_check(const pn_op *op, const pn_tensor *t, ref_role role, const void *p)
{
    const bool found = role == REF_VALUE
                           ? is_slot(op, t, &t->value, p) || is_slot(op, t, &t->test, p) || is_slot(op, t, &t->again, p)
                           : is_slot(op, t, &t->gradient, p) || is_slot(op, t, &t->partial, p);
    if (!found)
        pn_fail(op->stage, "%s: a pointer is no slot of the %s of %s", op->name,
                role == REF_VALUE ? "value" : "gradient", t->name);
}
