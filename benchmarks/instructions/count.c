// A plugin of QEMU: writes the number of instructions that have been executed, whenever the program asks for the
// number of its parent process. Exact for one thread. cc -O2 -shared -fPIC count.c -o count.so
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GETPPID 173 // of Linux on AArch64
#define ADD 0

typedef void call(uint64_t id, unsigned cpu, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                  uint64_t, uint64_t);
struct block;
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*done)(uint64_t id, struct block *block));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct block *block, int operation, void *where, uint64_t by);
extern size_t qemu_plugin_tb_n_insns(const struct block *block);
extern void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, call *done);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t executed;

static void translated(uint64_t id, struct block *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &executed, qemu_plugin_tb_n_insns(block));
}

static void called(uint64_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                   uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == GETPPID)
        fprintf(stderr, "executed %llu\n", (unsigned long long)executed);
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
