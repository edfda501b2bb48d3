/*
 * emulators.c -- every kind of client locks, conflicts, waits, is called back, cancels and unlocks.
 *
 * The server is real, and so are the sockets: each emulated client (tests/peer) is a host of its
 * own with a portmapper, NLM and statd at an address of 127/8, in a network namespace where port
 * 111 is free. What a client was told is judged by the client's own rules: one that does not
 * recognise its request in a callback refuses it, and then nothing is granted.
 *
 * Shown for each kind, over TCP and over UDP where it uses it:
 *  - a lock is granted, refused to others, seen by TEST with its real owner, and given back;
 *  - a blocked one is called back exactly as it was asked for (R-BLK-1), in its version, from the
 *    address that was mounted, over UDP from the port we listen on (R-BLK-3), and cancelled;
 * then what only some of them do: emulators_grants.c, emulators_identity.c.
 *
 * `emulators NAME` runs only the kind of that name.
 */
#include "emulators_cases.h"
#include "peer/emu_portmap.h"
#include "stage.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define FINDABLE UINT32_C(0x7f000009) /* 127.0.0.9 */

static uint32_t mounted_address(const struct emu_host *host)
{
    struct sockaddr_in at;
    memcpy(&at, &host->server.at, sizeof(at));
    return ntohl(at.sin_addr.s_addr);
}

/* ---- the cycle that every kind passes ---- */

static void lock_and_conflict(struct emu_host *holder, struct emu_host *one)
{
    struct emu_request mine = stage_request(7, 0, 100), inside = stage_request(3, 50, 10);
    stage_demand(emu_client_lock(one, &mine), PEER_NLM_IS_GRANTED, "lock");
    stage_demand(emu_client_lock(one, &mine), PEER_NLM_IS_GRANTED, "the same lock again");
    stage_demand(emu_client_lock(holder, &inside), PEER_NLM_IS_DENIED, "a lock in conflict");
    stage_demand_held(holder, &inside, one, 7);
    inside.svid = 8;
    stage_demand(emu_client_lock(one, &inside), PEER_NLM_IS_DENIED, "another owner at home");
    stage_demand(emu_client_unlock(one, &mine), PEER_NLM_IS_GRANTED, "unlock");
    stage_demand_free(holder, &mine);
    mine.exclusive = false;
    inside.exclusive = false;
    stage_demand(emu_client_lock(one, &mine), PEER_NLM_IS_GRANTED, "a shared lock");
    stage_demand(emu_client_lock(holder, &inside), PEER_NLM_IS_GRANTED, "and another one");
    stage_demand(emu_client_unlock(one, &mine), PEER_NLM_IS_GRANTED, "unlock");
    stage_demand(emu_client_unlock(holder, &inside), PEER_NLM_IS_GRANTED, "unlock");
}

/* The callback is the request itself, come back (R-BLK-1, R-BLK-3). */
static void judge_callback(const struct emu_host *one, const struct peer_nlm_args *sent)
{
    const struct emu_record *got = stage_last_callback(one);
    if (!HARNESS_EXPECT(got, "%s was never called back", one->name))
        return;
    const struct peer_nlm_lock *a = &sent->lock, *b = &got->args.lock;
    HARNESS_EXPECT(got->is_readable && got->call.vers == one->kind->vers,
                   "%s: a callback of version %u that can%s be read", one->name, got->call.vers,
                   got->is_readable ? "" : "not");
    HARNESS_EXPECT(peer_nlm_bytes_equal(&a->caller_name, &b->caller_name) &&
                       peer_nlm_bytes_equal(&a->fh, &b->fh) && peer_nlm_bytes_equal(&a->oh, &b->oh),
                   "%s: the callback has another name, handle or oh", one->name);
    HARNESS_EXPECT(a->svid == b->svid && a->offset == b->offset && a->len == b->len &&
                       sent->exclusive == got->args.exclusive,
                   "%s: the callback says svid %u, %llu+%llu", one->name, b->svid,
                   (unsigned long long)b->offset, (unsigned long long)b->len);
    HARNESS_EXPECT(got->args.cookie.len <= 8, "%s: a cookie of %u bytes (R-NLM-1)", one->name,
                   got->args.cookie.len);
    HARNESS_EXPECT(got->from == mounted_address(one), "%s: called back from %s", one->name,
                   emu_host_address_text(got->from));
    HARNESS_EXPECT(got->is_udp == one->is_udp, "%s: called back over %s", one->name,
                   got->is_udp ? "UDP" : "TCP");
    HARNESS_EXPECT(!got->is_udp || got->from_port == stage_server()->port,
                   "%s: called back over UDP from port %u", one->name, got->from_port);
    HARNESS_EXPECT(got->is_answered && got->status == PEER_NLM_IS_GRANTED,
                   "%s did not recognise its request", one->name);
}

