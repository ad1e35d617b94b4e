/* Runs a network: the inputs from one file, one after the other, the outputs to another.   usage: network in out
 * -DQUERY=aot_query_... says which one. */
#define _POSIX_C_SOURCE 200809L
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, MOST = 16 };

static void *memory(int64_t bytes) {
    void *made = NULL;
    if (posix_memalign(&made, 64, ((size_t)bytes + 64) / 64 * 64))
        exit(6);
    return memset(made, 0, ((size_t)bytes + 64) / 64 * 64);
}

static int64_t bytes_of(const struct aot_descriptor *tensor) {
    const char *bits = strpbrk(tensor->dtype, "1368"); /* f32, i64, ..., or boolean */
    int64_t count = bits ? atoi(bits) / 8 : 1;
    for (int64_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

int main(int count, char **arguments) {
    const struct aot_model *model = QUERY(AOT_ABI);
    FILE *in = count == 3 ? fopen(arguments[1], "rb") : NULL, *out = count == 3 ? fopen(arguments[2], "wb") : NULL;
    if (!model || !in || !out || model->input_count > MOST || model->output_count > MOST)
        return 2;
    const void *inputs[MOST];
    void *outputs[MOST];
    for (int64_t i = 0; i < model->input_count; i++) {
        size_t size = (size_t)bytes_of(&model->inputs[i]);
        void *data = memory((int64_t)size);
        if (fread(data, 1, size, in) != size)
            return 3;
        inputs[i] = data;
    }
    for (int64_t i = 0; i < model->output_count; i++)
        outputs[i] = memory(bytes_of(&model->outputs[i]));
    void *pool = model->pool_create(THREADS), *arena = memory(model->arena_size(NULL, THREADS));
    struct aot_request request = {inputs, outputs, NULL, arena, memory(model->state_size(NULL)), pool, THREADS, NULL};
    for (int run = 0; run < 3; run++) {
        int32_t code = model->infer(&request);
        if (code) {
            fprintf(stderr, "%s\n", model->error_text(code));
            return 1;
        }
    }
    for (int64_t i = 0; i < model->output_count; i++)
        fwrite(outputs[i], 1, (size_t)bytes_of(&model->outputs[i]), out);
    model->pool_destroy(pool);
    return fclose(out) != 0;
}
