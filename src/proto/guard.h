/*
 * guard.h -- may this caller lock this file? Asked of the file service before the core is.
 *
 * The core knows no files, only their handles. Where this server serves the files as well, a guard
 * says which handles are files, which clients an export lists, and what its users may read
 * (R-SEC-11). Only requests that want something are judged: what frees a lock is never refused.
 */
#ifndef PROTO_GUARD_H
#define PROTO_GUARD_H

#include "codec/rpc_msg.h"
#include "core/message.h"

struct guard_question {
    const struct peer *from;
    const struct rpc_credential *credential;
    struct bytes fh;
    bool exclusive;
    bool is_stored; /* it has the lock already: what it may read is no question any more */
};

enum guard_verdict {
    GUARD_ALLOWED,
    GUARD_STALE,        /* no handle of ours, or the file is gone */
    GUARD_NOT_EXPORTED, /* its export does not list this client */
    GUARD_READ_ONLY,    /* an exclusive lock where this client may only read */
    GUARD_NO_ACCESS,    /* this user may not read the file, and it is not its own */
    GUARD_LATER,        /* not known yet: ask again in another turn */
    GUARD_AGAIN,        /* a program has a lease on it, or files ran out: the client asks again */
    GUARD_STUCK,        /* not known for too long: the file system does not answer */
};

struct guard {
    enum guard_verdict (*judge)(void *context, const struct guard_question *question);
    void *context;
};

#endif
