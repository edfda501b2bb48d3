/*
 * lock_asker.c -- see lock_asker.h.
 */
#include "lock_asker.h"

#include <stdlib.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, STATE = 3 };

struct peer_nlm_args lock_asker_about(const struct peer_nfs_fh *fh)
{
    return (struct peer_nlm_args){.cookie = peer_nlm_bytes_of("c", 1),
                                  .exclusive = true,
                                  .state = STATE,
                                  .lock = {.caller_name = peer_nlm_text("web1"),
                                           .fh = peer_nlm_bytes_of(fh->at, fh->len),
                                           .oh = peer_nlm_text("oh"),
                                           .svid = 7,
                                           .len = 10}};
}

uint32_t lock_asker_ask(const struct harness_server *server, const struct asker *asker,
                        uint32_t procedure, struct peer_nlm_args args)
{
    static struct peer_link_call call;
    static struct packet answer;
    static uint32_t xid;
    struct peer_link link;
    struct dial_route route = harness_route(server, asker->is_udp);
    struct packet_reply reply;
    struct peer_nlm_res res = {.status = LOCK_ASKER_NO_ANSWER};
    if (!dial_endpoint_parse(asker->address, 0, &route.source) || !peer_link_init(&link, &route))
        abort();
    link.who = asker->who;
    link.next_xid = ((uint32_t)getpid() << 12) + xid++;
    peer_link_begin(&link, &call, PEER_NLM_PROGRAM, 4, procedure);
    peer_nlm_put_args(&call.head, 4, procedure, &args);
    if (dial_call(&route, &call.head, PATIENCE_MS, &answer, &reply) == 0 && reply.accepted &&
        reply.status == PACKET_SUCCESS) {
        struct packet_reader body = {reply.body, reply.body_len, false};
        (void)peer_nlm_get_res(&body, 4, procedure, &res);
    }
    peer_link_done(&link);
    return res.status;
}

void lock_asker_expect(const struct harness_server *server, uint32_t wanted, const char *why,
                       const struct asker *asker, uint32_t procedure, struct peer_nlm_args args)
{
    uint32_t status = lock_asker_ask(server, asker, procedure, args);
    HARNESS_EXPECT(status == wanted, "%s: %s answered %s, expected %s", why,
                   peer_nlm_procedure_text(procedure), peer_nlm_status_text(status),
                   peer_nlm_status_text(wanted));
}
