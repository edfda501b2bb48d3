/*
 * test_attributes.c -- GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF, and who callers are.
 */
#include "caller.h"

#include "../test.h"
#include "file/identity.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct caller c;
static struct nfs_fh file;

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,no_root_squash");
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static enum nfs_stat set(const struct nfs_fh *fh, struct nfs_sattr sattr)
{
    return caller_call(&c, NFS_SETATTR, &(struct nfs_args){.fh = caller_bytes(fh), .sattr = sattr});
}

TEST(test_attributes__are_those_of_the_file)
{
    struct stat st;
    assert_int_equal(caller_write(&c, &file, 0, "12345", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(stat(caller_path(&c, "f"), &st), 0);
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    const struct nfs_attr *attr = &c.result.attr.attr;
    assert_int_equal(attr->fileid, st.st_ino);
    assert_int_equal(attr->size, 5);
    assert_int_equal(attr->used, st.st_blocks * 512);
    assert_int_equal(attr->mtime.seconds, st.st_mtim.tv_sec);
    assert_int_equal(attr->mtime.nseconds, st.st_mtim.tv_nsec);
    assert_int_equal(attr->ctime.nseconds, st.st_ctim.tv_nsec);
    uint64_t fsid = attr->fsid;
    caller_restart(&c, "rw");
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(c.result.attr.attr.fsid, fsid);
}

TEST(test_attributes__times_beyond_32_bits_are_shown_as_the_nearest)
{
    struct timespec times[2] = {{-5, 0}, {INT64_C(5000000000), 0}};
    struct stat st;
    assert_int_equal(utimensat(AT_FDCWD, caller_path(&c, "f"), times, 0), 0);
    assert_int_equal(stat(caller_path(&c, "f"), &st), 0);
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(c.result.attr.attr.atime.seconds, 0);
    if (st.st_mtim.tv_sec == INT64_C(5000000000))
        assert_int_equal(c.result.attr.attr.mtime.seconds, UINT32_MAX);
}

TEST(test_attributes__setattr_sets_what_is_asked_for)
{
    assert_int_equal(set(&file, (struct nfs_sattr){.set_mode = true, .mode = 0600}), NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.mode, 0600);
    assert_true(c.result.wcc.before.is_there);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_size = true, .size = 100}), NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.size, 100);
    assert_int_equal(set(&file, (struct nfs_sattr){.atime_how = NFS_TIME_CLIENT,
                                                   .atime = {1, 2},
                                                   .mtime_how = NFS_TIME_CLIENT,
                                                   .mtime = {UINT32_MAX, 999999999}}),
                     NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.atime.seconds, 1);
    assert_int_equal(c.result.wcc.after.attr.mtime.seconds, UINT32_MAX);
    assert_int_equal(c.result.wcc.after.attr.mtime.nseconds, 999999999);
    assert_int_equal(set(&file, (struct nfs_sattr){.mtime_how = NFS_TIME_SERVER}), NFS_OK);
    assert_int_not_equal(c.result.wcc.after.attr.mtime.seconds, UINT32_MAX);
    assert_int_equal(c.result.wcc.after.attr.atime.seconds, 1);
    assert_int_equal(
        set(&file, (struct nfs_sattr){.mtime_how = NFS_TIME_CLIENT, .mtime = {1, 1000000000}}),
        NFS_INVAL);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_size = true, .size = UINT64_MAX}),
                     NFS_FBIG);
    assert_int_equal(set(&c.root, (struct nfs_sattr){.set_size = true}), NFS_ISDIR);
}

TEST(test_attributes__a_guard_compares_seconds_and_nanoseconds)
{
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    struct nfs_time ctime = c.result.attr.attr.ctime;
    struct nfs_args args = {.fh = caller_bytes(&file),
                            .sattr = {.set_mode = true, .mode = 0600},
                            .has_guard = true,
                            .guard = {ctime.seconds, ctime.nseconds ^ 1}};
    assert_int_equal(caller_call(&c, NFS_SETATTR, &args), NFS_NOT_SYNC);
    assert_int_equal(c.result.wcc.after.attr.mode, 0644);
    args.guard = (struct nfs_time){ctime.seconds + 1, ctime.nseconds};
    assert_int_equal(caller_call(&c, NFS_SETATTR, &args), NFS_NOT_SYNC);
    args.guard = ctime;
    assert_int_equal(caller_call(&c, NFS_SETATTR, &args), NFS_OK);
}

