/*
 * fake_kernel.h -- the kernel's locks of one file, "f", as an array: for each byte what the core
 * holds there for clients, and what a program does. Uses the core of locker.h.
 */
#ifndef UNIT_CORE_FAKE_KERNEL_H
#define UNIT_CORE_FAKE_KERNEL_H

#include "core/state.h"
#include "monitor.h"

enum { BYTES = 70000, PID = 4711 };

struct fake_kernel {
    uint8_t ours[BYTES], programs[BYTES]; /* enum local_mode; the last byte stands for all others */
    uint32_t open_count, raised, lowered, refined;
    bool is_whole;
    bool has_no_room, is_not_there, is_not_now; /* what opening a file says */
};

extern struct fake_kernel kernel;
extern const struct local_locks fake_world;

/* A new core beside programs; for TEST_MAIN. */
int kernel_set_up(void **state);
/* The same with room for thousands of locks. */
void with_many_locks(void);
/* The process has ended, and begins again. */
void start_again(void);

void program_takes(uint64_t start, uint64_t len, enum local_mode mode);
/* One letter a byte, from the first on: what we hold. */
void assert_held(const char *letters);

#endif
