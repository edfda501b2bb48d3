/*
 * lock_call.h -- NLM version 4 calls of the load generators, and which locks there are.
 *
 * A call is made once for each client and then only patched: file, owner, range and cookie have
 * fixed lengths. Locks have numbers. Number n of those that are held for long is in file n % files,
 * at place n / files; each place is 8 bytes of 16, so that no two of them touch, and far behind the
 * ranges that come and go. A thousand owners take turns.
 *
 * File handles are made up, or come from a file with one in hex on each line (tests/bench/handles
 * writes it): a server that serves files knows its own handles only.
 */
#ifndef BENCH_LOCK_CALL_H
#define BENCH_LOCK_CALL_H

#include "peer/peer_nlm.h"

#define LOCK_CALL_PLACE_LEN  16
#define LOCK_CALL_RANGE_LEN  8
#define LOCK_CALL_OH_LEN     8
#define LOCK_CALL_COOKIE_LEN 8
#define LOCK_CALL_HELD_BASE  (UINT64_C(1) << 24)
#define LOCK_CALL_OWNERS     1000

struct lock_call_files {
    uint32_t count, handle_len;
    uint8_t (*handles)[64];
};

/* `path` NULL: handles are made up. False: no memory, or not so many handles of one length. */
bool lock_call_load(struct lock_call_files *files, uint32_t count, const char *path);

/* Whose lock it is, and where. */
struct lock_call_range {
    uint32_t file;
    uint32_t svid;
    uint64_t offset;
};

/* Lock number n of those that are held for long. */
struct lock_call_range lock_call_held(const struct lock_call_files *files, uint32_t number);

/* The name under which the client of a connection locks. */
const char *lock_call_name(uint32_t client, char text[static 16]);

/* A call that can be patched. */
struct lock_call {
    struct packet *packet;
    uint32_t cookie_at, fh_at, oh_at, svid_at, offset_at;
};

/* TEST, LOCK or UNLOCK, exclusive, without waiting. False: no memory. */
bool lock_call_make(struct lock_call *call, const struct lock_call_files *files,
                    enum peer_nlm_procedure procedure, const char *caller_name);
void lock_call_set(struct lock_call *call, const struct lock_call_files *files, uint64_t cookie,
                   const struct lock_call_range *range);

/* A right answer from its second word on, to compare with. Both are at most LOCK_CALL_REPLY_MAX. */
#define LOCK_CALL_REPLY_MAX 96
/* With the cookie and GRANTED. The length. */
uint32_t lock_call_granted(uint8_t *reply, uint64_t cookie);
/* TEST: the cookie, DENIED, and who holds it. */
uint32_t lock_call_denied(uint8_t *reply, uint64_t cookie, const struct lock_call_range *holder);

#endif
