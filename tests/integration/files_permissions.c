/*
 * files_permissions.c -- who may do what: all 512 modes of a file and of a directory, seen by its
 * owner, its group by gid and by a further group, others, root and nobody; and what squashing and
 * `ro` make of it.
 *
 * The expected answers are worked out from the mode bits, as POSIX has them, with what NFS adds:
 * the owner of a file may always read and write it (it was open before the mode changed), and who
 * may execute a file may read it.
 */
#include "files_stage.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OWNER = 1000, GROUP = 2000, ANYBODY = 1001, ANON = 65534 };
enum { R = 4, W = 2, X = 1 };

static struct files_stage stage;
static const char *open_path;

struct caller {
    const char *name;
    struct peer_link_identity who;
    uint32_t shift; /* of the three bits that count for it */
    bool is_owner, is_root;
    struct peer_link link;
};

static struct caller callers[] = {
    {.name = "owner", .who = {.uid = OWNER, .gid = 9}, .shift = 6, .is_owner = true},
    {.name = "group", .who = {.uid = ANYBODY, .gid = GROUP}, .shift = 3},
    {.name = "further group",
     .who = {.uid = ANYBODY, .gid = 9, .group_count = 16, .groups = {1, 2, 3, [15] = GROUP}},
     .shift = 3},
    {.name = "other", .who = {.uid = ANYBODY, .gid = 9, .group_count = 1, .groups = {7}}},
    {.name = "nobody", .who = {.is_none = true}},
    {.name = "root", .who = {.uid = 0, .gid = 0}, .is_root = true},
};
enum { CALLERS = sizeof(callers) / sizeof(callers[0]) };

static uint32_t bits_of(const struct caller *caller, uint32_t mode, bool is_directory)
{
    if (caller->is_root)
        return R | W | (is_directory || (mode & 0111) ? X : 0);
    return mode >> caller->shift & 7;
}

static void expect_allowed(const struct caller *caller, uint32_t mode, bool is_allowed,
                           uint32_t procedure, const struct peer_nfs_res *res)
{
    uint32_t wanted = is_allowed ? PEER_NFS_IS_OK : PEER_NFS_IS_ACCES;
    HARNESS_EXPECT(res->status == wanted, "mode %04o, %s: %s answered %s", mode, caller->name,
                   peer_nfs_procedure_text(procedure), peer_nfs_status_text(res->status));
}

static void check_file(struct caller *caller, uint32_t mode, struct peer_nfs_fh fh)
{
    uint32_t bits = bits_of(caller, mode, false);
    struct peer_link *link = &caller->link;
    const struct peer_nfs_res *res = FILES_ASK(link, PEER_NFS_ACCESS, .fh = fh, .access = 0x3f);
    uint32_t wanted = (bits & R ? PEER_NFS_MAY_READ : 0) |
                      (bits & W ? PEER_NFS_MAY_MODIFY | PEER_NFS_MAY_EXTEND : 0) |
                      (bits & X ? PEER_NFS_MAY_EXECUTE : 0);
    HARNESS_EXPECT(res->status == PEER_NFS_IS_OK && res->access == wanted,
                   "mode %04o, %s: ACCESS of a file says %x, expected %x", mode, caller->name,
                   res->access, wanted);
    res = FILES_ASK(link, PEER_NFS_READ, .fh = fh, .count = 10);
    expect_allowed(caller, mode, caller->is_owner || bits & (R | X), PEER_NFS_READ, res);
    res = FILES_ASK(link, PEER_NFS_WRITE, .fh = fh, .count = 1, .data = {"x", 1});
    expect_allowed(caller, mode, caller->is_owner || bits & W, PEER_NFS_WRITE, res);
}

