/*
 * test_reserve.c -- shows that a full disk never fails a commit (R-PER-8).
 *
 * A small file system of its own (tmpfs in a private mount namespace, which needs root) is filled
 * by the store itself: it must say that there is no room before any commit fails, go on committing
 * deletions and small changes with no free block left, and say that there is room again when
 * records were removed or the file system grew. A limit on the length of files does the same
 * without root. A batch of the most and longest records there can be is committed as long as there
 * is room, and once more afterwards, as the server would. Locks fill a disk and are then split and
 * freed. Around that: the file is kept longer than what is used, only ever at its end, and a longer
 * file than expected is accepted.
 */
#include "place.h"
#include "store/reserve.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOTS = 40000, CANNOT_MOUNT = 77, MIB = 1024 * 1024, PUTS_PER_BATCH = 500 };

/* Longest records, to fill disks of very different sizes. */
enum { LONG_SLOTS = 16 * STORE_BATCH_PUTS_MAX };

TEST_FIXTURE(set_up)
{
    place_fixture(state, SLOTS);
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

TEST_OF(test_reserve__keeps_the_file_ahead_of_its_use, struct fixture *fixture)
{
    struct stat status;
    struct store_failure failure;
    struct store *store = place_open(fixture->place.url, false);
    uint64_t first_len = place_len(&fixture->place, "data.mdb");
    assert_in_range(first_len, 16 * MIB, 32 * MIB); /* a start does not wait for all of it */
    tend_fully(store);
    assert_true(place_len(&fixture->place, "data.mdb") >= 64 * (uint64_t)MIB);
    /* Written, not only made longer: the blocks are there. */
    assert_int_equal(stat(place_file(&fixture->place, "data.mdb"), &status), 0);
    assert_true((uint64_t)status.st_blocks * 512 >= 64 * (uint64_t)MIB);
    uint64_t before_len = (uint64_t)status.st_size;
    for (int i = 0; i < 50; i++)
        model_commit(model_next(&fixture->model), store);
    assert_int_equal(store_fold(store, &failure), 0);
    tend_fully(store);
    assert_true(place_len(&fixture->place, "data.mdb") > before_len);
    expect_equal(fixture, store);
    store_close(store);
}

/* A sync for each few pages would keep the commit behind it waiting: it grows by a slice or not. */
TEST(test_reserve__grows_by_slices)
{
    struct fixture *fixture = *state;
    struct store *store = place_open(fixture->place.url, false);
    tend_fully(store);
    uint64_t len = place_len(&fixture->place, "data.mdb");
    for (int i = 0; i < 50; i++) {
        model_commit(model_next(&fixture->model), store);
        tend_fully(store);
        uint64_t before_len = len;
        len = place_len(&fixture->place, "data.mdb");
        assert_true(len == before_len || len - before_len >= MIB);
    }
    store_close(store);
}

/* A file that is longer than it needs to be is used as it is, whatever is behind its last page.
 * What has holes there, as a copy may have, owns no space: it is cut off, and written. */
TEST_OF(test_reserve__touches_nothing_that_is_there, struct fixture *fixture)
{
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

    off_t long_len = 300 * (off_t)MIB;
    assert_int_equal(ftruncate(fd, long_len), 0);
    assert_int_equal(close(fd), 0);
    store = place_open(fixture->place.url, false);
    tend_fully(store);
    expect_equal(fixture, store);
    model_commit(model_next(&fixture->model), store);
    store_close(store);
    struct stat status;
    assert_int_equal(stat(place_file(&fixture->place, "data.mdb"), &status), 0);
    assert_true(status.st_size < long_len);
    assert_true(status.st_blocks * 512 >= status.st_size);
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
    if (!mount_small(fixture, 32))
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
    if (!mount_small(fixture, 14))
        return CANNOT_MOUNT;
    struct store *store = open_or_null(fixture);
    NEED(store != NULL);
    NEED(!store_has_room(store)); /* the first answer is honest */
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

/* A record with names of this length, its bytes different each time. */
static void put_long(struct batch_writer *writer, uint32_t slot, uint64_t txn, uint32_t name_len)
{
    uint8_t name[RECORD_NAME_MAX], other_name[RECORD_NAME_MAX], value[RECORD_VALUE_MAX];
    memset(name, 'n', sizeof name);
    memset(other_name, 'o', sizeof other_name);
    uint8_t v6[16] = {0xfe, 0x80, [15] = 1};
    struct record_registrant record = {.id = slot + 1,
                                       .registered_ns = txn,
                                       .address = address_v6(v6, "enp65535s0f0np0"),
                                       .local = address_v6(v6, "enp65535s0f0np0"),
                                       .transport = TRANSPORT_TCP,
                                       .mon_name = {name, name_len},
                                       .my_name = {other_name, name_len}};
    uint32_t len = record_put_registrant(value, slot, &record);
    store_batch_put(writer, RECORD_REGISTRANT, slot, (struct bytes){value, len});
}

/* A lock of an owner of this length. */
static void put_lock(struct batch_writer *writer, uint32_t slot, uint64_t txn, uint32_t owner_len)
{
    uint8_t owner[RECORD_NAME_MAX], fh[32], value[RECORD_VALUE_MAX];
    memset(owner, 'o', sizeof owner);
    memset(fh, 'f', sizeof fh);
    struct record_lock record = {.of = {.client_id = 1, .incarnation = 1},
                                 .granted_ns = txn,
                                 .start = slot,
                                 .end = slot + UINT64_C(1),
                                 .svid = slot,
                                 .fh = {fh, sizeof fh},
                                 .oh = {owner, owner_len}};
    uint32_t len = record_put_lock(value, slot, &record);
    store_batch_put(writer, RECORD_LOCK, slot, (struct bytes){value, len});
}

struct long_batches {
    struct store *store;
    struct batch_writer writer;
    uint64_t txn;
    enum record_kind kind; /* registrants or locks */
    uint32_t name_len;
};

static bool commit_long(struct long_batches *batches)
{
    struct store_failure failure = {0};
    struct store_batch batch = {.txn = batches->txn,
                                .must_sync = true,
                                .count = batches->writer.count,
                                .changes = {batches->writer.start, batches->writer.len}};
    if (store_commit(batches->store, &batch, &failure) != 0) {
        (void)fprintf(stderr, "batch %llu: %s\n", (unsigned long long)batch.txn, failure.text);
        return false;
    }
    return true;
}

/* One full batch of records, put or deleted, `step` slots apart. False: the commit failed. */
static bool change_long(struct long_batches *batches, uint32_t first, uint32_t step, uint32_t count,
                        bool deleted)
{
    batches->txn++;
    batches->writer.len = 0;
    batches->writer.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (deleted)
            store_batch_delete(&batches->writer, batches->kind, first + i * step);
        else if (batches->kind == RECORD_LOCK)
            put_lock(&batches->writer, first + i * step, batches->txn, batches->name_len);
        else
            put_long(&batches->writer, first + i * step, batches->txn, batches->name_len);
    }
    return commit_long(batches);
}

/*
 * The server's worst case on a small disk: every batch full of the longest new records,
 * and the one that was filled when the end of room became known still comes. Then repeats of all of
 * them, batch after batch, and last one SM_UNMON_ALL for every second one.
 */
static int fill_with_long(struct fixture *fixture, uint32_t name_len, bool may_tend)
{
    enum { BATCH = STORE_BATCH_PUTS_MAX };
    struct long_batches batches = {
        .store = open_or_null(fixture), .kind = RECORD_REGISTRANT, .name_len = name_len};
    batches.writer.max = (uint64_t)LONG_SLOTS * (RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD);
    batches.writer.start = malloc(batches.writer.max);
    NEED(batches.store != NULL && batches.writer.start != NULL);
    uint32_t count = 0;
    bool had_room = true;
    while (had_room) {
        had_room = store_has_room(batches.store);
        NEED(count + BATCH <= LONG_SLOTS);
        NEED(change_long(&batches, count, 1, BATCH, false));
        count += BATCH;
        if (may_tend)
            (void)store_tend(batches.store);
    }
    for (uint32_t i = 0; i < 20; i++)
        NEED(change_long(&batches, i * BATCH % count, 1, BATCH, false));
    uint32_t step = count / BATCH; /* scattered: each touches as many pages as it can */
    for (uint32_t i = 0; i < 20; i++)
        NEED(change_long(&batches, i % step, step, BATCH, false));
    NEED(change_long(&batches, 0, 2, count / 2, true));
    NEED(change_long(&batches, 1, 2, count / 2, true));
    store_close(batches.store);
    free(batches.writer.start);
    return 0;
}

static int fill_small_disks_with_long(void *context)
{
    struct fixture *fixture = context;
    /* The longest records have a page each; two of the others share one, which any change of
     * either copies. */
    static const uint32_t name_lens[] = {RECORD_NAME_MAX, 900};
    for (unsigned round = 0; round < 16; round++) {
        if (!mount_small(fixture, 24 + 5 * (round / 4)))
            return CANNOT_MOUNT;
        int result = fill_with_long(fixture, name_lens[round % 2], round / 2 % 2 == 0);
        if (umount(fixture->place.base) != 0 || result != 0)
            return 1;
    }
    return 0;
}

/* One batch of UNLOCKs out of the middle of locks all over the store: each becomes shorter, and
 * what is behind the hole is a new one. */
static bool split_locks(struct long_batches *batches, uint32_t first, uint32_t step,
                        uint32_t new_first, uint32_t count)
{
    batches->txn++;
    batches->writer.len = 0;
    batches->writer.count = 0;
    for (uint32_t i = 0; i < count; i++)
        put_lock(&batches->writer, first + i * step, batches->txn, batches->name_len);
    for (uint32_t i = 0; i < count; i++)
        put_lock(&batches->writer, new_first + i, batches->txn, batches->name_len);
    return commit_long(batches);
}

/*
 * Locks fill a disk. With no room left, a quarter more come by UNLOCKs that split (R-RNG-5), and
 * then every client frees what it has: every second lock in one batch, and the rest.
 */
static int fill_a_disk_with_locks(void *context)
{
    enum { BATCH = STORE_BATCH_PUTS_MAX, LOCKS_MAX = 800000 };
    struct fixture *fixture = context;
    if (!mount_small(fixture, 160))
        return CANNOT_MOUNT;
    struct long_batches batches = {
        .store = open_or_null(fixture), .kind = RECORD_LOCK, .name_len = 200};
    batches.writer.max = (uint64_t)BATCH * (RECORD_VALUE_MAX + BATCH_CHANGE_OVERHEAD) +
                         (uint64_t)LOCKS_MAX * BATCH_CHANGE_OVERHEAD;
    batches.writer.start = malloc(batches.writer.max);
    NEED(batches.store != NULL && batches.writer.start != NULL);
    uint32_t count = 0;
    while (store_has_room(batches.store)) {
        NEED(count + BATCH <= LOCKS_MAX);
        NEED(change_long(&batches, count, 1, BATCH, false));
        count += BATCH;
        (void)store_tend(batches.store);
    }
    NEED(count > 100000);
    NEED(bytes_free(fixture) == 0);

    uint32_t step = count / (BATCH / 2), end = count;
    for (uint32_t i = 0; end < count + count / 4; i++, end += BATCH / 2)
        NEED(split_locks(&batches, i % step, step, end, BATCH / 2));
    NEED(!store_has_room(batches.store));
    NEED(end <= LOCKS_MAX);
    NEED(change_long(&batches, 0, 2, (end + 1) / 2, true));
    NEED(change_long(&batches, 1, 2, end / 2, true));
    for (uint32_t i = 0; i < 3; i++)
        (void)store_tend(batches.store);
    NEED(store_has_room(batches.store));
    store_close(batches.store);
    free(batches.writer.start);
    return 0;
}

static void run_mounted(int (*function)(void *context), struct fixture *fixture)
{
    int result = place_in_child(function, fixture);
    place_set_journal(NULL);
    if (result == CANNOT_MOUNT) {
        print_message("skipped: mounting a small file system needs root\n");
        skip();
    }
    assert_int_equal(result, 0);
}

TEST(test_reserve__full_disk_never_fails_a_commit)
{
    run_mounted(fill_a_small_disk, *state);
}

TEST(test_reserve__room_holds_the_longest_batches)
{
    run_mounted(fill_small_disks_with_long, *state);
}

TEST(test_reserve__locks_are_split_and_freed_without_room)
{
    run_mounted(fill_a_disk_with_locks, *state);
}

TEST(test_reserve__room_comes_back_with_space)
{
    run_mounted(grow_a_small_disk, *state);
}

/* These disks are too small for the usual journal; with a short one the rules are the same. */
static void run_mounted_with_a_journal(int (*function)(void *context), struct fixture *fixture)
{
    place_set_journal("262144");
    run_mounted(function, fixture);
}

TEST(test_reserve__full_disk_with_a_journal_never_fails_a_commit)
{
    run_mounted_with_a_journal(fill_a_small_disk, *state);
}

TEST(test_reserve__room_holds_the_longest_batches_with_a_journal)
{
    run_mounted_with_a_journal(fill_small_disks_with_long, *state);
}

TEST(test_reserve__locks_are_split_and_freed_without_room_with_a_journal)
{
    run_mounted_with_a_journal(fill_a_disk_with_locks, *state);
}

TEST(test_reserve__room_comes_back_with_space_with_a_journal)
{
    run_mounted_with_a_journal(grow_a_small_disk, *state);
}

/* No space can be had to fold another batch later: it goes into the tables at once. */
static int stop_growing(void *context)
{
    struct fixture *fixture = context;
    struct model *model = &fixture->model;
    char first[4096 + 4 + 1];
    struct rlimit limit;
    struct store *store = open_or_null(fixture);
    NEED(store != NULL);
    NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = place_len(&fixture->place, "data.mdb");
    NEED(limit.rlim_cur > 16 * MIB); /* the journal's writes are allowed */
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (uint32_t round = 0; round < 3; round++) {
        model_begin(model);
        for (uint32_t slot = 0; slot < PUTS_PER_BATCH; slot++)
            model_put(model, RECORD_LOCK, slot);
        model_commit(model_end(model, true), store);
        NEED(place_read(&fixture->place, "journal", first, 4100) == 4100);
        NEED(memcmp(first + 4096, "\0\0\0\0", 4) == 0); /* no frame */
    }
    NEED(model_compare(model, store) == NULL);
    store_close(store);
    return 0;
}

TEST(test_reserve__what_could_not_be_folded_does_not_wait)
{
    assert_int_equal(place_in_child(stop_growing, *state), 0);
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

TEST(test_reserve__file_limit_is_no_room)
{
    assert_int_equal(place_in_child(limit_the_file, *state), 0);
}

/* The file was made without the limit, so it is longer. */
static int limit_a_longer_file(void *context)
{
    struct fixture *fixture = context;
    struct model *model = &fixture->model;
    struct rlimit limit;
    struct store *store = open_or_null(fixture);
    NEED(store != NULL);
    tend_fully(store);
    store_close(store);
    NEED(place_len(&fixture->place, "data.mdb") > 60 * (uint64_t)MIB);

    NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = 40 * MIB;
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (uint32_t round = 0; round < 3; round++) {
        store = open_or_null(fixture);
        NEED(store != NULL);
        NEED(round > 0 || store_has_room(store));
        (void)fill(model, store, SLOTS);
        NEED(!store_has_room(store));
        NEED(model_compare(model, store) == NULL);
        store_close(store);
    }

    limit.rlim_cur = 1 * MIB;
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct store_failure failure = {0};
    NEED(store_open(fixture->place.url, &(struct store_options){0}, &failure) == NULL);
    NEED(strstr(failure.text, "raise that (ulimit -f") != NULL);
    return 0;
}

TEST(test_reserve__length_beyond_a_file_limit_is_no_room)
{
    assert_int_equal(place_in_child(limit_a_longer_file, *state), 0);
}

/* ---- syncs that fail ---- */

static bool syncs_fail;

int fdatasync(int fd)
{
    if (!syncs_fail)
        return (int)syscall(SYS_fdatasync, fd);
    errno = ENOSPC;
    return -1;
}

/* What could not be synced does not count, nor does a later sync of it: it is written again. */
TEST(test_reserve__unsynced_space_is_no_room)
{
    enum { LOW = 4 * MIB };
    struct reserve reserve;
    struct stat status;
    uint8_t byte = 1;
    int fd = memfd_create("reserved", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(reserve_init(&reserve, fd, 1024 * (uint64_t)MIB, 0), 0);
    syncs_fail = true;
    reserve_note_used(&reserve, 0, LOW);
    reserve_refill(&reserve);
    for (int i = 0; i < 20; i++)
        assert_false(reserve_tend(&reserve));
    assert_false(reserve_can_spend(&reserve, 1, 0));
    assert_false(reserve_can_spend(&reserve, 1, 0));
    assert_true(reserve_is_low(&reserve));
    assert_false(reserve_has_room(&reserve));

    syncs_fail = false;
    assert_int_equal(pwrite(fd, &byte, 1, MIB), 1); /* what the disk lost */
    assert_true(reserve_can_spend(&reserve, 1, 0));
    assert_int_equal(pread(fd, &byte, 1, MIB), 1);
    assert_int_equal(byte, 0);
    while (reserve_tend(&reserve))
        continue;
    assert_true(reserve_has_room(&reserve));
    assert_int_equal(fstat(fd, &status), 0);
    assert_true(status.st_size > LOW);
    assert_int_equal(close(fd), 0);
}

TEST_MAIN(set_up, place_fixture_done, NULL, NULL)
