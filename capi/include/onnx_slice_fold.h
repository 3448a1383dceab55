/* The C interface of onnx-slice-fold: folds a model in memory and returns bytes.
 *
 * Every function may be called from any thread; an osf_options must be used by one thread at a time. Texts are UTF-8 and end with a
 * zero. No function keeps a pointer that it receives.
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

/* The status of a call. New values may be added at the end. */
typedef enum osf_status {
    OSF_OK = 0,
    OSF_MALFORMED = 1,   /* the bytes are not a well-formed ONNX model */
    OSF_UNSUPPORTED = 2, /* the model is not supported in this form: bytes that refer to files */
    OSF_LIMIT = 3,       /* a limit is exceeded */
    OSF_ASSUMPTION = 4,  /* a size, relation or shape contradicts the model */
    OSF_IMPOSSIBLE = 5,  /* no run of the model can succeed, and `strict` is set */
    OSF_USAGE = 6,       /* the call is invalid: a null pointer, text that is not UTF-8, an unknown rule */
    OSF_INTERNAL = 7     /* a defect of this library */
} osf_status;

/* Bytes that this library owns until osf_buffer_free. */
typedef struct osf_buffer {
    uint8_t *data;
    size_t length;
} osf_buffer;

typedef struct osf_options osf_options;

/* Returns the default options. Never NULL. */
osf_options *osf_options_new(void);
/* Frees options. NULL is allowed. */
void osf_options_free(osf_options *options);

/* Adds an assumption: a size ("batch=1", "seq=1..4096"), a relation ("past + seq <= 2048"), or the shape of an input ("x:1,3,224,224").
 * The texts are parsed when a model is folded. */
osf_status osf_options_add_dim(osf_options *options, const char *text);
osf_status osf_options_add_relation(osf_options *options, const char *text);
osf_status osf_options_add_input_shape(osf_options *options, const char *text);
/* Adds a directory for external data. The first one counts as the model's own. Without any, tensors with data in files have no values, and
 * the folded model refers to the same files. */
osf_status osf_options_add_external_data_root(osf_options *options, const char *directory);
/* Disables a rewrite rule or pass. */
osf_status osf_options_skip(osf_options *options, const char *rule);
/* Adds a construct that the consumer of the result lacks: "Loop", "negative-steps", "rank>5". Nodes that have it are replaced, if possible. */
osf_status osf_options_avoid(osf_options *options, const char *construct);
/* Nonzero: only uses rewrites that keep results equal bit for bit. */
osf_status osf_options_set_exact(osf_options *options, int exact);
/* Nonzero: a model of which no run can succeed is an error. */
osf_status osf_options_set_strict(osf_options *options, int strict);
/* Selects the shapes of inner tensors in the result: "auto", "all", "keep", "lean" or "none". */
osf_status osf_options_set_shapes(osf_options *options, const char *which);
/* Zero: only infers shapes, and removes nothing. */
osf_status osf_options_set_fold(osf_options *options, int fold);

/* Folds the ModelProto of `length` bytes at `model`. `options` may be NULL for the defaults. On success `result` holds the bytes of the
 * folded ModelProto; otherwise it is empty. Its former content is not freed. */
osf_status osf_fold(const uint8_t *model, size_t length, const osf_options *options, osf_buffer *result);

/* Frees the content of a buffer and empties it. NULL and an empty buffer are allowed. */
void osf_buffer_free(osf_buffer *buffer);

/* Returns the reason why the last call of this thread failed, "" if it did not. Valid until this thread's next call. */
const char *osf_last_error(void);

/* Returns the version of the library, such as "0.1.0". */
const char *osf_version(void);

#ifdef __cplusplus
}
#endif

#endif
