/*
 * emu_client.h -- what the programs on an emulated host do: lock, test, wait, give up, unlock.
 *
 * Every function speaks as the kind of the host does. Results are NLM statuses, or negative errno
 * as in emu_call.h. A range of len 0 goes to the end of the file, however the kind writes that.
 */
#ifndef PEER_EMU_CLIENT_H
#define PEER_EMU_CLIENT_H

#include "peer/emu_host.h"

/* Which bytes of which file, for whom. */
struct emu_request {
    uint32_t file; /* its handle is made of this; `fh` replaces it */
    uint32_t svid;
    bool exclusive;
    uint64_t offset, len;
    bool reclaim;
    const struct peer_nlm_bytes *fh;
};

/* A handle of 32 bytes, which every version can carry. */
struct peer_nlm_bytes emu_client_handle(uint32_t file);
/* The oh of one owner now. */
struct peer_nlm_bytes emu_client_oh(const struct emu_host *host, uint32_t svid);
/* Arguments for any procedure that names a lock, with a new cookie. */
void emu_client_fill(struct emu_host *host, const struct emu_request *request,
                     struct peer_nlm_args *ret);

/* Without waiting. An unmonitored host sends NM_LOCK. */
int emu_client_lock(struct emu_host *host, const struct emu_request *request);
/* *ret_holder is filled in when DENIED; it may be NULL. */
int emu_client_test(struct emu_host *host, const struct emu_request *request,
                    struct peer_nlm_res *ret_holder);
int emu_client_unlock(struct emu_host *host, const struct emu_request *request);
/* The bare call, without a wait of its own. */
int emu_client_cancel(struct emu_host *host, const struct emu_request *request);

/* The owner of a share is `oh`, and svid makes that. */
int emu_client_share(struct emu_host *host, const struct emu_request *request, uint32_t mode,
                     uint32_t access);
int emu_client_unshare(struct emu_host *host, const struct emu_request *request);
int emu_client_free_all(struct emu_host *host, const char *name);

/*
 * LOCK that may block. BLOCKED: *ret_wait is the request to wait for. An unmonitored host gets
 * DENIED instead and waits by asking again; every other status means that nothing waits.
 */
int emu_client_block(struct emu_host *host, const struct emu_request *request, uint32_t *ret_wait);
/* Waits for the callback, and polls meanwhile. GRANTED, -ETIMEDOUT (it waits on), or a refusal. */
int emu_client_wait(struct emu_host *host, uint32_t wait, uint32_t timeout_ms);
/* Sends the waiting request once more, as the kind polls. BLOCKED, GRANTED or a refusal. */
int emu_client_poll(struct emu_host *host, uint32_t wait);
/* True when a callback was accepted, or a poll said so. */
bool emu_client_is_granted(const struct emu_host *host, uint32_t wait);
/* CANCEL of the waiting request. The status; *ret_owned: the program holds the lock all the same,
   because a callback came first or the kind believes so. */
int emu_client_give_up(struct emu_host *host, uint32_t wait, bool *ret_owned);

#endif