TEST(test_attributes__only_the_owner_changes_them)
{
    caller_be(&c, 1001, 1001);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_mode = true, .mode = 0777}), NFS_PERM);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_size = true}), NFS_ACCES);
    assert_int_equal(set(&file, (struct nfs_sattr){.mtime_how = NFS_TIME_SERVER}), NFS_PERM);
    caller_be(&c, 1000, 1000);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_uid = true, .uid = 1001}), NFS_PERM);
    c.credential.group_count = 1;
    c.credential.groups[0] = 2000;
    assert_int_equal(set(&file, (struct nfs_sattr){.set_gid = true, .gid = 2000}), NFS_OK);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_gid = true, .gid = 2001}), NFS_PERM);
    caller_be(&c, 0, 0);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_uid = true, .uid = 1001}), NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.uid, 1001);
}

/* As open(O_TRUNC) sends it: the size, and the time of the server. */
TEST(test_attributes__who_may_write_may_truncate)
{
    assert_int_equal(set(&file, (struct nfs_sattr){.set_mode = true, .mode = 0666}), NFS_OK);
    assert_int_equal(caller_write(&c, &file, 0, "12345", NFS_UNSTABLE), NFS_OK);
    struct nfs_sattr truncation = {.set_size = true, .size = 2, .mtime_how = NFS_TIME_SERVER};
    struct nfs_sattr old = {.mtime_how = NFS_TIME_CLIENT, .mtime = {1, 2}};
    assert_int_equal(set(&file, old), NFS_OK);
    caller_be(&c, 4711, 4711);
    assert_int_equal(set(&file, truncation), NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.size, 2);
    assert_true(c.result.wcc.after.attr.mtime.seconds > 1);
    truncation.atime_how = NFS_TIME_SERVER;
    assert_int_equal(set(&file, truncation), NFS_OK);
    truncation.mtime_how = NFS_TIME_CLIENT; /* any other time is the owner's to say */
    assert_int_equal(set(&file, truncation), NFS_PERM);
}

TEST(test_attributes__chown_and_chmod_in_one_call_keep_the_mode)
{
    caller_be(&c, 0, 0);
    assert_int_equal(
        set(&file, (struct nfs_sattr){.set_uid = true, .uid = 5, .set_mode = true, .mode = 04755}),
        NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.mode, 04755);
}

TEST(test_attributes__the_mode_of_a_link_is_nobodys_matter)
{
    struct nfs_fh link;
    assert_int_equal(symlink("f", caller_path(&c, "l")), 0);
    assert_int_equal(caller_lookup(&c, &c.root, "l", &link), NFS_OK);
    caller_be(&c, 0, 0);
    assert_int_equal(
        set(&link, (struct nfs_sattr){.set_mode = true, .mode = 0600, .set_uid = true, .uid = 9}),
        NFS_OK);
    struct stat st;
    assert_int_equal(lstat(caller_path(&c, "l"), &st), 0);
    assert_int_equal(st.st_uid, 9);
    assert_int_equal(stat(caller_path(&c, "f"), &st), 0);
    assert_int_equal(st.st_uid, 1000);
    assert_int_equal(st.st_mode & 07777, 0644);
}

TEST(test_attributes__a_fifo_is_changed_without_being_opened)
{
    struct nfs_fh fifo;
    assert_int_equal(mkfifo(caller_path(&c, "p"), 0600), 0);
    assert_int_equal(chown(caller_path(&c, "p"), 1000, 1000), 0);
    assert_int_equal(caller_lookup(&c, &c.root, "p", &fifo), NFS_OK);
    assert_int_equal(set(&fifo, (struct nfs_sattr){.set_mode = true, .mode = 0640}), NFS_OK);
    assert_int_equal(c.result.wcc.after.attr.mode, 0640);
    assert_int_equal(set(&fifo, (struct nfs_sattr){.set_size = true}), NFS_INVAL);
}

/* ---- ACCESS, by the kernel's rules: every mode, for the owner, the group, others, root ---- */

static uint32_t ask(const struct nfs_fh *fh)
{
    assert_int_equal(
        caller_call(&c, NFS_ACCESS, &(struct nfs_args){.fh = caller_bytes(fh), .access = 0x3f}),
        NFS_OK);
    return c.result.access;
}

static uint32_t expected_of_file(uint32_t bits, uint32_t mode, bool is_root)
{
    bool any_x = (mode & 0111) != 0;
    uint32_t ret = 0;
    if (is_root || (bits & 4))
        ret |= NFS_ACCESS_READ;
    if (is_root || (bits & 2))
        ret |= NFS_ACCESS_MODIFY | NFS_ACCESS_EXTEND;
    if (is_root ? any_x : (bits & 1) != 0)
        ret |= NFS_ACCESS_EXECUTE;
    return ret;
}