static void check_directory(struct caller *caller, uint32_t mode, struct peer_nfs_fh fh)
{
    uint32_t bits = bits_of(caller, mode, true);
    bool may_change = (bits & (W | X)) == (W | X);
    struct peer_link *link = &caller->link;
    const struct peer_nfs_res *res = FILES_ASK(link, PEER_NFS_ACCESS, .fh = fh, .access = 0x3f);
    uint32_t wanted = (bits & R ? PEER_NFS_MAY_READ : 0) | (bits & X ? PEER_NFS_MAY_LOOKUP : 0);
    uint32_t change = PEER_NFS_MAY_MODIFY | PEER_NFS_MAY_EXTEND | PEER_NFS_MAY_DELETE;
    HARNESS_EXPECT(res->status == PEER_NFS_IS_OK &&
                       (res->access & (PEER_NFS_MAY_READ | PEER_NFS_MAY_LOOKUP)) == wanted &&
                       (!may_change || (res->access & change) == change) &&
                       (bits & W || (res->access & change) == 0),
                   "mode %04o, %s: ACCESS of a directory says %x", mode, caller->name, res->access);
    res = FILES_ASK(link, PEER_NFS_LOOKUP, .fh = fh, .name = peer_nfs_text("inside"));
    expect_allowed(caller, mode, bits & X, PEER_NFS_LOOKUP, res);
    res = FILES_ASK(link, PEER_NFS_READDIR, .fh = fh, .count = 4096);
    expect_allowed(caller, mode, bits & R, PEER_NFS_READDIR, res);
    res = FILES_ASK(link, PEER_NFS_CREATE, .fh = fh, .name = peer_nfs_text("new"),
                    .how = PEER_NFS_GUARDED);
    expect_allowed(caller, mode, may_change, PEER_NFS_CREATE, res);
    if (res->status == PEER_NFS_IS_OK) {
        res = FILES_ASK(link, PEER_NFS_REMOVE, .fh = fh, .name = peer_nfs_text("new"));
        expect_allowed(caller, mode, true, PEER_NFS_REMOVE, res);
    }
}

static const char *local(const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", open_path, name);
    return path;
}

static void check_modes(struct peer_nfs_fh root)
{
    struct peer_link *link = &callers[CALLERS - 1].link;
    files_stage_put_local(open_path, "file", "0123456789", 0600);
    HARNESS_EXPECT(chown(local("file"), OWNER, GROUP) == 0, "no owner");
    HARNESS_EXPECT(mkdir(local("directory"), 0700) == 0, "no directory");
    files_stage_put_local(local("directory"), "inside", "", 0600);
    HARNESS_EXPECT(chown(local("directory"), OWNER, GROUP) == 0, "no owner");
    struct peer_nfs_fh file = files_stage_lookup(link, root, "file");
    struct peer_nfs_fh directory = files_stage_lookup(link, root, "directory");
    for (uint32_t mode = 0; mode < 01000; mode++) {
        if (chmod(local("file"), mode) != 0 || chmod(local("directory"), mode) != 0)
            HARNESS_EXPECT(false, "chmod %o", mode);
        for (uint32_t i = 0; i < CALLERS; i++) {
            check_file(&callers[i], mode, file);
            check_directory(&callers[i], mode, directory);
        }
    }
}

