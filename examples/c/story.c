/* Continues a sequence of tokens with a compiled language model; no Python, no C++.
 *
 *     aot compile SmolLM2-135M-Instruct.Q4_1.gguf -o story.so --header story.h
 *     cc -Wall -Wextra -Werror story.c -o story -ldl
 *     ./story ./story.so 64 0.8 1   504 3575 282 4649 314
 *
 * After the library: how many tokens, temperature, seed; then the tokens, as `aot generate --ids` takes them.
 */
#include "story.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

static int32_t print_token(void *user, int64_t token) {
    (void)user;
    printf("%lld\n", (long long)token);
    return fflush(stdout); /* not 0, if nobody reads any more: it ends */
}

int main(int count, char **arguments) {
    if (count < 6) {
        fprintf(stderr, "usage: %s story.so tokens temperature seed token...\n", arguments[0]);
        return 2;
    }
    const struct aot_model *(*query)(int32_t) = NULL;
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&query = dlsym(library, AOT_STORY_NAME);
    const struct aot_model *model = query ? query(AOT_ABI) : NULL;
    if (!model || !model->generate) {
        fprintf(stderr, "%s: not the language model of the header\n", arguments[1]);
        return 5;
    }
    int64_t *ids = malloc((size_t)count * sizeof *ids);
    void *pool = model->pool_create(THREADS);
    if (!ids || !pool) {
        fprintf(stderr, "out of memory\n");
        return 6;
    }
    struct aot_generation generation = {0};
    for (int i = 5; i < count; i++)
        ids[generation.count++] = atoll(arguments[i]);
    generation.ids = ids;
    generation.most = atoll(arguments[2]);
    generation.temperature = atof(arguments[3]);
    generation.top_p = 1;
    generation.seed = (uint64_t)atoll(arguments[4]);
    generation.on_token = print_token;
    generation.pool = pool;
    generation.threads = THREADS;
    int32_t code = model->generate(&generation);
    if (code)
        fprintf(stderr, "%s\n", model->error_text(code));
    model->forget(&generation);
    model->pool_destroy(pool);
    free(ids);
    return code ? 1 : 0;
}
