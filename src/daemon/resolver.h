/*
 * resolver.h -- queries the system's resolver, which may be slow: off the loop, in libuv's threads,
 * a bounded number of queries at once.
 *
 * The lookup of our own names (names.h) and the lookup of names that clients claim (resolving.h)
 * have one each: neither uses up the other's room.
 */
#ifndef DAEMON_RESOLVER_H
#define DAEMON_RESOLVER_H

#include "base/address.h"

#include <uv.h>

#define RESOLVER_ADDRESSES_MAX 64 /* of one name; more are not looked at */

struct resolver;

/* The result. Lives until the function returns. */
struct resolver_answer {
    const char *name; /* of a host: its full one; of an address: the host's; NULL: none */
    const struct address *addresses; /* of a host */
    uint32_t address_count;
};

/* `id` is the caller's. For an unknown name, or after a failure, the result is empty. */
typedef void (*resolver_answer_fn)(void *context, uint64_t id,
                                   const struct resolver_answer *answer);

/* NULL: no memory. */
struct resolver *resolver_new(uv_loop_t *loop, uint32_t questions_max, void *context,
                              resolver_answer_fn on_answer);
/* When the loop has closed all handles; not while a question is open. */
void resolver_free(struct resolver *resolver);

/* How many are in progress. */
uint32_t resolver_open_count(const struct resolver *resolver);

/* The addresses and the full name of a host; the name of an address. False: no query was made and
 * no result will come; there must be room. */
bool resolver_ask_host(struct resolver *resolver, uint64_t id, struct bytes name);
bool resolver_ask_address(struct resolver *resolver, uint64_t id, const struct address *address);

/*
 * No more results. False: a query is running and cannot be interrupted; the process must then end
 * without waiting for it. True: resolver_free may follow when the loop has run out.
 */
__attribute__((warn_unused_result)) bool resolver_close(struct resolver *resolver);

#endif