/* What only the owner, or only root, may change. */
static void check_setattr(struct peer_nfs_fh root)
{
    struct peer_link *link = &callers[CALLERS - 1].link;
    static const char why[] = "changing attributes";
    HARNESS_EXPECT(chmod(local("file"), 0666) == 0, "chmod");
    struct peer_nfs_fh fh = files_stage_lookup(link, root, "file");
    for (uint32_t i = 0; i < CALLERS; i++) {
        struct caller *caller = &callers[i];
        bool owns = caller->is_owner || caller->is_root;
        FILES_EXPECT(owns ? PEER_NFS_IS_OK : PEER_NFS_IS_PERM, why, &caller->link, PEER_NFS_SETATTR,
                     .fh = fh, .sattr = {.has_mode = true, .mode = 0666});
        FILES_EXPECT(owns ? PEER_NFS_IS_OK : PEER_NFS_IS_PERM, "a chosen time", &caller->link,
                     PEER_NFS_SETATTR, .fh = fh,
                     .sattr = {.mtime_how = PEER_NFS_CLIENT_TIME, .mtime = {1000, 5}});
        FILES_EXPECT(
            PEER_NFS_IS_OK, "the time that it is, with write permission", &caller->link,
            PEER_NFS_SETATTR, .fh = fh,
            .sattr = {.atime_how = PEER_NFS_SERVER_TIME, .mtime_how = PEER_NFS_SERVER_TIME});
        FILES_EXPECT(PEER_NFS_IS_OK, "the size, with write permission", &caller->link,
                     PEER_NFS_SETATTR, .fh = fh, .sattr = {.has_size = true, .size = 10});
        FILES_EXPECT(caller->is_root ? PEER_NFS_IS_OK : PEER_NFS_IS_PERM, "giving it away",
                     &caller->link, PEER_NFS_SETATTR, .fh = fh,
                     .sattr = {.has_uid = true, .uid = ANYBODY});
        HARNESS_EXPECT(chown(local("file"), OWNER, GROUP) == 0, "chown");
    }
    /* Who wants to own what he makes must be able to: neither another owner nor a foreign group. */
    HARNESS_EXPECT(chmod(open_path, 0777) == 0, "chmod");
    FILES_EXPECT(PEER_NFS_IS_PERM, "created for another", &callers[1].link, PEER_NFS_CREATE,
                 .fh = root, .name = peer_nfs_text("for-another"), .how = PEER_NFS_GUARDED,
                 .sattr = {.has_uid = true, .uid = OWNER});
    FILES_EXPECT(PEER_NFS_IS_NOENT, "a refused CREATE leaves nothing", link, PEER_NFS_LOOKUP,
                 .fh = root, .name = peer_nfs_text("for-another"));
}

/* In a sticky directory only owners remove and rename. */
static void check_sticky(struct peer_nfs_fh root)
{
    struct peer_link *other = &callers[3].link, *owner = &callers[0].link;
    HARNESS_EXPECT(mkdir(local("sticky"), 01777) == 0, "no directory");
    struct peer_nfs_fh fh = files_stage_lookup(owner, root, "sticky");
    (void)files_stage_create(owner, fh, "mine", 0666);
    (void)files_stage_create(other, fh, "his", 0666);
    const struct peer_nfs_res *res =
        FILES_ASK(other, PEER_NFS_REMOVE, .fh = fh, .name = peer_nfs_text("mine"));
    HARNESS_EXPECT(res->status == PEER_NFS_IS_PERM || res->status == PEER_NFS_IS_ACCES,
                   "sticky: REMOVE answered %s", peer_nfs_status_text(res->status));
    res = FILES_ASK(other, PEER_NFS_RENAME, .fh = fh, .name = peer_nfs_text("his"), .to_fh = fh,
                    .to_name = peer_nfs_text("mine"));
    HARNESS_EXPECT(res->status == PEER_NFS_IS_PERM || res->status == PEER_NFS_IS_ACCES,
                   "sticky: RENAME answered %s", peer_nfs_status_text(res->status));
    FILES_EXPECT(PEER_NFS_IS_OK, "sticky", owner, PEER_NFS_REMOVE, .fh = fh,
                 .name = peer_nfs_text("mine"));
}

/* The owner of what a caller creates there, with 0:0 asked for when `asks` says so. */
static void check_maker(const char *path, const struct peer_link_identity *who, bool asks,
                        uint32_t uid, uint32_t gid)
{
    static uint32_t number;
    char name[32];
    struct peer_link link;
    files_stage_link(&link, 0, 0);
    link.who = *who;
    struct peer_nfs_fh root = files_stage_mount(&link, path);
    snprintf(name, sizeof(name), "made-%u", ++number);
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, path, &link, PEER_NFS_CREATE, .fh = root,
                     .name = peer_nfs_text(name), .how = PEER_NFS_GUARDED,
                     .sattr = {.has_mode = true, .mode = 0644, .has_uid = asks, .has_gid = asks});
    HARNESS_EXPECT(!res->has_attr || (res->attr.uid == uid && res->attr.gid == gid),
                   "%s: made by %u:%u, owned by %u:%u, expected %u:%u", path, who->uid, who->gid,
                   res->attr.uid, res->attr.gid, uid, gid);
    peer_link_done(&link);
}

