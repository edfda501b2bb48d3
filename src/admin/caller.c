/*
 * caller.c -- see caller.h.
 */
#include "admin/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GROUPS_MAX = 64 }; /* asked for first; who has more is asked about with more memory */

static bool is_among(const gid_t *groups, socklen_t len, uint32_t group)
{
    for (size_t i = 0; i < len / sizeof groups[0]; i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* Does the peer have this group beside its first one? It had it when it connected. */
static bool has_group(int fd, uint32_t group)
{
    gid_t some[GROUPS_MAX];
    socklen_t len = sizeof some;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, some, &len) == 0)
        return is_among(some, len, group);
    gid_t *all = errno == ERANGE ? malloc(len) : NULL;
    bool is_member = all != NULL && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &len) == 0 &&
                     is_among(all, len, group);
    free(all);
    return is_member;
}

enum caller_may caller_identify(int fd, const struct admin *admin, struct admin_caller *ret)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return CALLER_MAY_NOTHING;
    *ret = (struct admin_caller){peer.uid, peer.gid, peer.pid};
    if (peer.uid == 0 || peer.uid == geteuid())
        return CALLER_MAY_ALL;
    bool is_member = admin->has_tracker_group &&
                     (peer.gid == admin->tracker_group || has_group(fd, admin->tracker_group));
    return is_member ? CALLER_MAY_TRACK : CALLER_MAY_NOTHING;
}
