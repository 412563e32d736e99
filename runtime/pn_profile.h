/* pn_profile.h: the verbs of pn_ops.h with a stopwatch around each, for programs that `pnetc profile` builds with
 * -DPN_PROFILE; pn.h includes this at its end. The generated code is the same to the letter.
 *
 * A node's time is that of its verbs, its relu mask, the sums of its gradients and the inputs it is the first to read
 * included, in the buffers and layouts
 * of the real program. core/profile.c keeps the records; pn_main is replaced by pn_profile_main, whose first argument
 * is the file to write. */
#ifndef PN_PROFILE_H
#define PN_PROFILE_H

#ifndef PN_H
#error "include pn.h, which includes this file"
#endif

/* Files a record for an op of the stage whose init runs: y NULL: a loss; floats: of its trained parameters as stored.
 */
pn_op *pn_profile_op(pn_stage *stage, pn_op *op, const char *name, const pn_tensor *y, int64_t floats);
/* Around each verb of an op. */
void pn_profile_begin(const pn_op *op);
void pn_profile_end(const pn_op *op);
/* Counts for the first node that runs behind it. */
void pn_profile_input(pn_stage *stage, int64_t n, int input, void *to);
/* The verbs that belong to no op by their arguments. */
void pn_profile_relu_mask(const pn_tensor *t, const float *y, float *gy);
void pn_profile_accumulate(const pn_tensor *t, float *to, const float *from);
void pn_profile_copy(const pn_tensor *t, float *to, const float *from);
int pn_profile_main(const pn_program *program, int argc, char **argv);

static inline int64_t pn_profile_floats(const pn_param *param)
{
    return param ? param->room : 0;
}