static void check_squash(const char *root_path, const char *all_path)
{
    static const struct peer_link_identity root = {.uid = 0, .gid = 0}, user = {.uid = 5, .gid = 6},
                                           none = {.is_none = true};
    check_maker(root_path, &root, false, ANON, ANON);
    check_maker(root_path, &root, true, ANON, ANON);
    check_maker(root_path, &user, false, 5, 6);
    check_maker(root_path, &none, false, ANON, ANON);
    check_maker(all_path, &root, false, 1234, 4321);
    check_maker(all_path, &user, false, 1234, 4321);
    check_maker(open_path, &root, true, 0, 0);
    files_stage_put_local(root_path, "secret", "text", 0600);
    struct peer_link link;
    files_stage_link(&link, 0, 0);
    struct peer_nfs_fh fh =
        files_stage_lookup(&link, files_stage_mount(&link, root_path), "secret");
    FILES_EXPECT(PEER_NFS_IS_ACCES, "squashed root", &link, PEER_NFS_READ, .fh = fh, .count = 4);
    FILES_EXPECT(PEER_NFS_IS_PERM, "squashed root", &link, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_mode = true, .mode = 0666});
    const struct peer_nfs_res *res = FILES_EXPECT(PEER_NFS_IS_OK, "squashed root", &link,
                                                  PEER_NFS_ACCESS, .fh = fh, .access = 0x3f);
    HARNESS_EXPECT(res->access == 0, "squashed root: ACCESS says %x", res->access);
    peer_link_done(&link);
}

static void check_read_only(const char *path)
{
    struct peer_link link;
    static const char why[] = "a read-only export";
    files_stage_put_local(path, "file", "text", 0666);
    files_stage_link(&link, 0, 0);
    struct peer_nfs_fh root = files_stage_mount(&link, path);
    struct peer_nfs_fh fh = files_stage_lookup(&link, root, "file");
    struct peer_nfs_view name = peer_nfs_text("file"), new_name = peer_nfs_text("new");
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, why, &link, PEER_NFS_ACCESS, .fh = fh, .access = 0x3f);
    HARNESS_EXPECT(res->access == PEER_NFS_MAY_READ, "%s: ACCESS says %x", why, res->access);
    FILES_EXPECT(PEER_NFS_IS_OK, why, &link, PEER_NFS_READ, .fh = fh, .count = 4);
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_WRITE, .fh = fh, .count = 1,
                 .data = {"x", 1});
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_mode = true});
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_CREATE, .fh = root, .name = new_name);
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_MKDIR, .fh = root, .name = new_name);
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_SYMLINK, .fh = root, .name = new_name,
                 .path = name);
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_REMOVE, .fh = root, .name = name);
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_RENAME, .fh = root, .name = name,
                 .to_fh = root, .to_name = new_name);
    FILES_EXPECT(PEER_NFS_IS_ROFS, why, &link, PEER_NFS_LINK, .fh = fh, .to_fh = root,
                 .to_name = new_name);
    peer_link_done(&link);
}

int main(void)
{
    files_stage_init(&stage, "files_permissions");
    open_path = files_stage_export(&stage, "open", "*(rw,no_root_squash,async)");
    const char *root_path = files_stage_export(&stage, "squashed", "*(rw)");
    const char *all_path =
        files_stage_export(&stage, "all", "*(rw,all_squash,anonuid=1234,anongid=4321)");
    const char *ro_path = files_stage_export(&stage, "ro", "*(ro,no_root_squash)");
    HARNESS_EXPECT(chmod(root_path, 0777) == 0 && chmod(all_path, 0777) == 0, "chmod");
    if (files_stage_start(&stage)) {
        for (uint32_t i = 0; i < CALLERS; i++) {
            files_stage_link(&callers[i].link, 0, 0);
            callers[i].link.who = callers[i].who;
        }
        struct peer_nfs_fh root = files_stage_mount(&callers[0].link, open_path);
        check_modes(root);
        check_setattr(root);
        check_sticky(root);
        check_squash(root_path, all_path);
        check_read_only(ro_path);
        for (uint32_t i = 0; i < CALLERS; i++)
            peer_link_done(&callers[i].link);
    }
    return files_stage_finish(&stage);
}
