/*
 * test_nfs.c -- the fake client's NFS and MOUNT: bytes written down by hand, and strict readers.
 *
 * The golden bytes were worked out from RFC 1813. Every result is refused when it is cut anywhere
 * or one word too long: a checker that reads wrongly would accuse or acquit the server by mistake.
 * Records go over a socket pair, cut in fragments on both ways.
 */
#include "peer/peer_mount.h"
#include "unit/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct packet packet;

/* fattr3 of a directory, 84 bytes, every field another one. */
static void put_attr(void)
{
    static const uint8_t attr[] = {0,  0, 0, 2,  0, 0, 1, 0355, 0,  0, 0, 3,  0,  0, 0, 4, 0,
                                   0,  0, 5, 0,  0, 0, 0, 0,    0,  0, 6, 0,  0,  0, 0, 0, 0,
                                   0,  7, 0, 0,  0, 8, 0, 0,    0,  9, 0, 0,  0,  0, 0, 0, 0,
                                   10, 0, 0, 0,  1, 0, 0, 0,    11, 0, 0, 0,  12, 0, 0, 0, 13,
                                   0,  0, 0, 14, 0, 0, 0, 15,   0,  0, 0, 16, 0,  0, 0, 17};
    assert_int_equal(sizeof(attr), 84);
    packet_put_bytes(&packet, attr, sizeof(attr));
}

static void check_attr(const struct peer_nfs_attr *attr)
{
    assert_int_equal(attr->type, PEER_NFS_DIR);
    assert_int_equal(attr->mode, 0755);
    assert_int_equal(attr->nlink, 3);
    assert_int_equal(attr->uid, 4);
    assert_int_equal(attr->gid, 5);
    assert_int_equal(attr->size, 6);
    assert_int_equal(attr->used, 7);
    assert_int_equal(attr->rdev_major, 8);
    assert_int_equal(attr->rdev_minor, 9);
    assert_int_equal(attr->fsid, 10);
    assert_int_equal(attr->fileid, (UINT64_C(1) << 32) + 11);
    assert_int_equal(attr->atime.seconds, 12);
    assert_int_equal(attr->atime.nanoseconds, 13);
    assert_int_equal(attr->mtime.seconds, 14);
    assert_int_equal(attr->ctime.nanoseconds, 17);
}

