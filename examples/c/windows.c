/* Reads a handwritten digit with a compiled network, on Windows.
 *
 *     aot compile ../digits/model.xml -o digits.dll --target windows-x86-64-v3 --header digits.h
 *     cl /W4 windows.c                       or: zig cc -target x86_64-windows-gnu windows.c -o windows.exe
 *     windows.exe ..\digits\seven.npy
 */
#include "digits.h"

#include <stdio.h>
#include <windows.h>

enum { HEADER = 128, PIXELS = 64, DIGITS = 10, THREADS = 2 };

typedef const struct aot_model *(*query_function)(int32_t version);

/* Memory as a request wants it: at a multiple of 64, zero. */
static void *memory(int64_t bytes) {
    return VirtualAlloc(NULL, (SIZE_T)bytes + 1, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

int main(int count, char **arguments) {
    HMODULE library = LoadLibraryA("digits.dll");
    query_function query = library ? (query_function)(void *)GetProcAddress(library, AOT_DIGITS_NAME) : NULL;
    const struct aot_model *model = query ? query(AOT_ABI) : NULL;
    if (!model) {
        fprintf(stderr, "the network cannot be used here: error %lu\n", GetLastError());
        return 5;
    }
    float *pixels = memory(PIXELS * sizeof *pixels), *scores = memory(DIGITS * sizeof *scores);
    void *arena = memory(model->arena_size(NULL, THREADS)), *state = memory(model->state_size(NULL));
    void *pool = model->pool_create(THREADS);
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fseek(file, HEADER, SEEK_SET) || fread(pixels, sizeof *pixels, PIXELS, file) != PIXELS) {
        fprintf(stderr, "usage: windows.exe image.npy\n");
        return 2;
    }
    fclose(file);
    const void *inputs[] = {pixels};
    void *outputs[] = {scores};
    struct aot_request request = {inputs, outputs, NULL, arena, state, pool, THREADS, NULL};
    int32_t code = model->infer(&request);
    if (code) {
        fprintf(stderr, "%s\n", model->error_text(code));
        return 1;
    }
    int best = 0;
    for (int i = 1; i < DIGITS; i++)
        if (scores[i] > scores[best])
            best = i;
    printf("%d\n", best);
    model->pool_destroy(pool); /* before FreeLibrary: its threads run the library's code */
    return !FreeLibrary(library);
}
