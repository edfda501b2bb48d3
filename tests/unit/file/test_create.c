/*
 * test_create.c -- CREATE, MKDIR, SYMLINK, MKNOD: what is made, with which attributes, and what a
 * repeat gets.
 */
#include "caller.h"

#include "../test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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

static enum nfs_stat create(const char *name, enum nfs_create how, const struct nfs_sattr *sattr,
                            const char *verifier)
{
    struct nfs_args args = {
        .fh = caller_bytes(&c.root), .name = bytes_of_text(name), .create = how};
    if (sattr != NULL)
        args.sattr = *sattr;
    if (how == NFS_EXCLUSIVE)
        args.verf = (struct bytes){(const uint8_t *)verifier, NFS_VERF_LEN};
    return caller_call(&c, NFS_CREATE, &args);
}

TEST(test_create__a_file_is_its_callers)
{
    assert_int_equal(caller_create(&c, &c.root, "f", 0640, NULL), NFS_OK);
    const struct nfs_attr *attr = &c.result.attr.attr;
    assert_true(c.result.has_fh && c.result.attr.is_there);
    assert_int_equal(attr->mode, 0640); /* no umask of ours */
    assert_int_equal(attr->uid, 1000);
    assert_int_equal(attr->gid, 1000);
    assert_int_equal(attr->nlink, 1);
    assert_int_equal(attr->type, NFS_TYPE_REG);
    assert_true(c.result.wcc.before.is_there && c.result.wcc.after.is_there);
    assert_int_equal(caller_create(&c, &c.root, "f", 0640, NULL), NFS_EXIST);
}

