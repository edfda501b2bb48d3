/*
 * test_once.c -- calls that clients repeat after a restart: which are executed, and what they are
 * answered. Those that had failed: test_once_failed.c.
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

/* ---- REMOVE, RMDIR ---- */

TEST(test_once__a_removed_name_is_removed_once)
{
    static const enum nfs_procedure procedures[] = {NFS_REMOVE, NFS_RMDIR};
    for (int i = 0; i < 2; i++) {
        for (int is_half = 0; is_half < 2; is_half++, c.xid++) {
            if (i == 0)
                (void)make_local("f");
            else
                assert_int_equal(mkdir(caller_path(&c, "f"), 0777), 0);
            assert_int_equal(take_away(procedures[i], "f"), NFS_OK);
            if (is_half)
                forget_outcome();
            restart();
            assert_int_equal(take_away(procedures[i], "f"), NFS_OK);
            assert_true(c.result.wcc.after.is_there);
            assert_int_equal(repeats(), 1);
            c.xid++; /* a new call is no repeat */
            assert_int_equal(take_away(procedures[i], "f"), NFS_NOENT);
        }
    }
}

TEST(test_once__what_others_made_since_is_not_removed)
{
    for (int is_half = 0; is_half < 2; is_half++, c.xid++) {
        (void)make_local("f");
        assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
        if (is_half)
            forget_outcome();
        restart();
        uint64_t other = make_local("f");
        assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
        assert_int_equal(inode_of("f"), other);
        unlink_local("f");
    }
}

TEST(test_once__a_remove_that_was_only_begun_is_executed)
{
    (void)make_local("f");
    link_local("f", "same");
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    link_local("same", "f"); /* as if it had not been */
    kill_inside();
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    assert_int_equal(inode_of("f"), 0);
    assert_int_equal(repeats(), 0);
}

TEST(test_once__a_name_that_came_back_stays)
{
    uint64_t inode = make_local("f");
    link_local("f", "same");
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    restart();
    link_local("same", "f");
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    assert_int_equal(inode_of("f"), inode);
}

TEST(test_once__of_two_who_remove_one_has_done_it)
{
    (void)make_local("f");
    link_local("f", "same");
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    link_local("same", "f");
    kill_inside();
    be_another(); /* it is faster, and there is something else by the time of the repeat */
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    uint64_t other = make_local("f");
    be_the_first();
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_NOENT);
    assert_int_equal(inode_of("f"), other);
}

/* One that was answered long ago is no later call because it is repeated. */
TEST(test_once__who_repeats_has_not_seen_it_again)
{
    (void)make_local("f");
    link_local("f", "same");
    be_another();
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    link_local("same", "f");
    be_the_first();
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    kill_inside();
    be_another();
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    be_the_first();
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
}

/* ---- RENAME ---- */

TEST(test_once__a_name_is_moved_once)
{
    for (int is_half = 0; is_half < 2; is_half++, c.xid++) {
        uint64_t inode = make_local("from");
        (void)make_local("to");
        assert_int_equal(move("from", "to"), NFS_OK);
        if (is_half)
            forget_outcome();
        restart();
        assert_int_equal(move("from", "to"), NFS_OK);
        assert_int_equal(inode_of("to"), inode);
        uint64_t other = make_local("from"); /* not what it meant */
        restart();
        assert_int_equal(move("from", "to"), NFS_OK);
        assert_int_equal(inode_of("from"), other);
        assert_int_equal(inode_of("to"), inode);
        unlink_local("from");
        unlink_local("to");
    }
}

TEST(test_once__a_move_that_was_only_begun_is_executed)
{
    uint64_t inode = make_local("from");
    assert_int_equal(move("from", "to"), NFS_OK);
    link_local("to", "from");
    unlink_local("to");
    kill_inside();
    assert_int_equal(move("from", "to"), NFS_OK);
    assert_int_equal(inode_of("to"), inode);
    assert_int_equal(inode_of("from"), 0);
}

