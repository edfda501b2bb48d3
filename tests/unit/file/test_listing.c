/*
 * test_listing.c -- READDIR and READDIRPLUS: every entry once, whatever happens meanwhile.
 */
#include "caller.h"

#include "../test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct caller c;

/* What a listing said, piece by piece. */
static struct listing {
    char names[4096][24];
    uint64_t cookies[4096], fileids[4096];
    struct nfs_fh handles[4096];
    uint32_t count, call_count, with_attr;
    bool is_over;
} l;

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,async");
    memset(&l, 0, sizeof l);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static void get_post_attr(struct xdr_in *in)
{
    if (xdr_get_bool(in)) {
        l.with_attr++;
        (void)xdr_get_fixed(in, NFS_ATTR_LEN);
    }
    struct nfs_fh *fh = &l.handles[l.count - 1];
    fh->len = 0;
    if (!xdr_get_bool(in))
        return;
    struct bytes handle = xdr_get_opaque(in, NFS_FH_MAX);
    fh->len = handle.len;
    memcpy(fh->data, handle.at, handle.len);
}

static void get_entries(bool is_plus)
{
    struct xdr_in in = xdr_in_of((struct bytes){c.payload, c.payload_len});
    while (xdr_get_bool(&in)) {
        uint64_t fileid = xdr_get_u64(&in);
        struct bytes name = xdr_get_opaque(&in, 255);
        assert_true(l.count < 4096 && name.len < 24);
        memcpy(l.names[l.count], name.at, name.len);
        l.names[l.count][name.len] = 0;
        l.fileids[l.count] = fileid;
        l.cookies[l.count++] = xdr_get_u64(&in);
        if (is_plus)
            get_post_attr(&in);
    }
    l.is_over = xdr_get_bool(&in);
    assert_true(xdr_in_done(&in));
    l.call_count++;
}

/* One call; returns its status, and adds to the listing. */
static enum nfs_stat list(enum nfs_procedure procedure, uint64_t cookie, uint32_t dircount,
                          uint32_t count)
{
    enum nfs_stat stat = caller_call(
        &c, procedure,
        &(struct nfs_args){
            .fh = caller_bytes(&c.root), .cookie = cookie, .dircount = dircount, .count = count});
    if (stat == NFS_OK) {
        /* The head in front of the entries: status, attributes, verifier. */
        assert_true(c.payload_len + NFS_DIR_HEAD_MAX <= count);
        get_entries(procedure == NFS_READDIRPLUS);
    }
    return stat;
}

static void list_all(enum nfs_procedure procedure, uint32_t count)
{
    while (!l.is_over)
        assert_int_equal(list(procedure, l.count == 0 ? 0 : l.cookies[l.count - 1], count, count),
                         NFS_OK);
}

static uint32_t times_listed(const char *name)
{
    uint32_t times = 0;
    for (uint32_t i = 0; i < l.count; i++)
        times += strcmp(l.names[i], name) == 0;
    return times;
}

static void make_files(uint32_t count)
{
    char name[24];
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "file-%u", i);
        assert_int_equal(mknod(caller_path(&c, name), S_IFREG | 0644, 0), 0);
    }
}

TEST(test_listing__every_entry_once)
{
    make_files(1000);
    const enum nfs_procedure procedures[] = {NFS_READDIR, NFS_READDIRPLUS};
    const uint32_t counts[] = {512, 4096, 1 << 20};
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 3; i++) {
            memset(&l, 0, sizeof l);
            list_all(procedures[p], counts[i]);
            assert_int_equal(l.count, 1002);
            assert_int_equal(times_listed("."), 1);
            assert_int_equal(times_listed(".."), 1);
            assert_int_equal(times_listed("file-0"), 1);
            assert_int_equal(times_listed("file-999"), 1);
            if (procedures[p] == NFS_READDIRPLUS)
                assert_int_equal(l.with_attr, 1002);
        }
}

/* ---- what READDIRPLUS says of an entry ---- */

