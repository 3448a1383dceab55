/* Folds a model with a size that is given, and checks what C programs rely on. Usage: fold IN OUT DIM=SIZE */
#include "onnx_slice_fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEMAND(condition)                                                            \
    if (!(condition)) {                                                              \
        fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, osf_last_error()); \
        return 1;                                                                    \
    }

static uint8_t *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*length);
    if (bytes && fread(bytes, 1, *length, file) != *length) bytes = NULL;
    fclose(file);
    return bytes;
}

int main(int count, char **arguments) {
    DEMAND(count == 4);
    size_t length = 0;
    uint8_t *model = read_all(arguments[1], &length);
    DEMAND(model);
    DEMAND(strlen(osf_version()) > 0);

    osf_options *options = osf_options_new();
    DEMAND(osf_options_add_dim(options, arguments[3]) == OSF_OK);
    DEMAND(osf_options_set_exact(options, 1) == OSF_OK);
    DEMAND(osf_options_set_shapes(options, "some") == OSF_USAGE && strstr(osf_last_error(), "some"));
    DEMAND(osf_options_set_shapes(options, "all") == OSF_OK);
    osf_buffer folded = {0};
    DEMAND(osf_fold(model, length, options, &folded) == OSF_OK);
    DEMAND(folded.data && folded.length > 0 && folded.length < length);
    DEMAND(strcmp(osf_last_error(), "") == 0);
    FILE *out = fopen(arguments[2], "wb");
    DEMAND(out && fwrite(folded.data, 1, folded.length, out) == folded.length);
    fclose(out);
    osf_buffer_free(&folded);
    DEMAND(!folded.data && folded.length == 0);
    osf_buffer_free(&folded);
    osf_buffer_free(NULL);

    DEMAND(osf_options_add_dim(options, "no_such_size=1") == OSF_OK);
    DEMAND(osf_fold(model, length, options, &folded) == OSF_ASSUMPTION);
    DEMAND(!folded.data && strstr(osf_last_error(), "no_such_size"));
    DEMAND(osf_fold((const uint8_t *)"PK\3\4", 4, NULL, &folded) == OSF_MALFORMED);
    DEMAND(osf_fold(NULL, 0, NULL, &folded) == OSF_USAGE);
    DEMAND(osf_options_add_dim(NULL, "a=1") == OSF_USAGE);
    DEMAND(osf_options_add_external_data_root(options, ".") == OSF_OK);
    DEMAND(osf_options_add_external_data_root(options, NULL) == OSF_USAGE);
    DEMAND(osf_options_add_dim(options, NULL) == OSF_USAGE);
    DEMAND(osf_options_add_dim(options, "\xff=1") == OSF_USAGE);
    osf_options_free(options);
    osf_options_free(NULL);
    free(model);
    return 0;
}
