/*
 * test_names.c -- names of every kind; REMOVE, RMDIR, RENAME, LINK.
 */
#include "caller.h"

#include "../test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct caller c;

TEST_FIXTURE(start)
{
    caller_start(&c, "rw");
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static enum nfs_stat call(enum nfs_procedure procedure, const struct nfs_fh *directory,
                          struct bytes name)
{
    return caller_call(&c, procedure,
                       &(struct nfs_args){.fh = caller_bytes(directory),
                                          .name = name,
                                          .path = bytes_of_text("target"),
                                          .type = NFS_TYPE_FIFO});
}

static enum nfs_stat rename_to(const struct nfs_fh *from, const char *name, const struct nfs_fh *to,
                               const char *to_name)
{
    return caller_call(&c, NFS_RENAME,
                       &(struct nfs_args){.fh = caller_bytes(from),
                                          .name = bytes_of_text(name),
                                          .to_fh = caller_bytes(to),
                                          .to_name = bytes_of_text(to_name)});
}

static enum nfs_stat link_to(const struct nfs_fh *file, const struct nfs_fh *to, const char *name)
{
    return caller_call(&c, NFS_LINK,
                       &(struct nfs_args){.fh = caller_bytes(file),
                                          .to_fh = caller_bytes(to),
                                          .to_name = bytes_of_text(name)});
}

static const enum nfs_procedure named[] = {NFS_LOOKUP, NFS_CREATE, NFS_MKDIR, NFS_SYMLINK,
                                           NFS_MKNOD,  NFS_REMOVE, NFS_RMDIR};

TEST(test_names__what_is_no_name_is_refused_by_everybody)
{
    static uint8_t longest[257];
    memset(longest, 'n', sizeof longest);
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        assert_int_equal(call(named[i], &c.root, bytes_of_text("")), NFS_ACCES);
        assert_int_equal(call(named[i], &c.root, bytes_of_text("a/b")), NFS_ACCES);
        assert_int_equal(call(named[i], &c.root, bytes_of_text("/")), NFS_ACCES);
        assert_int_equal(call(named[i], &c.root, (struct bytes){(const uint8_t *)"a\0b", 3}),
                         NFS_ACCES);
        assert_int_equal(call(named[i], &c.root, (struct bytes){longest, 256}), NFS_NAMETOOLONG);
    }
    assert_int_equal(call(NFS_CREATE, &c.root, (struct bytes){longest, 255}), NFS_OK);
    assert_int_equal(call(NFS_LOOKUP, &c.root, (struct bytes){longest, 255}), NFS_OK);
}

TEST(test_names__every_other_byte_may_be_in_a_name)
{
    for (int byte = 1; byte < 256; byte++) {
        uint8_t name[2] = {(uint8_t)byte, 'x'};
        if (byte == '/')
            continue;
        assert_int_equal(call(NFS_CREATE, &c.root, (struct bytes){name, 2}), NFS_OK);
        assert_int_equal(call(NFS_REMOVE, &c.root, (struct bytes){name, 2}), NFS_OK);
    }
}

TEST(test_names__dots_are_not_made_nor_removed)
{
    static const enum nfs_procedure makers[] = {NFS_CREATE, NFS_MKDIR, NFS_SYMLINK, NFS_MKNOD};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(call(makers[i], &c.root, bytes_of_text(".")), NFS_EXIST);
        assert_int_equal(call(makers[i], &c.root, bytes_of_text("..")), NFS_EXIST);
    }
    assert_int_equal(call(NFS_REMOVE, &c.root, bytes_of_text(".")), NFS_INVAL);
    assert_int_equal(call(NFS_REMOVE, &c.root, bytes_of_text("..")), NFS_INVAL);
    assert_int_equal(call(NFS_RMDIR, &c.root, bytes_of_text(".")), NFS_INVAL);
    assert_int_equal(call(NFS_RMDIR, &c.root, bytes_of_text("..")), NFS_EXIST);
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(rename_to(&c.root, ".", &c.root, "x"), NFS_INVAL);
    assert_int_equal(rename_to(&c.root, "f", &c.root, ".."), NFS_INVAL);
    assert_int_equal(link_to(&file, &c.root, "."), NFS_EXIST);
}

TEST(test_names__a_file_is_no_directory)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        assert_int_equal(call(named[i], &file, bytes_of_text("x")), NFS_NOTDIR);
    assert_int_equal(rename_to(&file, "x", &c.root, "y"), NFS_NOTDIR);
    assert_int_equal(rename_to(&c.root, "f", &file, "y"), NFS_NOTDIR);
}

TEST(test_names__remove_and_rmdir_keep_apart)
{
    struct nfs_fh directory;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, NULL), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    assert_int_equal(call(NFS_REMOVE, &c.root, bytes_of_text("d")), NFS_ISDIR);
    assert_int_equal(call(NFS_RMDIR, &c.root, bytes_of_text("f")), NFS_NOTDIR);
    assert_int_equal(caller_create(&c, &directory, "g", 0644, NULL), NFS_OK);
    assert_int_equal(call(NFS_RMDIR, &c.root, bytes_of_text("d")), NFS_NOTEMPTY);
    assert_int_equal(call(NFS_REMOVE, &directory, bytes_of_text("g")), NFS_OK);
    assert_int_equal(call(NFS_RMDIR, &c.root, bytes_of_text("d")), NFS_OK);
    assert_true(c.result.wcc.before.is_there && c.result.wcc.after.is_there);
    assert_int_equal(call(NFS_RMDIR, &c.root, bytes_of_text("d")), NFS_NOENT);
    assert_int_equal(call(NFS_REMOVE, &c.root, bytes_of_text("x")), NFS_NOENT);
}

