/*
 * fake_kernel.c -- see fake_kernel.h.
 */
#include "fake_kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct fake_kernel kernel;

static uint64_t last_of(const struct local_range *range)
{
    return range->end < BYTES ? range->end : BYTES - 1;
}

static bool meets(const struct local_range *range, uint64_t *ret_at)
{
    for (uint64_t at = range->start; at <= last_of(range); at++) {
        *ret_at = at;
        if (kernel.programs[at] + range->mode > LOCAL_EXCLUSIVE &&
            kernel.programs[at] != LOCAL_NONE)
            return true;
    }
    return false;
}

static uint32_t open_file(void *context, struct bytes fh)
{
    (void)context;
    if (kernel.is_not_now)
        return LOCAL_NOT_NOW;
    if (kernel.has_no_room || kernel.is_not_there || !bytes_equal(fh, bytes_of_text("f")))
        return kernel.has_no_room ? LOCAL_NO_ROOM : LOCAL_NO_FILE;
    kernel.open_count++;
    return 7;
}

static void close_file(void *context, uint32_t file)
{
    (void)context;
    assert_int_equal(file, 7);
    assert_int_equal(kernel.open_count, 1);
    kernel.open_count--;
    memset(kernel.ours, LOCAL_NONE, sizeof(kernel.ours));
    kernel.is_whole = false;
}

static bool raise_bytes(void *context, uint32_t file, const struct local_range *range)
{
    uint64_t at;
    (void)context;
    assert_int_equal(file, 7);
    kernel.raised++;
    if (meets(range, &at))
        return false;
    for (at = range->start; at <= last_of(range); at++)
        if (kernel.ours[at] < range->mode)
            kernel.ours[at] = (uint8_t)range->mode;
    return true;
}

static bool lower_bytes(void *context, uint32_t file, const struct local_range *range)
{
    (void)context;
    assert_int_equal(file, 7);
    kernel.lowered++;
    for (uint64_t at = range->start; !kernel.is_whole && at <= last_of(range); at++)
        if (kernel.ours[at] > range->mode)
            kernel.ours[at] = (uint8_t)range->mode;
    return !kernel.is_whole;
}

static void refine(void *context, uint32_t file)
{
    (void)context;
    (void)file;
    kernel.refined += kernel.is_whole;
    kernel.is_whole = false;
}

static bool find_program(void *context, struct bytes fh, const struct local_range *range,
                         struct local_holder *ret)
{
    uint64_t at;
    (void)context;
    (void)fh;
    if (!meets(range, &at))
        return false;
    *ret = (struct local_holder){{at, at, kernel.programs[at]}, PID};
    return true;
}

const struct local_locks fake_world = {.open = open_file,
                                       .close = close_file,
                                       .raise = raise_bytes,
                                       .lower = lower_bytes,
                                       .refine = refine,
                                       .find = find_program};

int kernel_set_up(void **state)
{
    memset(&kernel, 0, sizeof kernel);
    (void)locker_set_up(state);
    core_mirror(the_core, &fake_world);
    return 0;
}

void program_takes(uint64_t start, uint64_t len, enum local_mode mode)
{
    memset(&kernel.programs[start], (int)mode, len);
}

void assert_held(const char *letters)
{
    char held[64] = "";
    for (size_t i = 0; letters[i] != 0; i++)
        held[i] = "-SX"[kernel.ours[i]];
    assert_string_equal(held, letters);
    for (size_t i = strlen(letters); i < BYTES; i++)
        assert_int_equal(kernel.ours[i], LOCAL_NONE);
}

void start_again(void)
{
    memset(kernel.ours, LOCAL_NONE, sizeof kernel.ours); /* the process has ended */
    kernel.open_count = 0;
    restart_unready();
    core_mirror(the_core, &fake_world);
    fixture_ready(the_core);
    settle();
}

void with_many_locks(void)
{
    struct core_limits limits = fixture_limits;
    limits.locks_max = limits.locks_per_client_max = 4000;
    limits.per_address_percent = 100;
    locker_new(&limits);
    core_mirror(the_core, &fake_world);
}
