/*
 * check.h -- assertions that stay on, and marks that prove a branch was visited.
 *
 * CHECK states what must be true for the server to go on safely. It is never compiled out: a lock
 * server that is no longer sure of its own tables must stop, because its restart is the tested
 * recovery path and its guesses are not. The process ends by SIGABRT, which the daemon turns into
 * exit code 70.
 *
 * MARK("name") counts visits of a branch in builds made for the simulator (HOLDFAST_MARKS) and is
 * nothing at all elsewhere. Every mark of the linked program is in one array, so a run can list the
 * marks it never reached.
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stdint.h>

_Noreturn void check_failed(const char *condition, const char *file, int line);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            check_failed(#condition, __FILE__, __LINE__);                                          \
    } while (0)

#define UNREACHABLE() check_failed("unreachable", __FILE__, __LINE__)

#ifdef HOLDFAST_MARKS
struct check_mark {
    const char *name;
    uint64_t hits;
};
/* The linker gathers every mark of the program between these two symbols. */
extern struct check_mark __start_check_marks[], __stop_check_marks[];
#define MARK(mark_name)                                                                            \
    do {                                                                                           \
        static struct check_mark mark_here                                                         \
            __attribute__((section("check_marks"), used, aligned(16))) = {(mark_name), 0};         \
        mark_here.hits++;                                                                          \
    } while (0)
#else
#define MARK(mark_name) ((void)0)
#endif

#endif
