/*
 * files_churn.c -- a directory is listed while others create, remove and rename in it.
 *
 * Passing shows: every entry that stays is listed exactly once, with its own fileid, whatever comes
 * and goes between two calls of the same listing; `.` and `..` are there once; a cookie is good
 * after the server was killed; answers keep to the size that was asked for; READDIRPLUS gives
 * handles that are right.
 */
#include "files_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STAY = 300, COME = 200 };

static struct files_stage stage;
static struct peer_link lister, changer;
static struct peer_nfs_fh directory;
static uint64_t seed, fileids[STAY];
static bool is_there[COME];

static void make_stayers(void)
{
    char name[64];
    for (uint32_t i = 0; i < STAY; i++) {
        snprintf(name, sizeof(name), "stays-%u-%.*s", i, (int)(i % 40),
                 "a-name-that-is-longer-than-others-are---");
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, name, &changer, PEER_NFS_CREATE, .fh = directory,
                         .name = peer_nfs_text(name), .how = PEER_NFS_GUARDED);
        fileids[i] = res->attr.fileid;
    }
}

/* Something comes, goes, or gets another name. */
static void churn(uint32_t steps)
{
    char name[32], other[32];
    while (steps-- > 0) {
        uint32_t i = (uint32_t)(harness_random(&seed) % COME);
        uint32_t j = (uint32_t)(harness_random(&seed) % COME);
        snprintf(name, sizeof(name), "comes-%u", i);
        snprintf(other, sizeof(other), "comes-%u", j);
        if (!is_there[i]) {
            FILES_EXPECT(PEER_NFS_IS_OK, name, &changer, PEER_NFS_CREATE, .fh = directory,
                         .name = peer_nfs_text(name), .how = PEER_NFS_GUARDED);
            is_there[i] = true;
        } else if (harness_random(&seed) % 3 == 0) {
            FILES_EXPECT(PEER_NFS_IS_OK, name, &changer, PEER_NFS_RENAME, .fh = directory,
                         .name = peer_nfs_text(name), .to_fh = directory,
                         .to_name = peer_nfs_text(other));
            is_there[i] = false;
            is_there[j] = true;
        } else {
            FILES_EXPECT(PEER_NFS_IS_OK, name, &changer, PEER_NFS_REMOVE, .fh = directory,
                         .name = peer_nfs_text(name));
            is_there[i] = false;
        }
    }
}

struct listing {
    uint32_t seen[STAY], dots[2], calls;
    uint64_t last_cookie;
};

static void see(struct listing *listing, const struct peer_nfs_entry *entry, bool is_plus)
{
    uint32_t index = STAY;
    char name[256];
    snprintf(name, sizeof(name), "%.*s", (int)entry->name.len, (const char *)entry->name.at);
    listing->last_cookie = entry->cookie;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        listing->dots[strlen(name) - 1]++;
        return;
    }
    if (sscanf(name, "stays-%u-", &index) != 1 || index >= STAY) {
        HARNESS_EXPECT(strncmp(name, "comes-", 6) == 0, "'%s' is listed and was never there", name);
        return;
    }
    listing->seen[index]++;
    HARNESS_EXPECT(entry->fileid == fileids[index], "%s has fileid %llu, its file has %llu", name,
                   (unsigned long long)entry->fileid, (unsigned long long)fileids[index]);
    if (is_plus && entry->has_attr)
        HARNESS_EXPECT(entry->attr.fileid == fileids[index] && entry->attr.type == PEER_NFS_REG,
                       "%s has the attributes of another", name);
    HARNESS_EXPECT(!is_plus || (entry->has_attr && entry->has_fh),
                   "%s comes without attributes or handle", name);
}

