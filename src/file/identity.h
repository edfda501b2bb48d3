/*
 * identity.h -- on whose behalf a thread touches files.
 *
 * The kernel checks permissions, so a thread of the pool takes over its caller's uid, gid and
 * groups for the file system, by system calls that concern this thread alone. What it is now is
 * remembered: the same caller again costs nothing.
 *
 * A thread that acts as itself (identity_own) may open any file by its handle. Whatever it does so
 * must have been allowed to the caller before.
 */
#ifndef FILE_IDENTITY_H
#define FILE_IDENTITY_H

#include "base/text.h"
#include "codec/rpc_msg.h"
#include "file/export_line.h"

enum { IDENTITY_GROUPS_MAX = 1024 };

struct identity {
    uint32_t uid, gid;
    uint32_t group_count;
    uint32_t groups[IDENTITY_GROUPS_MAX];
    uint64_t seed; /* of the mark; secret, or callers could choose groups that give another's */
    uint64_t mark; /* a hash: what one may, another with the same one may, too */
};

/* Who a caller is for files of this export: squashed, or not. */
void identity_of(const struct rpc_credential *credential, const struct export_rights *rights,
                 uint64_t seed, struct identity *ret);
/* Its groups are those of a list instead of the wire's. */
void identity_set_groups(struct identity *identity, const struct export_rights *rights,
                         const uint32_t *groups, uint32_t count);
uint32_t identity_squash_uid(const struct export_rights *rights, uint32_t uid);
uint32_t identity_squash_gid(const struct export_rights *rights, uint32_t gid);

/* Once per thread, before the two below: leaves the umask and quota rules of the process. */
void identity_begin_thread(void);
/* For the calling thread. The kernel does not refuse it once identity_check was content. */
void identity_assume(const struct identity *identity);
void identity_own(void);
/* The same for a thread that has other work, too: between these two it is one of those that
 * identity_begin_thread makes, and then what it was before. False: it has too many groups. */
bool identity_enter(void);
void identity_leave(void);

/* Has this process what serving files needs? Otherwise a sentence that names what is missing. */
bool identity_check(struct text *ret_why);

#endif
