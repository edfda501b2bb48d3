/*
 * files_traps_names.c -- traps of names: LOOKUP, RENAME, LINK, REMOVE, RMDIR and symbolic links;
 * see files_traps.h.
 */
#include "files_traps.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct peer_nfs_fh make_directory(struct files_traps *traps, struct peer_nfs_fh in,
                                         const char *name)
{
    return FILES_EXPECT(PEER_NFS_IS_OK, name, traps->link, PEER_NFS_MKDIR, .fh = in,
                        .name = peer_nfs_text(name), .sattr = {.has_mode = true, .mode = 0777})
        ->fh;
}

static void check_odd(struct files_traps *traps)
{
    static char longest[300];
    struct peer_link *link = traps->link;
    memset(longest, 'n', sizeof(longest));
    static const struct {
        struct peer_nfs_view name;
        const char *why;
    } odd[] = {{{"", 0}, "empty"}, {{"a/b", 3}, "with a slash"}, {{"a\0b", 3}, "with a NUL"}};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        static const uint32_t procedures[] = {PEER_NFS_LOOKUP, PEER_NFS_CREATE, PEER_NFS_MKDIR,
                                              PEER_NFS_REMOVE, PEER_NFS_RMDIR};
        for (uint32_t j = 0; j < 5; j++) {
            const struct peer_nfs_res *res =
                FILES_ASK(link, procedures[j], .fh = traps->root, .name = odd[i].name);
            HARNESS_EXPECT(
                res->status == PEER_NFS_IS_INVAL || res->status == PEER_NFS_IS_ACCES ||
                    (res->status == PEER_NFS_IS_NOENT && procedures[j] == PEER_NFS_LOOKUP),
                "a name %s: %s answered %s", odd[i].why, peer_nfs_procedure_text(procedures[j]),
                peer_nfs_status_text(res->status));
        }
    }
    FILES_EXPECT(PEER_NFS_IS_OK, "255 bytes", link, PEER_NFS_MKDIR, .fh = traps->root,
                 .name = {longest, 255}, .sattr = {.has_mode = true, .mode = 0755});
    FILES_EXPECT(PEER_NFS_IS_OK, "255 bytes", link, PEER_NFS_RMDIR, .fh = traps->root,
                 .name = {longest, 255});
    FILES_EXPECT(PEER_NFS_IS_NAMETOOLONG, "256 bytes", link, PEER_NFS_CREATE, .fh = traps->root,
                 .name = {longest, 256});
    FILES_EXPECT(PEER_NFS_IS_NAMETOOLONG, "256 bytes", link, PEER_NFS_LOOKUP, .fh = traps->root,
                 .name = {longest, 256});
}

/* Every byte but '/' and NUL is good in a name. */
static void check_bytes(struct files_traps *traps)
{
    struct peer_nfs_fh in = make_directory(traps, traps->root, "bytes");
    for (uint32_t byte = 1; byte < 256; byte++) {
        char name[2] = {(char)byte, 'x'};
        if (byte == '/')
            continue;
        FILES_EXPECT(PEER_NFS_IS_OK, "any byte", traps->link, PEER_NFS_CREATE, .fh = in,
                     .name = {name, 2}, .how = PEER_NFS_GUARDED);
        FILES_EXPECT(PEER_NFS_IS_OK, "any byte", traps->link, PEER_NFS_LOOKUP, .fh = in,
                     .name = {name, 2});
        FILES_EXPECT(PEER_NFS_IS_OK, "any byte", traps->link, PEER_NFS_REMOVE, .fh = in,
                     .name = {name, 2});
    }
}