/* One whole listing, with `steps` changes between its calls; killed once if asked for. */
static bool list(uint32_t procedure, uint32_t count, uint32_t steps, bool is_killed)
{
    bool is_plus = procedure == PEER_NFS_READDIRPLUS;
    struct listing listing = {.calls = 0};
    struct peer_nfs_args args = {.fh = directory, .count = count, .dircount = count};
    const struct peer_nfs_res *res;
    do {
        res = files_stage_ask(&lister, procedure, &args);
        struct packet_reader entries = res->entries;
        struct peer_nfs_entry entry;
        bool is_good = res->status == PEER_NFS_IS_OK && (res->entry_count > 0 || res->eof);
        if (!HARNESS_EXPECT(is_good, "%s with cookie %llx answered %s, %u entries",
                            peer_nfs_procedure_text(procedure), (unsigned long long)args.cookie,
                            peer_nfs_status_text(res->status), res->entry_count))
            return false;
        HARNESS_EXPECT(res->body_len - 4 <= count, "%u bytes, at most %u were asked for",
                       res->body_len, count);
        HARNESS_EXPECT(listing.calls == 0 || memcmp(args.verf, res->verf, 8) == 0,
                       "the cookie verifier changes");
        memcpy(args.verf, res->verf, sizeof(args.verf));
        while (peer_nfs_next_entry(&entries, is_plus, &entry))
            see(&listing, &entry, is_plus);
        args.cookie = listing.last_cookie;
        bool is_over = res->eof;
        churn(steps);
        if (is_killed && listing.calls == 3 && !files_stage_crash(&stage))
            return false;
        if (is_over)
            break;
    } while (++listing.calls < 10000);
    for (uint32_t i = 0; i < STAY; i++)
        HARNESS_EXPECT(listing.seen[i] == 1, "%s of %u bytes: entry %u is listed %u times",
                       peer_nfs_procedure_text(procedure), count, i, listing.seen[i]);
    HARNESS_EXPECT(listing.dots[0] == 1 && listing.dots[1] == 1, ". is listed %u times, .. %u",
                   listing.dots[0], listing.dots[1]);
    return true;
}

/* Handles of READDIRPLUS are those of LOOKUP. */
static void check_handles(void)
{
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "handles", &lister, PEER_NFS_READDIRPLUS, .fh = directory,
                     .count = 8192, .dircount = 8192);
    static struct peer_nfs_entry kept[64];
    uint32_t count = 0;
    char name[256];
    struct packet_reader entries = res->entries;
    while (count < 64 && peer_nfs_next_entry(&entries, true, &kept[count]))
        count++;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%.*s", (int)kept[i].name.len, (const char *)kept[i].name.at);
        if (kept[i].name.len < 5 || !kept[i].has_fh)
            continue; /* . and .. */
        struct peer_nfs_fh fh = files_stage_lookup(&changer, directory, name);
        HARNESS_EXPECT(peer_nfs_same_fh(&fh, &kept[i].fh), "%s has two handles", name);
    }
}

static void check_edges(void)
{
    static const char why[] = "listings";
    FILES_EXPECT(PEER_NFS_IS_TOOSMALL, why, &lister, PEER_NFS_READDIR, .fh = directory,
                 .count = 16);
    FILES_EXPECT(PEER_NFS_IS_TOOSMALL, why, &lister, PEER_NFS_READDIRPLUS, .fh = directory,
                 .count = 16, .dircount = 16);
    struct peer_nfs_fh file = files_stage_create(&changer, directory, "comes-file", 0644);
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, why, &lister, PEER_NFS_READDIR, .fh = file, .count = 4096);
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, why, &lister, PEER_NFS_READDIRPLUS, .fh = file, .count = 4096,
                 .dircount = 4096);
    FILES_EXPECT(PEER_NFS_IS_OK, why, &changer, PEER_NFS_REMOVE, .fh = directory,
                 .name = peer_nfs_text("comes-file"));
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "the largest count", &lister, PEER_NFS_READDIRPLUS,
                     .fh = directory, .count = UINT32_MAX, .dircount = UINT32_MAX);
    HARNESS_EXPECT(res->entry_count > 0, "the largest count gives no entry");
}

int main(void)
{
    files_stage_init(&stage, "files_churn");
    const char *path = files_stage_export(&stage, "files", "*(rw,no_root_squash,async)");
    uint32_t rounds = harness_number("HOLDFAST_FILES_LISTINGS", 12);
    seed = harness_seed() | 1;
    if (files_stage_start(&stage)) {
        files_stage_link(&lister, 0, 0);
        files_stage_link(&changer, 0, 0);
        struct peer_nfs_fh root = files_stage_mount(&lister, path);
        directory =
            FILES_EXPECT(PEER_NFS_IS_OK, "set-up", &changer, PEER_NFS_MKDIR, .fh = root,
                         .name = peer_nfs_text("d"), .sattr = {.has_mode = true, .mode = 0755})
                ->fh;
        make_stayers();
        check_edges();
        check_handles();
        bool is_well = true;
        for (uint32_t i = 0; i < rounds && is_well; i++) {
            uint32_t count = 512 + (uint32_t)(harness_random(&seed) % (i % 3 == 0 ? 1024 : 16384));
            is_well = list(i % 2 ? PEER_NFS_READDIRPLUS : PEER_NFS_READDIR, count, 5 + i % 20,
                           i % 4 == 3);
        }
        peer_link_done(&lister);
        peer_link_done(&changer);
    }
    return files_stage_finish(&stage);
}
