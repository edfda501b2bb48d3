/*
 * test_reserve.c -- shows that a full disk never fails a commit (R-PER-8).
 *
 * A small file system of its own (tmpfs in a private mount namespace, which needs root) is filled
 * by the store itself: it must say that there is no room before any commit fails, go on committing
 * deletions and small changes with no free block left, and say that there is room again when
 * records were removed or the file system grew. A limit on the length of files does the same
 * without root. Around that: the file is kept longer than what is used, only ever at its end, and a
 * longer file than expected is accepted.
 */
#include "model.h"
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

enum { SLOTS = 40000, CANNOT_MOUNT = 77, MIB = 1024 * 1024, PUTS_PER_BATCH = 500 };

struct fixture {
    struct place place;
    struct model model;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    place_init(&fixture->place);
    model_init(&fixture->model, SLOTS);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    model_done(&fixture->model);
    place_done(&fixture->place);
    free(fixture);
    return 0;
}

static void tend_fully(struct store *store)
{
    while (store_tend(store))
        continue;
}

static void expect_equal(const struct fixture *fixture, struct store *store)
{
    const char *difference = model_compare(&fixture->model, store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

static void test_reserve__keeps_the_file_ahead_of_its_use(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    struct store *store = place_open(fixture->place.url, false);
    uint64_t first_len = place_len(&fixture->place, "data.mdb");
    assert_in_range(first_len, 1 * MIB, 8 * MIB); /* a start does not wait for all of it */
    tend_fully(store);
    assert_true(place_len(&fixture->place, "data.mdb") >= 64 * (uint64_t)MIB);
    /* Written, not only made longer: the blocks are there. */
    assert_int_equal(stat(place_file(&fixture->place, "data.mdb"), &status), 0);
    assert_true((uint64_t)status.st_blocks * 512 >= 64 * (uint64_t)MIB);
    uint64_t before_len = (uint64_t)status.st_size;
    for (int i = 0; i < 50; i++)
        model_commit(model_next(&fixture->model), store);
    tend_fully(store);
    assert_true(place_len(&fixture->place, "data.mdb") > before_len);
    expect_equal(fixture, store);
    store_close(store);
}

/* A file that is longer than it needs to be, whatever is behind its last page, is used as it is. */
static void test_reserve__touches_nothing_that_is_there(void **state)
{
    struct fixture *fixture = *state;
    static const char mark[] = "behind the last page";
    char found[sizeof mark];
    struct store *store = place_open(fixture->place.url, false);
    for (int i = 0; i < 20; i++)
        model_commit(model_next(&fixture->model), store);
    store_close(store);

    int fd = open(place_file(&fixture->place, "data.mdb"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    off_t end = (off_t)place_len(&fixture->place, "data.mdb");
    assert_int_equal(pwrite(fd, mark, sizeof mark, end), sizeof mark);
    store = place_open(fixture->place.url, false);
    tend_fully(store);
    expect_equal(fixture, store);
    model_commit(model_next(&fixture->model), store);
    tend_fully(store);
    assert_int_equal(pread(fd, found, sizeof found, end), sizeof found);
    assert_memory_equal(found, mark, sizeof mark);
    store_close(store);

    /* Much longer, and sparse. */
    off_t long_len = 300 * (off_t)MIB;
    assert_int_equal(ftruncate(fd, long_len), 0);
    assert_int_equal(close(fd), 0);
    store = place_open(fixture->place.url, false);
    tend_fully(store);
    expect_equal(fixture, store);
    model_commit(model_next(&fixture->model), store);
    store_close(store);
    assert_int_equal(place_len(&fixture->place, "data.mdb"), long_len);
    store = place_open(fixture->place.url, false);
    expect_equal(fixture, store);
    store_close(store);
}

/* ---- in child processes: no cmocka here; a failed NEED is the exit code ---- */

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static struct store *open_or_null(const struct fixture *fixture)
{
    struct store_failure failure = {0};
    struct store *store = store_open(fixture->place.url, &(struct store_options){0}, &failure);
    if (store == NULL)
        (void)fprintf(stderr, "%s\n", failure.text);
    return store;
}

/* A file system of this size where the store will be; false: not allowed here. */
static bool mount_small(const struct fixture *fixture, unsigned size_mib)
{
    char options[32];
    (void)snprintf(options, sizeof options, "size=%um", size_mib);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    return mount("holdfast-test", fixture->place.base, "tmpfs", 0, options) == 0;
}

static bool resize(const struct fixture *fixture, unsigned size_mib)
{
    char options[32];
    (void)snprintf(options, sizeof options, "size=%um", size_mib);
    return mount("none", fixture->place.base, NULL, MS_REMOUNT, options) == 0;
}

static uint64_t bytes_free(const struct fixture *fixture)
{
    struct statvfs status;
    if (statvfs(fixture->place.base, &status) != 0)
        return UINT64_MAX;
    return (uint64_t)status.f_bavail * status.f_frsize;
}

/* Adds records while there is room, a batch at a time. The number added. */
static uint32_t fill(struct model *model, struct store *store, uint32_t slot_max)
{
    uint32_t slot = 0;
    while (slot + PUTS_PER_BATCH <= slot_max && store_has_room(store)) {
        model_begin(model);
        for (uint32_t i = 0; i < PUTS_PER_BATCH; i++)
            model_put(model, RECORD_REGISTRANT, slot++);
        model_commit(model_end(model, true), store);
        (void)store_tend(store);
    }
    return slot;
}

static int fill_a_small_disk(void *context)
{
    struct fixture *fixture = context;
    struct model *model = &fixture->model;
    if (!mount_small(fixture, 24))
        return CANNOT_MOUNT;
    struct store *store = open_or_null(fixture);
    NEED(store != NULL);
    tend_fully(store);
    NEED(bytes_free(fixture) == 0); /* it wanted 64 MiB and took what there was */
    NEED(store_has_room(store));    /* which is enough to begin with */

    uint32_t count = fill(model, store, SLOTS);
    NEED(!store_has_room(store));
    NEED(count > 5000 && count < SLOTS);
    NEED(bytes_free(fixture) == 0);
    NEED(model_compare(model, store) == NULL);

    /* Small changes go on, and do not bring the room back. */
    for (uint32_t i = 0; i < 200; i++) {
        model_begin(model);
        model_put(model, RECORD_REGISTRANT, i * 97 % count);
        model_commit(model_end(model, true), store);
        (void)store_tend(store);
    }
    NEED(!store_has_room(store));

    /* The same after a start on the full disk. */
    store_close(store);
    store = open_or_null(fixture);
    NEED(store != NULL);
    (void)store_tend(store);
    NEED(!store_has_room(store));

    /* Deletions, each touching pages all over the store, until room comes back. */
    uint32_t deleted = 0;
    for (; deleted < count && !store_has_room(store);) {
        model_begin(model);
        for (uint32_t i = 0; i < 100 && deleted < count; i++, deleted++)
            model_delete(model, RECORD_REGISTRANT, (uint32_t)((uint64_t)deleted * 7919 % count));
        model_commit(model_end(model, true), store);
        (void)store_tend(store);
    }
    NEED(store_has_room(store));
    NEED(model_compare(model, store) == NULL);
    store_close(store);
    store = open_or_null(fixture);
    NEED(store != NULL);
    NEED(model_compare(model, store) == NULL);
    store_close(store);
    return 0;
}

static int grow_a_small_disk(void *context)
{
    struct fixture *fixture = context;
    struct model *model = &fixture->model;
    if (!mount_small(fixture, 12))
        return CANNOT_MOUNT;
    struct store *store = open_or_null(fixture);
    NEED(store != NULL);
    NEED(store_has_room(store)); /* nothing failed yet */
    tend_fully(store);
    NEED(!store_has_room(store));
    model_commit(model_next(model), store);
    NEED(!store_tend(store));
    NEED(!store_has_room(store));

    NEED(resize(fixture, 16)); /* not enough to matter */
    tend_fully(store);
    NEED(!store_has_room(store));
    NEED(resize(fixture, 100));
    NEED(store_tend(store));
    tend_fully(store);
    NEED(store_has_room(store));
    NEED(place_len(&fixture->place, "data.mdb") >= 64 * (uint64_t)MIB);
    model_commit(model_next(model), store);
    NEED(model_compare(model, store) == NULL);
    store_close(store);
    return 0;
}

static void run_mounted(int (*function)(void *context), struct fixture *fixture)
{
    int result = place_in_child(function, fixture);
    if (result == CANNOT_MOUNT) {
        print_message("skipped: mounting a small file system needs root\n");
        skip();
    }
    assert_int_equal(result, 0);
}

static void test_reserve__full_disk_never_fails_a_commit(void **state)
{
    run_mounted(fill_a_small_disk, *state);
}

static void test_reserve__room_comes_back_with_space(void **state)
{
    run_mounted(grow_a_small_disk, *state);
}

static int limit_the_file(void *context)
{
    struct fixture *fixture = context;
    struct model *model = &fixture->model;
    struct rlimit limit = {.rlim_cur = 8 * MIB, .rlim_max = RLIM_INFINITY};
    NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = 8 * MIB;
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct store *store = open_or_null(fixture);
    NEED(store != NULL);
    tend_fully(store); /* one byte too far would end the process by SIGXFSZ */
    NEED(!store_has_room(store));
    NEED(place_len(&fixture->place, "data.mdb") == 8 * (uint64_t)MIB);
    for (uint32_t i = 0; i < 100; i++) {
        model_begin(model);
        model_put(model, RECORD_NOTICE, i);
        if (i > 10)
            model_delete(model, RECORD_NOTICE, i - 10);
        model_commit(model_end(model, true), store);
        (void)store_tend(store);
    }
    NEED(model_compare(model, store) == NULL);

    limit.rlim_cur = limit.rlim_max;
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    tend_fully(store);
    NEED(store_has_room(store));
    store_close(store);
    return 0;
}

static void test_reserve__file_limit_is_no_room(void **state)
{
    assert_int_equal(place_in_child(limit_the_file, *state), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reserve__keeps_the_file_ahead_of_its_use),
        TEST(test_reserve__touches_nothing_that_is_there),
        TEST(test_reserve__full_disk_never_fails_a_commit),
        TEST(test_reserve__room_comes_back_with_space),
        TEST(test_reserve__file_limit_is_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