static void check_dots(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_view dot = peer_nfs_text("."), dots = peer_nfs_text("..");
    struct peer_nfs_fh in = make_directory(traps, traps->root, "dots");
    struct peer_nfs_fh fh = files_stage_lookup(link, in, ".");
    HARNESS_EXPECT(peer_nfs_same_fh(&fh, &in), ". is another directory");
    fh = files_stage_lookup(link, in, "..");
    HARNESS_EXPECT(peer_nfs_same_fh(&fh, &traps->root), ".. is another directory");
    fh = files_stage_lookup(link, traps->root, "..");
    HARNESS_EXPECT(peer_nfs_same_fh(&fh, &traps->root), ".. leads out of the export");
    static const uint32_t procedures[] = {PEER_NFS_CREATE, PEER_NFS_MKDIR, PEER_NFS_SYMLINK,
                                          PEER_NFS_MKNOD};
    for (uint32_t i = 0; i < 4; i++) {
        FILES_EXPECT(PEER_NFS_IS_EXIST, "making .", link, procedures[i], .fh = in, .name = dot,
                     .type = PEER_NFS_FIFO, .path = dot, .how = PEER_NFS_GUARDED);
        FILES_EXPECT(PEER_NFS_IS_EXIST, "making ..", link, procedures[i], .fh = in, .name = dots,
                     .type = PEER_NFS_FIFO, .path = dot, .how = PEER_NFS_GUARDED);
    }
    static const uint32_t removers[] = {PEER_NFS_REMOVE, PEER_NFS_RMDIR};
    for (uint32_t i = 0; i < 2; i++) {
        const struct peer_nfs_res *res = FILES_ASK(link, removers[i], .fh = in, .name = dot);
        HARNESS_EXPECT(res->status != PEER_NFS_IS_OK, ". can be removed");
        res = FILES_ASK(link, removers[i], .fh = in, .name = dots);
        HARNESS_EXPECT(res->status != PEER_NFS_IS_OK, ".. can be removed");
    }
    const struct peer_nfs_res *res = FILES_ASK(link, PEER_NFS_RENAME, .fh = in, .name = dot,
                                               .to_fh = in, .to_name = peer_nfs_text("new"));
    HARNESS_EXPECT(res->status == PEER_NFS_IS_INVAL, "renaming .: %s",
                   peer_nfs_status_text(res->status));
}

static void check_rename(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_fh from = make_directory(traps, traps->root, "from");
    struct peer_nfs_fh to = make_directory(traps, traps->root, "to");
    struct peer_nfs_fh other = files_stage_mount(link, traps->other_path);
    struct peer_nfs_fh fh = files_stage_create(link, from, "file", 0644);
    struct peer_nfs_view file = peer_nfs_text("file"), moved = peer_nfs_text("moved");
    FILES_EXPECT(PEER_NFS_IS_OK, "onto itself", link, PEER_NFS_RENAME, .fh = from, .name = file,
                 .to_fh = from, .to_name = file);
    FILES_EXPECT(PEER_NFS_IS_OK, "across directories", link, PEER_NFS_RENAME, .fh = from,
                 .name = file, .to_fh = to, .to_name = moved);
    FILES_EXPECT(PEER_NFS_IS_OK, "a handle lives on", link, PEER_NFS_GETATTR, .fh = fh);
    struct peer_nfs_fh again = files_stage_lookup(link, to, "moved");
    HARNESS_EXPECT(peer_nfs_same_fh(&fh, &again), "a renamed file has another handle");
    FILES_EXPECT(PEER_NFS_IS_XDEV, "across exports", link, PEER_NFS_RENAME, .fh = to, .name = moved,
                 .to_fh = other, .to_name = moved);
    FILES_EXPECT(PEER_NFS_IS_XDEV, "LINK across exports", link, PEER_NFS_LINK, .fh = fh,
                 .to_fh = other, .to_name = moved);
    make_directory(traps, from, "directory");
    FILES_EXPECT(PEER_NFS_IS_ISDIR, "a file over a directory", link, PEER_NFS_RENAME, .fh = to,
                 .name = moved, .to_fh = from, .to_name = peer_nfs_text("directory"));
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, "a directory over a file", link, PEER_NFS_RENAME, .fh = from,
                 .name = peer_nfs_text("directory"), .to_fh = to, .to_name = moved);
    FILES_EXPECT(PEER_NFS_IS_NOTEMPTY, "over a directory that is not empty", link, PEER_NFS_RENAME,
                 .fh = from, .name = peer_nfs_text("directory"), .to_fh = traps->root,
                 .to_name = peer_nfs_text("to"));
    FILES_EXPECT(PEER_NFS_IS_INVAL, "into itself", link, PEER_NFS_RENAME, .fh = traps->root,
                 .name = peer_nfs_text("from"), .to_fh = from, .to_name = peer_nfs_text("inner"));
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, "a file as directory", link, PEER_NFS_LOOKUP, .fh = fh,
                 .name = file);
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, "a file as directory", link, PEER_NFS_RENAME, .fh = to,
                 .name = moved, .to_fh = fh, .to_name = file);
    FILES_EXPECT(PEER_NFS_IS_OK, "an ordinary name", link, PEER_NFS_RENAME, .fh = to, .name = moved,
                 .to_fh = to, .to_name = peer_nfs_text(".nfs0000000000001"));
    FILES_EXPECT(PEER_NFS_IS_OK, "an ordinary name", link, PEER_NFS_LOOKUP, .fh = to,
                 .name = peer_nfs_text(".nfs0000000000001"));
    const struct peer_nfs_res *res =
        FILES_ASK(link, PEER_NFS_LINK, .fh = from, .to_fh = to, .to_name = peer_nfs_text("loop"));
    HARNESS_EXPECT(res->status == PEER_NFS_IS_PERM || res->status == PEER_NFS_IS_ISDIR ||
                       res->status == PEER_NFS_IS_INVAL,
                   "LINK to a directory: %s", peer_nfs_status_text(res->status));
}

