/* onnx-slice-fold from C: folds a model that is in memory into bytes.
 *
 * Every function may be called from any thread; an osf_options is used by one thread at a time. Texts are UTF-8 and end with a zero.
 * No function keeps a pointer it is given.
 *
 *     osf_options *options = osf_options_new();
 *     osf_options_add_dim(options, "batch=1");
 *     osf_buffer folded = {0};
 *     osf_status status = osf_fold(model, length, options, &folded);
 *     if (status != OSF_OK) fprintf(stderr, "%s\n", osf_last_error());
 *     osf_buffer_free(&folded);
 *     osf_options_free(options);
 */
#ifndef ONNX_SLICE_FOLD_H
#define ONNX_SLICE_FOLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a call. New values may be added at the end. */
typedef enum osf_status {
    OSF_OK = 0,
    OSF_MALFORMED = 1,   /* what was given is no well-formed ONNX model */
    OSF_UNSUPPORTED = 2, /* it cannot be taken as given: bytes that refer to files */
    OSF_LIMIT = 3,       /* larger, deeper or more than is allowed */
    OSF_ASSUMPTION = 4,  /* a size, relation or shape contradicts the model */
    OSF_IMPOSSIBLE = 5,  /* no run of the model can succeed, and that was asked for */
    OSF_USAGE = 6,       /* the call is wrong: a null pointer, text that is not UTF-8, a rule that does not exist */
    OSF_INTERNAL = 7     /* a defect of this library */
} osf_status;

/* Bytes that this library owns until osf_buffer_free. */
typedef struct osf_buffer {
    uint8_t *data;
    size_t length;
} osf_buffer;

typedef struct osf_options osf_options;

/* The defaults. Never NULL. */
osf_options *osf_options_new(void);
/* NULL is allowed. */
void osf_options_free(osf_options *options);

/* What is known of a size ("batch=1", "seq=1..4096"), a relation ("past + seq <= 2048"), the shape of an input ("x:1,3,224,224").
 * They are read when a model is folded. */
osf_status osf_options_add_dim(osf_options *options, const char *text);
osf_status osf_options_add_relation(osf_options *options, const char *text);
osf_status osf_options_add_input_shape(osf_options *options, const char *text);
/* A directory that external data may lie below. The first is taken as the model's own. Without any, tensors whose data lie in files have no
 * values, and the folded model refers to the same files. */
osf_status osf_options_add_external_data_root(osf_options *options, const char *directory);
/* A rewrite rule or pass to leave out. */
osf_status osf_options_skip(osf_options *options, const char *rule);
/* A construct that the consumer of the result lacks: "Loop", "negative-steps", "rank>5". Nodes that have it are replaced, if possible. */
osf_status osf_options_avoid(osf_options *options, const char *construct);
/* Nonzero: only rewrites that keep results equal bit for bit. */
osf_status osf_options_set_exact(osf_options *options, int exact);
/* Nonzero: a model is an error of which no run can succeed. */
osf_status osf_options_set_strict(osf_options *options, int strict);
/* Which shapes of inner tensors the result states: "auto", "all", "keep", "lean" or "none". */
osf_status osf_options_set_shapes(osf_options *options, const char *which);
/* Zero: nothing is removed, only shapes are inferred. */
osf_status osf_options_set_fold(osf_options *options, int fold);

/* Folds the ModelProto of `length` bytes at `model`. `options` may be NULL for the defaults. On success `result` holds the bytes of the
 * folded ModelProto; otherwise it is empty. What it held before is not freed. */
osf_status osf_fold(const uint8_t *model, size_t length, const osf_options *options, osf_buffer *result);

/* Frees what a buffer holds and empties it. NULL and an empty buffer are allowed. */
void osf_buffer_free(osf_buffer *buffer);

/* Why the last call of this thread failed, "" if none did. Valid until this thread's next call. */
const char *osf_last_error(void);

/* The version of the library, such as "0.1.0". */
const char *osf_version(void);

#ifdef __cplusplus
}
#endif

#endif