#define PN_PROFILED_INIT(op, y, floats)                                                                                \
    static inline pn_op *pn_profiled_##op##_init(pn_stage *stage, const PN_DEF_##op *def)                              \
    {                                                                                                                  \
        return pn_profile_op(stage, pn_##op##_init(stage, def), def->name, y, floats);                                 \
    }
#define PN_DEF_conv                  pn_conv_def
#define PN_DEF_linear                pn_linear_def
#define PN_DEF_maxpool               pn_pool_def
#define PN_DEF_avgpool               pn_pool_def
#define PN_DEF_batch_norm            pn_batch_norm_def
#define PN_DEF_pointwise             pn_pointwise_def
#define PN_DEF_add                   pn_add_def
#define PN_DEF_concat                pn_concat_def
#define PN_DEF_flatten               pn_flatten_def
#define PN_DEF_lrn                   pn_lrn_def
#define PN_DEF_shortcut              pn_shortcut_def
#define PN_DEF_dropout               pn_dropout_def
#define PN_DEF_softmax_cross_entropy pn_loss_def
#define PN_DEF_mse                   pn_loss_def
PN_PROFILED_INIT(conv, def->y, pn_profile_floats(def->w) + pn_profile_floats(def->b))
PN_PROFILED_INIT(linear, def->y, pn_profile_floats(def->w) + pn_profile_floats(def->b))
PN_PROFILED_INIT(maxpool, def->y, 0)
PN_PROFILED_INIT(avgpool, def->y, 0)
PN_PROFILED_INIT(batch_norm, def->y, pn_profile_floats(def->scale) + pn_profile_floats(def->shift))
PN_PROFILED_INIT(pointwise, def->y, 0)
PN_PROFILED_INIT(add, def->y, 0)
PN_PROFILED_INIT(concat, def->y, 0)
PN_PROFILED_INIT(flatten, def->y, 0)
PN_PROFILED_INIT(lrn, def->y, 0)
PN_PROFILED_INIT(shortcut, def->y, 0)
PN_PROFILED_INIT(dropout, def->y, 0)
PN_PROFILED_INIT(softmax_cross_entropy, NULL, 0)
PN_PROFILED_INIT(mse, NULL, 0)

#define pn_conv_init                  pn_profiled_conv_init
#define pn_linear_init                pn_profiled_linear_init
#define pn_maxpool_init               pn_profiled_maxpool_init
#define pn_avgpool_init               pn_profiled_avgpool_init
#define pn_batch_norm_init            pn_profiled_batch_norm_init
#define pn_pointwise_init             pn_profiled_pointwise_init
#define pn_add_init                   pn_profiled_add_init
#define pn_concat_init                pn_profiled_concat_init
#define pn_flatten_init               pn_profiled_flatten_init
#define pn_lrn_init                   pn_profiled_lrn_init
#define pn_shortcut_init              pn_profiled_shortcut_init
#define pn_dropout_init               pn_profiled_dropout_init
#define pn_softmax_cross_entropy_init pn_profiled_softmax_cross_entropy_init
#define pn_mse_init                   pn_profiled_mse_init

#define PN_TIMED(op, call) (pn_profile_begin(op), (call), pn_profile_end(op))

#define pn_conv_forward(op, ...)                   PN_TIMED(op, pn_conv_forward(op, __VA_ARGS__))
#define pn_conv_backward_data(op, ...)             PN_TIMED(op, pn_conv_backward_data(op, __VA_ARGS__))
#define pn_conv_backward_weights(op, ...)          PN_TIMED(op, pn_conv_backward_weights(op, __VA_ARGS__))
#define pn_linear_forward(op, ...)                 PN_TIMED(op, pn_linear_forward(op, __VA_ARGS__))
#define pn_linear_backward_data(op, ...)           PN_TIMED(op, pn_linear_backward_data(op, __VA_ARGS__))
#define pn_linear_backward_weights(op, ...)        PN_TIMED(op, pn_linear_backward_weights(op, __VA_ARGS__))
#define pn_maxpool_forward(op, ...)                PN_TIMED(op, pn_maxpool_forward(op, __VA_ARGS__))
#define pn_maxpool_backward(op, ...)               PN_TIMED(op, pn_maxpool_backward(op, __VA_ARGS__))
#define pn_avgpool_forward(op, ...)                PN_TIMED(op, pn_avgpool_forward(op, __VA_ARGS__))
#define pn_avgpool_backward(op, ...)               PN_TIMED(op, pn_avgpool_backward(op, __VA_ARGS__))
#define pn_batch_norm_forward(op, ...)             PN_TIMED(op, pn_batch_norm_forward(op, __VA_ARGS__))
#define pn_batch_norm_backward(op, ...)            PN_TIMED(op, pn_batch_norm_backward(op, __VA_ARGS__))
#define pn_batch_norm_track(op, ...)               PN_TIMED(op, pn_batch_norm_track(op, __VA_ARGS__))
#define pn_pointwise_forward(op, ...)              PN_TIMED(op, pn_pointwise_forward(op, __VA_ARGS__))
#define pn_pointwise_backward(op, ...)             PN_TIMED(op, pn_pointwise_backward(op, __VA_ARGS__))
#define pn_add_forward(op, ...)                    PN_TIMED(op, pn_add_forward(op, __VA_ARGS__))
#define pn_add_backward(op, ...)                   PN_TIMED(op, pn_add_backward(op, __VA_ARGS__))
#define pn_concat_forward(op, ...)                 PN_TIMED(op, pn_concat_forward(op, __VA_ARGS__))
#define pn_concat_backward(op, ...)                PN_TIMED(op, pn_concat_backward(op, __VA_ARGS__))
#define pn_flatten_forward(op, ...)                PN_TIMED(op, pn_flatten_forward(op, __VA_ARGS__))
#define pn_flatten_backward(op, ...)               PN_TIMED(op, pn_flatten_backward(op, __VA_ARGS__))
#define pn_lrn_forward(op, ...)                    PN_TIMED(op, pn_lrn_forward(op, __VA_ARGS__))
#define pn_lrn_backward(op, ...)                   PN_TIMED(op, pn_lrn_backward(op, __VA_ARGS__))
#define pn_shortcut_forward(op, ...)               PN_TIMED(op, pn_shortcut_forward(op, __VA_ARGS__))
#define pn_shortcut_backward(op, ...)              PN_TIMED(op, pn_shortcut_backward(op, __VA_ARGS__))
#define pn_dropout_forward(op, ...)                PN_TIMED(op, pn_dropout_forward(op, __VA_ARGS__))
#define pn_dropout_backward(op, ...)               PN_TIMED(op, pn_dropout_backward(op, __VA_ARGS__))
#define pn_softmax_cross_entropy_forward(op, ...)  PN_TIMED(op, pn_softmax_cross_entropy_forward(op, __VA_ARGS__))
#define pn_softmax_cross_entropy_backward(op, ...) PN_TIMED(op, pn_softmax_cross_entropy_backward(op, __VA_ARGS__))
#define pn_mse_forward(op, ...)                    PN_TIMED(op, pn_mse_forward(op, __VA_ARGS__))
#define pn_mse_backward(op, ...)                   PN_TIMED(op, pn_mse_backward(op, __VA_ARGS__))
#define pn_relu_mask                               pn_profile_relu_mask
#define pn_accumulate                              pn_profile_accumulate
#define pn_copy                                    pn_profile_copy
#define pn_input                                   pn_profile_input
#define pn_main                                    pn_profile_main

#endif
