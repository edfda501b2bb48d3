/*
 * files_traps_data.c -- traps of READ, WRITE and COMMIT; see files_traps.h.
 */
#include "files_traps.h"

#include <string.h>

static const uint64_t farthest = INT64_MAX;

static void check_write(struct files_traps *traps)
{
    static uint8_t big[PEER_NFS_DATA_MAX];
    struct peer_link *link = traps->link;
    struct peer_nfs_fh fh = files_stage_create(link, traps->root, "write", 0644);
    FILES_EXPECT(PEER_NFS_IS_INVAL, "count above the data", link, PEER_NFS_WRITE, .fh = fh,
                 .count = 5, .data = {"abc", 3});
    FILES_EXPECT(PEER_NFS_IS_INVAL, "count below the data", link, PEER_NFS_WRITE, .fh = fh,
                 .count = 1, .data = {"abc", 3});
    FILES_EXPECT(PEER_NFS_IS_ISDIR, "a directory", link, PEER_NFS_WRITE, .fh = traps->root,
                 .count = 1, .data = {"a", 1});
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "nothing", link, PEER_NFS_WRITE, .fh = fh, .offset = 100);
    HARNESS_EXPECT(res->count == 0 && res->wcc.after.size == 0, "a WRITE of nothing extends");
    memset(big, 'x', sizeof(big));
    res = FILES_EXPECT(PEER_NFS_IS_OK, "as big as wtmax", link, PEER_NFS_WRITE, .fh = fh,
                       .count = sizeof(big), .stable = PEER_NFS_FILE_SYNC,
                       .data = {big, sizeof(big)});
    HARNESS_EXPECT(res->count == sizeof(big) && res->committed == PEER_NFS_FILE_SYNC,
                   "1 MiB: %u bytes, committed %u", res->count, res->committed);
    uint8_t verf[PEER_NFS_VERF_LEN];
    memcpy(verf, res->verf, sizeof(verf));
    res = FILES_EXPECT(PEER_NFS_IS_OK, "COMMIT", link, PEER_NFS_COMMIT, .fh = fh);
    HARNESS_EXPECT(memcmp(verf, res->verf, sizeof(verf)) == 0,
                   "WRITE and COMMIT have different verifiers");
    res = FILES_ASK(link, PEER_NFS_WRITE, .fh = fh, .offset = farthest - 1, .count = 4,
                    .data = {"abcd", 4});
    HARNESS_EXPECT(res->status == PEER_NFS_IS_FBIG || res->status == PEER_NFS_IS_INVAL,
                   "a WRITE at 2^63: %s", peer_nfs_status_text(res->status));
    res = FILES_ASK(link, PEER_NFS_WRITE, .fh = fh, .offset = UINT64_MAX, .count = 4,
                    .data = {"abcd", 4});
    HARNESS_EXPECT(res->status == PEER_NFS_IS_FBIG || res->status == PEER_NFS_IS_INVAL,
                   "a WRITE at 2^64: %s", peer_nfs_status_text(res->status));
    res = FILES_EXPECT(PEER_NFS_IS_OK, "unchanged by it", link, PEER_NFS_GETATTR, .fh = fh);
    HARNESS_EXPECT(res->attr.size == sizeof(big), "size %llu", (unsigned long long)res->attr.size);
    FILES_EXPECT(PEER_NFS_IS_OK, "COMMIT of everything", link, PEER_NFS_COMMIT, .fh = fh,
                 .offset = UINT64_MAX, .count = UINT32_MAX);
}

static void check_read(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    const char *digits = "0123456789";
    files_stage_put_local(traps->path, "read", digits, 0644);
    struct peer_nfs_fh fh = files_stage_lookup(link, traps->root, "read");
    static const struct {
        uint64_t offset;
        uint32_t count, len;
        bool eof;
    } rows[] = {
        {0, 5, 5, false},         {0, 10, 10, true},         {0, 11, 10, true},
        {5, 5, 5, true},          {10, 5, 0, true},          {11, 5, 0, true},
        {UINT32_MAX, 5, 0, true}, {0, UINT32_MAX, 10, true}, {0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, "READ", link, PEER_NFS_READ, .fh = fh,
                         .offset = rows[i].offset, .count = rows[i].count);
        HARNESS_EXPECT(res->data.len == rows[i].len && res->eof == rows[i].eof,
                       "READ at %llu of %u: %u bytes, eof %d", (unsigned long long)rows[i].offset,
                       rows[i].count, res->data.len, res->eof);
        HARNESS_EXPECT(res->data.len == 0 ||
                           memcmp(res->data.at, digits + rows[i].offset, res->data.len) == 0,
                       "READ at %llu gives other bytes", (unsigned long long)rows[i].offset);
    }
    const struct peer_nfs_res *res =
        FILES_ASK(link, PEER_NFS_READ, .fh = fh, .offset = UINT64_MAX, .count = 1);
    HARNESS_EXPECT(res->status == PEER_NFS_IS_INVAL ||
                       (res->status == PEER_NFS_IS_OK && res->eof && res->data.len == 0),
                   "READ at 2^64: %s", peer_nfs_status_text(res->status));
    FILES_EXPECT(PEER_NFS_IS_ISDIR, "a directory", link, PEER_NFS_READ, .fh = traps->root,
                 .count = 1);
    FILES_EXPECT(PEER_NFS_IS_INVAL, "READLINK of a file", link, PEER_NFS_READLINK, .fh = fh);
    FILES_EXPECT(PEER_NFS_IS_INVAL, "READLINK of a directory", link, PEER_NFS_READLINK,
                 .fh = traps->root);
}

/* What was open goes on being written after chmod; setuid does not outlive a WRITE of others. */
static void check_bits(struct files_traps *traps)
{
    struct peer_nfs_fh fh = files_stage_create(traps->user, traps->root, "bits", 0600);
    FILES_EXPECT(PEER_NFS_IS_OK, "mode 0", traps->user, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_mode = true, .mode = 0});
    FILES_EXPECT(PEER_NFS_IS_OK, "the owner of an open file", traps->user, PEER_NFS_WRITE, .fh = fh,
                 .count = 1, .data = {"a", 1});
    FILES_EXPECT(PEER_NFS_IS_OK, "the owner of an open file", traps->user, PEER_NFS_READ, .fh = fh,
                 .count = 1);
    FILES_EXPECT(PEER_NFS_IS_OK, "setuid", traps->user, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_mode = true, .mode = 06777});
    struct peer_link other;
    files_stage_link(&other, 1001, 1001);
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "a WRITE of another", &other, PEER_NFS_WRITE, .fh = fh,
                     .count = 1, .data = {"a", 1});
    HARNESS_EXPECT((res->wcc.after.mode & 06000) == 0, "setuid outlives a WRITE: mode %o",
                   res->wcc.after.mode);
    peer_link_done(&other);
}

void files_traps_data(struct files_traps *traps)
{
    check_write(traps);
    check_read(traps);
    check_bits(traps);
}
