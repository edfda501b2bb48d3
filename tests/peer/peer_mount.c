/*
 * peer_mount.c -- MOUNT version 3 as a client speaks it; see peer_mount.h.
 */
#include "peer/peer_mount.h"

#include <string.h>

const char *peer_mount_procedure_text(uint32_t procedure)
{
    static const char *const names[PEER_MOUNT_PROCEDURES] = {"NULL", "MNT",     "DUMP",
                                                             "UMNT", "UMNTALL", "EXPORT"};
    return procedure < PEER_MOUNT_PROCEDURES ? names[procedure] : "?";
}

void peer_mount_put_args(struct packet *packet, uint32_t procedure, struct peer_nfs_view path)
{
    if (procedure == PEER_MOUNT_MNT || procedure == PEER_MOUNT_UMNT)
        packet_put_opaque(packet, path.at, path.len);
}

/* "There is one more", as a boolean. */
static bool has_more(struct packet_reader *reader)
{
    uint32_t more = packet_get_u32(reader);
    if (more > 1)
        reader->failed = true;
    return more == 1 && !reader->failed;
}

static struct peer_nfs_view get_view(struct packet_reader *reader, uint32_t len_max)
{
    struct peer_nfs_view view;
    view.at = packet_get_opaque(reader, len_max, &view.len);
    return view;
}

bool peer_mount_next_entry(struct packet_reader *list, struct peer_mount_entry *ret)
{
    if (!has_more(list))
        return false;
    ret->host = get_view(list, PEER_MOUNT_NAME_MAX);
    ret->directory = get_view(list, PEER_MOUNT_PATH_MAX);
    return !list->failed;
}

bool peer_mount_next_export(struct packet_reader *list, struct peer_mount_export *ret)
{
    if (!has_more(list))
        return false;
    *ret = (struct peer_mount_export){.directory = get_view(list, PEER_MOUNT_PATH_MAX)};
    while (has_more(list)) {
        struct peer_nfs_view group = get_view(list, PEER_MOUNT_NAME_MAX);
        if (ret->group_count < sizeof(ret->groups) / sizeof(ret->groups[0]))
            ret->groups[ret->group_count] = group;
        ret->group_count++;
    }
    return !list->failed;
}

static void get_mnt(struct packet_reader *reader, struct peer_mount_res *res)
{
    res->status = packet_get_u32(reader);
    if (strcmp(peer_nfs_status_text(res->status), "?") == 0)
        reader->failed = true;
    if (res->status != PEER_NFS_IS_OK)
        return;
    const uint8_t *at = packet_get_opaque(reader, PEER_NFS_FH_MAX, &res->fh.len);
    if (at)
        memcpy(res->fh.at, at, res->fh.len);
    res->flavor_count = packet_get_u32(reader);
    if (res->flavor_count > PEER_MOUNT_FLAVORS_MAX)
        reader->failed = true;
    for (uint32_t i = 0; i < res->flavor_count && !reader->failed; i++)
        res->flavors[i] = packet_get_u32(reader);
}

bool peer_mount_get_res(struct packet_reader *reader, uint32_t procedure,
                        struct peer_mount_res *ret)
{
    struct peer_mount_res res = {.list = *reader};
    struct peer_mount_entry entry;
    struct peer_mount_export export;
    if (procedure == PEER_MOUNT_MNT)
        get_mnt(reader, &res);
    while (procedure == PEER_MOUNT_DUMP && peer_mount_next_entry(reader, &entry))
        ;
    while (procedure == PEER_MOUNT_EXPORT && peer_mount_next_export(reader, &export))
        ;
    if (!packet_is_done(reader))
        return false;
    *ret = res;
    return true;
}

uint32_t peer_mount_call(struct peer_link *link, uint32_t procedure, struct peer_nfs_view path,
                         struct peer_mount_res *ret)
{
    static _Thread_local struct peer_link_call call;
    struct packet_reply reply;
    *ret = (struct peer_mount_res){.status = PEER_NFS_IS_NOTHING};
    peer_link_begin(link, &call, PEER_MOUNT_PROGRAM, PEER_MOUNT_VERSION, procedure);
    peer_mount_put_args(&call.head, procedure, path);
    if (peer_link_exchange(link, &call, &reply) == 0 && reply.accepted &&
        reply.status == PACKET_SUCCESS) {
        struct packet_reader reader = {reply.body, reply.body_len, false};
        (void)peer_mount_get_res(&reader, procedure, ret); /* else it is no answer */
    }
    return ret->status;
}
