/* $title; ABI version $abi. Link with the object, or load the shared library and look the function up.
 *
 *     const struct aot_model *model = $macro(AOT_ABI);     or: dlsym(library, ${macro}_NAME)
 *     void *pool = model->pool_create(2);
 *     struct aot_request request = { inputs, outputs, symbols, arena, state, pool, 2, NULL };
 *     int32_t code = model->infer(&request);        0, or see model->error_text(code)
 *
$signature
 */
#ifndef $guard
#define $guard
#if defined($macro) || defined(${macro}_NAME) || defined(${macro}_EXTERNAL) || defined(${macro}_CANCELLABLE) \
    || defined(${macro}_INPUTS) || defined(${macro}_OUTPUTS) || defined(${macro}_SYMBOLS) || defined(${macro}_ARENA) \
    || defined(${macro}_STATE)
#error "two models are called $macro: give one of them another name by aot compile --name"
#endif

#ifndef AOT_ABI
#define AOT_ABI $abi
#define AOT_CAPACITY $capacity /* returned by `infer`: call `shapes`, all `_size`s and `infer` again */
#define AOT_WEIGHTS_OFFSET $weights_offset
#include <stdint.h>

/* One inference. Tensors are dense and row-major. Any number of requests may run at once. */
struct aot_request {
    const void *const *inputs;
    void *const *outputs;
    int64_t *symbols;       /* sizes that vary, as `shapes` gives them; those that `infer` computes are written here */
    void *arena;            /* arena_size(symbols, threads) bytes at a multiple of 64 */
    void *state;            /* state_size(symbols) bytes at a multiple of 64: zero at first and wherever it has grown */
    void *pool;             /* of any model with this ABI version, or null: the caller works alone */
    int64_t threads;        /* as given to arena_size */
    uint64_t *profile;      /* null, or begin and end in nanoseconds for each of call_count calls */
};

/* A sequence of tokens of a language model, and how it goes on. Zero it, and set top_p to 1, before the first call. */
struct aot_generation {
    const int64_t *ids;   /* tokens to append, one or more */
    int64_t count;
    int64_t most;         /* tokens to generate at most */
    const int64_t *stop;  /* tokens that end it, which are generated, too */
    int64_t stop_count;
    double temperature;   /* 0: the greatest logit */
    int64_t top_k;        /* draw among so many; 0: among all */
    double top_p;         /* and among the fewest whose probabilities sum up to it */
    uint64_t seed;
    int32_t (*on_token)(void *user, int64_t token); /* null, or called for each token at once; not 0: end */
    void *user;
    void *pool;           /* as of a request */
    int64_t threads;
    int64_t made;         /* out: how many tokens were generated */
    void *sequence;       /* null: begin a new one, which is stored here until `forget` */
};

struct aot_descriptor {
    const char *name;
    const char *dtype;
    int64_t rank;
    const int64_t *dims; /* -1 where it varies */
};

struct aot_model {
    int64_t abi;
    int64_t bytes; /* of this table */
    const char *manifest; /* JSON, not terminated */
    int64_t manifest_bytes;
    int64_t input_count;
    const struct aot_descriptor *inputs;
    int64_t output_count;
    const struct aot_descriptor *outputs;
    int64_t symbol_count;
    int64_t call_count;
    int64_t (*state_size)(const int64_t *symbols);
    int32_t (*infer)(const struct aot_request *);
    int32_t (*shapes)(const int64_t *input_dims, int64_t *symbols, int64_t *output_dims);
    int64_t (*arena_size)(const int64_t *symbols, int64_t threads);
    void *(*pool_create)(int64_t threads);
    void (*pool_destroy)(void *pool);
    void (*pool_resize)(void *pool, int64_t threads);
    const char *(*error_text)(int32_t code);
    const void *weights;   /* external ones: memory kept free, to mmap the file into before the first inference */
    int64_t weights_bytes; /* from AOT_WEIGHTS_OFFSET of the file on */
    void (*output_sizes)(const int64_t *symbols, int64_t *bytes); /* of each output, at most */
    void (*output_dims)(const int64_t *symbols, int64_t *dims);   /* of all outputs, after `infer` */
    int32_t (*generate)(struct aot_generation *); /* 0 or a code for error_text; null: no language model */
    void (*forget)(struct aot_generation *);      /* gives the memory of a sequence back; null as well */
};
#elif AOT_ABI != $abi
#error "models of two ABI versions in one program"
#endif

#ifndef AOT_CANCELLED
#define AOT_CANCELLED $cancelled /* returned by `infer` after symbols[symbol_count - $cancel_words] was set */
#endif

#ifdef __cplusplus
extern "C"
#endif
const struct aot_model *$query(int32_t version);
#define $macro $query
#define ${macro}_NAME "$query"
#define ${macro}_EXTERNAL $external /* 1: the weights are a file, to be mapped before the first inference */
#define ${macro}_CANCELLABLE $cancellable /* 1: a loop may run for ever, and infer can be cancelled */
#define ${macro}_INPUTS $inputs
#define ${macro}_OUTPUTS $outputs
#define ${macro}_SYMBOLS $symbols /* elements of `symbols` */
$memory
#endif
