/*
 * test_lmdb_reader.c -- shows that who only reads an embedded store changes nothing in it: not one
 * byte, owner, mode, inode or time of change of any file, also after a power loss, of a torn file,
 * of a cut one, and of another user's (root only). What is read is what is there, or a sentence
 * says why not. And that what root makes in another user's directory is that user's.
 */
#include "place.h"
#include "unit/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <lmdb.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER_BOOT "00000000-0000-0000-0000-000000000000\n"

enum { SLOTS = 300, STRANGER = 54321, PICTURE_MAX = 16384 };

TEST_FIXTURE(set_up)
{
    place_fixture(state, SLOTS);
}

/* Ends as a killed process does: without closing. Tables have one half, the journal the other. */
static int run_and_die(void *context)
{
    struct fixture *fixture = context;
    struct store_failure failure;
    struct store_options options = {.sync_process = true};
    struct store *store = store_open(fixture->place.url, &options, &failure);
    for (int i = 0; store != NULL && i < 20; i++)
        if (store_commit(store, model_next(&fixture->model), &failure) != 0 ||
            (i == 9 && store_fold(store, &failure) != 0))
            return 1;
    _exit(store == NULL);
}

static void make_killed(struct fixture *fixture)
{
    assert_int_equal(place_in_child(run_and_die, fixture), 0);
    for (int i = 0; i < 20; i++)
        (void)model_next(&fixture->model);
}

static void lose_power(const struct fixture *fixture)
{
    assert_true(place_has(&fixture->place, "unsynced"));
    place_write(&fixture->place, "unsynced", OTHER_BOOT, sizeof OTHER_BOOT - 1);
}

