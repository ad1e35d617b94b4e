/* Runs a network with one thread, on noise: `run` between two calls of getppid, `run COUNT` prints the least processor
 * time, in nanoseconds, of COUNT inferences. -DQUERY=aot_query_... says which network. */
#define _POSIX_C_SOURCE 200809L
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

static void *memory(int64_t bytes) {
    void *made = NULL;
    if (posix_memalign(&made, 64, ((size_t)bytes + 64) / 64 * 64))
        exit(6);
    return memset(made, 0, ((size_t)bytes + 64) / 64 * 64);
}

/* Eight bytes an element are enough for every type; those of f32 are numbers from 0 to 1. */
static void *tensor(const struct aot_descriptor *t) {
    int64_t count = 1;
    for (int64_t i = 0; i < t->rank; i++)
        count *= t->dims[i];
    float *made = memory(8 * count);
    for (int64_t i = 0; i < count && !strcmp(t->dtype, "f32"); i++)
        made[i] = (float)rand() / (float)RAND_MAX;
    return made;
}

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int count, char **arguments) {
    const struct aot_model *model = QUERY(AOT_ABI);
    if (!model || model->input_count > MOST || model->output_count > MOST)
        return 2;
    const void *inputs[MOST];
    void *outputs[MOST];
    for (int64_t i = 0; i < model->input_count; i++)
        inputs[i] = tensor(&model->inputs[i]);
    for (int64_t i = 0; i < model->output_count; i++)
        outputs[i] = tensor(&model->outputs[i]);
    void *pool = model->pool_create(1), *arena = memory(model->arena_size(NULL, 1));
    struct aot_request request = {inputs, outputs, NULL, arena, memory(model->state_size(NULL)), pool, 1, NULL};
    getppid();
    if (model->infer(&request))
        return 1;
    getppid();
    long long least = 0;
    for (int i = count > 1 ? atoi(arguments[1]) : 0; i > 0; i--) {
        long long begin = now();
        model->infer(&request);
        long long taken = now() - begin;
        least = !least || taken < least ? taken : least;
    }
    printf("%lld\n", least);
    model->pool_destroy(pool);
    return 0;
}
