/*
 * talk.c -- one fake client that checks answers; see talk.h.
 */
#include "talk.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 30000

enum { OVER_TCP = 0, OVER_UDP = 1 };
static const char *const over[] = {"TCP", "UDP"};

static bool open_tcp(struct talk *talk)
{
    struct dial_route route = harness_route(talk->server, false);
    talk->tcp = dial_open(&route, PATIENCE_MS);
    return HARNESS_EXPECT(talk->tcp >= 0, "cannot connect: %s", strerror(-talk->tcp));
}

bool talk_open(struct talk *talk, const struct harness_server *server)
{
    *talk = (struct talk){.server = server, .tcp = -1, .udp = -1, .xid = 1000};
    struct dial_route route = harness_route(server, true);
    talk->udp = dial_open(&route, PATIENCE_MS);
    return talk->udp >= 0 && open_tcp(talk);
}

void talk_close(struct talk *talk)
{
    if (talk->tcp >= 0)
        close(talk->tcp);
    if (talk->udp >= 0)
        close(talk->udp);
    talk->tcp = talk->udp = -1;
}

uint32_t talk_next_xid(struct talk *talk)
{
    return ++talk->xid;
}

/* The reply to a call over one of the two; false when there was none. */
static bool ask(struct talk *talk, int transport, const struct packet *call, const char *what,
                struct packet *answer, struct packet_reply *ret)
{
    if (transport == OVER_TCP && talk->tcp < 0 && !open_tcp(talk))
        return false;
    int fd = transport == OVER_TCP ? talk->tcp : talk->udp;
    int result = dial_exchange(fd, transport == OVER_UDP, call, PATIENCE_MS, answer, ret);
    if (result < 0 && transport == OVER_TCP) {
        close(talk->tcp);
        talk->tcp = -1;
    }
    return HARNESS_EXPECT(result == 0, "%s over %s: %s", what, over[transport], strerror(-result));
}

void talk_demand_error(struct talk *talk, const struct packet *call,
                       const struct talk_expected *expected, const char *what)
{
    static struct packet answer;
    for (int i = OVER_TCP; i <= OVER_UDP; i++) {
        struct packet_reply reply;
        if (!ask(talk, i, call, what, &answer, &reply))
            continue;
        HARNESS_EXPECT(reply.accepted == expected->accepted && reply.status == expected->status &&
                           reply.low == expected->low && reply.high == expected->high &&
                           reply.auth_why == expected->auth_why,
                       "%s over %s: answered %s (%u..%u, auth %u)", what, over[i],
                       packet_reply_text(&reply), reply.low, reply.high, reply.auth_why);
    }
}

void talk_demand_res(struct talk *talk, const struct packet *call, uint32_t res, const char *what)
{
    static struct packet answer;
    for (int i = OVER_TCP; i <= OVER_UDP; i++) {
        struct packet_reply reply;
        uint32_t got = 99, state = 0;
        if (!ask(talk, i, call, what, &answer, &reply))
            continue;
        HARNESS_EXPECT(peer_nsm_get_stat_res(&reply, &got, &state) && got == res &&
                           (res == PEER_NSM_STAT_FAIL || state == talk->server->state),
                       "%s over %s: answered %s, res %u, state %u", what, over[i],
                       packet_reply_text(&reply), got, state);
    }
}

void talk_demand_state(struct talk *talk, const struct packet *call, const char *what)
{
    static struct packet answer;
    for (int i = OVER_TCP; i <= OVER_UDP; i++) {
        struct packet_reply reply;
        uint32_t state = 0;
        if (!ask(talk, i, call, what, &answer, &reply))
            continue;
        HARNESS_EXPECT(peer_nsm_get_stat(&reply, &state) && state == talk->server->state,
                       "%s over %s: answered %s, state %u, %u bytes", what, over[i],
                       packet_reply_text(&reply), state, reply.body_len);
    }
}

void talk_demand_void(struct talk *talk, const struct packet *call, const char *what)
{
    static struct packet answer;
    for (int i = OVER_TCP; i <= OVER_UDP; i++) {
        struct packet_reply reply;
        if (!ask(talk, i, call, what, &answer, &reply))
            continue;
        HARNESS_EXPECT(peer_nsm_is_void(&reply), "%s over %s: answered %s, %u bytes", what, over[i],
                       packet_reply_text(&reply), reply.body_len);
    }
}

/* The next answer on a socket must be the one to the NULL call that follows the bad message, whose
 * xid is the one before; a late second answer to an older, repeated datagram is not meant. */
static void demand_null_only(struct talk *talk, int transport, const char *what)
{
    static struct packet call, answer;
    struct packet_reply reply;
    int fd = transport == OVER_TCP ? talk->tcp : talk->udp;
    uint32_t xid = talk_next_xid(talk);
    peer_nsm_put_null(&call, xid);
    int result = transport == OVER_TCP ? dial_send_record(fd, call.bytes, call.len, PATIENCE_MS)
                                       : dial_send(fd, call.bytes, call.len, PATIENCE_MS);
    while (result == 0 || (result > 0 && packet_xid(answer.bytes, (uint32_t)result) + 1 < xid))
        result = transport == OVER_TCP
                     ? dial_receive_record(fd, &answer, PATIENCE_MS)
                     : dial_receive(fd, answer.bytes, sizeof(answer.bytes), PATIENCE_MS);
    if (transport == OVER_TCP && result == -ECONNRESET) {
        close(talk->tcp); /* closing is an answer that makes no promise either */
        talk->tcp = -1;
        return;
    }
    HARNESS_EXPECT(result > 0 && packet_get_reply(answer.bytes, (uint32_t)result, &reply) &&
                       reply.xid == xid && peer_nsm_is_void(&reply),
                   "%s over %s: the next answer is not the one to the NULL behind it (%d)", what,
                   over[transport], result);
}

void talk_demand_silence(struct talk *talk, const void *bytes, uint32_t len, const char *what)
{
    if (talk->tcp < 0 && !open_tcp(talk))
        return;
    if (dial_send_record(talk->tcp, bytes, len, PATIENCE_MS) == 0)
        demand_null_only(talk, OVER_TCP, what);
    if (dial_send(talk->udp, bytes, len, PATIENCE_MS) == 0)
        demand_null_only(talk, OVER_UDP, what);
}

void talk_demand_service(struct talk *talk, const char *what)
{
    static struct packet call;
    uint8_t priv[PEER_NSM_PRIV_LEN] = {1, 2, 3};
    struct peer_nsm_id id = {"honest.example", "honest", 100021, 3, 16};
    peer_nsm_put_stat(&call, talk_next_xid(talk), "honest.example");
    talk_demand_res(talk, &call, PEER_NSM_STAT_SUCC, what);
    peer_nsm_put_mon(&call, talk_next_xid(talk), &id, priv);
    talk_demand_res(talk, &call, PEER_NSM_STAT_SUCC, what);
    peer_nsm_put_unmon(&call, talk_next_xid(talk), &id);
    talk_demand_state(talk, &call, what);
}
