/* Reads a handwritten digit with a compiled network; no Python, no C++.
 *
 *     aot compile ../digits/model.xml -o digits.o --header digits.h
 *     cc -Wall -Wextra -Werror digits.c digits.o -o digits -pthread
 *     ./digits ../digits/seven.npy
 *
 * or, with the network in a file of its own:
 *
 *     aot compile ../digits/model.xml -o digits.so --header digits.h
 *     cc -Wall -Wextra -Werror -DUSE_DLOPEN digits.c -o digits -ldl
 *     ./digits ../digits/seven.npy ./digits.so
 *
 * With `--weights external` the file of weights is the next argument: ./digits.weights
 */
#define _POSIX_C_SOURCE 200809L
#include "digits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef USE_DLOPEN
#include <dlfcn.h>
#endif

enum { PIXELS = 64, DIGITS = 10, THREADS = 2 };

/* Elements of an .npy file of 64 floats; 0, or -1 for another file. */
static int read_image(const char *path, float *pixels) {
    unsigned char head[10];
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    int good = fread(head, 1, sizeof head, file) == sizeof head && !memcmp(head, "\x93NUMPY\1", 7)
        && !fseek(file, head[8] + 256 * head[9], SEEK_CUR)
        && fread(pixels, sizeof *pixels, PIXELS, file) == PIXELS;
    fclose(file);
    return good ? 0 : -1;
}

static const struct aot_model *find_model(const char *path) {
#ifdef USE_DLOPEN
    const struct aot_model *(*query)(int32_t) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    *(void **)&query = dlsym(library, AOT_DIGITS_NAME);
    return query ? query(AOT_ABI) : NULL;
#else
    (void)path;
    return AOT_DIGITS(AOT_ABI);
#endif
}

/* Puts external weights where the code expects them, shared with all other processes; 0, or -1. */
static int map_weights(const struct aot_model *model, const char *path) {
    struct stat facts;
    void *place = (void *)model->weights;
    size_t size = (size_t)model->weights_bytes;
    int file = open(path, O_RDONLY);
    int good = file >= 0 && !fstat(file, &facts) && facts.st_size >= AOT_WEIGHTS_OFFSET + model->weights_bytes
        && mmap(place, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, AOT_WEIGHTS_OFFSET) == place;
    if (file >= 0)
        close(file);
    return good ? 0 : -1;
}

/* Memory as a request wants it: at a multiple of 64, zero. */
static void *memory(int64_t bytes) {
    size_t whole = ((size_t)bytes + 64) / 64 * 64;
    void *made = NULL;
    if (posix_memalign(&made, 64, whole))
        return NULL;
    return memset(made, 0, whole);
}

int main(int count, char **arguments) {
    if (count < (AOT_DIGITS_EXTERNAL ? 4 : 2)) {
        fprintf(stderr, "usage: %s image.npy [digits.so [digits.weights]]\n", arguments[0]);
        return 2;
    }
    const struct aot_model *model = find_model(count > 2 ? arguments[2] : "./digits.so");
    if (!model) {
        fprintf(stderr, "the network cannot be used here\n");
        return 5;
    }
    if (count > 3 && map_weights(model, arguments[3])) {
        fprintf(stderr, "%s: these weights cannot be used\n", arguments[3]);
        return 4;
    }
    float *pixels = memory(PIXELS * sizeof *pixels), *scores = memory(DIGITS * sizeof *scores);
    void *arena = memory(model->arena_size(NULL, THREADS)), *state = memory(model->state_size(NULL));
    void *pool = model->pool_create(THREADS);
    if (!pixels || !scores || !arena || !state || !pool) {
        fprintf(stderr, "out of memory\n");
        return 6;
    }
    if (read_image(arguments[1], pixels)) {
        fprintf(stderr, "%s: not an image of 8 x 8 floats\n", arguments[1]);
        return 4;
    }
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
    model->pool_destroy(pool);
    free(pixels), free(scores), free(arena), free(state);
    return 0;
}
