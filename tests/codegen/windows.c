/* Runs a library of Windows: shapes and data of its inputs from one file, outputs to another. For each number of threads,
 * three calls of a request.
 *     usage: windows m.dll query in out threads...
 * An input in the file is its rank, its dimensions, the bytes of its data, as i64, and the data. */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { MOST = 16, RANK = 64, CALLS = 3 };

static void *memory(int64_t bytes) {
    void *made = VirtualAlloc(NULL, (SIZE_T)bytes + 64, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    return made ? made : (exit(6), NULL);
}

static int64_t number(FILE *in) {
    int64_t found = 0;
    return fread(&found, 8, 1, in) == 1 ? found : (exit(3), 0);
}

static int64_t bytes_of(const struct aot_descriptor *tensor, const int64_t *dims) {
    const char *bits = strpbrk(tensor->dtype, "1368"); /* f32, i64, ..., or boolean */
    int64_t count = bits ? atoi(bits) / 8 : 1;
    for (int64_t i = 0; i < tensor->rank; i++)
        count *= dims[i];
    return count;
}

/* Computes with a pool of threads, and appends all outputs to a file; 0, or a code. */
static int32_t run(const struct aot_model *model, const int64_t *dims, const void **inputs, int64_t threads, FILE *out) {
    int64_t made[MOST * RANK], sizes[MOST], *symbols = memory(8 * model->symbol_count);
    void *outputs[MOST], *pool = threads > 1 ? model->pool_create(threads) : NULL, *state = NULL;
    for (int call = 0; call < CALLS; call++) {
        int32_t code;
        do {
            code = model->shapes(dims, symbols, made);
            if (code)
                return code;
            model->output_sizes(symbols, sizes);
            for (int64_t i = 0; i < model->output_count; i++)
                outputs[i] = memory(sizes[i]);
            void *grown = memory(model->state_size(symbols)), *arena = memory(model->arena_size(symbols, threads));
            state = state ? state : grown;
            struct aot_request request = {inputs, outputs, symbols, arena, state, pool, threads, NULL};
            code = model->infer(&request);
        } while (code == AOT_CAPACITY);
        if (code)
            return code;
        model->output_dims(symbols, made);
        int64_t *next = made;
        for (int64_t i = 0; i < model->output_count; next += model->outputs[i++].rank)
            fwrite(outputs[i], 1, (size_t)bytes_of(&model->outputs[i], next), out);
    }
    if (pool)
        model->pool_destroy(pool);
    return 0;
}

int main(int count, char **arguments) {
    HMODULE library = count > 5 ? LoadLibraryA(arguments[1]) : NULL;
    const struct aot_model *(*query)(int32_t) =
        library ? (const struct aot_model *(*)(int32_t))(void *)GetProcAddress(library, arguments[2]) : NULL;
    const struct aot_model *model = query ? query(AOT_ABI) : NULL;
    if (!model || model->input_count > MOST || model->output_count > MOST)
        return fprintf(stderr, "no table, error %lu\n", GetLastError()), 2;
    FILE *in = fopen(arguments[3], "rb"), *out = fopen(arguments[4], "wb");
    int64_t dims[MOST * RANK], *next = dims;
    const void *inputs[MOST];
    for (int64_t i = 0; i < model->input_count; i++) {
        for (int64_t rank = number(in); rank > 0; rank--)
            *next++ = number(in);
        int64_t size = number(in);
        void *data = memory(size);
        if (fread(data, 1, (size_t)size, in) != (size_t)size)
            return 3;
        inputs[i] = data;
    }
    for (int i = 5; i < count; i++) {
        int32_t code = run(model, dims, inputs, atoi(arguments[i]), out);
        if (code)
            return fprintf(stderr, "%s\n", model->error_text(code)), 1;
    }
    return fclose(out) || !FreeLibrary(library);
}
