/*
 * emu_call.h -- one NLM call of an emulated host and its answer, synchronous or not.
 *
 * An asynchronous host sends LOCK_MSG in place of LOCK and waits for LOCK_RES, which is a call to
 * the socket it asked from or to its NLM port; without one it asks again, with the same cookie.
 */
#ifndef PEER_EMU_CALL_H
#define PEER_EMU_CALL_H

#include "peer/emu_host.h"

/*
 * The status, with *ret filled in, or negative errno: -ETIMEDOUT, -EPROTO for an RPC error,
 * -EBADMSG for a result that cannot be read or answers another cookie. Procedures without a status
 * give 0. `ret` may be NULL.
 */
int emu_call(struct emu_host *host, enum peer_nlm_procedure procedure,
             const struct peer_nlm_args *args, struct peer_nlm_res *ret);
/* The last synchronous call again, byte for byte, from the same socket. */
int emu_call_repeat(struct emu_host *host, struct peer_nlm_res *ret);
/* A *_RES, of which a host usually sends none by itself; 0 when the void answer came. */
int emu_call_res(struct emu_host *host, enum peer_nlm_procedure procedure,
                 const struct peer_nlm_res *res);
/* Any message over UDP or TCP from the given address to the server; 0 with the reply. */
int emu_call_raw(struct emu_host *host, uint32_t source_address, const struct packet *call,
                 struct packet *answer, struct packet_reply *ret);
/* Where the last asynchronous answer came: the socket that asked, or the NLM port. */
bool emu_call_was_at_own_socket(const struct emu_host *host);

/* A cookie as the host makes them, never the same twice. */
struct peer_nlm_bytes emu_call_cookie(struct emu_host *host);

#endif
