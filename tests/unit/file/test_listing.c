/*
 * test_listing.c -- READDIR and READDIRPLUS: every entry once, whatever happens meanwhile.
 */
#include "caller.h"

#include "../test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct caller c;

/* What a listing said, piece by piece. */
static struct listing {
    char names[4096][24];
    uint64_t cookies[4096];
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
    if (xdr_get_bool(in)) /* the handle */
        (void)xdr_get_opaque(in, NFS_FH_MAX);
}

static void get_entries(bool is_plus)
{
    struct xdr_in in = xdr_in_of((struct bytes){c.payload, c.payload_len});
    while (xdr_get_bool(&in)) {
        (void)xdr_get_u64(&in);
        struct bytes name = xdr_get_opaque(&in, 255);
        assert_true(l.count < 4096 && name.len < 24);
        memcpy(l.names[l.count], name.at, name.len);
        l.names[l.count][name.len] = 0;
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