TEST(test_attributes__access_is_what_the_kernel_allows)
{
    assert_int_equal(chown(caller_path(&c, "f"), 1000, 2000), 0);
    const struct {
        uint32_t uid, group, shift;
    } who[] = {{1000, 1, 6}, {1001, 2000, 3}, {1002, 3, 0}, {0, 0, 0}};
    for (uint32_t mode = 0; mode < 01000; mode++) {
        assert_int_equal(chmod(caller_path(&c, "f"), mode), 0);
        for (int i = 0; i < 4; i++) {
            caller_be(&c, who[i].uid, 99);
            c.credential.group_count = 1;
            c.credential.groups[0] = who[i].group;
            uint32_t expected = expected_of_file(mode >> who[i].shift & 7, mode, who[i].uid == 0);
            assert_int_equal(ask(&file), expected);
        }
    }
}

/* One more user may read and write, by an access control list as the kernel stores it. */
TEST(test_attributes__access_control_lists_count)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, rights;
            uint32_t id;
        } entries[5];
    } list = {2,
              {{0x01, 6, UINT32_MAX},
               {0x02, 6, 4711},
               {0x04, 0, UINT32_MAX},
               {0x10, 7, UINT32_MAX},
               {0x20, 0, UINT32_MAX}}};
    struct nfs_args args = {.fh = caller_bytes(&file),
                            .access = NFS_ACCESS_READ | NFS_ACCESS_MODIFY | NFS_ACCESS_EXECUTE};
    if (setxattr(caller_path(&c, "f"), "system.posix_acl_access", &list, sizeof list, 0) != 0) {
        print_message("# skipped: this file system has no access control lists\n");
        skip();
    }
    caller_be(&c, 4711, 4711);
    assert_int_equal(caller_call(&c, NFS_ACCESS, &args), NFS_OK);
    assert_int_equal(c.result.access, NFS_ACCESS_READ | NFS_ACCESS_MODIFY);
    assert_int_equal(caller_write(&c, &file, 0, "acl", NFS_UNSTABLE), NFS_OK);
    assert_int_equal(caller_read(&c, &file, 0, 3), NFS_OK);
    caller_be(&c, 4712, 4711);
    assert_int_equal(caller_call(&c, NFS_ACCESS, &args), NFS_OK);
    assert_int_equal(c.result.access, 0);
    assert_int_equal(caller_write(&c, &file, 0, "acl", NFS_UNSTABLE), NFS_ACCES);
    assert_int_equal(caller_read(&c, &file, 0, 3), NFS_ACCES);
}

TEST(test_attributes__access_to_directories)
{
    struct nfs_fh directory;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0750, &directory), NFS_OK);
    assert_int_equal(ask(&directory), NFS_ACCESS_READ | NFS_ACCESS_LOOKUP | NFS_ACCESS_MODIFY |
                                          NFS_ACCESS_EXTEND | NFS_ACCESS_DELETE);
    caller_be(&c, 1001, 1000);
    assert_int_equal(ask(&directory), NFS_ACCESS_READ | NFS_ACCESS_LOOKUP);
    caller_be(&c, 1001, 1001);
    assert_int_equal(ask(&directory), 0);
}

TEST(test_attributes__access_to_a_read_only_export)
{
    caller_restart(&c, "ro");
    assert_int_equal(ask(&file), NFS_ACCESS_READ);
}

/* ---- who callers are ---- */

TEST(test_attributes__root_is_squashed)
{
    caller_restart(&c, "rw");
    assert_int_equal(chmod(caller_path(&c, "f"), 0600), 0);
    caller_be(&c, 0, 0);
    assert_int_equal(ask(&file), 0);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_mode = true, .mode = 0777}), NFS_PERM);
    assert_int_equal(caller_create(&c, &c.root, "r", 0644, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.uid, 65534);
    caller_be(&c, 1000, 0); /* and the group root */
    assert_int_equal(caller_create(&c, &c.root, "s", 0644, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.uid, 1000);
    assert_int_equal(c.result.attr.attr.gid, 65534);
}

TEST(test_attributes__an_owner_that_is_squashed_is_not_set)
{
    caller_restart(&c, "rw,anonuid=1000,anongid=1000"); /* the file is theirs already */
    assert_int_equal(set(&file, (struct nfs_sattr){.set_uid = true, .uid = 0}), NFS_PERM);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_gid = true, .gid = 0}), NFS_PERM);
    assert_int_equal(set(&file, (struct nfs_sattr){.set_uid = true, .uid = 1000}), NFS_OK);
}

