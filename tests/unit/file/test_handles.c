/*
 * test_handles.c -- handles: ours or not, there or gone, and that they live on.
 */
#include "caller.h"

#include "../test.h"
#include "file/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static struct caller c;

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,no_root_squash");
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

TEST(test_handles__every_changed_bit_and_every_length_is_badhandle)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_true(file.len <= HANDLE_MAX && file.len % 4 == 0);
    for (uint32_t bit = 0; bit < file.len * 8; bit++) {
        struct nfs_fh forged = file;
        forged.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(caller_getattr(&c, &forged), NFS_BADHANDLE);
    }
    for (uint32_t len = 0; len < NFS_FH_MAX; len++) {
        struct nfs_fh cut = file;
        memset(cut.data + file.len, 0, NFS_FH_MAX - file.len);
        cut.len = len;
        if (len != file.len)
            assert_int_equal(caller_getattr(&c, &cut), NFS_BADHANDLE);
    }
}

TEST(test_handles__another_key_is_badhandle)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    c.options.key.words[1]++;
    caller_restart(&c, "rw");
    assert_int_equal(caller_getattr(&c, &file), NFS_BADHANDLE);
}

TEST(test_handles__they_survive_restarts_and_renames)
{
    struct nfs_fh file, directory, again;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    caller_restart(&c, "rw");
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(caller_call(&c, NFS_RENAME,
                                 &(struct nfs_args){.fh = caller_bytes(&c.root),
                                                    .name = bytes_of_text("f"),
                                                    .to_fh = caller_bytes(&directory),
                                                    .to_name = bytes_of_text("g")}),
                     NFS_OK);
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(caller_lookup(&c, &directory, "g", &again), NFS_OK);
    assert_int_equal(again.len, file.len);
    assert_memory_equal(again.data, file.data, file.len);
}

TEST(test_handles__a_file_that_is_gone_is_stale)
{
    struct nfs_fh file, directory;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    assert_int_equal(caller_getattr(&c, &file), NFS_OK); /* it is open here */
    assert_int_equal(unlink(caller_path(&c, "f")), 0);   /* by somebody else */
    assert_int_equal(caller_getattr(&c, &file), NFS_STALE);
    assert_int_equal(rmdir(caller_path(&c, "d")), 0);
    assert_int_equal(caller_create(&c, &directory, "x", 0644, NULL), NFS_STALE);
    caller_restart(&c, "rw");
    assert_int_equal(caller_getattr(&c, &file), NFS_STALE);
}

/* The root of a file system has the same handle in all file systems of a kind: one that was mounted
 * on the exported directory must not lead to the one that is found when it is not. */
TEST(test_handles__the_root_of_the_file_system_is_not_in_an_export_below_it)
{
    struct statx stx = {0};
    struct handle_object object;
    struct nfs_fh fh;
    int fd = open(c.directory, O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    for (uint32_t i = 0; (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0; i++) {
        assert_true(i < 100);
        int above = openat(fd, "..", O_PATH | O_CLOEXEC);
        (void)close(fd);
        fd = above;
        assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_INO, &stx), 0);
    }
    assert_int_equal(handle_object_of(fd, &object), 0);
    (void)close(fd);
    handle_make(&c.options.key, load_be32(c.root.data + 4), &object, &fh);
    assert_int_equal(caller_getattr(&c, &fh), NFS_STALE);
    assert_int_equal(caller_lookup(&c, &fh, "etc", &fh), NFS_STALE);
    assert_int_equal(caller_getattr(&c, &c.root), NFS_OK);
}