TEST(test_once__what_was_moved_back_stays)
{
    uint64_t inode = make_local("from");
    assert_int_equal(move("from", "to"), NFS_OK);
    restart();
    be_another();
    assert_int_equal(move("to", "from"), NFS_OK);
    be_the_first();
    assert_int_equal(move("from", "to"), NFS_OK);
    assert_int_equal(inode_of("from"), inode);
}

TEST(test_once__what_was_moved_and_then_removed_was_moved)
{
    (void)make_local("from");
    assert_int_equal(move("from", "to"), NFS_OK);
    kill_inside();
    be_another();
    assert_int_equal(take_away(NFS_REMOVE, "to"), NFS_OK);
    be_the_first();
    assert_int_equal(move("from", "to"), NFS_OK);
}

TEST(test_once__a_move_whose_source_is_gone_takes_no_other)
{
    (void)make_local("from");
    uint64_t target = make_local("to");
    link_local("to", "same");
    assert_int_equal(move("from", "to"), NFS_OK);
    unlink_local("to");
    link_local("same", "to"); /* not executed, and another program took the source */
    kill_inside();
    uint64_t other = make_local("from");
    assert_int_equal(move("from", "to"), NFS_NOENT);
    assert_int_equal(inode_of("from"), other);
    assert_int_equal(inode_of("to"), target);
}

TEST(test_once__of_two_who_move_one_has_done_it)
{
    uint64_t inode = make_local("from");
    assert_int_equal(move("from", "to"), NFS_OK);
    link_local("to", "from");
    unlink_local("to");
    kill_inside();
    be_another();
    assert_int_equal(move("from", "to"), NFS_OK);
    be_the_first();
    assert_int_equal(move("from", "to"), NFS_NOENT);
    assert_int_equal(inode_of("to"), inode);
}

/* ---- LINK ---- */

TEST(test_once__a_name_is_given_once)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    for (int is_half = 0; is_half < 2; is_half++) {
        c.xid++;
        assert_int_equal(give_name(&file, "g"), NFS_OK);
        if (is_half)
            forget_outcome();
        restart();
        assert_int_equal(give_name(&file, "g"), NFS_OK);
        assert_true(c.result.attr.is_there);
        assert_int_equal(inode_of("g"), inode_of("f"));
        unlink_local("g");
    }
}

TEST(test_once__a_name_that_was_given_and_removed_is_not_given_again)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    c.xid++;
    assert_int_equal(give_name(&file, "g"), NFS_OK);
    restart();
    unlink_local("g");
    assert_int_equal(give_name(&file, "g"), NFS_OK);
    assert_int_equal(inode_of("g"), 0);
}

TEST(test_once__a_name_that_was_there_before_is_exist)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    link_local("f", "g");
    c.xid++;
    assert_int_equal(give_name(&file, "g"), NFS_EXIST);
    kill_inside();
    assert_int_equal(give_name(&file, "g"), NFS_EXIST);
}

TEST(test_once__a_link_that_was_only_begun_is_executed)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        c.xid++;
        assert_int_equal(give_name(&file, "g"), NFS_OK);
        unlink_local("g");
        kill_inside();
        uint64_t other = is_taken ? make_local("g") : 0;
        assert_int_equal(give_name(&file, "g"), is_taken ? NFS_EXIST : NFS_OK);
        assert_int_equal(inode_of("g"), is_taken ? other : inode_of("f"));
        unlink_local("g");
    }
}

TEST(test_once__of_two_who_link_one_has_done_it)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    c.xid = 1000;
    assert_int_equal(give_name(&file, "g"), NFS_OK);
    unlink_local("g");
    kill_inside();
    be_another();
    assert_int_equal(give_name(&file, "g"), NFS_OK);
    be_the_first();
    assert_int_equal(give_name(&file, "g"), NFS_EXIST);
}

/* ---- CREATE, MKDIR, SYMLINK, MKNOD ---- */

static const enum nfs_procedure makes[] = {NFS_CREATE, NFS_MKDIR, NFS_SYMLINK, NFS_MKNOD};

