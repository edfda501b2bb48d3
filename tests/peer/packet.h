/*
 * packet.h -- the tests' own XDR and RPC messages (RFC 4506, RFC 5531).
 *
 * Fake clients must not share code with the server: a mistake in src/codec would cancel itself out.
 * So this is a second, plain implementation. It builds also what no honest client sends: a packet
 * is only bytes, and every helper appends to it.
 */
#ifndef PEER_PACKET_H
#define PEER_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_MAX 65536

/* Bytes under construction. `overflowed` stays true once something did not fit. */
struct packet {
    uint32_t len;
    bool overflowed;
    uint8_t bytes[PACKET_MAX];
};

/* What is left to read, and whether something was missing so far. */
struct packet_reader {
    const uint8_t *at;
    uint32_t left;
    bool failed;
};

void packet_clear(struct packet *packet);
void packet_put_bytes(struct packet *packet, const void *bytes, uint32_t len);
void packet_put_u32(struct packet *packet, uint32_t value);
void packet_put_u64(struct packet *packet, uint64_t value);
/* A string or opaque<>: length, bytes, zero padding. */
void packet_put_opaque(struct packet *packet, const void *bytes, uint32_t len);
void packet_put_text(struct packet *packet, const char *text);

/* After a failure every read gives 0 and an empty view. */
uint32_t packet_get_u32(struct packet_reader *reader);
uint64_t packet_get_u64(struct packet_reader *reader);
const uint8_t *packet_get_fixed(struct packet_reader *reader, uint32_t len);
const uint8_t *packet_get_opaque(struct packet_reader *reader, uint32_t len_max, uint32_t *ret_len);
bool packet_is_done(const struct packet_reader *reader);

enum packet_auth { PACKET_AUTH_NONE = 0, PACKET_AUTH_SYS = 1 };

struct packet_call {
    uint32_t xid, prog, vers, proc;
    enum packet_auth auth; /* AUTH_SYS says machine "peer", uid and gid 0 */
};

/* Appends the call header; the arguments follow. */
void packet_put_call(struct packet *packet, const struct packet_call *call);
/* The other side of it: reads a call of any credential; the arguments are left in the reader.
   False: not a call, or of another RPC version. */
bool packet_get_call(struct packet_reader *reader, struct packet_call *ret);
/* Appends an accepted answer with this status (enum packet_accept); the result follows. */
void packet_put_accepted(struct packet *packet, uint32_t xid, uint32_t status);
/* The xid of a call or reply that is at least four bytes long, else 0. */
uint32_t packet_xid(const void *bytes, uint32_t len);
void packet_set_xid(struct packet *packet, uint32_t xid);

/* Names of RFC 5531. */
enum packet_accept {
    PACKET_SUCCESS = 0,
    PACKET_PROG_UNAVAIL = 1,
    PACKET_PROG_MISMATCH = 2,
    PACKET_PROC_UNAVAIL = 3,
    PACKET_GARBAGE_ARGS = 4,
    PACKET_SYSTEM_ERR = 5,
};
enum packet_reject { PACKET_RPC_MISMATCH = 0, PACKET_AUTH_ERROR = 1 };

struct packet_reply {
    uint32_t xid;
    bool accepted;
    uint32_t status;     /* enum packet_accept when accepted, else enum packet_reject */
    uint32_t low, high;  /* both kinds of MISMATCH */
    uint32_t auth_why;   /* AUTH_ERROR */
    const uint8_t *body; /* SUCCESS: the result, a view into the message */
    uint32_t body_len;
};

/* False: not a well-formed reply. Strict: nothing may follow an error answer. */
bool packet_get_reply(const void *bytes, uint32_t len, struct packet_reply *ret);

/* One word for a reply: "SUCCESS", "GARBAGE_ARGS", "RPC_MISMATCH", ... */
const char *packet_reply_text(const struct packet_reply *reply);

#endif