static void assert_same_fh(const struct nfs_fh *a, const struct nfs_fh *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

static void assert_entries_are_what_lookup_finds(void)
{
    struct nfs_fh fh;
    for (uint32_t i = 0; i < l.count; i++) {
        assert_int_equal(caller_lookup(&c, &c.root, l.names[i], &fh), NFS_OK);
        assert_same_fh(&fh, &l.handles[i]);
        assert_int_equal(c.result.attr.attr.fileid, l.fileids[i]);
    }
}

/* Files that have just changed are looked at more closely than others. */
static void wait_until_old(const char *path)
{
    struct stat st;
    struct timespec now;
    do {
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    } while ((now.tv_sec - st.st_ctim.tv_sec) * 1000 +
                 (now.tv_nsec - st.st_ctim.tv_nsec) / 1000000 <=
             30);
}

TEST(test_listing__young_and_old_entries_are_what_lookup_finds)
{
    make_files(3);
    assert_int_equal(mkdir(caller_path(&c, "directory"), 0700), 0);
    assert_int_equal(mkfifo(caller_path(&c, "fifo"), 0600), 0);
    assert_int_equal(symlink("directory", caller_path(&c, "link")), 0);
    for (int round = 0; round < 2; round++) {
        memset(&l, 0, sizeof l);
        list_all(NFS_READDIRPLUS, 65536);
        assert_int_equal(l.count, 8);
        assert_int_equal(l.with_attr, 8);
        assert_entries_are_what_lookup_finds();
        wait_until_old(caller_path(&c, "link"));
    }
}

static atomic_bool is_swapping;

static void *swap(void *argument)
{
    const int directory = *(const int *)argument;
    while (atomic_load(&is_swapping))
        assert_int_equal(renameat2(directory, "file-0", directory, "file-1", RENAME_EXCHANGE), 0);
    return NULL;
}

TEST(test_listing__handle_and_attributes_are_of_one_object)
{
    struct nfs_fh handles[2];
    uint64_t fileids[2];
    make_files(2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(caller_lookup(&c, &c.root, i == 0 ? "file-0" : "file-1", &handles[i]),
                         NFS_OK);
        fileids[i] = c.result.attr.attr.fileid;
    }
    wait_until_old(caller_path(&c, "file-1"));
    pthread_t thread;
    int directory = open(c.directory, O_RDONLY | O_DIRECTORY);
    atomic_store(&is_swapping, true);
    assert_int_equal(pthread_create(&thread, NULL, swap, &directory), 0);
    for (uint32_t round = 0; round < test_rounds(2000); round++) {
        memset(&l, 0, sizeof l);
        list_all(NFS_READDIRPLUS, 4096);
        for (uint32_t i = 0; i < l.count; i++)
            for (int j = 0; j < 2; j++)
                if (l.fileids[i] == fileids[j])
                    assert_same_fh(&l.handles[i], &handles[j]);
    }
    atomic_store(&is_swapping, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(close(directory), 0);
}

TEST(test_listing__a_listing_goes_on_after_a_restart)
{
    make_files(300);
    assert_int_equal(list(NFS_READDIR, 0, 0, 2000), NFS_OK);
    assert_false(l.is_over);
    caller_restart(&c, "rw");
    list_all(NFS_READDIR, 2000);
    assert_int_equal(l.count, 302);
}

TEST(test_listing__entries_come_and_go_meanwhile)
{
    char name[24];
    make_files(600);
    for (uint32_t round = 0; !l.is_over; round++) {
        assert_int_equal(
            list(NFS_READDIRPLUS, l.count == 0 ? 0 : l.cookies[l.count - 1], 1500, 1500), NFS_OK);
        (void)snprintf(name, sizeof name, "new-%u", round);
        assert_int_equal(mknod(caller_path(&c, name), S_IFREG | 0644, 0), 0);
        (void)snprintf(name, sizeof name, "file-%u", 599 - round);
        (void)unlink(caller_path(&c, name));
    }
    for (uint32_t i = 0; i < 200; i++) { /* those that were there all the time */
        (void)snprintf(name, sizeof name, "file-%u", i);
        assert_int_equal(times_listed(name), 1);
    }
}

TEST(test_listing__a_removed_entry_does_not_stop_it)
{
    make_files(100);
    assert_int_equal(list(NFS_READDIR, 0, 0, 1024), NFS_OK);
    assert_int_equal(unlink(caller_path(&c, l.names[l.count - 1])), 0); /* the cookie's own */
    list_all(NFS_READDIR, 1024);
    assert_int_equal(l.count, 102);
}

TEST(test_listing__the_verifier_is_constant)
{
    uint8_t verifier[NFS_VERF_LEN];
    assert_int_equal(list(NFS_READDIR, 0, 0, 4096), NFS_OK);
    memcpy(verifier, c.result.verf, sizeof verifier);
    make_files(1);
    assert_int_equal(list(NFS_READDIR, 0, 0, 4096), NFS_OK);
    assert_memory_equal(verifier, c.result.verf, sizeof verifier);
}

TEST(test_listing__too_small)
{
    make_files(1);
    assert_int_equal(list(NFS_READDIR, 0, 0, 0), NFS_TOOSMALL);
    assert_int_equal(list(NFS_READDIR, 0, 0, 120), NFS_TOOSMALL);
    assert_int_equal(list(NFS_READDIRPLUS, 0, 4096, 200), NFS_TOOSMALL);
    assert_int_equal(list(NFS_READDIRPLUS, 0, 1, 4096), NFS_OK); /* dircount is a hint */
    assert_int_equal(l.count, 1);
}

TEST(test_listing__cookies_that_nobody_gave)
{
    make_files(1);
    assert_int_equal(list(NFS_READDIR, UINT64_MAX, 0, 4096), NFS_BAD_COOKIE);
}

TEST(test_listing__needs_the_right_to_read)
{
    assert_int_equal(chmod(c.directory, 0711), 0);
    assert_int_equal(list(NFS_READDIR, 0, 0, 4096), NFS_ACCES);
    assert_int_equal(chmod(c.directory, 0744), 0); /* names, and no looking at them */
    make_files(2);
    assert_int_equal(list(NFS_READDIRPLUS, 0, 4096, 4096), NFS_OK);
    assert_int_equal(l.count, 4);
    assert_int_equal(times_listed("file-1"), 1);
    assert_int_equal(l.with_attr, 0);
}

TEST(test_listing__only_directories)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_int_equal(
        caller_call(&c, NFS_READDIR, &(struct nfs_args){.fh = caller_bytes(&file), .count = 4096}),
        NFS_NOTDIR);
    assert_true(c.result.attr.is_there);
}

TEST_MAIN(start, stop, NULL, NULL)