static uint64_t sum_of(const char *path)
{
    uint8_t buffer[65536];
    uint64_t sum = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t len; (len = read(fd, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < len; i++)
            sum = sum * UINT64_C(1099511628211) + buffer[i] + 1;
    assert_int_equal(close(fd), 0);
    return sum;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* All that is known of the directory and each file in it, but when it was last read. */
static void picture(const struct fixture *fixture, char ret[static PICTURE_MAX])
{
    struct dirent **entries;
    int count = scandir(fixture->place.path, &entries, NULL, by_name);
    size_t at = 0;
    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        struct stat info;
        if (strcmp(entries[i]->d_name, "..") != 0) {
            const char *path = place_file(&fixture->place, entries[i]->d_name);
            assert_int_equal(lstat(path, &info), 0);
            uint64_t sum = S_ISREG(info.st_mode) ? sum_of(path) : 0;
            at += (size_t)snprintf(
                ret + at, PICTURE_MAX - at, "%s %o %u:%u %llu %llu %llx %ld.%09ld %ld.%09ld\n",
                entries[i]->d_name, info.st_mode, info.st_uid, info.st_gid,
                (unsigned long long)info.st_ino, (unsigned long long)info.st_size,
                (unsigned long long)sum, (long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                (long)info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
            assert_true(at < PICTURE_MAX);
        }
        free(entries[i]);
    }
    free(entries);
}

static int count_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)kind, (void)slot, (void)value;
    ++*(uint32_t *)context;
    return 0;
}

/* Reads all there is, twice. `difference` of the model if it opened; the failure if not. */
static struct store *read_all(struct fixture *fixture, struct store_failure *ret_failure)
{
    static char before[PICTURE_MAX], after[PICTURE_MAX];
    const struct store_options options = {.is_reader = true, .sync_process = true};
    struct store *kept = NULL;
    picture(fixture, before);
    for (int i = 0; i < 2; i++) {
        uint32_t count = 0;
        struct store *store = store_open(fixture->place.url, &options, ret_failure);
        if (store == NULL)
            break;
        assert_int_equal(store_load(store, count_record, &count, ret_failure), 0);
        assert_true(count > 0);
        if (i == 0)
            store_close(store);
        else
            kept = store;
    }
    picture(fixture, after);
    assert_string_equal(after, before);
    return kept;
}

static void expect_read(struct fixture *fixture, bool may_have_lost)
{
    struct store_failure failure = {0};
    struct store_summary summary;
    struct store *store = read_all(fixture, &failure);
    if (store == NULL)
        fail_msg("%s", failure.text);
    const char *difference = model_compare(&fixture->model, store);
    store_summarize(store, &summary);
    assert_int_equal(summary.may_have_lost, may_have_lost);
    assert_int_equal(summary.note[0] != '\0', may_have_lost);
    assert_int_not_equal(store_commit(store, model_next(&fixture->model), &failure), 0);
    assert_non_null(strstr(failure.text, "read-only"));
    assert_false(store_has_room(store));
    assert_false(store_tend(store));
    store_close(store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

static void expect_refused(struct fixture *fixture, int exit_code, const char *word)
{
    struct store_failure failure = {0};
    struct store *store = read_all(fixture, &failure);
    assert_null(store);
    assert_int_equal(failure.exit_code, exit_code);
    if (strstr(failure.text, word) == NULL)
        fail_msg("\"%s\" expected in: %s", word, failure.text);
}

TEST_OF(test_lmdb_reader__of_a_closed_store, struct fixture *fixture)
{
    struct store *store = place_open(fixture->place.url, false);
    for (int i = 0; i < 20; i++)
        model_commit(model_next(&fixture->model), store);
    store_close(store);
    expect_read(fixture, false);
}

TEST_OF(test_lmdb_reader__of_a_killed_server, struct fixture *fixture)
{
    make_killed(fixture);
    expect_read(fixture, false);
}

TEST_OF(test_lmdb_reader__after_a_power_loss, struct fixture *fixture)
{
    make_killed(fixture);
    lose_power(fixture);
    expect_read(fixture, true);
}

TEST_OF(test_lmdb_reader__of_a_torn_file, struct fixture *fixture)
{
    make_killed(fixture);
    lose_power(fixture);
    int fd = open(place_file(&fixture->place, "data.mdb"), O_RDWR | O_CLOEXEC);
    static const uint8_t noise[16384] = {1, 2, 3};
    for (off_t at = 8192; at < 200000; at += 32768)
        assert_int_equal(pwrite(fd, noise, sizeof noise, at), sizeof noise);
    assert_int_equal(close(fd), 0);
    expect_refused(fixture, 74, "data.mdb is damaged and cannot be read; nothing was changed");
    place_write(&fixture->place, "data.mdb", "", 0);
    expect_refused(fixture, 74, "data.mdb is empty");
    assert_int_equal(unlink(place_file(&fixture->place, "data.mdb")), 0);
    expect_refused(fixture, 74, "it has no data.mdb");
}

TEST_OF(test_lmdb_reader__of_a_cut_file, struct fixture *fixture)
{
    make_killed(fixture);
    assert_int_equal(truncate(place_file(&fixture->place, "data.mdb"), 5 * 4096), 0);
    expect_refused(fixture, 74, "damaged");
}

TEST_OF(test_lmdb_reader__of_a_store_with_fewer_tables, struct fixture *fixture)
{
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    place_set_journal("0"); /* where they are missing there was none */
    make_killed(fixture);
    place_set_journal(NULL);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 32), 0);
    assert_int_equal(mdb_env_set_mapsize(env, (size_t)1 << 30), 0);
    assert_int_equal(
        mdb_env_open(env, place_file(&fixture->place, "data.mdb"), MDB_NOSUBDIR | MDB_NOLOCK, 0600),
        0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    for (int kind = RECORD_SHARE; kind < RECORD_KIND_END; kind++) {
        MDB_dbi table;
        assert_int_equal(mdb_dbi_open(txn, record_kind_name((enum record_kind)kind), 0, &table), 0);
        assert_int_equal(mdb_drop(txn, table, 1), 0);
        memset(fixture->model.versions[kind], 0, SLOTS * sizeof(uint64_t));
    }
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    expect_read(fixture, false);
}

TEST_OF(test_lmdb_reader__leaves_a_server_alone, struct fixture *fixture)
{
    make_killed(fixture);
    struct store *store = place_open(fixture->place.url, false);
    expect_refused(fixture, 74, "in use by process");
    store_close(store);
    /* Two readers at once; a server that starts meanwhile is refused with a sentence. */
    const struct store_options options = {.is_reader = true};
    struct store_failure failure;
    store = store_open(fixture->place.url, &options, &failure);
    assert_non_null(store);
    expect_read(fixture, false);
    place_refused(fixture->place.url, false, 74, fixture->place.path, "in use by another process");
    store_close(store);
}

/* Somebody takes its lock file for a stale one, as a pid file may be. */
TEST_OF(test_lmdb_reader__two_writers_without_the_lock_file, struct fixture *fixture)
{
    make_killed(fixture);
    struct store *store = place_open(fixture->place.url, false);
    char path[512];
    assert_in_range(snprintf(path, sizeof path, "%s/lock", fixture->place.path), 1,
                    sizeof path - 1);
    assert_int_equal(unlink(path), 0);
    place_refused(fixture->place.url, false, 74, fixture->place.path, "\"lock\" was removed");
    expect_refused(fixture, 74, "\"lock\" was removed");
    store_close(store);
    store_close(place_open(fixture->place.url, false));
}

static int see_nothing(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)context;
    (void)kind;
    (void)slot;
    (void)value;
    return 0;
}

/* The same when the server starts after the reader: what that has read may be torn. */
TEST_OF(test_lmdb_reader__server_without_the_lock_file, struct fixture *fixture)
{
    const struct store_options options = {.is_reader = true};
    struct store_failure failure = {0};
    char path[512];
    make_killed(fixture);
    assert_in_range(snprintf(path, sizeof path, "%s/lock", fixture->place.path), 1,
                    sizeof path - 1);
    assert_int_equal(unlink(path), 0);
    struct store *reader = store_open(fixture->place.url, &options, &failure);
    assert_non_null(reader);
    assert_int_equal(store_load(reader, see_nothing, NULL, &failure), 0);
    struct store *store = place_open(fixture->place.url, false);
    assert_int_equal(unlink(path), 0);
    assert_true(store_load(reader, see_nothing, NULL, &failure) < 0);
    assert_non_null(strstr(failure.text, "a server started on it"));
    store_close(reader);
    store_close(store);
}

/* A copy of data.mdb alone has no lock file, and gets none. */
TEST_OF(test_lmdb_reader__of_a_bare_copy, struct fixture *fixture)
{
    make_killed(fixture);
    assert_int_equal(unlink(place_file(&fixture->place, "lock")), 0);
    expect_read(fixture, false);
    const struct store_options options = {.is_reader = true};
    struct store_failure failure;
    uint32_t count = 0;
    struct store *store = store_open(fixture->place.url, &options, &failure);
    assert_non_null(store);
    struct store *server = place_open(fixture->place.url, false);
    assert_int_not_equal(store_load(store, count_record, &count, &failure), 0);
    assert_non_null(strstr(failure.text, "a server started on it"));
    store_close(server);
    store_close(store);
}

TEST_OF(test_lmdb_reader__makes_no_directory, struct fixture *fixture)
{
    const struct store_options options = {.is_reader = true};
    struct store_failure failure;
    assert_null(store_open(fixture->place.url, &options, &failure));
    assert_int_equal(failure.exit_code, 74);
    assert_non_null(strstr(failure.text, "no such directory"));
    assert_int_not_equal(access(fixture->place.path, F_OK), 0);
}

static void need_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skipped: needs root\n");
    skip();
}

