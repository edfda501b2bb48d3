/*
 * load.h -- many fake clients at once: connections from many source addresses, many calls in
 * flight.
 *
 * One thread, one epoll. A link is a TCP connection or a UDP socket. The owner posts calls and gets
 * each answer through one function, in the thread that calls load_turn; that function may post
 * again. Answers are matched by xid, which the engine chooses. UDP calls are sent again after a
 * second, with the same xid.
 *
 * A call is acknowledged when its answer reached the owner's function, and at no other moment: that
 * is what a client knows, and all that tests may rely on.
 */
#ifndef PEER_LOAD_H
#define PEER_LOAD_H

#include "peer/dial.h"

#define LOAD_IN_FLIGHT_MAX 64 /* per link */

struct load;

/* `tag` is what load_post was given. The reply dies when the function returns. */
typedef void (*load_answer_fn)(void *context, uint32_t link, uint64_t tag,
                               const struct packet_reply *reply);

struct load_counts {
    uint64_t posted, answered, resent;
    uint64_t unexpected; /* answers to no call in flight; a resent UDP call may have two */
    uint64_t unreadable; /* answers that are no RPC reply */
    uint32_t links_open;
};

/* NULL: no memory or no epoll. */
struct load *load_new(uint32_t links_max, load_answer_fn answer, void *context);
void load_free(struct load *load);

/* The index of the new link, counted from 0, or negative errno. */
int load_open(struct load *load, const struct dial_route *route);

/* False: the link is closed or has LOAD_IN_FLIGHT_MAX calls in flight. */
bool load_post(struct load *load, uint32_t link, uint64_t tag, const struct packet *call);
uint32_t load_in_flight(const struct load *load, uint32_t link);
bool load_is_open(const struct load *load, uint32_t link);
/* Closes it from our side; its calls in flight are forgotten. */
void load_close(struct load *load, uint32_t link);

/* Sends what was posted and handles what arrives within the time. The count of answers. */
uint32_t load_turn(struct load *load, uint32_t timeout_ms);

void load_count(const struct load *load, struct load_counts *ret);

#endif