TEST(test_attributes__everybody_is_squashed)
{
    caller_restart(&c, "rw,all_squash,anonuid=321,anongid=654");
    caller_be(&c, 1000, 1000);
    assert_int_equal(caller_create(&c, &c.root, "a", 0644, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.uid, 321);
    assert_int_equal(c.result.attr.attr.gid, 654);
    assert_int_equal(ask(&file), NFS_ACCESS_READ);
}

TEST(test_attributes__auth_none_is_anonymous)
{
    c.credential = (struct rpc_credential){.flavor = RPC_AUTH_NONE};
    assert_int_equal(caller_create(&c, &c.root, "a", 0644, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.uid, 65534);
}

TEST(test_attributes__sixteen_groups_count)
{
    assert_int_equal(chown(caller_path(&c, "f"), 0, 3015), 0);
    assert_int_equal(chmod(caller_path(&c, "f"), 0040), 0);
    c.credential.group_count = 16;
    for (uint32_t i = 0; i < 16; i++)
        c.credential.groups[i] = 3000 + i;
    assert_int_equal(ask(&file), NFS_ACCESS_READ);
    c.credential.group_count = 15;
    assert_int_equal(ask(&file), 0);
}

TEST(test_attributes__a_group_that_no_kernel_knows_is_none)
{
    assert_int_equal(chown(caller_path(&c, "f"), 0, 3015), 0);
    assert_int_equal(chmod(caller_path(&c, "f"), 0040), 0);
    c.credential.group_count = 2;
    c.credential.groups[0] = UINT32_MAX;
    c.credential.groups[1] = 3015;
    assert_int_equal(ask(&file), NFS_ACCESS_READ);
}

/* What is remembered of one caller is found by a hash: nobody may be able to choose another's. */
TEST(test_attributes__the_mark_of_a_caller_is_secret)
{
    static struct identity a, b;
    const struct export_rights rights = {.squash = EXPORT_SQUASH_NONE};
    struct rpc_credential credential = {.flavor = RPC_AUTH_SYS, .group_count = 2, .groups = {5, 6}};
    identity_of(&credential, &rights, 1, &a);
    identity_of(&credential, &rights, 2, &b);
    assert_true(a.mark != b.mark);
    identity_of(&credential, &rights, 1, &b);
    assert_true(a.mark == b.mark);
    credential.groups[1] = 7;
    identity_of(&credential, &rights, 1, &b);
    assert_true(a.mark != b.mark);
}

TEST(test_attributes__groups_of_the_server_replace_the_wires)
{
    c.options.groups_of_server = true;
    caller_restart(&c, "rw");
    assert_int_equal(chown(caller_path(&c, "f"), 0, 3015), 0);
    assert_int_equal(chmod(caller_path(&c, "f"), 0040), 0);
    caller_be(&c, 123456, 123456); /* whom no book knows */
    c.credential.group_count = 1;
    c.credential.groups[0] = 3015;
    assert_int_equal(ask(&file), 0);
    assert_int_equal(ask(&file), 0); /* known by now */
}

/* ---- the file system ---- */

TEST(test_attributes__numbers_of_the_file_system)
{
    struct nfs_args args = {.fh = caller_bytes(&c.root)};
    struct statvfs fs;
    assert_int_equal(statvfs(c.directory, &fs), 0);
    assert_int_equal(caller_call(&c, NFS_FSSTAT, &args), NFS_OK);
    struct xdr_in in = xdr_in_of((struct bytes){c.payload, c.payload_len});
    assert_int_equal(xdr_get_u64(&in), fs.f_blocks * fs.f_frsize);
    assert_int_equal(caller_call(&c, NFS_FSINFO, &args), NFS_OK);
    in = xdr_in_of((struct bytes){c.payload, c.payload_len});
    assert_int_equal(xdr_get_u32(&in), NFS_DATA_MAX);
    (void)xdr_get_fixed(&in, 6 * 4);
    assert_true(xdr_get_u64(&in) >= UINT64_C(1) << 40); /* also where the library does not know */
    assert_int_equal(caller_call(&c, NFS_PATHCONF, &args), NFS_OK);
    in = xdr_in_of((struct bytes){c.payload, c.payload_len});
    assert_true(xdr_get_u32(&in) > 1);
    assert_int_equal(xdr_get_u32(&in), 255);
}

TEST_MAIN(start, stop, NULL, NULL)