static void give(const struct fixture *fixture, const char *name)
{
    assert_int_equal(chown(place_file(&fixture->place, name), STRANGER, STRANGER), 0);
}

TEST_OF(test_lmdb_reader__by_root_of_another_users, struct fixture *fixture)
{
    need_root();
    make_killed(fixture);
    lose_power(fixture);
    static const char *const names[] = {".", "data.mdb", "lock", "unsynced"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        give(fixture, names[i]);
    expect_read(fixture, true);
}

static void expect_owner(const struct fixture *fixture, const char *name)
{
    struct stat info;
    assert_int_equal(lstat(place_file(&fixture->place, name), &info), 0);
    assert_int_equal(info.st_uid, STRANGER);
    assert_int_equal(info.st_gid, STRANGER);
}

/* Who writes as root leaves files that the directory's owner can use. */
TEST_OF(test_lmdb_reader__what_root_makes_is_the_directorys, struct fixture *fixture)
{
    need_root();
    assert_int_equal(mkdir(fixture->place.path, 0700), 0);
    give(fixture, ".");
    make_killed(fixture);
    expect_owner(fixture, "data.mdb");
    expect_owner(fixture, "lock");
    expect_owner(fixture, "unsynced");
    lose_power(fixture);
    struct store *store = place_open(fixture->place.url, true); /* salvages */
    model_commit(model_next(&fixture->model), store);
    expect_owner(fixture, "data.mdb");
    expect_owner(fixture, "unsynced");
    store_close(store);
}

/* Whoever can open the lock file can lock it: nobody else can. */
TEST_OF(test_lmdb_reader__the_lock_is_made_private, struct fixture *fixture)
{
    struct stat info;
    make_killed(fixture);
    assert_int_equal(chmod(place_file(&fixture->place, "lock"), 0644), 0);
    store_close(place_open(fixture->place.url, false));
    assert_int_equal(stat(place_file(&fixture->place, "lock"), &info), 0);
    assert_int_equal(info.st_mode, S_IFREG | 0600);
}

TEST_MAIN(set_up, place_fixture_done, NULL, NULL)