TEST(test_once__what_is_made_is_made_once)
{
    for (int i = 0; i < 4; i++) {
        for (int is_half = 0; is_half < 2; is_half++) {
            c.xid++;
            assert_int_equal(make(makes[i], "new"), NFS_OK);
            struct nfs_fh first = c.result.fh;
            if (is_half)
                forget_outcome();
            restart();
            wait_a_tick();
            assert_int_equal(make(makes[i], "new"), NFS_OK);
            assert_true(c.result.has_fh && c.result.attr.is_there);
            assert_int_equal(first.len, c.result.fh.len);
            assert_memory_equal(first.data, c.result.fh.data, first.len);
            assert_int_equal(c.result.attr.attr.fileid, inode_of("new"));
            assert_int_equal(repeats(), 1);
            c.xid++;
            assert_int_equal(make(makes[i], "new"), NFS_EXIST);
            unlink_local("new");
        }
    }
}

TEST(test_once__what_is_made_and_gone_is_not_made_again)
{
    for (int i = 0; i < 4; i++) {
        c.xid++;
        assert_int_equal(make(makes[i], "new"), NFS_OK);
        struct nfs_fh first = c.result.fh;
        restart();
        unlink_local("new");
        assert_int_equal(make(makes[i], "new"), NFS_OK);
        assert_memory_equal(first.data, c.result.fh.data, first.len);
        assert_int_equal(inode_of("new"), 0);
        c.xid++;
        assert_int_equal(caller_getattr(&c, &first), NFS_STALE);
    }
}

TEST(test_once__what_is_made_and_moved_is_found)
{
    assert_int_equal(make(NFS_CREATE, "new"), NFS_OK);
    uint64_t inode = inode_of("new");
    restart();
    be_another();
    assert_int_equal(move("new", "elsewhere"), NFS_OK);
    (void)make_local("new");
    be_the_first();
    assert_int_equal(make(NFS_CREATE, "new"), NFS_OK);
    assert_true(c.result.attr.is_there);
    assert_int_equal(c.result.attr.attr.fileid, inode);
}

TEST(test_once__half_of_it_is_completed)
{
    struct nfs_args args = named("new");
    args.sattr = (struct nfs_sattr){.set_mode = true, .mode = 02750};
    assert_int_equal(caller_call(&c, NFS_MKDIR, &args), NFS_OK);
    assert_int_equal(chmod(caller_path(&c, "new"), 0700), 0); /* as mkdir alone leaves it */
    kill_inside();
    assert_int_equal(caller_call(&c, NFS_MKDIR, &args), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 02750);
    args.name = bytes_of_text("file");
    args.create = NFS_UNCHECKED;
    args.sattr.mtime_how = NFS_TIME_CLIENT;
    args.sattr.mtime = (struct nfs_time){5000, 0};
    c.xid++;
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    assert_int_equal(chmod(caller_path(&c, "file"), 0), 0);
    kill_inside();
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 02750);
    assert_int_equal(c.result.attr.attr.mtime.seconds, 5000);
}

TEST(test_once__half_of_it_twice)
{
    assert_int_equal(make(NFS_MKDIR, "new"), NFS_OK);
    uint64_t inode = inode_of("new");
    for (int i = 0; i < 3; i++) {
        wait_a_tick();
        kill_inside();
        assert_int_equal(make(NFS_MKDIR, "new"), NFS_OK);
        assert_int_equal(c.result.attr.attr.fileid, inode);
    }
}

