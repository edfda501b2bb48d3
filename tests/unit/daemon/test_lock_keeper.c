/*
 * test_lock_keeper.c -- the keeper of locks (daemon/lock_keeper.h) and a server's end of it
 * (file/keeper.h), as processes: the keeper is this program under its verb.
 *
 * Passing shows that locks outlive the server that had them, that the next one gets exactly what
 * was not dropped, that a keeper that cannot keep is known as lost, and that one that nobody needs
 * ends.
 */
#include "daemon/lock_keeper.h"
#include "file/keeper.h"
#include "unit/remove_tree.h"
#include "unit/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[64], url[80], socket_path[96];

__attribute__((constructor)) static void be_the_keeper(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], LOCK_KEEPER_VERB) == 0)
        _exit(lock_keeper_run());
}

TEST_FIXTURE(start)
{
    (void)snprintf(directory, sizeof directory, "/tmp/keeper-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(url, sizeof url, "lmdb:%s", directory);
    (void)snprintf(socket_path, sizeof socket_path, "%s/locks.keeper", directory);
}

/* Without its socket a keeper ends by itself. */
TEST_FIXTURE(stop)
{
    remove_tree(directory);
}

static struct keeper *meet(void)
{
    int fd = lock_keeper_connect(url, true);
    assert_true(fd >= 0);
    struct keeper *keeper = keeper_new(fd);
    assert_non_null(keeper);
    assert_false(keeper_is_lost(keeper));
    return keeper;
}

static struct handle_object object_of(uint32_t number)
{
    struct handle_object object = {.type = 1, .len = sizeof number};
    memcpy(object.bytes, &number, sizeof number);
    return object;
}

static int open_file(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static bool lock_all(int fd)
{
    struct flock flock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &flock) == 0;
}

static void assert_soon(bool (*is_so)(int fd), int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 60000 && !is_so(fd); i++)
        (void)nanosleep(&pause, NULL);
    assert_true(is_so(fd));
}

static bool is_gone(int fd)
{
    (void)fd;
    return access(socket_path, F_OK) != 0;
}

TEST(test_lock_keeper__a_lock_outlives_its_server)
{
    struct keeper *keeper = meet();
    struct handle_object object = object_of(7), other = object_of(8);
    int ours = open_file("f"), theirs = open_file("f");
    assert_true(lock_all(ours));
    assert_int_not_equal(keeper_keep(keeper, ours, 1, &object), 0);
    (void)close(ours);
    keeper_free(keeper);
    assert_false(lock_all(theirs));

    uint64_t id;
    keeper = meet();
    assert_int_equal(keeper_take(keeper, 2, &object, &id), -1);
    assert_int_equal(keeper_take(keeper, 1, &other, &id), -1);
    ours = keeper_take(keeper, 1, &object, &id);
    assert_true(ours >= 0 && lock_all(ours));
    assert_int_equal(keeper_take(keeper, 1, &object, &id), -1); /* it is ours now */
    assert_false(lock_all(theirs));
    (void)close(ours);
    assert_false(lock_all(theirs)); /* the keeper has it still */
    keeper_drop(keeper, id);
    assert_soon(lock_all, theirs);
    (void)close(theirs);
    keeper_free(keeper);
    assert_soon(is_gone, -1);
}

TEST(test_lock_keeper__the_next_server_gets_what_was_not_dropped)
{
    enum { MANY = 300 };
    uint64_t ids[MANY], id;
    struct keeper *keeper = meet();
    int fd = open_file("f");
    for (uint32_t i = 0; i < MANY; i++) {
        struct handle_object object = object_of(i / 2); /* two of each file */
        ids[i] = keeper_keep(keeper, fd, 1, &object);
        assert_int_not_equal(ids[i], 0);
    }
    for (uint32_t i = 0; i < MANY; i++)
        if (i % 4 != 1)
            keeper_drop(keeper, ids[i]);
    keeper_drop(keeper, ids[0]); /* and once more */
    keeper_free(keeper);

    keeper = meet();
    for (uint32_t i = 0; i < MANY / 2; i++) {
        struct handle_object object = object_of(i);
        int kept = keeper_take(keeper, 1, &object, &id);
        assert_int_equal(kept >= 0, i % 2 == 0);
        if (kept >= 0) {
            assert_int_equal(id, ids[2 * i + 1]);
            (void)close(kept);
        }
    }
    struct handle_object object = object_of(1);
    assert_true(keeper_keep(keeper, fd, 1, &object) > ids[MANY - 3]); /* which is kept */
    keeper_free(keeper);
    (void)close(fd);
}

static bool is_two(const void *context, uint32_t export_id)
{
    (void)context;
    return export_id == 2;
}

TEST(test_lock_keeper__what_is_not_wanted_goes)
{
    uint64_t id;
    struct keeper *keeper = meet();
    struct handle_object object = object_of(1);
    int fd = open_file("f");
    for (uint32_t export_id = 1; export_id <= 3; export_id++)
        assert_int_not_equal(keeper_keep(keeper, fd, export_id, &object), 0);
    keeper_free(keeper);
    keeper = meet();
    keeper_drop_rest(keeper, is_two, NULL);
    assert_int_equal(keeper_take(keeper, 1, &object, &id), -1);
    keeper_free(keeper);
    keeper = meet();
    assert_int_equal(keeper_take(keeper, 3, &object, &id), -1);
    int kept = keeper_take(keeper, 2, &object, &id);
    assert_true(kept >= 0);
    (void)(close(kept) | close(fd));
    keeper_free(keeper);
}

/* A keeper with few descriptors, which a child starts. */
static int keep_too_many(void)
{
    const struct rlimit few = {32, 32};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 2;
    struct keeper *keeper = meet();
    int fd = open_file("f");
    uint64_t kept = 1;
    for (uint32_t i = 0; i < 1000 && kept != 0; i++) {
        struct handle_object object = object_of(i);
        kept = keeper_keep(keeper, fd, 1, &object);
    }
    return kept == 0 && keeper_is_lost(keeper) ? 0 : 1;
}

TEST(test_lock_keeper__one_that_cannot_keep_is_lost)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(keep_too_many());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(test_lock_keeper__there_is_none_unless_it_may_be_started)
{
    assert_true(lock_keeper_connect(url, false) < 0);
    assert_true(is_gone(-1));
    assert_true(lock_keeper_connect("memory:", true) < 0);
}

TEST_MAIN(start, stop, NULL, NULL)
