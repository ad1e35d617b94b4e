$header
/* The same for C++17: memory, threads and the library belong to objects; errors are exceptions.
 *
 *     aot::Model model($macro);                           linked, or
 *     aot::Model model("m.so", ${macro}_NAME);            loaded
 *     aot::Request request(model, aot::Pool(model, 2));
 *     std::vector<aot::Output> outputs = request.infer({aot::Input(data, {1, 3, 224, 224})});
 *
 * A request is for one thread at a time; any number of requests may run at once, and share a pool.
 */
#if !defined(AOT_HPP) && defined(__cplusplus)
#define AOT_HPP

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <malloc.h>
#include <windows.h>
#else
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace aot {

/* What the system is asked for. */
namespace system {
#ifdef _WIN32
inline void *allocate(std::size_t bytes) { return _aligned_malloc(bytes, 64); }
inline void release(void *place) { _aligned_free(place); }
inline void *load(const char *path) { return reinterpret_cast<void *>(LoadLibraryA(path)); }
inline void unload(void *library) { FreeLibrary(reinterpret_cast<HMODULE>(library)); }
inline void *find(void *library, const char *name) {
    return reinterpret_cast<void *>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
inline std::string reason(const std::string &path) { return path + ": error " + std::to_string(GetLastError()); }
#else
inline void *allocate(std::size_t bytes) { return std::aligned_alloc(64, bytes); }
inline void release(void *place) { std::free(place); }
inline void *load(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
inline void unload(void *library) { dlclose(library); }
inline void *find(void *library, const char *name) { return dlsym(library, name); }
inline std::string reason(const std::string &) { return dlerror(); }
#endif
}

/* A refused library, file, shape or inference; `code` is that of `infer` or `shapes`, or 0. */
struct Error : std::runtime_error {
    std::int32_t code;
    explicit Error(const std::string &what, std::int32_t number = 0) : std::runtime_error(what), code(number) {}
};

/* Bytes at a multiple of 64, zero. */
class Memory {
public:
    explicit Memory(std::int64_t size = 0) : bytes(size) {
        std::size_t whole = (static_cast<std::size_t>(size) + 64) / 64 * 64;
        data.reset(system::allocate(whole));
        if (!data)
            throw std::bad_alloc();
        std::memset(data.get(), 0, whole);
    }
    void *get() const { return data.get(); }

    std::int64_t bytes;

private:
    struct Free {
        void operator()(void *place) const { system::release(place); }
    };
    std::unique_ptr<void, Free> data;
};

/* A model that is linked or loaded. Copies are the same model; a loaded one is closed with the last of them. */
class Model {
public:
    using Query = const aot_model *(*)(std::int32_t);

    explicit Model(Query query) : table(query(AOT_ABI)) { check("model"); }

    /* Loading runs code: take libraries from those whose programs you would run. */
    Model(const std::string &path, const char *name) : library(system::load(path.c_str()), close) {
        if (!library)
            throw Error(system::reason(path));
        void *found = system::find(library.get(), name);
        if (!found)
            throw Error(path + ": must have the function " + name + ", got none");
        Query query;
        std::memcpy(&query, &found, sizeof query);
        table = query(AOT_ABI);
        check(path);
    }

    const aot_model *operator->() const { return table; }
    std::string manifest() const { return {table->manifest, static_cast<std::size_t>(table->manifest_bytes)}; }

    /* Map external weights, once in a process, before the first inference. Their hash is not checked. */
    void map_weights(const std::string &path) const {
#ifdef _WIN32
        throw Error(path + ": external weights cannot be mapped on this system");
#else
        struct stat facts;
        void *place = const_cast<void *>(table->weights);
        std::size_t size = static_cast<std::size_t>(table->weights_bytes);
        int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        bool good = file >= 0 && !fstat(file, &facts) && facts.st_size >= AOT_WEIGHTS_OFFSET + table->weights_bytes
            && mmap(place, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, AOT_WEIGHTS_OFFSET) == place;
        if (file >= 0)
            ::close(file);
        if (!good)
            throw Error(path + ": must be the model's weights, got another file");
#endif
    }

private:
    static void close(void *handle) {
        if (handle)
            system::unload(handle);
    }
    void check(const std::string &what) const {
        if (!table)
            throw Error(what + ": must have ABI " + std::to_string(AOT_ABI) + " and run on this processor, got another");
    }

    std::shared_ptr<void> library;
    const aot_model *table = nullptr;
};

/* Threads, the caller's included, for any number of requests and models; copies are the same threads. */
class Pool {
public:
    Pool(const Model &model, std::int64_t count) : threads(count), owner(model) {
        void (*destroy)(void *) = model->pool_destroy;
        Model kept = model; /* the pool's code is the model's */
        pool.reset(model->pool_create(count), [destroy, kept](void *made) {
            if (made)
                destroy(made);
        });
        if (!pool)
            throw Error("pool: threads could not be made, got " + std::to_string(count));
    }
    void *get() const { return pool.get(); }

    std::int64_t threads;

private:
    Model owner;
    std::shared_ptr<void> pool;
};

/* A dense, row-major tensor of the caller, which is only read. */
struct Input {
    const void *data;
    std::vector<std::int64_t> dims;
    Input(const void *place, std::vector<std::int64_t> sizes) : data(place), dims(std::move(sizes)) {}
};

/* A dense, row-major result. */
struct Output {
    Memory memory;
    std::vector<std::int64_t> dims;
    template <typename T> const T *as() const { return static_cast<const T *>(memory.get()); }
    std::int64_t count() const {
        std::int64_t product = 1;
        for (std::int64_t dim : dims)
            product *= dim;
        return product;
    }
};

/* One inference at a time, with its arena and its state. */
class Request {
public:
    Request(Model of, Pool on)
        : model(std::move(of)), pool(std::move(on)), symbols(static_cast<std::size_t>(model->symbol_count)) {}

    /* Inputs in the model's order; throws Error for a wrong count, rank or size, and what `infer` returns. */
    std::vector<Output> infer(const std::vector<Input> &inputs) {
        std::vector<std::int64_t> sizes = checked(inputs);
        std::vector<Memory> copies;
        std::vector<const void *> places;
        for (std::size_t i = 0; i < inputs.size(); i++)
            places.push_back(aligned(inputs[i], model->inputs[i].dtype, copies));
        std::vector<std::int64_t> dims(total(model->outputs, model->output_count) + 1);
        for (;;) {
            fail_unless_zero(model->shapes(sizes.data(), symbols.data(), dims.data()));
            std::vector<Output> outputs = take_memory();
            std::vector<void *> targets;
            for (Output &output : outputs)
                targets.push_back(output.memory.get());
            aot_request request = {places.data(), targets.data(), symbols.data(), arena.get(),
                                   state.get(), pool.get(), pool.threads, nullptr};
            std::int32_t code = model->infer(&request);
            if (code == AOT_CAPACITY)
                continue;
            fail_unless_zero(code);
            model->output_dims(symbols.data(), dims.data());
            const std::int64_t *next = dims.data();
            for (std::size_t i = 0; i < outputs.size(); next += model->outputs[i++].rank)
                outputs[i].dims.assign(next, next + model->outputs[i].rank);
            return outputs;
        }
    }

    /* Zero the variables. */
    void reset_state() { state = Memory(); }

private:
    static std::size_t total(const aot_descriptor *tensors, std::int64_t count) {
        std::int64_t dims = 0;
        for (std::int64_t i = 0; i < count; i++)
            dims += tensors[i].rank;
        return static_cast<std::size_t>(dims);
    }

    std::vector<std::int64_t> checked(const std::vector<Input> &inputs) const {
        if (inputs.size() != static_cast<std::size_t>(model->input_count))
            throw Error("inputs: " + std::to_string(model->input_count) + " must be given, got "
                        + std::to_string(inputs.size()));
        std::vector<std::int64_t> sizes;
        for (std::size_t i = 0; i < inputs.size(); i++) {
            const aot_descriptor &wanted = model->inputs[i];
            bool fits = inputs[i].dims.size() == static_cast<std::size_t>(wanted.rank);
            for (std::size_t k = 0; fits && k < inputs[i].dims.size(); k++)
                fits = inputs[i].dims[k] >= 0 && (wanted.dims[k] < 0 || wanted.dims[k] == inputs[i].dims[k]);
            if (!fits)
                throw Error(std::string("input '") + wanted.name + "': must have the model's shape, got another");
            sizes.insert(sizes.end(), inputs[i].dims.begin(), inputs[i].dims.end());
        }
        sizes.push_back(0); /* an address, even for scalars */
        return sizes;
    }

    static const void *aligned(const Input &input, const char *dtype, std::vector<Memory> &copies) {
        if (reinterpret_cast<std::uintptr_t>(input.data) % 64 == 0)
            return input.data;
        std::int64_t bits = 0; /* the first number in the name of the type */
        for (const char *c = dtype; *c && (!bits || (*c >= '0' && *c <= '9')); c++)
            if (*c >= '0' && *c <= '9')
                bits = bits * 10 + (*c - '0');
        std::int64_t count = bits ? bits : 8; /* a boolean is a byte */
        for (std::int64_t dim : input.dims)
            count *= dim;
        copies.emplace_back((count + 7) / 8);
        std::memcpy(copies.back().get(), input.data, static_cast<std::size_t>((count + 7) / 8));
        return copies.back().get();
    }

    std::vector<Output> take_memory() {
        std::vector<std::int64_t> bytes(static_cast<std::size_t>(model->output_count) + 1);
        model->output_sizes(symbols.data(), bytes.data());
        std::vector<Output> outputs;
        for (std::int64_t i = 0; i < model->output_count; i++)
            outputs.push_back(Output{Memory(bytes[static_cast<std::size_t>(i)]), {}});
        std::int64_t room = model->arena_size(symbols.data(), pool.threads), kept = model->state_size(symbols.data());
        if (room > arena.bytes)
            arena = Memory(room);
        if (kept > state.bytes) {
            Memory grown(kept);
            std::memcpy(grown.get(), state.get(), static_cast<std::size_t>(state.bytes));
            state = std::move(grown);
        }
        return outputs;
    }

    void fail_unless_zero(std::int32_t code) const {
        if (code)
            throw Error(model->error_text(code), code);
    }

    Model model;
    Pool pool;
    std::vector<std::int64_t> symbols;
    Memory arena, state;
};

} // namespace aot
#endif
