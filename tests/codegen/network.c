/* Runs a network: shapes and data of its inputs from one file, outputs to another. For each number of threads, three
 * calls of a request.
 *     usage: network in out threads...                  a linked one; -DQUERY=aot_query_... names its function
 *            network m.dll aot_query_... in out threads...        on Windows
 * An input in the file is its rank, its dimensions, the bytes of its data, as i64, and the data. */
#define _POSIX_C_SOURCE 200809L
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#endif

enum { MOST = 256, RANK = 16, CALLS = 3 };

static void *memory(int64_t bytes) {
    void *made = NULL;
    size_t size = ((size_t)bytes + 127) / 64 * 64;
#ifdef _WIN32
    made = VirtualAlloc(NULL, size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
#else
    if (posix_memalign(&made, 64, size))
        made = NULL;
#endif
    return made ? memset(made, 0, size) : (exit(6), NULL);
}

static const struct aot_model *loaded(char ***arguments) {
#ifdef _WIN32
    HMODULE library = LoadLibraryA((*arguments)[1]);
    const struct aot_model *(*query)(int32_t) =
        library ? (const struct aot_model *(*)(int32_t))(void *)GetProcAddress(library, (*arguments)[2]) : NULL;
    *arguments += 2;
    return query ? query(AOT_ABI) : (fprintf(stderr, "error %lu\n", GetLastError()), NULL);
#else
    return (void)arguments, QUERY(AOT_ABI);
#endif
}

static int64_t number(FILE *in) {
    int64_t found = 0;
    return fread(&found, 8, 1, in) == 1 ? found : (exit(3), 0);
}

static int64_t bytes_of(const struct aot_descriptor *tensor, const int64_t *dims) {
    const char *bits = strpbrk(tensor->dtype, "123468"); /* f32, i64, ..., or boolean */
    int64_t count = bits ? atoi(bits) : 8;
    for (int64_t i = 0; i < tensor->rank; i++)
        count *= dims[i];
    return (count + 7) / 8;
}

/* Computes with a pool of threads, and appends all outputs to a file; 0, or a code. */
static int32_t run(const struct aot_model *model, const int64_t *dims, const void **inputs, int64_t threads, FILE *out) {
    static int64_t made[MOST * RANK], sizes[MOST];
    int64_t *symbols = memory(8 * model->symbol_count);
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
    char **end = arguments + count;
    const struct aot_model *model = count > 3 ? loaded(&arguments) : NULL;
    if (!model || model->input_count > MOST || model->output_count > MOST)
        return 2;
    FILE *in = fopen(arguments[1], "rb"), *out = fopen(arguments[2], "wb");
    if (!in || !out)
        return 2;
    static int64_t dims[MOST * RANK];
    int64_t *next = dims;
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
    for (arguments += 3; arguments < end; arguments++) {
        int32_t code = run(model, dims, inputs, atoi(*arguments), out);
        if (code)
            return fprintf(stderr, "%s\n", model->error_text(code)), 1;
    }
    return fclose(out) != 0;
}