/* Each would be taken for its own, but for one thing. */
TEST(test_once__what_others_made_is_exist)
{
    struct nfs_fh file;
    assert_int_equal(mkdir(caller_path(&c, "before"), 0750), 0);
    assert_int_equal(chown(caller_path(&c, "before"), 1000, 1000), 0);
    wait_a_tick();
    assert_int_equal(make(NFS_MKDIR, "before"), NFS_EXIST);
    kill_inside();
    assert_int_equal(make(NFS_MKDIR, "before"), NFS_EXIST); /* it is older */
    c.xid++;
    assert_int_equal(make(NFS_MKDIR, "after"), NFS_OK);
    unlink_local("after");
    kill_inside();
    assert_int_equal(mkdir(caller_path(&c, "after"), 0750), 0);
    assert_int_equal(chown(caller_path(&c, "after"), 1000, 1000), 0);
    assert_int_equal(make(NFS_MKDIR, "after"), NFS_EXIST); /* it is younger */
    c.xid++;
    assert_int_equal(make(NFS_MKDIR, "owner"), NFS_OK);
    assert_int_equal(chown(caller_path(&c, "owner"), 1001, 1001), 0);
    kill_inside();
    assert_int_equal(make(NFS_MKDIR, "owner"), NFS_EXIST);
    c.xid++;
    assert_int_equal(make(NFS_MKDIR, "type"), NFS_OK);
    unlink_local("type");
    (void)make_local("type");
    kill_inside();
    assert_int_equal(make(NFS_MKDIR, "type"), NFS_EXIST);
    be_another();
    assert_int_equal(caller_create(&c, &c.root, "same tick", 0640, &file), NFS_OK);
    be_the_first();
    c.xid = 5000;
    assert_int_equal(make(NFS_CREATE, "same tick"), NFS_EXIST);
    /* As if it had begun before the other one, within a tick of the clock. */
    struct intent early = {.key = 0};
    struct intent_ring *ring = c.options.intents;
    uint64_t number = atomic_load(&ring->next_number) - 1;
    assert_true(intent_read(ring, (uint32_t)(number % INTENT_COUNT), &early));
    early.begun_ns -= 1000000000;
    early.order = 0;
    (void)intent_begin(ring, &early);
    restart();
    assert_int_equal(make(NFS_CREATE, "same tick"), NFS_EXIST);
    assert_int_equal(repeats(), 0);
}

TEST(test_once__a_file_that_was_found_is_not_cut_again)
{
    uint64_t inode = make_local("f");
    struct nfs_args args = named("f");
    args.create = NFS_UNCHECKED;
    args.sattr.set_size = true;
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    struct nfs_fh file = c.result.fh;
    restart();
    be_another();
    assert_int_equal(caller_write(&c, &file, 0, "data", NFS_FILE_SYNC), NFS_OK);
    be_the_first();
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    assert_int_equal(c.result.attr.attr.size, 4);
    assert_int_equal(c.result.attr.attr.fileid, inode);
}

TEST(test_once__who_finds_a_file_has_not_made_it)
{
    assert_int_equal(make(NFS_CREATE, "new"), NFS_OK);
    kill_inside();
    be_another();
    struct nfs_args args = named("new");
    args.create = NFS_UNCHECKED;
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    be_the_first();
    assert_int_equal(make(NFS_CREATE, "new"), NFS_OK);
}

/* ---- SETATTR ---- */

TEST(test_once__a_guard_is_compared_once)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0600, &file), NFS_OK);
    for (int is_half = 0; is_half < 2; is_half++) {
        assert_int_equal(caller_getattr(&c, &file), NFS_OK);
        struct nfs_time guard = c.result.attr.attr.ctime;
        wait_a_tick();
        c.xid++;
        assert_int_equal(set_mode(&file, 0640, &guard), NFS_OK);
        if (is_half)
            forget_outcome();
        restart();
        wait_a_tick();
        assert_int_equal(set_mode(&file, 0640, &guard), NFS_OK);
        assert_int_equal(c.result.wcc.after.attr.mode, 0640);
        c.xid++;
        assert_int_equal(set_mode(&file, 0640, &guard), NFS_NOT_SYNC);
    }
}

TEST(test_once__a_guard_sees_who_came_after)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0600, &file), NFS_OK);
    struct nfs_time guard = c.result.attr.attr.ctime;
    wait_a_tick();
    c.xid++;
    assert_int_equal(set_mode(&file, 0640, &guard), NFS_OK);
    kill_inside();
    assert_int_equal(chmod(caller_path(&c, "f"), 0604), 0);
    assert_int_equal(set_mode(&file, 0640, &guard), NFS_NOT_SYNC);
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 0604);
}

