/*
 * files_traps_create.c -- traps of CREATE, MKNOD, SYMLINK and MKDIR; see files_traps.h.
 */
#include "files_traps.h"

#include <string.h>

static const struct peer_nfs_res *create_exclusive(struct files_traps *traps, const char *name,
                                                   const char *verf, uint32_t wanted)
{
    struct peer_nfs_args args = {
        .fh = traps->root, .name = peer_nfs_text(name), .how = PEER_NFS_EXCLUSIVE};
    memcpy(args.verf, verf, sizeof(args.verf));
    return files_stage_expect(wanted, name, PEER_NFS_CREATE,
                              files_stage_ask(traps->user, PEER_NFS_CREATE, &args));
}

/* All 64 bits of the verifier count, zero is one of them, and a restart changes nothing. */
static void check_exclusive(struct files_traps *traps)
{
    static const char *const verfs[] = {"\0\0\0\0\0\0\0\0", "\377\377\377\377\377\377\377\377",
                                        "\200\0\0\0\177\377\377\377", "abcdefgh"};
    static const char *const names[] = {"exclusive-0", "exclusive-1", "exclusive-2", "exclusive-3"};
    struct peer_nfs_fh fhs[4];
    for (uint32_t i = 0; i < 4; i++) {
        fhs[i] = create_exclusive(traps, names[i], verfs[i], PEER_NFS_IS_OK)->fh;
        struct peer_nfs_fh again = create_exclusive(traps, names[i], verfs[i], PEER_NFS_IS_OK)->fh;
        HARNESS_EXPECT(peer_nfs_same_fh(&fhs[i], &again), "a repeat gives another handle");
        for (uint32_t bit = 0; bit < 64; bit++) {
            char other[8];
            memcpy(other, verfs[i], sizeof(other));
            other[bit / 8] = (char)(other[bit / 8] ^ (1 << bit % 8));
            create_exclusive(traps, names[i], other, PEER_NFS_IS_EXIST);
        }
    }
    if (!files_stage_crash(traps->stage))
        return;
    for (uint32_t i = 0; i < 4; i++) {
        struct peer_nfs_fh again = create_exclusive(traps, names[i], verfs[i], PEER_NFS_IS_OK)->fh;
        HARNESS_EXPECT(peer_nfs_same_fh(&fhs[i], &again), "another handle after a restart");
        create_exclusive(traps, names[i], verfs[(i + 1) % 4], PEER_NFS_IS_EXIST);
    }
    (void)files_stage_create(traps->link, traps->root, "not-exclusive", 0644);
    create_exclusive(traps, "not-exclusive", verfs[0], PEER_NFS_IS_EXIST);
}

static void check_unchecked(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    struct peer_nfs_view name = peer_nfs_text("unchecked");
    files_stage_put_local(traps->path, "unchecked", "0123456789", 0640);
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "UNCHECKED on a file", link, PEER_NFS_CREATE,
                     .fh = traps->root, .name = name, .sattr = {.has_mode = true, .mode = 0777});
    HARNESS_EXPECT(res->attr.size == 10 && res->attr.mode == 0640,
                   "UNCHECKED applies more than the size: mode %o, size %llu", res->attr.mode,
                   (unsigned long long)res->attr.size);
    res = FILES_EXPECT(PEER_NFS_IS_OK, "UNCHECKED with a size", link, PEER_NFS_CREATE,
                       .fh = traps->root, .name = name, .sattr = {.has_size = true, .size = 4});
    HARNESS_EXPECT(res->attr.size == 4, "UNCHECKED leaves size %llu",
                   (unsigned long long)res->attr.size);
    FILES_EXPECT(PEER_NFS_IS_EXIST, "GUARDED on a file", link, PEER_NFS_CREATE, .fh = traps->root,
                 .name = name, .how = PEER_NFS_GUARDED);
    FILES_EXPECT(PEER_NFS_IS_ACCES, "UNCHECKED with a size on a file of another", traps->user,
                 PEER_NFS_CREATE, .fh = traps->root, .name = name, .sattr = {.has_size = true});
    FILES_EXPECT(PEER_NFS_IS_OK, "set-up", link, PEER_NFS_MKDIR, .fh = traps->root,
                 .name = peer_nfs_text("directory"), .sattr = {.has_mode = true, .mode = 0755});
    FILES_EXPECT(PEER_NFS_IS_OK, "set-up", link, PEER_NFS_SYMLINK, .fh = traps->root,
                 .name = peer_nfs_text("symlink"), .path = peer_nfs_text("unchecked"));
    FILES_EXPECT(PEER_NFS_IS_EXIST, "UNCHECKED on a directory", link, PEER_NFS_CREATE,
                 .fh = traps->root, .name = peer_nfs_text("directory"));
    FILES_EXPECT(PEER_NFS_IS_EXIST, "UNCHECKED on a symbolic link", link, PEER_NFS_CREATE,
                 .fh = traps->root, .name = peer_nfs_text("symlink"));
}

