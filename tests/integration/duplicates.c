/*
 * duplicates.c -- calls that arrive twice, answers that must leave from the right address.
 *
 * Passing proves (R-DRC-1, R-DRC-2, R-ID-2, R-NOTIFY-1's address rule for answers):
 *  (1) an SM_UNMON that arrives again after a newer SM_MON gets the same bytes as before and does
 *      not remove the newer registration, over UDP, over a new TCP connection from the same port,
 *      and from another port (decision 020);
 *  (2) the same xid with other arguments is another call and is executed;
 *  (3) a call that is repeated while it is in progress is answered, and executed once;
 *  (4) an answer over UDP leaves from the address that was asked, IPv4 and IPv6, when the server
 *      listens on all addresses;
 *  (5) an IPv4 client that speaks through an IPv6 socket (::ffff:a.b.c.d) is the same client.
 *
 * Presence is looked up in the store after the server stopped.
 */
#include "harness.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 30000

static const uint8_t old_priv[PEER_NSM_PRIV_LEN] = {1};
static const uint8_t new_priv[PEER_NSM_PRIV_LEN] = {2};

/* One call on an open socket; the whole answer stays in *answer. */
static bool ask(int fd, bool is_udp, const struct packet *call, struct packet *answer)
{
    struct packet_reply reply;
    int result = dial_exchange(fd, is_udp, call, PATIENCE_MS, answer, &reply);
    return HARNESS_EXPECT(result == 0 && reply.accepted && reply.status == PACKET_SUCCESS,
                          "no good answer: %s", strerror(-result));
}

