/*
 * drc.h -- the duplicate request cache (R-DRC-1, 2).
 *
 * A repeated call must not be executed twice: a late copy of an SM_UNMON would remove a newer
 * registration. A call is known by (source address and port, xid, program, version, procedure,
 * checksum of the arguments). While the first copy is in progress a repeat only redirects its
 * answer; afterwards a repeat gets the same bytes again.
 *
 *        drc_begin: new             drc_end
 *   ---> IN PROGRESS ----------------------------> DONE ----> (gone: 120 s, or room needed)
 *
 * Bounded: at most `entries_max` entries, of which one address may hold DRC_PER_ADDRESS that are
 * done; beyond that its own oldest goes first, so one caller cannot flush the others' entries.
 * Entries die with the process: what they protected is durable, and handlers stay idempotent.
 */
#ifndef RPC_DRC_H
#define RPC_DRC_H

#include "base/address.h"
#include "base/bytes.h"

#define DRC_LIFE_NS     (UINT64_C(120) * 1000000000)
#define DRC_PER_ADDRESS 1024
#define DRC_REPLY_MAX   2048 /* a longer reply is not kept: its call is executed again */
#define DRC_NONE        UINT64_MAX

struct drc;

struct drc_key {
    struct address address;
    uint32_t port, xid, prog, vers, proc, args_len;
    uint64_t args_hash;
};

enum drc_verdict {
    DRC_NEW,         /* *ret_entry is a new entry, in progress */
    DRC_IN_PROGRESS, /* *ret_entry is the one already there */
    DRC_DONE,        /* *ret_reply is the cached reply, valid until the next call */
    DRC_FULL,        /* everything is in progress: go on without the cache, *ret_entry = DRC_NONE */
};

struct drc *drc_new(uint32_t entries_max, uint64_t seed);
void drc_free(struct drc *drc);

/* Key part from the argument bytes. */
uint64_t drc_args_hash(const struct drc *drc, struct bytes args);

enum drc_verdict drc_begin(struct drc *drc, const struct drc_key *key, uint64_t now_ns,
                           uint64_t *ret_entry, struct bytes *ret_reply);
/* The answer left, hence is durable (R-DRC-2): keep it for repeats. */
void drc_end(struct drc *drc, uint64_t entry, struct bytes reply, uint64_t now_ns);

/* A rebooted client starts its xids anew: forget what it asked before. */
void drc_forget(struct drc *drc, const struct address *address);

uint32_t drc_count(const struct drc *drc);
void drc_check(const struct drc *drc);

#endif