static void block_and_grant(struct emu_host *holder, struct emu_host *one, uint64_t len)
{
    struct emu_request all = stage_request(3, 0, 0), wanted = stage_request(7, 10, len);
    struct peer_nlm_args sent;
    uint32_t wait;
    int blocked = one->kind->is_unmonitored ? PEER_NLM_IS_DENIED : PEER_NLM_IS_BLOCKED;
    stage_demand(emu_client_lock(holder, &all), PEER_NLM_IS_GRANTED, "lock of the whole file");
    if (!stage_demand(emu_client_block(one, &wanted, &wait), blocked, "a blocking lock"))
        return;
    EMU_NET_LOCKED(sent = one->waits[wait].args);
    stage_demand(emu_client_unlock(holder, &all), PEER_NLM_IS_GRANTED, "unlock of the holder");
    if (!stage_demand_granted(one, wait, "what waits for it"))
        return;
    if (!one->kind->is_unmonitored)
        judge_callback(one, &sent);
    stage_demand_held(holder, &wanted, one, 7);
    stage_demand(emu_client_unlock(one, &wanted), PEER_NLM_IS_GRANTED, "unlock");
    stage_demand_free(holder, &all);
}

static void block_and_cancel(struct emu_host *holder, struct emu_host *one)
{
    struct emu_request all = stage_request(3, 0, 0), wanted = stage_request(7, 10, 10);
    uint32_t wait;
    bool is_owned;
    int blocked = one->kind->is_unmonitored ? PEER_NLM_IS_DENIED : PEER_NLM_IS_BLOCKED;
    uint32_t callbacks = stage_callbacks(one);
    stage_demand(emu_client_lock(holder, &all), PEER_NLM_IS_GRANTED, "lock of the whole file");
    if (!stage_demand(emu_client_block(one, &wanted, &wait), blocked, "a blocking lock"))
        return;
    stage_demand(emu_client_give_up(one, wait, &is_owned), PEER_NLM_IS_GRANTED, "cancel");
    HARNESS_EXPECT(!is_owned, "%s believes that it holds what it cancelled", one->name);
    stage_demand(emu_client_cancel(one, &wanted), PEER_NLM_IS_GRANTED, "cancel of nothing");
    stage_demand(emu_client_unlock(holder, &all), PEER_NLM_IS_GRANTED, "unlock of the holder");
    stage_demand_free(holder, &all);
    HARNESS_EXPECT(stage_callbacks(one) == callbacks, "%s: called back after it cancelled",
                   one->name);
}

static void run_kind(const struct emu_row *row, bool is_udp)
{
    char name[96];
    snprintf(name, sizeof(name), "%s over %s", row->kind.name, is_udp ? "UDP" : "TCP");
    stage_case(name);
    struct emu_host *holder = stage_host("linux", "holder");
    struct emu_host *one = stage_host(row->kind.name, row->kind.name);
    one->is_udp = is_udp;
    if (one->kind->is_unmonitored)
        one->poll_ms = 50;
    lock_and_conflict(holder, one);
    block_and_grant(holder, one, 90);
    block_and_grant(holder, one, 0);
    block_and_cancel(holder, one);
    /* A client that is called back where it used to be is granted without a word lost. */
    block_and_grant(holder, one, 1);
    emu_net_lock();
    HARNESS_EXPECT(one->records_lost == 0, "%s got too many calls to be looked at", one->name);
    emu_net_unlock();
}

/* ---- how they find the server ---- */

static void find_server(void)
{
    struct harness_server server = {.store = harness_path("findable"),
                                    .listen = "127.0.0.9",
                                    .extra = {"--rpcbind", "embedded"}};
    if (!harness_start(&server))
        return;
    for (uint32_t i = 0; i < emu_table_count(); i++) {
        const struct emu_kind *kind = &emu_table_at(i)->kind;
        for (uint32_t k = 0; k < 4; k++) {
            struct dial_route route = {.server = dial_endpoint_v4(FINDABLE, EMU_PORTMAP_PORT)};
            struct emu_portmap_query query = {.lookup = kind->lookup,
                                              .is_asked_over_udp = k % 2 == 1,
                                              .prog = PEER_NLM_PROGRAM,
                                              .vers = kind->vers,
                                              .is_udp = k / 2 == 1};
            int port = emu_portmap_find(&route, &query, STAGE_PATIENCE_MS);
            HARNESS_EXPECT(port == server.port, "%s finds port %d of NLM v%u over %s", kind->name,
                           port, kind->vers, query.is_udp ? "UDP" : "TCP");
        }
    }
    int code = harness_stop(&server, SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
}

int main(int argc, char **argv)
{
    static const char *const options[] = {NULL};
    if (!emu_net_enter()) {
        printf("emulators: skipped: no network namespace of its own (%s); it takes root\n",
               strerror(errno));
        return HARNESS_SKIPPED;
    }
    harness_init("emulators");
    if (!stage_open(options))
        return 1;
    for (uint32_t i = 0; i < emu_table_count(); i++) {
        const struct emu_row *row = emu_table_at(i);
        if (row->arrangement != EMU_ONE || (argc > 1 && strcmp(argv[1], row->kind.name) != 0))
            continue;
        run_kind(row, false);
        if (row->kind.uses_udp)
            run_kind(row, true);
    }
    if (argc == 1) {
        emulators_grants_run();
        emulators_identity_run();
    }
    stage_close();
    if (argc == 1)
        find_server();
    return harness_finish();
}