TEST(test_create__unchecked_on_an_existing_file_sets_only_the_size)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0640, &file), NFS_OK);
    assert_int_equal(caller_write(&c, &file, 0, "data", NFS_UNSTABLE), NFS_OK);
    struct nfs_sattr sattr = {.set_mode = true, .mode = 0777};
    assert_int_equal(create("f", NFS_UNCHECKED, &sattr, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 0640);
    assert_int_equal(c.result.attr.attr.size, 4);
    assert_memory_equal(c.result.fh.data, file.data, file.len);
    sattr = (struct nfs_sattr){.set_size = true};
    assert_int_equal(create("f", NFS_UNCHECKED, &sattr, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.size, 0);
    caller_be(&c, 1001, 1001); /* who may not write may not cut it either */
    assert_int_equal(create("f", NFS_UNCHECKED, &sattr, NULL), NFS_ACCES);
}

TEST(test_create__unchecked_on_anything_else_is_exist)
{
    assert_int_equal(mkdir(caller_path(&c, "d"), 0777), 0);
    assert_int_equal(mkfifo(caller_path(&c, "fifo"), 0666), 0);
    assert_int_equal(symlink("nowhere", caller_path(&c, "link")), 0);
    struct nfs_sattr sattr = {.set_size = true};
    assert_int_equal(create("d", NFS_UNCHECKED, &sattr, NULL), NFS_EXIST);
    assert_int_equal(create("fifo", NFS_UNCHECKED, &sattr, NULL), NFS_EXIST);
    assert_int_equal(create("link", NFS_UNCHECKED, &sattr, NULL), NFS_EXIST);
    struct stat st;
    assert_int_not_equal(lstat(caller_path(&c, "nowhere"), &st), 0);
}

TEST(test_create__exclusive_knows_its_verifier_again)
{
    static const char *const verifiers[] = {
        "\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff",
        "\x80\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x80\x00\x00\x00", "abcdefgh"};
    char name[] = "f0";
    for (int i = 0; i < 5; i++, name[1]++) {
        struct nfs_fh first;
        assert_int_equal(create(name, NFS_EXCLUSIVE, NULL, verifiers[i]), NFS_OK);
        first = c.result.fh;
        assert_int_equal(create(name, NFS_EXCLUSIVE, NULL, verifiers[i]), NFS_OK);
        assert_memory_equal(first.data, c.result.fh.data, first.len);
        caller_restart(&c, "rw,no_root_squash"); /* and also after one of these */
        assert_int_equal(create(name, NFS_EXCLUSIVE, NULL, verifiers[i]), NFS_OK);
        for (int j = 0; j < 64; j++) { /* all 64 bits count */
            char other[NFS_VERF_LEN];
            memcpy(other, verifiers[i], sizeof other);
            other[j / 8] = (char)(other[j / 8] ^ 1 << j % 8);
            assert_int_equal(create(name, NFS_EXCLUSIVE, NULL, other), NFS_EXIST);
        }
    }
}

TEST(test_create__exclusive_does_not_take_an_old_file_for_its_own)
{
    struct timespec times[2] = {{0, 0}, {0, 0}};
    assert_int_equal(mknod(caller_path(&c, "f"), S_IFREG | 0666, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, caller_path(&c, "f"), times, 0), 0);
    assert_int_equal(create("f", NFS_EXCLUSIVE, NULL, "\0\0\0\0\0\0\0\0"), NFS_EXIST);
}

TEST(test_create__attributes_come_with_the_name)
{
    caller_be(&c, 0, 0);
    struct nfs_sattr sattr = {.set_mode = true,
                              .mode = 04751,
                              .set_uid = true,
                              .uid = 77,
                              .set_gid = true,
                              .gid = 78,
                              .set_size = true,
                              .size = 1234,
                              .mtime_how = NFS_TIME_CLIENT,
                              .mtime = {1000, 5}};
    assert_int_equal(create("f", NFS_GUARDED, &sattr, NULL), NFS_OK);
    const struct nfs_attr *attr = &c.result.attr.attr;
    assert_int_equal(attr->mode, 04751);
    assert_int_equal(attr->uid, 77);
    assert_int_equal(attr->gid, 78);
    assert_int_equal(attr->size, 1234);
    assert_int_equal(attr->mtime.seconds, 1000);
    assert_int_equal(attr->mtime.nseconds, 5);
}

TEST(test_create__the_umask_of_the_process_does_not_count)
{
    mode_t before = umask(077);
    caller_restart(&c, "rw,no_root_squash");
    struct nfs_sattr sattr = {.set_mode = true, .mode = 0666};
    enum nfs_stat made = create("f", NFS_GUARDED, &sattr, NULL);
    uint32_t mode = c.result.attr.attr.mode;
    enum nfs_stat directory = caller_mkdir(&c, &c.root, "d", 0777, NULL);
    (void)umask(before);
    assert_int_equal(made, NFS_OK);
    assert_int_equal(mode, 0666);
    assert_int_equal(directory, NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 0777);
}

static atomic_bool is_enough;
static atomic_uint sights, halves;

/* Looks at the name all the time: whose is it? */
static void *watch(void *path)
{
    struct stat st;
    while (!atomic_load(&is_enough))
        if (stat(path, &st) == 0) {
            atomic_fetch_add(&sights, 1);
            atomic_fetch_add(&halves, st.st_uid != 77 || st.st_size != 1234);
        }
    return NULL;
}

TEST(test_create__nobody_sees_a_file_without_its_attributes)
{
    static char path[512];
    pthread_t thread;
    struct nfs_sattr sattr = {
        .set_uid = true, .uid = 77, .set_size = true, .size = 1234, .set_mode = true, .mode = 0600};
    caller_be(&c, 0, 0);
    caller_restart(&c, "rw,no_root_squash,async");
    (void)snprintf(path, sizeof path, "%s", caller_path(&c, "f"));
    atomic_store(&is_enough, false);
    assert_int_equal(pthread_create(&thread, NULL, watch, path), 0);
    for (int i = 0; i < 2000 || (i < 100000 && atomic_load(&sights) < 2000); i++) {
        assert_int_equal(create("f", NFS_GUARDED, &sattr, NULL), NFS_OK);
        assert_int_equal(unlink(path), 0);
    }
    atomic_store(&is_enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&halves), 0);
}

TEST(test_create__what_cannot_be_set_leaves_no_name)
{
    struct stat st;
    struct nfs_sattr sattr = {.set_uid = true, .uid = 77}; /* only root gives files away */
    assert_int_equal(create("f", NFS_GUARDED, &sattr, NULL), NFS_PERM);
    assert_int_not_equal(stat(caller_path(&c, "f"), &st), 0);
    sattr = (struct nfs_sattr){.mtime_how = NFS_TIME_CLIENT, .mtime = {1, 1000000000}};
    assert_int_equal(create("f", NFS_GUARDED, &sattr, NULL), NFS_INVAL);
    assert_int_not_equal(stat(caller_path(&c, "f"), &st), 0);
    sattr = (struct nfs_sattr){.set_uid = true, .uid = 77};
    struct nfs_args args = {
        .fh = caller_bytes(&c.root), .name = bytes_of_text("d"), .sattr = sattr};
    assert_int_equal(caller_call(&c, NFS_MKDIR, &args), NFS_PERM);
    assert_int_not_equal(stat(caller_path(&c, "d"), &st), 0);
}

