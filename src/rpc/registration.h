/*
 * registration.h -- our entries in the system's rpcbind, without sockets: what to ask it, and what
 * its answers mean.
 *
 * The carrier of the bytes opens a connection, begins a pass, and then sends each call that
 * registration_next_call writes and hands back each answer, until the pass has an outcome.
 *
 *                 all as it should be, or nothing may be changed
 *            +--------------------------------------------------------+
 *            |                                                        v
 *   begin -> LISTING --> CHANGING --> VERIFYING --------------------> ENDED
 *            DUMP        UNSET, SET   DUMP again
 *
 * DUMP is used where GETADDR might be expected: rpcbind takes the network id of GETADDR from the
 * transport that the call came over, so a caller on its unix socket cannot ask for "tcp"; and DUMP
 * tells the owner.
 *
 * rpcbind is spoken to in version 4. A portmapper that knows only version 2 is spoken to in that;
 * it has no entries for IPv6, and its UNSET removes TCP and UDP together (U31).
 */
#ifndef RPC_REGISTRATION_H
#define RPC_REGISTRATION_H

#include "base/text.h"
#include "rpc/portmap.h"

enum {
    REGISTRATION_MAX = 32,       /* services */
    REGISTRATION_CALL_MAX = 512, /* the longest call */
    REGISTRATION_OWNER_MAX = 32, /* what is kept of an owner's name */
};

enum registration_goal {
    REGISTRATION_LOOK,  /* is somebody else registered? Changes nothing. */
    REGISTRATION_CLAIM, /* register; an entry of somebody else is the end, or is taken over */
    REGISTRATION_KEEP,  /* restore what is missing; what others took stays theirs */
    REGISTRATION_DROP,  /* remove what is still ours */
};

enum registration_outcome {
    REGISTRATION_UNDER_WAY,
    REGISTRATION_DONE,    /* the goal is reached */
    REGISTRATION_FOREIGN, /* another server is registered; registration_explain names it */
    REGISTRATION_REFUSED, /* rpcbind did not do what it was asked */
    REGISTRATION_GARBLED, /* what answered does not speak the protocol */
};

enum registration_state {
    REGISTRATION_IDLE,
    REGISTRATION_LISTING,
    REGISTRATION_CHANGING,
    REGISTRATION_VERIFYING,
    REGISTRATION_ENDED,
};

/* What rpcbind has in the place of a service of ours. */
enum registration_found {
    REGISTRATION_NOTHING,
    REGISTRATION_OURS,
    REGISTRATION_MOVED, /* our port on another address: left over, or another instance */
    REGISTRATION_THEIRS,
};

struct registration_entry {
    struct portmap_service service;
    enum registration_found found;
    uint16_t their_port;
    char their_owner[REGISTRATION_OWNER_MAX]; /* as rpcbind says; bytes are not yet escaped */
    bool unset_first, set_then;               /* still to do in this pass */
};

/* Only registration.c touches the fields. */
struct registration {
    struct registration_entry entries[REGISTRATION_MAX];
    uint32_t count;
    bool takes_over; /* --force */
    uint32_t vers;   /* that rpcbind is spoken to in */
    uint32_t xid;    /* of the call in flight */

    enum registration_goal goal;
    enum registration_state state;
    enum registration_outcome outcome;
    bool is_waiting;                   /* the call was written; its answer is to come */
    uint32_t index;                    /* CHANGING: the entry */
    bool has_nfs, has_nlm;             /* in the last listing: others' NFS server, lock manager */
    uint32_t set_count, refused_count; /* SETs done, and UNSETs refused, in this pass */
};

void registration_init(struct registration *registration, bool takes_over, uint32_t first_xid);
/* Before the first pass. CHECKs that there is room. */
void registration_add(struct registration *registration, const struct portmap_service *service);

/* A new pass, on a connection that carries nothing else. */
void registration_begin(struct registration *registration, enum registration_goal goal);
/* The call to send now, into REGISTRATION_CALL_MAX bytes. False: an answer is awaited, or it ended.
 */
bool registration_next_call(struct registration *registration, struct xdr_out *out);
/* One whole message from rpcbind. */
void registration_answer(struct registration *registration, struct bytes message);

enum registration_outcome registration_outcome(const struct registration *registration);
/* After DONE: entries that were missing and are there now. */
uint32_t registration_restored(const struct registration *registration);
/* The last listing had an NFS server and a lock manager, which is not us. */
bool registration_is_served(const struct registration *registration);
/* The latter, at least. */
bool registration_has_lock_manager(const struct registration *registration);
/* In words: who is registered in our place, or what rpcbind refused. */
void registration_explain(const struct registration *registration, struct text *text);

/* For tests: abort on a broken invariant. */
void registration_check(const struct registration *registration);

#endif
