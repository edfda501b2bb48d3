/*
 * test_once_failed.c -- calls that failed, and that clients repeat after a restart: what they are
 * answered.
 */
#include "once_calls.h"

TEST_FIXTURE(start)
{
    caller_start(&c, EXPORT);
    caller_keep_intents(&c, EXPORT);
    c.xid = 1000;
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

TEST(test_once__an_error_is_answered_again)
{
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
    assert_int_equal(mkdir(caller_path(&c, "d"), 0777), 0);
    (void)make_local("d/f");
    c.xid++;
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_NOTEMPTY);
    restart();
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_NOTEMPTY);
    assert_true(c.result.wcc.after.is_there);
    unlink_local("d/f");
    restart(); /* what was answered again is known to the next run, too */
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_NOTEMPTY);
    assert_int_not_equal(inode_of("d"), 0);
    c.xid--;
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
    assert_int_equal(repeats(), 2);
    c.xid += 2; /* a new call is no repeat */
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_OK);
}

TEST(test_once__a_remove_that_found_nothing_removes_nothing)
{
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
    for (int i = 0; i < 2; i++) {
        restart();
        uint64_t other = i == 0 ? make_local("f") : inode_of("f");
        assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
        assert_int_equal(inode_of("f"), other);
    }
    c.options.intents->boot ^= 1; /* also over a power loss: it has changed nothing */
    c.xid++;
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_NOENT);
    restart();
    assert_int_equal(mkdir(caller_path(&c, "d"), 0777), 0);
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_NOENT);
    assert_int_not_equal(inode_of("d"), 0);
}

TEST(test_once__a_move_that_failed_moves_nothing)
{
    uint64_t target = make_local("to");
    assert_int_equal(move("from", "to"), NFS_NOENT);
    restart();
    uint64_t other = make_local("from");
    assert_int_equal(move("from", "to"), NFS_NOENT);
    assert_int_equal(inode_of("from"), other);
    assert_int_equal(inode_of("to"), target);
}

TEST(test_once__what_was_there_is_exist_again)
{
    static const enum nfs_procedure procedures[] = {NFS_CREATE, NFS_MKDIR, NFS_SYMLINK, NFS_MKNOD};
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    for (int i = 0; i < 5; i++) {
        (void)make_local("new");
        c.xid++;
        for (int is_again = 0; is_again < 2; is_again++) {
            enum nfs_stat stat = i < 4 ? make(procedures[i], "new") : give_name(&file, "new");
            assert_int_equal(stat, NFS_EXIST);
            assert_false(c.result.has_fh);
            if (is_again)
                continue;
            restart();
            unlink_local("new"); /* by whom it was */
        }
        assert_int_equal(inode_of("new"), 0);
        assert_int_equal(repeats(), 1);
    }
}

/* The last call failed like this. */
static void fail_with(enum nfs_stat stat)
{
    struct intent_ring *ring = c.options.intents;
    intent_fail(ring, atomic_load(&ring->next_number) - 1, stat);
}

TEST(test_once__an_accident_is_no_answer)
{
    static const enum nfs_stat stats[] = {NFS_JUKEBOX, NFS_IO,          NFS_NOSPC,
                                          NFS_DQUOT,   NFS_SERVERFAULT, NFS_OK};
    for (size_t i = 0; i < sizeof stats / sizeof stats[0]; i++) {
        c.xid++;
        assert_int_equal(make(NFS_MKDIR, "new"), NFS_OK);
        unlink_local("new");
        fail_with(stats[i]);
        restart();
        assert_int_equal(make(NFS_MKDIR, "new"), NFS_OK);
        assert_int_not_equal(inode_of("new"), 0);
        assert_int_equal(repeats(), 0);
        unlink_local("new");
    }
}

/* A failure that changed nothing is an outcome, whatever others change afterwards. */
TEST(test_once__attributes_that_were_not_set_are_not_set_later)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0600, &file), NFS_OK);
    struct nfs_time guard = c.result.attr.attr.ctime;
    wait_a_tick();
    caller_be(&c, 1001, 1001);
    c.xid++;
    assert_int_equal(set_mode(&file, 0640, &guard), NFS_PERM);
    assert_int_equal(chown(caller_path(&c, "f"), 1001, 1001), 0);
    restart();
    assert_int_equal(set_mode(&file, 0640, &guard), NFS_PERM);
    assert_int_equal(repeats(), 1);
    c.xid++;
    assert_int_equal(set_mode(&file, 0640, &guard), NFS_NOT_SYNC);
    assert_int_equal(set_mode(&file, 0640, NULL), NFS_OK);
}

TEST(test_once__an_error_outlives_its_directory)
{
    struct nfs_fh directory;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0777, &directory), NFS_OK);
    struct nfs_args args = {.fh = caller_bytes(&directory), .name = bytes_of_text("f")};
    c.xid++;
    assert_int_equal(caller_call(&c, NFS_REMOVE, &args), NFS_NOENT);
    restart();
    unlink_local("d");
    assert_int_equal(caller_call(&c, NFS_REMOVE, &args), NFS_NOENT);
    assert_int_equal(repeats(), 1);
    c.xid++;
    assert_int_equal(caller_call(&c, NFS_REMOVE, &args), NFS_STALE);
}

/* It is none any more when its client has changed the name since. */
TEST(test_once__an_error_from_another_port)
{
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
    intent_ring_tick(c.options.intents, 5000);
    restart();
    c.peer.port++;
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
    assert_int_equal(repeats(), 1);
    intent_ring_tick(c.options.intents, 5000);
    c.xid++;
    assert_int_equal(make(NFS_CREATE, "f"), NFS_OK);
    c.xid--;
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    assert_int_equal(inode_of("f"), 0);
}

TEST_MAIN(start, stop, NULL, NULL)