TEST(test_create__squash_holds_inside_sattr)
{
    caller_restart(&c, "rw,anonuid=55,anongid=56");
    caller_be(&c, 0, 0);
    struct nfs_sattr sattr = {.set_uid = true, .uid = 0, .set_gid = true, .gid = 0};
    assert_int_equal(create("f", NFS_GUARDED, &sattr, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.uid, 55);
    assert_int_equal(c.result.attr.attr.gid, 56);
}

TEST(test_create__the_group_of_a_setgid_directory)
{
    assert_int_equal(mkdir(caller_path(&c, "d"), 0777), 0);
    assert_int_equal(chown(caller_path(&c, "d"), 0, 4242), 0);
    assert_int_equal(chmod(caller_path(&c, "d"), 02777), 0);
    struct nfs_fh directory;
    assert_int_equal(caller_lookup(&c, &c.root, "d", &directory), NFS_OK);
    assert_int_equal(caller_create(&c, &directory, "f", 0644, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.gid, 4242);
    /* A directory inherits the bit as well, also one that is given more than a mode. */
    assert_int_equal(caller_mkdir(&c, &directory, "e", 0755, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 02755);
    struct nfs_args args = {
        .fh = caller_bytes(&directory),
        .name = bytes_of_text("timed"),
        .sattr = {.set_mode = true, .mode = 0755, .mtime_how = NFS_TIME_CLIENT, .mtime = {5, 6}}};
    assert_int_equal(caller_call(&c, NFS_MKDIR, &args), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 02755);
    assert_int_equal(c.result.attr.attr.mtime.seconds, 5);
}

TEST(test_create__directories)
{
    struct nfs_fh directory;
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 01750, &directory), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 01750);
    assert_int_equal(c.result.attr.attr.type, NFS_TYPE_DIR);
    assert_int_equal(c.result.wcc.after.attr.nlink, 3); /* the root: `.`, `..` of both */
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, NULL), NFS_EXIST);
    assert_int_equal(caller_mkdir(&c, &directory, "e", 02755, NULL), NFS_OK);
    assert_int_equal(c.result.attr.attr.mode, 02755);
}

TEST(test_create__symbolic_links)
{
    struct nfs_fh link;
    struct nfs_args args = {.fh = caller_bytes(&c.root),
                            .name = bytes_of_text("l"),
                            .path = bytes_of_text("../some/where")};
    assert_int_equal(caller_call(&c, NFS_SYMLINK, &args), NFS_OK);
    assert_int_equal(c.result.attr.attr.type, NFS_TYPE_LNK);
    assert_int_equal(c.result.attr.attr.uid, 1000);
    link = c.result.fh;
    args.fh = caller_bytes(&link);
    assert_int_equal(caller_call(&c, NFS_READLINK, &args), NFS_OK);
    assert_string_equal((char *)c.payload, "../some/where");
    args = (struct nfs_args){.fh = caller_bytes(&c.root)};
    assert_int_equal(caller_call(&c, NFS_READLINK, &args), NFS_INVAL);
    args = (struct nfs_args){.fh = caller_bytes(&c.root),
                             .name = bytes_of_text("m"),
                             .path = {(const uint8_t *)"a\0b", 3}};
    assert_int_equal(caller_call(&c, NFS_SYMLINK, &args), NFS_INVAL);
    args.path.len = 0;
    assert_int_equal(caller_call(&c, NFS_SYMLINK, &args), NFS_INVAL);
    static uint8_t longest[4096];
    memset(longest, 'x', sizeof longest);
    args.path = (struct bytes){longest, 4096};
    assert_int_equal(caller_call(&c, NFS_SYMLINK, &args), NFS_NAMETOOLONG);
}

