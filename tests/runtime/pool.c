/* Many callers on one model and one pool, while the pool is resized, pools come and go, and the process forks; made for
 * ThreadSanitizer. Exit code 1: wrong results. */
#define _POSIX_C_SOURCE 200809L
#include "model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1000, CALLERS = 20, RUNS = 500, THREADS = 4 }; /* more callers than the pool has slots */

const char aot_weights_t[128] __attribute__((aligned(4096))) = {[67] = 0x40}; /* 2.0f at byte 64 */
const char aot_manifest_t[1];
const struct aot_model *aot_query_t(int32_t version);

/* which the library of some compilers lacks */
__attribute__((weak)) void *__tsan_memset(void *to, int value, size_t count);
void *__tsan_memset(void *to, int value, size_t count) { return memset(to, value, count); }

static const struct aot_model *model;
static atomic_int wrong, busy;

static void *aligned(size_t bytes) {
    void *made = NULL;
    if (posix_memalign(&made, 64, (bytes + 64) / 64 * 64))
        exit(2);
    return memset(made, 0, (bytes + 64) / 64 * 64);
}

static int good(void *pool, float seed, int runs) {
    float *x = aligned(SIZE * sizeof *x), *y = aligned(SIZE * sizeof *y);
    void *arena = aligned((size_t)model->arena_size(NULL, THREADS));
    const void *inputs[] = {x};
    void *outputs[] = {y};
    struct aot_request request = {inputs, outputs, NULL, arena, NULL, pool, THREADS, NULL};
    int bad = 0;
    for (int run = 0; run < runs; run++) {
        for (int i = 0; i < SIZE; i++)
            x[i] = seed + (float)(run + i);
        bad |= model->infer(&request) != 0;
        for (int i = 0; i < SIZE; i++)
            bad |= y[i] != 32 * x[i];
    }
    free(x), free(y), free(arena);
    return !bad;
}

static void *call(void *pool) {
    static atomic_int seeds;
    if (!good(pool, (float)(seeds++ * 7), RUNS))
        wrong++;
    busy--;
    return NULL;
}

int main(void) {
    pthread_t callers[CALLERS];
    model = aot_query_t(AOT_ABI);
    void *pool = model->pool_create(THREADS);
    busy = CALLERS;
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, call, pool);
    for (int round = 0; busy; round++) {
        void *other = model->pool_create(2 + round % 3);
        model->pool_resize(pool, 1 + round % THREADS);
        if (!good(other, 1, 2))
            wrong++;
        model->pool_destroy(other);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    pid_t child = fork();
    if (!child)
        _exit(!good(pool, 3, 5));
    int status = 1;
    if (!good(pool, 5, 5) || waitpid(child, &status, 0) != child || status)
        wrong++;
    model->pool_destroy(pool);
    return wrong != 0;
}
