/*
 * files_traps.c -- the mistakes that file servers make, one check each. Each check says in its
 * message what is expected and of what; passing shows that none of them is made here.
 *
 * The checks of data, creation, attributes, names and handles have a file each; here are those of
 * the file system as a whole.
 */
#include "files_traps.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static void check_sizes(struct files_traps *traps)
{
    static const char why[] = "limits";
    struct statvfs real;
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, why, traps->link, PEER_NFS_FSINFO, .fh = traps->root);
    HARNESS_EXPECT(res->rtmax == PEER_NFS_DATA_MAX && res->wtmax == PEER_NFS_DATA_MAX,
                   "rtmax %u, wtmax %u, expected 1 MiB", res->rtmax, res->wtmax);
    HARNESS_EXPECT(res->rtpref <= res->rtmax && res->wtpref <= res->wtmax && res->rtpref > 0 &&
                       res->wtpref > 0 && res->dtpref >= 4096,
                   "preferred sizes %u %u %u", res->rtpref, res->wtpref, res->dtpref);
    HARNESS_EXPECT(res->maxfilesize >= UINT64_C(1) << 40, "maxfilesize %llu",
                   (unsigned long long)res->maxfilesize);
    HARNESS_EXPECT((res->properties & 0x1b) == 0x1b,
                   "links, symbolic links, homogeneous, settable times: %x", res->properties);
    res = FILES_EXPECT(PEER_NFS_IS_OK, why, traps->link, PEER_NFS_PATHCONF, .fh = traps->root);
    HARNESS_EXPECT(res->name_max == 255 && res->linkmax > 1 && res->no_trunc &&
                       res->chown_restricted && !res->case_insensitive && res->case_preserving,
                   "PATHCONF: name_max %u linkmax %u", res->name_max, res->linkmax);
    res = FILES_EXPECT(PEER_NFS_IS_OK, why, traps->link, PEER_NFS_FSSTAT, .fh = traps->root);
    HARNESS_EXPECT(statvfs(traps->path, &real) == 0 &&
                       res->fsstat[0] == (uint64_t)real.f_blocks * real.f_frsize,
                   "FSSTAT says %llu bytes in all", (unsigned long long)res->fsstat[0]);
    HARNESS_EXPECT(res->fsstat[2] <= res->fsstat[1] && res->fsstat[1] <= res->fsstat[0] &&
                       res->fsstat[3] == real.f_files,
                   "FSSTAT says %llu free of %llu", (unsigned long long)res->fsstat[1],
                   (unsigned long long)res->fsstat[0]);
}

/* Every procedure but NULL on a handle that cannot be: nothing but BADHANDLE, and no silence. */
static void check_unknown(struct files_traps *traps)
{
    static struct peer_link_call call;
    struct packet_reply reply = {0};
    peer_link_begin(traps->link, &call, PEER_NFS_PROGRAM, PEER_NFS_VERSION, 22);
    HARNESS_EXPECT(peer_link_exchange(traps->link, &call, &reply) == 0 && reply.accepted &&
                       reply.status == PACKET_PROC_UNAVAIL,
                   "procedure 22: %s", packet_reply_text(&reply));
    peer_link_begin(traps->link, &call, PEER_NFS_PROGRAM, 2, 1);
    HARNESS_EXPECT(peer_link_exchange(traps->link, &call, &reply) == 0 && reply.accepted &&
                       reply.status == PACKET_PROG_MISMATCH && reply.low == 3 && reply.high == 3,
                   "version 2: %s %u %u", packet_reply_text(&reply), reply.low, reply.high);
    peer_link_begin(traps->link, &call, PEER_NFS_PROGRAM, PEER_NFS_VERSION, PEER_NFS_GETATTR);
    packet_put_u32(&call.head, 65); /* a handle of 65 bytes */
    packet_put_bytes(&call.head, (const uint8_t[68]){0}, 68);
    HARNESS_EXPECT(peer_link_exchange(traps->link, &call, &reply) == 0 && reply.accepted &&
                       reply.status == PACKET_GARBAGE_ARGS,
                   "a handle of 65 bytes: %s", packet_reply_text(&reply));
    FILES_EXPECT(PEER_NFS_IS_OK, "the connection goes on", traps->link, PEER_NFS_NULL, .count = 0);
}

int main(void)
{
    struct files_stage stage;
    struct peer_link link, user;
    struct files_traps traps = {.stage = &stage, .link = &link, .user = &user};
    files_stage_init(&stage, "files_traps");
    traps.path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    traps.other_path = files_stage_export(&stage, "other", "*(rw,no_root_squash)");
    HARNESS_EXPECT(chmod(traps.path, 0777) == 0, "chmod");
    if (files_stage_start(&stage)) {
        files_stage_link(&link, 0, 0);
        files_stage_link(&user, 1000, 1000);
        traps.root = files_stage_mount(&link, traps.path);
        check_sizes(&traps);
        check_unknown(&traps);
        files_traps_data(&traps);
        files_traps_create(&traps);
        files_traps_attributes(&traps);
        files_traps_names(&traps);
        files_traps_handles(&traps);
        peer_link_done(&link);
        peer_link_done(&user);
    }
    return files_stage_finish(&stage);
}