static void check_special(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "a device", link, PEER_NFS_MKNOD, .fh = traps->root,
                     .name = peer_nfs_text("device"), .type = PEER_NFS_CHR, .rdev_major = 5,
                     .rdev_minor = 300, .sattr = {.has_mode = true, .mode = 0600});
    HARNESS_EXPECT(res->attr.type == PEER_NFS_CHR && res->attr.rdev_major == 5 &&
                       res->attr.rdev_minor == 300,
                   "device %u %u", res->attr.rdev_major, res->attr.rdev_minor);
    FILES_EXPECT(PEER_NFS_IS_PERM, "a device of a user", traps->user, PEER_NFS_MKNOD,
                 .fh = traps->root, .name = peer_nfs_text("device2"), .type = PEER_NFS_BLK,
                 .rdev_major = 1, .rdev_minor = 3);
    res = FILES_ASK(link, PEER_NFS_MKNOD, .fh = traps->root, .name = peer_nfs_text("device3"),
                    .type = PEER_NFS_CHR, .rdev_major = UINT32_MAX, .rdev_minor = 1);
    HARNESS_EXPECT(res->status == PEER_NFS_IS_INVAL, "a device number that does not fit: %s",
                   peer_nfs_status_text(res->status));
    FILES_EXPECT(PEER_NFS_IS_BADTYPE, "MKNOD of a file", link, PEER_NFS_MKNOD, .fh = traps->root,
                 .name = peer_nfs_text("node"), .type = PEER_NFS_REG);
    FILES_EXPECT(PEER_NFS_IS_BADTYPE, "MKNOD of a directory", link, PEER_NFS_MKNOD,
                 .fh = traps->root, .name = peer_nfs_text("node"), .type = PEER_NFS_DIR);
    FILES_EXPECT(PEER_NFS_IS_OK, "a socket", link, PEER_NFS_MKNOD, .fh = traps->root,
                 .name = peer_nfs_text("socket"), .type = PEER_NFS_SOCK);
    /* Nobody writes to it: who opened it for reading would wait for ever. */
    struct peer_nfs_fh fifo =
        FILES_EXPECT(PEER_NFS_IS_OK, "a FIFO", link, PEER_NFS_MKNOD, .fh = traps->root,
                     .name = peer_nfs_text("fifo"), .type = PEER_NFS_FIFO,
                     .sattr = {.has_mode = true, .mode = 0666})
            ->fh;
    res = FILES_ASK(link, PEER_NFS_READ, .fh = fifo, .count = 1);
    HARNESS_EXPECT(res->status != PEER_NFS_IS_OK && res->status != PEER_NFS_IS_NOTHING,
                   "READ of a FIFO: %s", peer_nfs_status_text(res->status));
    res = FILES_ASK(link, PEER_NFS_WRITE, .fh = fifo, .count = 1, .data = {"a", 1});
    HARNESS_EXPECT(res->status != PEER_NFS_IS_OK && res->status != PEER_NFS_IS_NOTHING,
                   "WRITE of a FIFO: %s", peer_nfs_status_text(res->status));
    FILES_EXPECT(PEER_NFS_IS_OK, "chmod of a FIFO", link, PEER_NFS_SETATTR, .fh = fifo,
                 .sattr = {.has_mode = true, .mode = 0600});
}

/* Attributes are there with the name: nobody sees the object without them. */
static void check_attributes(struct files_traps *traps)
{
    struct peer_link *link = traps->link;
    static const struct peer_nfs_sattr wanted = {.has_mode = true,
                                                 .mode = 0640,
                                                 .has_uid = true,
                                                 .uid = 1234,
                                                 .has_gid = true,
                                                 .gid = 4321,
                                                 .mtime_how = PEER_NFS_CLIENT_TIME,
                                                 .mtime = {1000000000, 7}};
    static const uint32_t procedures[] = {PEER_NFS_CREATE, PEER_NFS_MKDIR, PEER_NFS_MKNOD};
    static const char *const names[] = {"with-1", "with-2", "with-3"};
    for (uint32_t i = 0; i < 3; i++) {
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, names[i], link, procedures[i], .fh = traps->root,
                         .name = peer_nfs_text(names[i]), .sattr = wanted, .type = PEER_NFS_FIFO,
                         .how = PEER_NFS_GUARDED);
        HARNESS_EXPECT(
            res->attr.mode == 0640 && res->attr.uid == 1234 && res->attr.gid == 4321 &&
                res->attr.mtime.seconds == 1000000000 && res->attr.mtime.nanoseconds == 7,
            "%s: mode %o owner %u:%u mtime %u.%09u", names[i], res->attr.mode, res->attr.uid,
            res->attr.gid, res->attr.mtime.seconds, res->attr.mtime.nanoseconds);
    }
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "umask", link, PEER_NFS_CREATE, .fh = traps->root,
                     .name = peer_nfs_text("umask"), .how = PEER_NFS_GUARDED,
                     .sattr = {.has_mode = true, .mode = 0666});
    HARNESS_EXPECT(res->attr.mode == 0666, "the server's umask counts: mode %o", res->attr.mode);
}

void files_traps_create(struct files_traps *traps)
{
    check_exclusive(traps);
    check_unchecked(traps);
    check_special(traps);
    check_attributes(traps);
}