static void put_words(const uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        packet_put_u32(&packet, words[i]);
}
#define WORDS(...)                                                                                 \
    put_words((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

/* Reads what was put as a whole, and at no other length. */
static struct peer_nfs_res read_whole(uint32_t procedure)
{
    static struct peer_nfs_res res;
    uint32_t whole = packet.len;
    packet_put_u32(&packet, 0);
    for (uint32_t len = 0; len <= whole + 4; len++) {
        struct packet_reader reader = {packet.bytes, len, false};
        if (len != whole)
            assert_false(peer_nfs_get_res(&reader, procedure, &res));
    }
    struct packet_reader reader = {packet.bytes, whole, false};
    assert_true(peer_nfs_get_res(&reader, procedure, &res));
    packet_clear(&packet);
    return res;
}

static struct peer_nfs_fh fh_of(uint8_t last)
{
    return (struct peer_nfs_fh){.len = 4, .at = {0xf, 0, 0, last}};
}

static void check_args(uint32_t procedure, const struct peer_nfs_args *args, const uint32_t *words,
                       uint32_t count)
{
    static struct packet expected;
    packet_clear(&packet);
    packet_clear(&expected);
    for (uint32_t i = 0; i < count; i++)
        packet_put_u32(&expected, words[i]);
    peer_nfs_put_args(&packet, procedure, args);
    assert_int_equal(packet.len, expected.len);
    assert_memory_equal(packet.bytes, expected.bytes, expected.len);
    packet_clear(&packet);
}
#define CHECK_ARGS(procedure, args, ...)                                                           \
    check_args(procedure, args, (const uint32_t[]){__VA_ARGS__},                                   \
               sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

enum { FH = 0x0f000001, FH2 = 0x0f000002, AB = 0x61620000, C = 0x63000000 };

TEST(test_nfs__arguments_have_the_golden_bytes)
{
    struct peer_nfs_args args = {.fh = fh_of(1),
                                 .to_fh = fh_of(2),
                                 .name = peer_nfs_text("ab"),
                                 .to_name = peer_nfs_text("c"),
                                 .access = 0x3f,
                                 .offset = (UINT64_C(1) << 32) + 2,
                                 .count = 3,
                                 .dircount = 4,
                                 .cookie = 5,
                                 .verf = {1, 2, 3, 4, 5, 6, 7, 8},
                                 .stable = PEER_NFS_FILE_SYNC,
                                 .data = {"xyz", 3},
                                 .path = peer_nfs_text("c")};
    packet_clear(&packet);
    peer_nfs_put_args(&packet, PEER_NFS_NULL, &args);
    assert_int_equal(packet.len, 0);
    CHECK_ARGS(PEER_NFS_GETATTR, &args, 4, FH);
    CHECK_ARGS(PEER_NFS_LOOKUP, &args, 4, FH, 2, AB);
    CHECK_ARGS(PEER_NFS_ACCESS, &args, 4, FH, 0x3f);
    CHECK_ARGS(PEER_NFS_READLINK, &args, 4, FH);
    CHECK_ARGS(PEER_NFS_READ, &args, 4, FH, 1, 2, 3);
    CHECK_ARGS(PEER_NFS_WRITE, &args, 4, FH, 1, 2, 3, 2, 3);
    CHECK_ARGS(PEER_NFS_REMOVE, &args, 4, FH, 2, AB);
    CHECK_ARGS(PEER_NFS_RMDIR, &args, 4, FH, 2, AB);
    CHECK_ARGS(PEER_NFS_RENAME, &args, 4, FH, 2, AB, 4, FH2, 1, C);
    CHECK_ARGS(PEER_NFS_LINK, &args, 4, FH, 4, FH2, 1, C);
    CHECK_ARGS(PEER_NFS_READDIR, &args, 4, FH, 0, 5, 0x01020304, 0x05060708, 3);
    CHECK_ARGS(PEER_NFS_READDIRPLUS, &args, 4, FH, 0, 5, 0x01020304, 0x05060708, 4, 3);
    CHECK_ARGS(PEER_NFS_FSSTAT, &args, 4, FH);
    CHECK_ARGS(PEER_NFS_FSINFO, &args, 4, FH);
    CHECK_ARGS(PEER_NFS_PATHCONF, &args, 4, FH);
    CHECK_ARGS(PEER_NFS_COMMIT, &args, 4, FH, 1, 2, 3);
    CHECK_ARGS(PEER_NFS_SYMLINK, &args, 4, FH, 2, AB, 0, 0, 0, 0, 0, 0, 1, C);
    args.how = PEER_NFS_EXCLUSIVE;
    CHECK_ARGS(PEER_NFS_CREATE, &args, 4, FH, 2, AB, 2, 0x01020304, 0x05060708);
}

TEST(test_nfs__attributes_to_set_have_the_golden_bytes)
{
    struct peer_nfs_args args = {.fh = fh_of(1),
                                 .name = peer_nfs_text("ab"),
                                 .how = PEER_NFS_GUARDED,
                                 .rdev_major = 8,
                                 .rdev_minor = 9};
    args.sattr = (struct peer_nfs_sattr){.has_mode = true,
                                         .mode = 0644,
                                         .has_gid = true,
                                         .gid = 5,
                                         .has_size = true,
                                         .size = 6,
                                         .atime_how = PEER_NFS_SERVER_TIME,
                                         .mtime_how = PEER_NFS_CLIENT_TIME,
                                         .mtime = {7, 8}};
    CHECK_ARGS(PEER_NFS_CREATE, &args, 4, FH, 2, AB, 1, 1, 0644, 0, 1, 5, 1, 0, 6, 1, 2, 7, 8);
    CHECK_ARGS(PEER_NFS_MKDIR, &args, 4, FH, 2, AB, 1, 0644, 0, 1, 5, 1, 0, 6, 1, 2, 7, 8);
    CHECK_ARGS(PEER_NFS_SETATTR, &args, 4, FH, 1, 0644, 0, 1, 5, 1, 0, 6, 1, 2, 7, 8, 0);
    args.has_guard = true;
    args.guard = (struct peer_nfs_time){3, 4};
    args.sattr = (struct peer_nfs_sattr){.has_uid = true, .uid = 9};
    CHECK_ARGS(PEER_NFS_SETATTR, &args, 4, FH, 0, 1, 9, 0, 0, 0, 0, 1, 3, 4);
    args.type = PEER_NFS_CHR;
    CHECK_ARGS(PEER_NFS_MKNOD, &args, 4, FH, 2, AB, 4, 0, 1, 9, 0, 0, 0, 0, 8, 9);
    args.type = PEER_NFS_FIFO;
    CHECK_ARGS(PEER_NFS_MKNOD, &args, 4, FH, 2, AB, 7, 0, 1, 9, 0, 0, 0, 0);
    args.type = PEER_NFS_REG;
    CHECK_ARGS(PEER_NFS_MKNOD, &args, 4, FH, 2, AB, 1);
}

TEST(test_nfs__results_of_looking_are_read_only_whole)
{
    packet_clear(&packet);
    WORDS(0);
    put_attr();
    struct peer_nfs_res res = read_whole(PEER_NFS_GETATTR);
    check_attr(&res.attr);
    WORDS(PEER_NFS_IS_STALE);
    res = read_whole(PEER_NFS_GETATTR);
    assert_int_equal(res.status, PEER_NFS_IS_STALE);
    WORDS(0, 4, FH, 1);
    put_attr();
    WORDS(0);
    res = read_whole(PEER_NFS_LOOKUP);
    assert_true(res.has_attr && res.has_fh && !res.has_dir_attr);
    WORDS(PEER_NFS_IS_NOENT, 1);
    put_attr();
    res = read_whole(PEER_NFS_LOOKUP);
    check_attr(&res.dir_attr);
    WORDS(0, 0, 0x1f);
    res = read_whole(PEER_NFS_ACCESS);
    assert_int_equal(res.access, 0x1f);
    WORDS(0, 0, 1, C);
    res = read_whole(PEER_NFS_READLINK);
    assert_true(peer_nfs_is_text(res.data, "c"));
    WORDS(0, 0, 2, 1, 2, AB);
    res = read_whole(PEER_NFS_READ);
    assert_true(res.eof && peer_nfs_is_text(res.data, "ab"));
    WORDS(0, 0, 1, 1, 2, AB); /* count is not the length */
    struct packet_reader reader = {packet.bytes, packet.len, false};
    assert_false(peer_nfs_get_res(&reader, PEER_NFS_READ, &res));
    packet_clear(&packet);
    WORDS(0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 7);
    res = read_whole(PEER_NFS_FSSTAT);
    assert_int_equal(res.fsstat[5] * 10 + res.invarsec, 67);
    WORDS(0, 0, 1, 2, 3, 4, 5, 6, 7, 1, 0, 9, 10, 0x1b);
    res = read_whole(PEER_NFS_FSINFO);
    assert_int_equal(res.maxfilesize, UINT64_C(1) << 32);
    assert_int_equal(res.properties, 0x1b);
    WORDS(0, 0, 32000, 255, 1, 1, 0, 1);
    res = read_whole(PEER_NFS_PATHCONF);
    assert_true(res.no_trunc && res.chown_restricted && !res.case_insensitive);
}

TEST(test_nfs__results_of_changing_are_read_only_whole)
{
    packet_clear(&packet);
    WORDS(0, 1, 0, 99, 1, 2, 3, 4, 1);
    put_attr();
    struct peer_nfs_res res = read_whole(PEER_NFS_SETATTR);
    assert_int_equal(res.wcc.before_size, 99);
    assert_int_equal(res.wcc.before_ctime.nanoseconds, 4);
    check_attr(&res.wcc.after);
    WORDS(0, 0, 0, 77, 2, 0x01020304, 0x05060708);
    res = read_whole(PEER_NFS_WRITE);
    assert_int_equal(res.count, 77);
    assert_int_equal(res.committed, PEER_NFS_FILE_SYNC);
    assert_memory_equal(res.verf, "\1\2\3\4\5\6\7\10", 8);
    WORDS(PEER_NFS_IS_NOSPC, 0, 0);
    res = read_whole(PEER_NFS_WRITE);
    assert_int_equal(res.status, PEER_NFS_IS_NOSPC);
    WORDS(0, 0, 0, 0x01020304, 0x05060708);
    (void)read_whole(PEER_NFS_COMMIT);
    for (uint32_t i = PEER_NFS_CREATE; i <= PEER_NFS_MKNOD; i++) {
        WORDS(0, 1, 4, FH, 0, 0, 0);
        res = read_whole(i);
        assert_true(res.has_fh && res.fh.at[3] == 1);
        WORDS(PEER_NFS_IS_EXIST, 0, 0);
        (void)read_whole(i);
    }
    WORDS(0, 0, 0);
    (void)read_whole(PEER_NFS_REMOVE);
    WORDS(PEER_NFS_IS_NOTEMPTY, 0, 0);
    (void)read_whole(PEER_NFS_RMDIR);
    WORDS(0, 0, 0, 0, 0);
    (void)read_whole(PEER_NFS_RENAME);
    WORDS(0, 0, 0, 0);
    (void)read_whole(PEER_NFS_LINK);
}

TEST(test_nfs__listings_are_read_entry_by_entry)
{
    struct peer_nfs_entry entry;
    packet_clear(&packet);
    WORDS(0, 0, 1, 2, 1, 0, 7, 2, AB, 0, 8, 1, 0, 9, 1, C, 0, 10, 0, 1);
    struct peer_nfs_res res = read_whole(PEER_NFS_READDIR);
    assert_int_equal(res.entry_count, 2);
    assert_true(res.eof);
    assert_true(peer_nfs_next_entry(&res.entries, false, &entry));
    assert_int_equal(entry.fileid, 7);
    assert_int_equal(entry.cookie, 8);
    assert_true(peer_nfs_next_entry(&res.entries, false, &entry));
    assert_true(peer_nfs_is_text(entry.name, "c"));
    assert_false(peer_nfs_next_entry(&res.entries, false, &entry));
    WORDS(0, 0, 1, 2, 1, 0, 7, 2, AB, 0, 8, 1);
    put_attr();
    WORDS(1, 4, FH, 0, 0);
    res = read_whole(PEER_NFS_READDIRPLUS);
    assert_int_equal(res.entry_count, 1);
    assert_false(res.eof);
    assert_true(peer_nfs_next_entry(&res.entries, true, &entry));
    assert_true(entry.has_fh && entry.has_attr);
    check_attr(&entry.attr);
    assert_false(peer_nfs_next_entry(&res.entries, true, &entry));
}

TEST(test_nfs__what_rfc_1813_does_not_know_is_refused)
{
    static const uint32_t wrong[][8] = {{1, 1234}, {4, 0, 2, 0}, {4, PEER_NFS_IS_NOTHING, 0}};
    static struct peer_nfs_res res;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        packet_clear(&packet);
        put_words(wrong[i] + 1, 3);
        struct packet_reader reader = {packet.bytes, packet.len, false};
        assert_false(peer_nfs_get_res(&reader, wrong[i][0], &res));
    }
    packet_clear(&packet);
    WORDS(0, 65); /* a handle longer than 64 bytes */
    packet_put_bytes(&packet, (const uint8_t[68]){0}, 68);
    WORDS(0, 0);
    struct packet_reader reader = {packet.bytes, packet.len, false};
    assert_false(peer_nfs_get_res(&reader, PEER_NFS_LOOKUP, &res));
}

TEST(test_mount__lists_and_handles)
{
    static struct peer_mount_res res;
    struct peer_mount_entry entry;
    struct peer_mount_export export;
    packet_clear(&packet);
    peer_mount_put_args(&packet, PEER_MOUNT_DUMP, peer_nfs_text("ab"));
    assert_int_equal(packet.len, 0);
    peer_mount_put_args(&packet, PEER_MOUNT_MNT, peer_nfs_text("ab"));
    assert_memory_equal(packet.bytes, "\0\0\0\2ab\0\0", packet.len);
    packet_clear(&packet);
    WORDS(0, 4, FH, 2, 1, 0);
    struct packet_reader reader = {packet.bytes, packet.len, false};
    assert_true(peer_mount_get_res(&reader, PEER_MOUNT_MNT, &res));
    assert_int_equal(res.flavor_count, 2);
    assert_int_equal(res.flavors[0], 1);
    packet_clear(&packet);
    WORDS(1, 2, AB, 1, C, 0);
    reader = (struct packet_reader){packet.bytes, packet.len, false};
    assert_true(peer_mount_get_res(&reader, PEER_MOUNT_DUMP, &res));
    assert_true(peer_mount_next_entry(&res.list, &entry));
    assert_true(peer_nfs_is_text(entry.host, "ab") && peer_nfs_is_text(entry.directory, "c"));
    assert_false(peer_mount_next_entry(&res.list, &entry));
    packet_clear(&packet);
    WORDS(1, 1, C, 1, 2, AB, 0, 1, 2, AB, 0, 0);
    reader = (struct packet_reader){packet.bytes, packet.len, false};
    assert_true(peer_mount_get_res(&reader, PEER_MOUNT_EXPORT, &res));
    assert_true(peer_mount_next_export(&res.list, &export));
    assert_int_equal(export.group_count, 1);
    assert_true(peer_nfs_is_text(export.groups[0], "ab"));
    assert_true(peer_mount_next_export(&res.list, &export));
    assert_int_equal(export.group_count, 0);
    reader = (struct packet_reader){packet.bytes, packet.len - 4, false};
    assert_false(peer_mount_get_res(&reader, PEER_MOUNT_EXPORT, &res));
}

/* A call in fragments of 7 bytes; its answer comes in two. */
TEST(test_link__records_are_cut_and_put_together)
{
    static struct peer_link_call call;
    struct dial_route route = {0};
    struct peer_link link;
    struct packet_reply reply;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(peer_link_init(&link, &route));
    link.fd = pair[0];
    link.fragment_len = 7;
    link.who = (struct peer_link_identity){.uid = 1, .gid = 2, .group_count = 1, .groups = {3}};
    struct peer_nfs_args args = {.fh = fh_of(1), .count = 3, .data = {"xyz", 3}};
    peer_nfs_begin(&link, &call, PEER_NFS_WRITE, &args);
    assert_int_equal(peer_link_send(&link, &call), 0);
    static struct packet got;
    assert_true(dial_receive_record(pair[1], &got, 1000) > 0);
    static const uint8_t identity[] = {0, 0, 0,   1,   0,   0,   0,   32,  0,   0,   0, 1, 0, 0,
                                       0, 8, 'p', 'e', 'e', 'r', '-', 'n', 'f', 's', 0, 0, 0, 1,
                                       0, 0, 0,   2,   0,   0,   0,   1,   0,   0,   0, 3};
    assert_int_equal(got.len, 24 + sizeof(identity) + 8 + 8 + 8 + 4 + 4 + 4 + 4);
    assert_memory_equal(got.bytes + 24, identity, sizeof(identity));
    assert_memory_equal(got.bytes + got.len - 8, "\0\0\0\3xyz\0", 8);
    packet_clear(&packet);
    packet_put_accepted(&packet, call.xid, PACKET_SUCCESS);
    WORDS(PEER_NFS_IS_NOSPC, 0, 0);
    uint8_t mark[4] = {0, 0, 0, 5};
    assert_int_equal(write(pair[1], mark, 4), 4);
    assert_int_equal(write(pair[1], packet.bytes, 5), 5);
    mark[0] = 0x80;
    mark[3] = (uint8_t)(packet.len - 5);
    assert_int_equal(write(pair[1], mark, 4), 4);
    assert_int_equal(write(pair[1], packet.bytes + 5, packet.len - 5), packet.len - 5);
    assert_int_equal(peer_link_receive(&link, &reply), 0);
    struct peer_nfs_res res;
    assert_int_equal(reply.xid, call.xid);
    assert_true(peer_nfs_finish(&reply, PEER_NFS_WRITE, &res));
    assert_int_equal(res.status, PEER_NFS_IS_NOSPC);
    close(pair[1]);
    peer_link_done(&link);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
