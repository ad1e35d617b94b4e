/* Loads a library of macOS on Linux of the same processor: maps it, moves its addresses, finds functions, as the system
 * would. -DQUERY=aot_query_... names the function, -DLIBRARY="m.dylib" the file. Link with network.c. */
#define _GNU_SOURCE
#include "network.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int wait_on_address(void *at, uint64_t value, size_t size, uint32_t flags) {
    (void)size, (void)flags;
    return (int)syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, (uint32_t)value, NULL, NULL, 0);
}

static int wake_by_address_all(void *at, size_t size, uint32_t flags) {
    (void)size, (void)flags;
    return (int)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
}

static uint64_t nanoseconds(int clock) {
    struct timespec now;
    clock_gettime(clock == 8 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int fill(uint32_t *set) { return *set = ~0u, 0; } /* sigset_t of macOS has four bytes */

static int mask(int how, const uint32_t *set, uint32_t *old) {
    sigset_t all;
    return (void)old, sigfillset(&all), how == 3 && *set == ~0u ? pthread_sigmask(SIG_SETMASK, &all, NULL) : 22;
}

static const struct { const char *name; void *place; } FUNCTIONS[] = {
    {"_memcpy", (void *)memcpy}, {"_memmove", (void *)memmove}, {"_memset", (void *)memset}, {"_bzero", (void *)bzero},
    {"_aligned_alloc", (void *)aligned_alloc}, {"_free", (void *)free}, {"_getpid", (void *)getpid},
    {"_clock_gettime_nsec_np", (void *)nanoseconds}, {"_os_sync_wait_on_address", (void *)wait_on_address},
    {"_os_sync_wake_by_address_all", (void *)wake_by_address_all}, {"_sched_yield", (void *)sched_yield},
    {"_pthread_create", (void *)pthread_create}, {"_pthread_join", (void *)pthread_join},
    {"_pthread_sigmask", (void *)mask}, {"_sigfillset", (void *)fill},
};

static uint64_t uleb(const unsigned char **at) {
    uint64_t found = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return found;
    }
}

static uint32_t word(const char *at) {
    uint32_t found;
    return memcpy(&found, at, 4), found;
}

/* Follows instructions for addresses: 0x10 a type or library, 0x20 or 0x70 a place, 0x40 a name, 0x50 or 0x90 one more. */
static void fix(char *image, const char *const *segments, uint32_t at, int binds) {
    const unsigned char *next = (const unsigned char *)image + at;
    const char *name = "";
    char *place = NULL;
    for (unsigned char code; (code = *next++) != 0;) {
        switch (code & 0xF0) {
        case 0x20: case 0x70:
            place = (char *)segments[code & 15] + uleb(&next);
            break;
        case 0x40:
            name = (const char *)next;
            next += strlen(name) + 1;
            break;
        case 0x50:
            if (!binds)
                *(uint64_t *)place += (uint64_t)image;
            break;
        case 0x90:
            for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
                if (!strcmp(FUNCTIONS[i].name, name))
                    *(void **)place = FUNCTIONS[i].place;
            if (!*(void **)place)
                fprintf(stderr, "no %s\n", name), exit(7);
        }
    }
}

#define TEXT(x) TEXT2(x)
#define TEXT2(x) #x

const struct aot_model *QUERY(int32_t version) {
    struct stat facts;
    const char *segments[16];
    int file = open(LIBRARY, O_RDONLY), count = 0;
    if (file < 0 || fstat(file, &facts))
        return NULL;
    char *image = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, file, 0);
    const char *command = image + 32;
    const unsigned char *tree = NULL;
    for (uint32_t i = word(image + 16); i > 0; i--, command += word(command + 4)) {
        if (word(command) == 0x19)
            segments[count++] = image + word(command + 24);
        if (word(command) == 0x80000022) {
            fix(image, segments, word(command + 8), 0);
            fix(image, segments, word(command + 16), 1);
            tree = (const unsigned char *)image + word(command + 40);
        }
    }
    const unsigned char *edge = tree + 2, *node;
    if (strcmp((const char *)edge, "_" TEXT(QUERY)))
        return NULL;
    edge += strlen((const char *)edge) + 1;
    node = tree + uleb(&edge) + 2;
    const struct aot_model *(*query)(int32_t) = (const struct aot_model *(*)(int32_t))(image + uleb(&node));
    __builtin___clear_cache(image, image + facts.st_size);
    return query(version);
}