TEST(test_handles__a_removed_file_gives_its_space_back)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(caller_write(&c, &file, 0, "data", NFS_UNSTABLE), NFS_OK);
    struct file_status before, after;
    file_get_status(c.service, &before);
    assert_int_equal(
        caller_call(&c, NFS_REMOVE,
                    &(struct nfs_args){.fh = caller_bytes(&c.root), .name = bytes_of_text("f")}),
        NFS_OK);
    /* A thread of the pool closes it behind the answer. */
    for (int i = 0; i < 1000; i++) {
        file_get_status(c.service, &after);
        if (after.open_files < before.open_files)
            return;
        assert_int_equal(
            caller_call(&c, NFS_FSSTAT, &(struct nfs_args){.fh = caller_bytes(&c.root)}), NFS_OK);
    }
    fail_msg("%u files were open, %u still are", before.open_files, after.open_files);
}

TEST(test_handles__dots_stay_inside)
{
    struct nfs_fh directory, up;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, &directory), NFS_OK);
    assert_int_equal(caller_lookup(&c, &c.root, "..", &up), NFS_OK);
    assert_memory_equal(up.data, c.root.data, c.root.len);
    assert_int_equal(caller_lookup(&c, &c.root, ".", &up), NFS_OK);
    assert_memory_equal(up.data, c.root.data, c.root.len);
    assert_int_equal(caller_lookup(&c, &directory, "..", &up), NFS_OK);
    assert_memory_equal(up.data, c.root.data, c.root.len);
}

TEST(test_handles__links_are_never_followed)
{
    struct nfs_fh link;
    assert_int_equal(symlink("/", caller_path(&c, "link")), 0);
    assert_int_equal(caller_lookup(&c, &c.root, "link", &link), NFS_OK);
    assert_int_equal(c.result.attr.attr.type, NFS_TYPE_LNK);
    assert_int_equal(caller_lookup(&c, &link, "etc", NULL), NFS_NOTDIR);
    assert_int_equal(caller_create(&c, &c.root, "link", 0644, NULL), NFS_EXIST);
    assert_int_equal(caller_read(&c, &link, 0, 10), NFS_INVAL);
}

TEST(test_handles__more_files_than_may_be_open)
{
    struct nfs_fh files[200];
    char name[16];
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(caller_create(&c, &c.root, name, 0644, &files[i]), NFS_OK);
        assert_int_equal(caller_write(&c, &files[i], 0, name, NFS_UNSTABLE), NFS_OK);
    }
    struct file_status status;
    file_get_status(c.service, &status);
    assert_true(status.open_files <= c.options.limits.files_max + 16);
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(caller_read(&c, &files[i], 0, 16), NFS_OK);
        assert_string_equal((char *)c.payload, name);
    }
}

/* ---- what does not lie in the export any more ---- */

static void export_below(const char *name)
{
    char line[128], why[512];
    struct text text;
    text_init(&text, why, sizeof why);
    (void)snprintf(line, sizeof line, "%s *(rw,no_root_squash)", caller_path(&c, name));
    if (!caller_reload(&c, line, &text))
        fail_msg("%s", why);
    caller_be(&c, 0, 0);
}

static void move(const char *from, const char *to)
{
    char old[128];
    (void)snprintf(old, sizeof old, "%s", caller_path(&c, from));
    assert_int_equal(rename(old, caller_path(&c, to)), 0);
}

/* Neither LOOKUP nor READDIRPLUS of `..` tells a handle of what is above. */
static void assert_no_parent(const struct nfs_fh *directory, const char *above)
{
    struct handle_object object;
    struct nfs_fh fh;
    int fd = open(caller_path(&c, above), O_PATH | O_CLOEXEC);
    assert_int_equal(handle_object_of(fd, &object), 0);
    (void)close(fd);
    handle_make(&c.options.key, load_be32(directory->data + 4), &object, &fh);
    assert_int_equal(caller_lookup(&c, directory, "..", NULL), NFS_STALE);
    assert_int_equal(
        caller_call(
            &c, NFS_READDIRPLUS,
            &(struct nfs_args){.fh = caller_bytes(directory), .dircount = 4096, .count = 8192}),
        NFS_OK);
    assert_null(memmem(c.payload, c.payload_len, fh.data, fh.len));
}