TEST(test_once__what_was_written_since_is_not_cut)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0600, &file), NFS_OK);
    struct nfs_args args = {.fh = caller_bytes(&file), .sattr = {.set_size = true}};
    c.xid++;
    assert_int_equal(caller_call(&c, NFS_SETATTR, &args), NFS_OK);
    restart();
    assert_int_equal(caller_write(&c, &file, 0, "data", NFS_FILE_SYNC), NFS_OK);
    assert_int_equal(caller_call(&c, NFS_SETATTR, &args), NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.size, 4);
}

/* ---- which call is a repeat ---- */

TEST(test_once__another_call_is_no_repeat)
{
    for (int i = 0; i < 5; i++) {
        char name[] = "f0";
        name[1] = (char)(name[1] + i);
        assert_int_equal(make(NFS_CREATE, name), NFS_OK);
        restart();
        switch (i) {
        case 0:
            c.xid++;
            break;
        case 1:
            c.peer.address.bytes[3]++;
            break;
        case 2:
            c.credential.group_count = 1;
            c.credential.groups[0] = 5;
            break;
        case 3:
            c.credential.gid++;
            break;
        default:
            intent_ring_tick(c.options.intents, 600001); /* too long ago */
        }
        assert_int_equal(make(NFS_CREATE, name), NFS_EXIST);
    }
}

TEST(test_once__from_another_port_until_it_has_changed_more)
{
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
    restart();
    c.peer.port++;
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
    intent_ring_tick(c.options.intents, 5000);
    c.xid++;
    assert_int_equal(take_away(NFS_RMDIR, "d"), NFS_OK);
    c.xid--; /* the program was restarted, and counts as before */
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
    assert_int_not_equal(inode_of("d"), 0);
}

TEST(test_once__what_failed_has_changed_nothing_more)
{
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
    intent_ring_tick(c.options.intents, 5000);
    c.xid++;
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_EXIST);
    restart();
    c.xid--;
    c.peer.port++;
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
}

TEST(test_once__within_one_run_it_is_the_caches_matter)
{
    assert_int_equal(make(NFS_CREATE, "f"), NFS_OK);
    assert_int_equal(make(NFS_CREATE, "f"), NFS_EXIST);
}

TEST(test_once__an_answer_outlives_the_ring)
{
    assert_int_equal(make(NFS_CREATE, "f"), NFS_OK);
    for (int i = 0; i < 2; i++) {
        restart();
        /* The first entry is overwritten; what is repeated meanwhile has a new one. */
        for (uint32_t j = 0; j < INTENT_COUNT; j++)
            (void)intent_begin(c.options.intents, &(struct intent){.key = j + 1});
        assert_int_equal(make(NFS_CREATE, "f"), NFS_OK);
    }
}

TEST(test_once__an_outcome_of_another_boot_is_not_believed)
{
    c.options.intents->boot ^= 1;
    (void)make_local("f");
    link_local("f", "same");
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    c.xid++;
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
    c.xid++;
    assert_int_equal(make(NFS_MKDIR, "stays"), NFS_OK);
    uint64_t stays = inode_of("stays");
    link_local("same", "f"); /* the disk has neither */
    unlink_local("d");
    restart();
    assert_int_equal(make(NFS_MKDIR, "stays"), NFS_OK);
    assert_int_equal(inode_of("stays"), stays);
    c.xid--;
    assert_int_equal(make(NFS_MKDIR, "d"), NFS_OK);
    assert_int_not_equal(inode_of("d"), 0);
    c.xid--;
    assert_int_equal(take_away(NFS_REMOVE, "f"), NFS_OK);
    assert_int_equal(inode_of("f"), 0);
}

TEST(test_once__a_directory_that_is_gone_does_not_change_the_answer)
{
    struct nfs_fh directory;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0777, &directory), NFS_OK);
    struct nfs_args args = {.fh = caller_bytes(&directory), .name = bytes_of_text("f")};
    c.xid++;
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    struct nfs_fh file = c.result.fh;
    restart();
    unlink_local("d/f");
    unlink_local("d");
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_OK);
    assert_memory_equal(file.data, c.result.fh.data, file.len);
    c.xid++;
    assert_int_equal(caller_call(&c, NFS_CREATE, &args), NFS_STALE);
}

TEST_MAIN(start, stop, NULL, NULL)