/* A link is an object like others: nothing goes through it. */
static void check_symlinks(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_view way_out = peer_nfs_text("way-out");
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "a symbolic link", link, PEER_NFS_SYMLINK, .fh = traps->root,
                     .name = way_out, .path = peer_nfs_text("/usr"));
    struct peer_nfs_fh fh = res->fh;
    HARNESS_EXPECT(res->attr.type == PEER_NFS_LNK && res->attr.size == 4, "type %u",
                   res->attr.type);
    res = FILES_EXPECT(PEER_NFS_IS_OK, "READLINK", link, PEER_NFS_READLINK, .fh = fh);
    HARNESS_EXPECT(peer_nfs_is_text(res->data, "/usr"), "READLINK gives another path");
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, "LOOKUP through it", link, PEER_NFS_LOOKUP, .fh = fh,
                 .name = peer_nfs_text("bin"));
    FILES_EXPECT(PEER_NFS_IS_NOTDIR, "READDIR of it", link, PEER_NFS_READDIR, .fh = fh,
                 .count = 4096);
    res = FILES_ASK(link, PEER_NFS_READ, .fh = fh, .count = 1);
    HARNESS_EXPECT(res->status == PEER_NFS_IS_INVAL || res->status == PEER_NFS_IS_ISDIR,
                   "READ of it: %s", peer_nfs_status_text(res->status));
    FILES_EXPECT(PEER_NFS_IS_OK, "owner of a link", link, PEER_NFS_SETATTR, .fh = fh,
                 .sattr = {.has_uid = true, .uid = 1000});
    struct stat st;
    HARNESS_EXPECT(stat("/usr", &st) == 0 && st.st_uid == 0, "SETATTR went through a link");
    FILES_EXPECT(PEER_NFS_IS_OK, "REMOVE of it", link, PEER_NFS_REMOVE, .fh = traps->root,
                 .name = way_out);
}

void files_traps_names(struct files_traps *traps)
{
    check_odd(traps);
    check_bytes(traps);
    check_dots(traps);
    check_rename(traps);
    check_symlinks(traps);
}