static bool is_same(const struct packet *a, const struct packet *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static struct peer_nsm_id id_of(const char *name)
{
    return (struct peer_nsm_id){name, "twice", 100021, 3, 16};
}

/* SM_MON, SM_UNMON, SM_MON, and the SM_UNMON again. */
static void replay_over_udp(const struct harness_server *server)
{
    static struct packet mon, unmon, again, first, second;
    struct dial_route route = harness_route(server, true);
    struct peer_nsm_id id = id_of("udp.kept");
    int fd = dial_open(&route, PATIENCE_MS);
    peer_nsm_put_mon(&mon, 101, &id, old_priv);
    peer_nsm_put_unmon(&unmon, 102, &id);
    peer_nsm_put_mon(&again, 103, &id, new_priv);
    ask(fd, true, &mon, &first);
    ask(fd, true, &unmon, &first);
    ask(fd, true, &again, &second);
    for (int i = 0; i < 3; i++) {
        ask(fd, true, &unmon, &second);
        HARNESS_EXPECT(is_same(&first, &second), "the repeat got other bytes");
    }
    ask(fd, true, &mon, &second); /* the old SM_MON must not bring its old priv back */
    close(fd);

    /* Also from another port: a late copy must not remove a newer registration. */
    id = id_of("udp.removed");
    fd = dial_open(&route, PATIENCE_MS);
    peer_nsm_put_mon(&mon, 111, &id, old_priv);
    peer_nsm_put_unmon(&unmon, 112, &id);
    peer_nsm_put_mon(&again, 113, &id, new_priv);
    ask(fd, true, &mon, &first);
    ask(fd, true, &unmon, &first);
    ask(fd, true, &again, &first);
    int other = dial_open(&route, PATIENCE_MS);
    ask(other, true, &unmon, &first);
    close(other);

    /* The xid of an answered call with other arguments is another call: executed. */
    id = id_of("udp.other");
    peer_nsm_put_mon(&mon, 112, &id, old_priv);
    ask(fd, true, &mon, &first);
    close(fd);
}

/* A TCP connection from a chosen port that leaves no TIME_WAIT behind. */
static int connect_from(const struct harness_server *server, uint16_t port)
{
    struct dial_route route = harness_route(server, false);
    struct linger reset = {.l_onoff = 1};
    route.source = dial_endpoint_v4(UINT32_C(0x7f000007), port);
    int fd = dial_open(&route, PATIENCE_MS);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return fd;
}

static uint16_t local_port(int fd)
{
    struct dial_endpoint at = {.len = sizeof(at.at)};
    getsockname(fd, (struct sockaddr *)&at.at, &at.len);
    return dial_endpoint_port(&at);
}

/* Linux repeats calls with the old xid from the old port when it had to connect again. */
static void replay_over_tcp(const struct harness_server *server)
{
    static struct packet mon, unmon, again, first, second;
    struct peer_nsm_id id = id_of("tcp.kept");
    int fd = connect_from(server, 0);
    if (!HARNESS_EXPECT(fd >= 0, "cannot connect: %s", strerror(-fd)))
        return;
    uint16_t port = local_port(fd);
    peer_nsm_put_mon(&mon, 201, &id, old_priv);
    peer_nsm_put_unmon(&unmon, 202, &id);
    peer_nsm_put_mon(&again, 203, &id, new_priv);
    ask(fd, false, &mon, &first);
    ask(fd, false, &unmon, &first);
    ask(fd, false, &again, &second);
    close(fd);
    fd = connect_from(server, port);
    if (HARNESS_EXPECT(fd >= 0, "cannot connect again: %s", strerror(-fd))) {
        ask(fd, false, &unmon, &second);
        HARNESS_EXPECT(is_same(&first, &second), "the repeat got other bytes");
        close(fd);
    }
}

/* Ten copies at once: some meet the first in progress. One answer at least, all answers equal. */
static void repeat_in_progress(const struct harness_server *server)
{
    static struct packet call, answers[10];
    struct dial_route route = harness_route(server, true);
    struct peer_nsm_id id = id_of("udp.burst");
    int fd = dial_open(&route, PATIENCE_MS), count = 0;
    peer_nsm_put_mon(&call, 301, &id, new_priv);
    for (int i = 0; i < 10; i++)
        (void)dial_send(fd, call.bytes, call.len, PATIENCE_MS);
    for (; count < 10; count++) {
        int len =
            dial_receive(fd, answers[count].bytes, PACKET_MAX, count == 0 ? PATIENCE_MS : 100);
        if (len < 0)
            break;
        answers[count].len = (uint32_t)len;
        HARNESS_EXPECT(is_same(&answers[0], &answers[count]), "answers of one call differ");
    }
    HARNESS_EXPECT(count >= 1, "ten copies of a call, no answer");
    close(fd);
}

/* Asks `asked` from an unconnected socket and looks where the answer comes from. */
static void demand_source(const struct harness_server *server, const char *any, const char *asked)
{
    static struct packet call;
    uint8_t answer[512];
    struct dial_endpoint source, target, from = {0};
    if (!dial_endpoint_parse(any, 0, &source) || !dial_endpoint_parse(asked, server->port, &target))
        return;
    int len = -ETIMEDOUT, fd = dial_open_unconnected(&source);
    if (fd < 0) {
        printf("not shown for %s: %s\n", asked, strerror(-fd));
        return;
    }
    peer_nsm_put_stat(&call, 401, "whoever");
    for (int attempt = 0; attempt < 10 && len == -ETIMEDOUT; attempt++) {
        if (sendto(fd, call.bytes, call.len, 0, (struct sockaddr *)&target.at, target.len) < 0) {
            len = -errno;
            break;
        }
        len = dial_receive_from(fd, answer, sizeof(answer), 500, &from);
    }
    if (len == -EADDRNOTAVAIL || len == -ENETUNREACH) {
        printf("not shown for %s: %s\n", asked, strerror(-len));
    } else if (HARNESS_EXPECT(len > 0, "no answer from %s: %s", asked, strerror(-len))) {
        HARNESS_EXPECT(dial_endpoint_equal(&from, &target), "%s asked, %s answered", asked,
                       dial_endpoint_text(&from));
    }
    close(fd);
}

/* The same key once from 127.0.0.9 and once from ::ffff:127.0.0.9, over TCP and UDP. */
static void mapped_client(const struct harness_server *server)
{
    static struct packet call, answer;
    struct peer_nsm_id id = id_of("mapped");
    for (uint32_t i = 0; i < 4; i++) {
        bool is_v6 = i % 2 == 1;
        struct dial_route route = {.is_udp = i >= 2};
        dial_endpoint_parse(is_v6 ? "::ffff:127.0.0.1" : "127.0.0.1", server->port, &route.server);
        dial_endpoint_parse(is_v6 ? "::ffff:127.0.0.9" : "127.0.0.9", 0, &route.source);
        int fd = dial_open(&route, PATIENCE_MS);
        if (fd < 0 && is_v6) {
            printf("not shown: an IPv6 socket for IPv4: %s\n", strerror(-fd));
            continue;
        }
        peer_nsm_put_mon(&call, 500 + i, &id, i == 3 ? new_priv : old_priv);
        if (HARNESS_EXPECT(fd >= 0, "cannot connect: %s", strerror(-fd))) {
            ask(fd, route.is_udp, &call, &answer);
            close(fd);
        }
    }
}

struct found {
    uint32_t udp_kept, udp_removed, udp_other, udp_burst, tcp_kept, mapped;
};

static void note(void *context, const struct harness_record *record)
{
    struct found *found = context;
    bool is_new = strncmp(record->priv, "02", 2) == 0;
    if (record->is_server)
        return;
    if (strcmp(record->mon_name, "udp.kept") == 0 && is_new)
        found->udp_kept++;
    else if (strcmp(record->mon_name, "udp.removed") == 0)
        found->udp_removed++;
    else if (strcmp(record->mon_name, "udp.other") == 0)
        found->udp_other++;
    else if (strcmp(record->mon_name, "udp.burst") == 0)
        found->udp_burst++;
    else if (strcmp(record->mon_name, "tcp.kept") == 0 && is_new)
        found->tcp_kept++;
    else if (strcmp(record->mon_name, "mapped") == 0 && strcmp(record->address, "127.0.0.9") == 0)
        found->mapped++;
    else
        HARNESS_EXPECT(false, "%s from %s with priv %s is stored", record->mon_name,
                       record->address, record->priv);
}

int main(void)
{
    struct found found = {0};
    harness_init("duplicates");
    struct harness_server server = {.store = harness_path("store")};
    if (!harness_start(&server))
        return harness_finish();
    replay_over_udp(&server);
    replay_over_tcp(&server);
    repeat_in_progress(&server);
    demand_source(&server, "0.0.0.0", "127.0.0.1");
    demand_source(&server, "0.0.0.0", "127.0.0.2");
    demand_source(&server, "0.0.0.0", "127.200.3.4");
    demand_source(&server, "::", "::1");
    mapped_client(&server);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    harness_dump(server.store, note, &found);
    HARNESS_EXPECT(found.udp_kept == 1, "the SM_UNMON that came twice removed a newer SM_MON");
    HARNESS_EXPECT(found.tcp_kept == 1, "the same over TCP");
    HARNESS_EXPECT(found.udp_removed == 1, "an SM_UNMON that came again from another port counts");
    HARNESS_EXPECT(found.udp_other == 1, "an SM_MON with the xid of another call was not executed");
    HARNESS_EXPECT(found.udp_burst == 1, "ten copies of an SM_MON: %u records", found.udp_burst);
    HARNESS_EXPECT(found.mapped == 1, "the mapped client has %u records", found.mapped);
    return harness_finish();
}