TEST(test_handles__the_root_of_before_leads_nowhere_up)
{
    struct nfs_fh root, inner, found;
    assert_int_equal(mkdir(caller_path(&c, "b"), 0755), 0);
    export_below("b");
    assert_int_equal(caller_mount(&c, caller_path(&c, "b"), &root), MOUNT_OK);
    assert_int_equal(caller_mkdir(&c, &root, "d", 0755, &inner), NFS_OK);
    assert_int_equal(caller_lookup(&c, &root, "..", &found), NFS_OK);
    assert_memory_equal(found.data, root.data, root.len);
    move("b", "b.old");
    assert_int_equal(mkdir(caller_path(&c, "b"), 0755), 0);
    export_below("b");
    assert_no_parent(&root, ".");
    assert_no_parent(&inner, "b.old");
}

TEST(test_handles__a_directory_that_was_moved_out_leads_nowhere_up)
{
    struct nfs_fh root, directory, inner, found;
    assert_int_equal(mkdir(caller_path(&c, "b"), 0755), 0);
    assert_int_equal(mkdir(caller_path(&c, "out"), 0755), 0);
    export_below("b");
    assert_int_equal(caller_mount(&c, caller_path(&c, "b"), &root), MOUNT_OK);
    assert_int_equal(caller_mkdir(&c, &root, "d", 0700, &directory), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &directory, "e", 0777, &inner), NFS_OK);
    caller_be(&c, 1000, 1000); /* who may search `e` and not `d` */
    assert_int_equal(caller_lookup(&c, &inner, "..", &found), NFS_OK);
    assert_memory_equal(found.data, directory.data, directory.len);
    caller_be(&c, 0, 0);
    move("b/d", "out/d");
    assert_no_parent(&directory, "out");
    assert_no_parent(&inner, "out/d");
    move("out/d", "b/d");
    assert_int_equal(caller_lookup(&c, &directory, "..", &found), NFS_OK);
    assert_memory_equal(found.data, root.data, root.len);
}

/* The kernel's `..` goes to what is mounted on the directory above, and from there to where that is
 * mounted: inside the export, though its files are not. */
TEST(test_handles__what_is_mounted_on_a_parent_is_not_reached)
{
    struct nfs_fh root, parent, directory;
    char outside[128], below[128];
    struct stat st;
    /* What is exported from now on is seen where we mount. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("# skipped: mount: no right\n");
        skip();
    }
    assert_int_equal(mkdir(caller_path(&c, "b"), 0755), 0);
    assert_int_equal(mkdir(caller_path(&c, "out"), 0755), 0);
    export_below("b");
    assert_int_equal(caller_mount(&c, caller_path(&c, "b"), &root), MOUNT_OK);
    assert_int_equal(caller_mkdir(&c, &root, "p", 0755, &parent), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &parent, "d", 0755, &directory), NFS_OK);
    (void)snprintf(outside, sizeof outside, "%s", caller_path(&c, "out"));
    (void)snprintf(below, sizeof below, "%s", caller_path(&c, "b/p"));
    assert_int_equal(stat(outside, &st), 0);
    assert_int_equal(mount(outside, below, NULL, MS_BIND, NULL), 0);
    enum nfs_stat stat = caller_lookup(&c, &directory, "..", NULL);
    enum nfs_stat listed = caller_call(
        &c, NFS_READDIRPLUS,
        &(struct nfs_args){.fh = caller_bytes(&directory), .dircount = 4096, .count = 4096});
    uint8_t fileid[8];
    store_be64(fileid, st.st_ino);
    bool is_shown = memmem(c.payload, c.payload_len, fileid, sizeof fileid) != NULL;
    assert_int_equal(umount2(below, MNT_DETACH), 0);
    assert_int_equal(stat, NFS_ACCES);
    assert_int_equal(listed, NFS_OK);
    assert_false(is_shown);
    assert_int_equal(caller_lookup(&c, &directory, "..", NULL), NFS_OK);
}

TEST_MAIN(start, stop, NULL, NULL)
