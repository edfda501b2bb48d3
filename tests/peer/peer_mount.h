/*
 * peer_mount.h -- MOUNT version 3 as a client speaks it (RFC 1813 appendix I, program 100005).
 */
#ifndef PEER_PEER_MOUNT_H
#define PEER_PEER_MOUNT_H

#include "peer/peer_nfs.h"

enum {
    PEER_MOUNT_PROGRAM = 100005,
    PEER_MOUNT_VERSION = 3,
    PEER_MOUNT_PATH_MAX = 1024,
    PEER_MOUNT_NAME_MAX = 255,
    PEER_MOUNT_FLAVORS_MAX = 8,
};

enum peer_mount_procedure {
    PEER_MOUNT_NULL = 0,
    PEER_MOUNT_MNT = 1,
    PEER_MOUNT_DUMP = 2,
    PEER_MOUNT_UMNT = 3,
    PEER_MOUNT_UMNTALL = 4,
    PEER_MOUNT_EXPORT = 5,
    PEER_MOUNT_PROCEDURES = 6,
};

/* The numbers of mountstat3 are those of nfsstat3 (enum peer_nfs_status), as far as it has them. */
struct peer_mount_res {
    uint32_t status; /* MNT; the others have none, and say 0 */
    struct peer_nfs_fh fh;
    uint32_t flavors[PEER_MOUNT_FLAVORS_MAX], flavor_count;
    struct packet_reader list; /* DUMP, EXPORT: for the two below */
};

/* DUMP: who mounted what. EXPORT: a directory and how many groups may; the names one by one. */
struct peer_mount_entry {
    struct peer_nfs_view host, directory;
};
struct peer_mount_export {
    struct peer_nfs_view directory;
    uint32_t group_count;
    struct peer_nfs_view groups[16]; /* the first of them */
};
bool peer_mount_next_entry(struct packet_reader *list, struct peer_mount_entry *ret);
bool peer_mount_next_export(struct packet_reader *list, struct peer_mount_export *ret);

const char *peer_mount_procedure_text(uint32_t procedure);
/* Appends the path of MNT and UMNT; the others have no arguments. */
void peer_mount_put_args(struct packet *packet, uint32_t procedure, struct peer_nfs_view path);
bool peer_mount_get_res(struct packet_reader *reader, uint32_t procedure,
                        struct peer_mount_res *ret);
/* One call and its answer: the status, 0 of those that have none; PEER_NFS_IS_NOTHING: no answer
 * that could be read. */
uint32_t peer_mount_call(struct peer_link *link, uint32_t procedure, struct peer_nfs_view path,
                         struct peer_mount_res *ret);

#endif