static enum nfs_stat make_node(const char *name, enum nfs_type type, uint32_t major_number,
                               uint32_t minor_number)
{
    return caller_call(&c, NFS_MKNOD,
                       &(struct nfs_args){.fh = caller_bytes(&c.root),
                                          .name = bytes_of_text(name),
                                          .type = type,
                                          .sattr = {.set_mode = true, .mode = 0640},
                                          .rdev_major = major_number,
                                          .rdev_minor = minor_number});
}

TEST(test_create__nodes)
{
    assert_int_equal(make_node("fifo", NFS_TYPE_FIFO, 0, 0), NFS_OK);
    assert_int_equal(c.result.attr.attr.type, NFS_TYPE_FIFO);
    assert_int_equal(make_node("sock", NFS_TYPE_SOCK, 0, 0), NFS_OK);
    assert_int_equal(make_node("dev", NFS_TYPE_CHR, 1, 3), NFS_PERM);
    assert_int_equal(make_node("reg", NFS_TYPE_REG, 0, 0), NFS_BADTYPE);
    assert_int_equal(make_node("dir", NFS_TYPE_DIR, 0, 0), NFS_BADTYPE);
    caller_be(&c, 0, 0);
    assert_int_equal(make_node("dev", NFS_TYPE_CHR, 4096, 3), NFS_INVAL);
    assert_int_equal(make_node("dev", NFS_TYPE_BLK, 1, 0x100000), NFS_INVAL);
    assert_int_equal(make_node("dev", NFS_TYPE_CHR, 4095, 0xfffff), NFS_OK);
    assert_int_equal(c.result.attr.attr.rdev_major, 4095);
    assert_int_equal(c.result.attr.attr.rdev_minor, 0xfffff);
}

TEST(test_create__a_read_only_export_makes_nothing)
{
    caller_restart(&c, "ro");
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, NULL), NFS_ROFS);
    assert_int_equal(caller_mkdir(&c, &c.root, "d", 0755, NULL), NFS_ROFS);
    assert_int_equal(make_node("fifo", NFS_TYPE_FIFO, 0, 0), NFS_ROFS);
    assert_true(c.result.wcc.after.is_there);
}

/* ---- no descriptor is left ---- */

static struct rlimit plenty;

/* From now on nothing more can be opened. */
static void use_up_descriptors(void)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &plenty), 0);
    int next = fcntl(0, F_DUPFD_CLOEXEC, 0);
    assert_true(next > 0);
    (void)close(next);
    struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = plenty.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static enum nfs_stat make_without_descriptors(enum nfs_procedure procedure)
{
    struct nfs_args args = {.fh = caller_bytes(&c.root),
                            .name = bytes_of_text("made"),
                            .type = NFS_TYPE_FIFO,
                            .path = bytes_of_text("target"),
                            .create = NFS_GUARDED,
                            .sattr = {.set_mode = true, .mode = 0700, .set_gid = true, .gid = 77}};
    use_up_descriptors();
    enum nfs_stat stat = caller_call(&c, procedure, &args);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &plenty), 0);
    return stat;
}

static const enum nfs_procedure makers[] = {NFS_CREATE, NFS_MKDIR, NFS_SYMLINK, NFS_MKNOD};

TEST(test_create__what_cannot_be_completed_is_not_made)
{
    struct stat st;
    caller_be(&c, 0, 0);
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        assert_int_equal(make_without_descriptors(makers[i]), NFS_JUKEBOX);
        assert_int_not_equal(lstat(caller_path(&c, "made"), &st), 0);
        assert_int_equal(caller_getattr(&c, &c.root), NFS_OK);
    }
}

TEST(test_create__files_that_nobody_uses_make_room)
{
    struct stat st;
    caller_be(&c, 0, 0);
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        for (int n = 0; n < 8; n++) {
            char name[] = {'f', (char)('0' + n), 0};
            enum nfs_stat stat = caller_lookup(&c, &c.root, name, NULL);
            if (stat != NFS_OK)
                assert_int_equal(caller_create(&c, &c.root, name, 0644, NULL), NFS_OK);
        }
        assert_int_equal(make_without_descriptors(makers[i]), NFS_OK);
        assert_int_equal(lstat(caller_path(&c, "made"), &st), 0);
        assert_int_equal(st.st_gid, 77);
        assert_int_equal(remove(caller_path(&c, "made")), 0);
    }
}

TEST_MAIN(start, stop, NULL, NULL)
