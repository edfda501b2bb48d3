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
    enum record_transport transport;
};

enum request_kind {
    REQUEST_NSM_STAT,
    REQUEST_NSM_MON,
    REQUEST_NSM_UNMON,
    REQUEST_NSM_UNMON_ALL,
    REQUEST_NSM_SIMU_CRASH,
    REQUEST_NSM_NOTIFY,
};

struct request {
    enum request_kind kind;
    struct bytes mon_name; /* STAT, MON, UNMON, NOTIFY */
    struct bytes my_name;  /* MON, UNMON, UNMON_ALL */
    uint32_t my_prog, my_vers, my_proc;
    struct bytes priv; /* MON: RECORD_PRIV_LEN bytes */
    uint32_t state;    /* NOTIFY */
};

struct response {
    bool refused;         /* STAT_FAIL where the protocol has it */
    uint32_t state;       /* our state number */
    bool caller_rebooted; /* the caller said, and we believe, that it started anew */
};

#endif
