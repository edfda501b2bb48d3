/*
 * message.h -- what the core is asked and what it answers, without any protocol's bytes.
 *
 * Requests are views into the receive buffer: they die when core_step returns. What the core keeps
 * it copies.
 */
#ifndef CORE_MESSAGE_H
#define CORE_MESSAGE_H

#include "base/address.h"
#include "store/record.h"

/* Where a request came from. */
struct peer {
    struct address address;
    struct address local; /* our address that it was sent to */
    uint16_t port;        /* its source port */
    enum transport transport;
};

enum request_kind {
    REQUEST_NSM_STAT,
    REQUEST_NSM_MON,
    REQUEST_NSM_UNMON,
    REQUEST_NSM_UNMON_ALL,
    REQUEST_NSM_SIMU_CRASH,
    REQUEST_NSM_NOTIFY,
    REQUEST_NLM_TEST,
    REQUEST_NLM_LOCK, /* LOCK, LOCK_MSG, NM_LOCK */
    REQUEST_NLM_CANCEL,
    REQUEST_NLM_UNLOCK,
    REQUEST_NLM_GRANTED, /* sent to us, who wait for nothing: DENIED */
    REQUEST_NLM_GRANTED_RES,
    REQUEST_NLM_SHARE,
    REQUEST_NLM_UNSHARE,
    REQUEST_NLM_FREE_ALL,
};

/* How a lock request ended. The numbers are NLM version 4's. */
enum lock_status {
    LOCK_GRANTED = 0,
    LOCK_DENIED = 1,
    LOCK_NO_RESOURCES = 2,
    LOCK_BLOCKED = 3,
    LOCK_GRACE = 4, /* not now: ask again */
    LOCK_DEADLOCK = 5,
    LOCK_READ_ONLY = 6,
    LOCK_STALE_HANDLE = 7,
    LOCK_TOO_BIG = 8,
    LOCK_STATUS_NONE = 255, /* no answer that could be read */
};

/* What the lock procedures say; a procedure leaves zero what it does not have. */
struct lock_request {
    struct bytes caller_name, fh, oh;
    uint64_t offset, len; /* as sent (R-RNG-2) */
    uint64_t start, end;  /* what they mean: inclusive; end UINT64_MAX: to the end of the file */
    bool is_too_big;      /* they mean nothing (R-RNG-1) */
    bool is_bad_handle;   /* no handle of this version has that length (R-NLM-1) */
    enum lock_status refusal; /* LOCK_GRANTED: none. Otherwise the answer to a request that wants
                                 something, whatever the tables say (R-SEC-11) */
    bool exclusive, block, reclaim;
    bool is_unmonitored; /* NM_LOCK, SHARE of a client without state (R-NM-1) */
    bool is_message;     /* came by a _MSG procedure (R-BLK-2) */
    uint32_t svid;
    uint32_t version;      /* NLM: 1, 3, 4 */
    uint32_t state;        /* the client's NSM state; 0: not known */
    uint32_t mode, access; /* SHARE */
    uint32_t status;       /* GRANTED_RES: enum lock_status, or a number we do not know */
};

struct request {
    enum request_kind kind;
    struct bytes mon_name; /* STAT, MON, UNMON, NOTIFY; FREE_ALL: the client's name */
    struct bytes my_name;  /* MON, UNMON, UNMON_ALL */
    uint32_t my_prog, my_vers, my_proc;
    struct bytes priv;   /* MON: RECORD_PRIV_LEN bytes */
    uint32_t state;      /* NOTIFY, FREE_ALL */
    struct bytes cookie; /* NLM: echoed in the answer; GRANTED_RES: what it answers */
    struct lock_request lock;
};

/* Who holds what is in the way (R-OWN-3). */
struct lock_holder {
    bool exclusive;
    uint32_t svid;
    struct bytes oh; /* lives until the next step */
    uint64_t start, end;
};

/* When an answer leaves, once it is durable. */
enum answer_when {
    ANSWER_NOW,
    ANSWER_LATER, /* when core_next_answer names its ticket */
    ANSWER_NEVER, /* too many wait already: the caller asks again */
};

struct response {
    bool refused;   /* STAT_FAIL where the protocol has it */
    uint32_t state; /* our state number */
    enum lock_status status;
    enum answer_when when;
    uint32_t ticket;           /* ANSWER_LATER */
    struct lock_holder holder; /* TEST answered DENIED */
    struct bytes cookie;       /* the request's */
};

#endif
