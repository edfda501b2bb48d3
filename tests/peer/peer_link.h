/*
 * peer_link.h -- one connection of an NFS client: big calls, a chosen identity, chosen xids, and
 * repeats as a hard mount makes them.
 *
 * A call is kept as it was made, so that it can be sent again byte for byte. Its data (WRITE) stays
 * with the caller and is sent behind it. Answers are read into the link's own buffer; what was read
 * out of it is valid until the next answer.
 *
 * A hard mount comes back from the port it had before, as Linux does: a server that knows repeats
 * by their port must find it unchanged. If somebody else has it by now, it takes another one.
 */
#ifndef PEER_PEER_LINK_H
#define PEER_PEER_LINK_H

#include "peer/dial.h"

enum {
    PEER_LINK_GROUPS_MAX = 32,                  /* AUTH_SYS allows 16 */
    PEER_LINK_RECORD_MAX = 1024 * 1024 + 65536, /* of an answer */
};

/* Who calls. */
struct peer_link_identity {
    bool is_none; /* AUTH_NONE: nobody */
    uint32_t uid, gid, group_count;
    uint32_t groups[PEER_LINK_GROUPS_MAX];
};

struct peer_link {
    /* May be changed between calls. */
    struct peer_link_identity who;
    uint32_t timeout_ms;   /* 30 s */
    uint32_t fragment_len; /* longest fragment of a record that is sent; 0: records are not cut */
    bool is_hard;          /* peer_link_exchange connects again and repeats */
    uint32_t next_xid;

    /* Its own. */
    struct dial_route route;
    int fd; /* -1: not connected */
    uint8_t *answer;
    uint64_t repeat_count; /* calls that were sent once more */
};

struct peer_link_call {
    uint32_t xid;
    struct packet head; /* header and arguments but for the data */
    const void *data;   /* sent behind it with its padding; the length is in the head already */
    uint32_t data_len;
};

/* False: no memory. Nothing is connected yet. */
bool peer_link_init(struct peer_link *link, const struct dial_route *route);
void peer_link_done(struct peer_link *link);

/* Connects, unless it is. 0 or negative errno. */
int peer_link_open(struct peer_link *link);
/* Lets the connection go at once, without the kernel's farewell; the port stays this link's. */
void peer_link_close(struct peer_link *link);

/* Begins a call of the link's identity with its next xid; the arguments go behind the head. */
void peer_link_begin(struct peer_link *link, struct peer_link_call *call, uint32_t prog,
                     uint32_t vers, uint32_t proc);

/* 0 or negative errno. */
int peer_link_send(struct peer_link *link, const struct peer_link_call *call);
/* The next answer, to whatever call. 0, -EBADMSG: not an RPC reply, or another negative errno. */
int peer_link_receive(struct peer_link *link, struct packet_reply *ret);
/* Both; answers to other calls are skipped. A hard link goes on over lost connections until
 * timeout_ms are over. */
int peer_link_exchange(struct peer_link *link, const struct peer_link_call *call,
                       struct packet_reply *ret);

#endif