TEST(test_names__rename_replaces_what_is_like_it)
{
    struct nfs_fh a, d, found;
    assert_int_equal(caller_create(&c, &c.root, "a", 0644, &a), NFS_OK);
    assert_int_equal(caller_create(&c, &c.root, "b", 0644, NULL), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &d), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "e", 0755, NULL), NFS_OK);
    assert_int_equal(rename_to(&c.root, "a", &c.root, "a"), NFS_OK);
    assert_int_equal(rename_to(&c.root, "a", &c.root, "b"), NFS_OK);
    assert_int_equal(caller_lookup(&c, &c.root, "b", &found), NFS_OK);
    assert_memory_equal(found.data, a.data, a.len);
    assert_int_equal(rename_to(&c.root, "b", &c.root, "d"), NFS_ISDIR);
    assert_int_equal(rename_to(&c.root, "d", &c.root, "b"), NFS_NOTDIR);
    assert_int_equal(caller_create(&c, &d, "full", 0644, NULL), NFS_OK);
    assert_int_equal(rename_to(&c.root, "e", &c.root, "d"), NFS_NOTEMPTY);
    assert_int_equal(rename_to(&c.root, "d", &c.root, "e"), NFS_OK);
    assert_int_equal(rename_to(&c.root, "e", &d, "inside"), NFS_INVAL);
    assert_int_equal(rename_to(&c.root, "none", &c.root, "x"), NFS_NOENT);
    assert_int_equal(rename_to(&c.root, "b", &d, ".nfs0001"), NFS_OK); /* a name like any other */
    assert_true(c.result.wcc.before.is_there && c.result.to_wcc.before.is_there);
    assert_int_equal(caller_getattr(&c, &a), NFS_OK);
}

TEST(test_names__rename_over_an_open_file_makes_it_stale)
{
    struct nfs_fh b;
    assert_int_equal(caller_create(&c, &c.root, "a", 0644, NULL), NFS_OK);
    assert_int_equal(caller_create(&c, &c.root, "b", 0644, &b), NFS_OK);
    assert_int_equal(caller_write(&c, &b, 0, "x", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(rename_to(&c.root, "a", &c.root, "b"), NFS_OK);
    assert_int_equal(caller_getattr(&c, &b), NFS_STALE);
}

TEST(test_names__links)
{
    struct nfs_fh file, directory, found, symbolic;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    assert_int_equal(link_to(&file, &directory, "g"), NFS_OK);
    assert_int_equal(c.result.attr.attr.nlink, 2);
    assert_true(c.result.wcc.before.is_there && c.result.wcc.after.is_there);
    assert_int_equal(caller_lookup(&c, &directory, "g", &found), NFS_OK);
    assert_memory_equal(found.data, file.data, file.len); /* one file, one handle */
    assert_int_equal(link_to(&file, &directory, "g"), NFS_EXIST);
    assert_int_equal(link_to(&directory, &c.root, "x"), NFS_ISDIR);
    assert_int_equal(call(NFS_SYMLINK, &c.root, bytes_of_text("s")), NFS_OK);
    symbolic = c.result.fh;
    assert_int_equal(link_to(&symbolic, &c.root, "t"), NFS_OK); /* the link, not its target */
    assert_int_equal(c.result.attr.attr.type, NFS_TYPE_LNK);
    assert_int_equal(call(NFS_REMOVE, &c.root, bytes_of_text("f")), NFS_OK);
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(c.result.attr.attr.nlink, 1);
}

TEST(test_names__permission_is_the_kernels)
{
    struct nfs_fh directory;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    assert_int_equal(caller_create(&c, &directory, "f", 0644, NULL), NFS_OK);
    caller_be(&c, 1001, 1001);
    assert_int_equal(caller_create(&c, &directory, "g", 0644, NULL), NFS_ACCES);
    assert_int_equal(call(NFS_REMOVE, &directory, bytes_of_text("f")), NFS_ACCES);
    assert_int_equal(rename_to(&directory, "f", &c.root, "f"), NFS_ACCES);
    assert_int_equal(chmod(caller_path(&c, "d"), 0700), 0);
    assert_int_equal(caller_lookup(&c, &directory, "f", NULL), NFS_ACCES);
    assert_int_equal(chmod(c.directory, 01777), 0); /* sticky: only owners remove */
    caller_be(&c, 1000, 1000);
    assert_int_equal(caller_create(&c, &c.root, "mine", 0666, NULL), NFS_OK);
    caller_be(&c, 1001, 1001);
    assert_int_equal(call(NFS_REMOVE, &c.root, bytes_of_text("mine")), NFS_PERM);
}

TEST_MAIN(start, stop, NULL, NULL)
