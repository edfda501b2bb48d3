/*
 * test_emu.c -- the emulated clients behave as their originals do.
 *
 * They lock, conflict, wait, are called back and give up against a lock server of a few lines
 * (toy.h), over UDP and TCP. What decides about the real server later is shown one by one: which
 * callbacks they accept, which they refuse, what they keep back, whom their statd believes, what
 * their portmapper says.
 */
#include "peer/emu_boot.h"
#include "peer/emu_call.h"
#include "peer/emu_client.h"
#include "peer/emu_granted.h"
#include "peer/emu_portmap.h"
#include "peer/emu_statd.h"
#include "peer/emu_table.h"
#include "peer/peer_nsm.h"
#include "peer/toy.h"
#include "unit/test.h"

#include <errno.h>

#define FIRST UINT32_C(0x7f4d0101) /* 127.77.1.1 */
#define WAIT  5000

static struct toy toy;
static struct emu_host *a, *b;

static struct emu_host *make(const char *kind, uint32_t index, const char *name)
{
    struct emu_host_config config = {.address = FIRST + index, .name = name, .server = toy.at};
    struct emu_host *host = emu_host_new(&emu_table_get(kind)->kind, &config);
    assert_non_null(host);
    EMU_NET_LOCKED(toy.clients[index] = host);
    return host;
}

TEST_FIXTURE(begin)
{
    memset(&toy, 0, sizeof(toy));
    a = b = NULL;
    assert_true(emu_net_start() && toy_open(&toy));
}

TEST_FIXTURE(end)
{
    emu_host_free(a);
    emu_host_free(b);
    emu_net_stop();
}

/* ---- against the toy ---- */

static void check_cycle(const char *kind, bool is_udp)
{
    struct emu_request all = {.file = 5, .svid = 3, .exclusive = true};
    struct peer_nlm_res holder;
    uint32_t wait;
    a = make(kind, 0, "first");
    b = make(kind, 1, "second");
    a->is_udp = b->is_udp = is_udp;
    a->poll_ms = b->poll_ms = 60000; /* only the callback can end the wait */
    if (b->kind->is_unmonitored)
        b->poll_ms = 20;
    assert_int_equal(emu_client_lock(a, &all), PEER_NLM_IS_GRANTED);
    assert_int_equal(emu_client_lock(b, &all), PEER_NLM_IS_DENIED);
    assert_int_equal(emu_client_test(b, &all, &holder), PEER_NLM_IS_DENIED);
    assert_int_equal(holder.svid, 3);
    struct peer_nlm_bytes oh = emu_client_oh(a, 3);
    assert_true(peer_nlm_bytes_equal(&holder.oh, &oh));
    int blocked = b->kind->is_unmonitored ? PEER_NLM_IS_DENIED : PEER_NLM_IS_BLOCKED;
    assert_int_equal(emu_client_block(b, &all, &wait), blocked);
    assert_int_equal(emu_client_unlock(a, &all), PEER_NLM_IS_GRANTED);
    assert_int_equal(emu_client_wait(b, wait, WAIT), PEER_NLM_IS_GRANTED);
    assert_int_equal(emu_client_lock(a, &all), PEER_NLM_IS_DENIED);
    assert_int_equal(emu_client_unlock(b, &all), PEER_NLM_IS_GRANTED);
    assert_int_equal(emu_client_lock(a, &all), PEER_NLM_IS_GRANTED);
    assert_int_equal(emu_client_unlock(a, &all), PEER_NLM_IS_GRANTED);
    emu_host_free(a);
    emu_host_free(b);
    a = b = NULL;
}

TEST(test_emu__every_kind_locks_waits_and_is_called_back)
{
    for (uint32_t i = 0; i < emu_table_count(); i++) {
        const struct emu_row *row = emu_table_at(i);
        if (row->arrangement != EMU_ONE)
            continue;
        for (uint32_t procedure = PEER_NLM_GRANTED; procedure <= PEER_NLM_GRANTED_MSG;
             procedure += PEER_NLM_GRANTED_MSG - PEER_NLM_GRANTED) {
            if (procedure == PEER_NLM_GRANTED_MSG && row->kind.is_granted_msg_broken)
                continue;
            EMU_NET_LOCKED(toy.callback = procedure);
            check_cycle(row->kind.name, true);
            check_cycle(row->kind.name, false);
        }
    }
}

TEST(test_emu__answers_come_to_the_socket_or_to_the_port)
{
    struct emu_request one = {.file = 1, .svid = 1, .len = 1};
    a = make("macos", 0, "mac");
    assert_true(a->is_udp);
    assert_int_equal(emu_client_lock(a, &one), PEER_NLM_IS_GRANTED);
    assert_true(emu_call_was_at_own_socket(a));
    EMU_NET_LOCKED(toy.is_res_to_port = true);
    assert_int_equal(emu_client_unlock(a, &one), PEER_NLM_IS_GRANTED);
    assert_false(emu_call_was_at_own_socket(a));
    EMU_NET_LOCKED(toy.is_deaf = true);
    uint32_t calls, now;
    EMU_NET_LOCKED(calls = toy.calls);
    a->timeout_ms = 60;
    a->resend_ms = 20;
    assert_int_equal(emu_client_lock(a, &one), -ETIMEDOUT);
    EMU_NET_LOCKED(now = toy.calls);
    assert_true(now > calls + 1); /* it asked again */
}

TEST(test_emu__polling_finds_what_no_callback_says)
{
    static const char *const kinds[] = {"linux", "macos"};
    struct emu_request one = {.file = 1, .svid = 1, .exclusive = true, .len = 1};
    uint32_t wait;
    EMU_NET_LOCKED(toy.is_silent = true);
    for (uint32_t i = 0; i < 2; i++) {
        a = make("linux", 0, "holder");
        b = make(kinds[i], 1, "poller");
        b->poll_ms = 20;
        assert_int_equal(emu_client_lock(a, &one), PEER_NLM_IS_GRANTED);
        assert_int_equal(emu_client_block(b, &one, &wait), PEER_NLM_IS_BLOCKED);
        assert_int_equal(emu_client_wait(b, wait, 100), -ETIMEDOUT);
        assert_int_equal(emu_client_unlock(a, &one), PEER_NLM_IS_GRANTED);
        assert_int_equal(emu_client_wait(b, wait, WAIT), PEER_NLM_IS_GRANTED);
        assert_int_equal(emu_client_unlock(b, &one), PEER_NLM_IS_GRANTED);
        emu_host_free(a);
        emu_host_free(b);
        a = b = NULL;
    }
}

TEST(test_emu__giving_up_cancels)
{
    struct emu_request one = {.file = 1, .svid = 1, .exclusive = true, .len = 1};
    uint32_t wait;
    bool is_owned = true;
    a = make("linux", 0, "holder");
    b = make("freebsd", 1, "bsd");
    b->poll_ms = 60000;
    assert_int_equal(emu_client_lock(a, &one), PEER_NLM_IS_GRANTED);
    assert_int_equal(emu_client_block(b, &one, &wait), PEER_NLM_IS_BLOCKED);
    assert_int_equal(emu_client_give_up(b, wait, &is_owned), PEER_NLM_IS_GRANTED);
    assert_false(is_owned);
    /* The callback has come and was accepted: DENIED, and the lock is its own. */
    assert_int_equal(emu_client_block(b, &one, &wait), PEER_NLM_IS_BLOCKED);
    assert_int_equal(emu_client_unlock(a, &one), PEER_NLM_IS_GRANTED);
    assert_true(emu_host_wait_count(b, PEER_NLM_PROGRAM, PEER_NLM_GRANTED, 1, WAIT));
    assert_int_equal(emu_client_give_up(b, wait, &is_owned), PEER_NLM_IS_DENIED);
    assert_true(is_owned);
}

static uint32_t repeated_xids(void)
{
    uint32_t count;
    EMU_NET_LOCKED(count = toy.repeated_xids);
    return count;
}

TEST(test_emu__a_repeat_has_the_same_xid)
{
    struct emu_request one = {.file = 1, .svid = 1, .exclusive = true, .len = 1};
    a = make("linux", 0, "a");
    for (int is_udp = 0; is_udp <= 1; is_udp++) {
        a->is_udp = is_udp == 1;
        assert_int_equal(emu_client_lock(a, &one), PEER_NLM_IS_GRANTED);
        uint32_t repeated = repeated_xids();
        assert_int_equal(emu_call_repeat(a, NULL), PEER_NLM_IS_GRANTED);
        assert_int_equal(repeated_xids(), repeated + 1);
    }
}

/* ---- callbacks made by hand ---- */

static struct peer_nlm_args granted;
static struct packet reply;

/* What the host says to `granted` from that address; -1: nothing, -2: an RPC error. */
static int tell(struct emu_host *host, uint32_t from, uint32_t procedure)
{
    static struct packet call;
    struct packet_call header;
    struct packet_reply read;
    static struct peer_nlm_res res;
    struct emu_net_message message = {.host = host, .service = EMU_SERVICE_NLM, .is_udp = true};
    message.from = dial_endpoint_v4(from, 999);
    peer_nlm_put_call(&call, 1, host->kind->vers, procedure, &granted);
    struct packet_reader reader = {call.bytes, call.len, false};
    packet_clear(&reply);
    emu_net_lock();
    assert_true(packet_get_call(&reader, &header));
    bool is_answered = emu_granted_serve(host, &message, &header, &reader, &reply);
    emu_net_unlock();
    if (!is_answered)
        return -1;
    assert_true(packet_get_reply(reply.bytes, reply.len, &read));
    struct packet_reader body = {read.body, read.body_len, false};
    if (!read.accepted || read.status != PACKET_SUCCESS)
        return -2;
    assert_true(peer_nlm_get_res(&body, host->kind->vers, procedure, &res));
    return (int)res.status;
}

/* The host waits for a lock that another one holds; `granted` is what it sent. */
static struct emu_host *make_waiting(const char *kind, uint64_t len)
{
    struct emu_request one = {.file = 1, .svid = 6, .exclusive = true, .offset = 10, .len = len};
    uint32_t wait;
    struct emu_host *host = make(kind, 1, "waiting");
    a = make("linux", 0, "holder");
    assert_int_equal(emu_client_lock(a, &one), PEER_NLM_IS_GRANTED);
    int status = emu_client_block(host, &one, &wait);
    assert_true(status == PEER_NLM_IS_BLOCKED || status == PEER_NLM_IS_DENIED);
    granted = host->waits[wait].args;
    return host;
}

static uint32_t server_address(void)
{
    return UINT32_C(0x7f4d0001);
}

TEST(test_emu__accepts_only_what_it_waits_for)
{
    static const char *const kinds[] = {"linux", "freebsd", "solaris", "macos", "hpux-like"};
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t from = server_address();
        b = make_waiting(kinds[i], 0);
        struct peer_nlm_args right = granted;
        granted.lock.svid++;
        assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
        granted = right;
        granted.lock.offset++;
        assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
        granted = right;
        granted.lock.len = 5;
        assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
        granted = right;
        granted.lock.fh.at[31] ^= 1;
        assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
        granted = right;
        assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_GRANTED);
        assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED); /* not any more */
        emu_host_free(a);
        emu_host_free(b);
        a = b = NULL;
        EMU_NET_LOCKED(memset(toy.locks, 0, sizeof(toy.locks)));
    }
}

TEST(test_emu__rules_of_their_own)
{
    uint32_t from = server_address();
    b = make_waiting("linux", 0); /* looks at the address, not at how "to the end" is said */
    assert_int_equal(tell(b, from + 1, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
    granted.lock.len = UINT64_MAX;
    granted.lock.oh = peer_nlm_text("?");
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_GRANTED);
    emu_host_free(a);
    emu_host_free(b);
    EMU_NET_LOCKED(memset(toy.locks, 0, sizeof(toy.locks)));
    b = make_waiting("freebsd", 0); /* looks at how it is said, not at the address */
    granted.lock.len = UINT64_MAX;
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
    granted.lock.len = 0;
    assert_int_equal(tell(b, from + 1, PEER_NLM_GRANTED), PEER_NLM_IS_GRANTED);
    emu_host_free(a);
    emu_host_free(b);
    EMU_NET_LOCKED(memset(toy.locks, 0, sizeof(toy.locks)));
    b = make_waiting("solaris", 0); /* says ~0, wants its oh back, may be in grace */
    assert_true(granted.lock.len == UINT64_MAX);
    struct peer_nlm_bytes oh = granted.lock.oh;
    granted.lock.oh = peer_nlm_text("6@waiting");
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
    granted.lock.oh = oh;
    b->is_in_grace = true;
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_GRACE);
    b->is_in_grace = false;
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_GRANTED);
    emu_host_free(a);
    emu_host_free(b);
    EMU_NET_LOCKED(memset(toy.locks, 0, sizeof(toy.locks)));
    b = make_waiting("linux-2026", 0);
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED_MSG), -2);
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_GRANTED);
    emu_host_free(a);
    emu_host_free(b);
    EMU_NET_LOCKED(memset(toy.locks, 0, sizeof(toy.locks)));
    b = make_waiting("macos", 0); /* refuses while it cancels */
    b->waits[0].state = EMU_WAIT_CANCELLING;
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_DENIED);
    b->waits[0].state = EMU_WAIT_BLOCKED;
    assert_int_equal(tell(b, from, PEER_NLM_GRANTED), PEER_NLM_IS_GRANTED);
}

static bool is_held(void *context)
{
    (void)context;
    for (uint32_t i = 0; i < TOY_LOCKS_MAX; i++)
        if (toy.locks[i].state == TOY_HELD && toy.locks[i].address == FIRST + 1)
            return true;
    return false;
}

static void check_late(uint32_t procedure)
{
    struct emu_request one = {.file = 1, .svid = 6, .exclusive = true, .offset = 10, .len = 2};
    EMU_NET_LOCKED(toy.callback = procedure);
    b = make_waiting("linux", 2);
    EMU_NET_LOCKED(b->answer = EMU_ANSWER_LATE);
    assert_int_equal(emu_client_unlock(a, &one), PEER_NLM_IS_GRANTED);
    assert_true(emu_host_wait_count(b, PEER_NLM_PROGRAM, procedure, 1, WAIT));
    assert_true(emu_client_is_granted(b, 0));     /* it relies on the lock */
    assert_false(emu_net_wait(is_held, NULL, 0)); /* and has not said so */
    emu_host_release_answers(b);
    assert_true(emu_net_wait(is_held, NULL, WAIT));
    emu_host_free(a);
    emu_host_free(b);
    a = b = NULL;
    EMU_NET_LOCKED(memset(toy.locks, 0, sizeof(toy.locks)));
}

TEST(test_emu__accepts_at_once_and_answers_late_or_never)
{
    check_late(PEER_NLM_GRANTED);
    check_late(PEER_NLM_GRANTED_MSG);
    b = make_waiting("linux", 2);
    EMU_NET_LOCKED(b->answer = EMU_ANSWER_NEVER);
    assert_int_equal(tell(b, server_address(), PEER_NLM_GRANTED), -1);
    assert_false(emu_client_is_granted(b, 0));
    assert_int_equal(emu_host_count(b, PEER_NLM_PROGRAM, PEER_NLM_GRANTED), 1);
}

/* ---- names, statd, portmapper ---- */

TEST(test_emu__owners_and_cookies_look_like_the_originals)
{
    struct emu_request to_end = {.file = 1, .svid = 7, .offset = 3};
    static struct peer_nlm_args args;
    a = make("linux", 0, "c1");
    emu_client_fill(a, &to_end, &args);
    assert_int_equal(args.lock.oh.len, 4);
    assert_memory_equal(args.lock.oh.at, "7@c1", 4);
    assert_int_equal(args.cookie.len, 4);
    assert_int_equal(args.state, 11);
    assert_true(args.lock.len == 0);
    to_end.reclaim = true;
    emu_client_fill(a, &to_end, &args);
    assert_int_equal(args.state, 0);
    emu_host_free(a);
    a = make("macos", 0, "mac");
    struct peer_nlm_bytes before = emu_client_oh(a, 1);
    assert_int_equal(before.len, 16);
    assert_non_null(memchr(before.at, 0, before.len));
    emu_host_restart_lockd(a);
    struct peer_nlm_bytes after = emu_client_oh(a, 1);
    assert_false(peer_nlm_bytes_equal(&before, &after));
    assert_int_equal(emu_call_cookie(a).len, 8);
    b = make("hpux-like", 1, "hp");
    assert_int_equal(emu_call_cookie(b).len, 0);
}

static uint32_t restarts_after(struct emu_host *host, uint32_t from, const char *name,
                               uint32_t nsm_state)
{
    static struct packet call;
    struct packet_call header;
    struct emu_net_message message = {.host = host, .service = EMU_SERVICE_STATD, .is_udp = true};
    message.from = dial_endpoint_v4(from, 999);
    peer_nsm_put_notify(&call, 1, name, nsm_state);
    struct packet_reader reader = {call.bytes, call.len, false};
    packet_clear(&reply);
    assert_true(packet_get_call(&reader, &header));
    emu_net_lock();
    assert_true(emu_statd_serve(host, &message, &header, &reader, &reply));
    uint32_t restarts = host->restarts_seen;
    emu_net_unlock();
    return restarts;
}

TEST(test_emu__statd_believes_as_the_originals_do)
{
    uint32_t from = server_address();
    a = make("linux", 0, "a"); /* the server's name is its address here */
    assert_int_equal(restarts_after(a, from, "nonsense", 5), 1);
    assert_int_equal(restarts_after(a, from, "other", 5), 1); /* the same state */
    assert_int_equal(restarts_after(a, from + 9, "127.77.0.1", 7), 2);
    assert_int_equal(restarts_after(a, from + 9, "nonsense", 9), 2);
    emu_host_free(a);
    a = make("freebsd", 0, "a");
    assert_int_equal(restarts_after(a, from, "nonsense", 5), 0);
    assert_int_equal(restarts_after(a, from + 9, "127.77.0.1", 5), 1);
    assert_int_equal(restarts_after(a, from + 9, "127.77.0.1", 5), 2);
    emu_host_free(a);
    a = make("macos", 0, "a");
    assert_int_equal(restarts_after(a, from, "nonsense", 5), 1);
    assert_int_equal(restarts_after(a, from + 9, "nonsense", 7), 1);
    b = make("solaris", 1, "b");
    assert_int_equal(restarts_after(b, from, "12nonsense.1", 5), 0);
    assert_int_equal(restarts_after(b, from, "127.77.0.1", 5), 1);
}

static int find_port(const struct emu_host *host, enum emu_lookup lookup, uint32_t prog,
                     uint32_t vers, bool is_udp)
{
    struct dial_route route = {.server = dial_endpoint_v4(host->address, host->portmap_port)};
    struct emu_portmap_query query = {.lookup = lookup,
                                      .is_asked_over_udp = !is_udp,
                                      .prog = prog,
                                      .vers = vers,
                                      .is_udp = is_udp};
    return emu_portmap_find(&route, &query, 300);
}

TEST(test_emu__portmapper_speaks_three_versions)
{
    static const enum emu_lookup lookups[] = {EMU_LOOKUP_PMAP2, EMU_LOOKUP_RPCB4_FIRST,
                                              EMU_LOOKUP_RPCB_ONLY};
    a = make("linux", 0, "a");
    for (uint32_t i = 0; i < 3; i++) {
        for (int is_udp = 0; is_udp <= 1; is_udp++) {
            assert_int_equal(find_port(a, lookups[i], PEER_NLM_PROGRAM, 4, is_udp == 1),
                             a->nlm_port[is_udp]);
            assert_int_equal(find_port(a, lookups[i], PEER_NSM_PROGRAM, 1, is_udp == 1),
                             a->statd_port[is_udp]);
            assert_int_equal(find_port(a, lookups[i], PEER_NLM_PROGRAM, 2, is_udp == 1), 0);
        }
    }
    EMU_NET_LOCKED(a->portmap_version_max = 2);
    assert_int_equal(find_port(a, EMU_LOOKUP_RPCB4_FIRST, PEER_NLM_PROGRAM, 3, false),
                     a->nlm_port[0]);
    assert_int_equal(find_port(a, EMU_LOOKUP_RPCB_ONLY, PEER_NLM_PROGRAM, 3, false),
                     -EPROTONOSUPPORT);
    EMU_NET_LOCKED(a->is_hidden[1] = true);
    assert_int_equal(find_port(a, EMU_LOOKUP_PMAP2, PEER_NLM_PROGRAM, 4, true), 0);
    assert_int_equal(find_port(a, EMU_LOOKUP_PMAP2, PEER_NLM_PROGRAM, 4, false), a->nlm_port[0]);
    EMU_NET_LOCKED(a->portmap_mode = EMU_PORTMAP_EMPTY);
    assert_int_equal(find_port(a, EMU_LOOKUP_PMAP2, PEER_NLM_PROGRAM, 4, false), 0);
    EMU_NET_LOCKED(a->portmap_mode = EMU_PORTMAP_SILENT);
    assert_int_equal(find_port(a, EMU_LOOKUP_PMAP2, PEER_NLM_PROGRAM, 4, true), -ETIMEDOUT);
}

TEST(test_emu__pairs_share_what_they_should)
{
    struct emu_host_config config = {.address = FIRST, .name = "n", .server = toy.at};
    struct emu_host *pair[EMU_TABLE_HOSTS_MAX];
    assert_int_equal(emu_table_make(emu_table_get("nat"), &config, pair), 2);
    assert_int_equal(pair[0]->address, pair[1]->address);
    assert_string_not_equal(pair[0]->name, pair[1]->name);
    assert_int_equal(pair[0]->nlm_port[0], 0);
    emu_host_free(pair[0]);
    emu_host_free(pair[1]);
    assert_int_equal(emu_table_make(emu_table_get("clone"), &config, pair), 2);
    assert_int_not_equal(pair[0]->address, pair[1]->address);
    assert_string_equal(pair[0]->name, pair[1]->name);
    emu_host_free(pair[0]);
    emu_host_free(pair[1]);
    assert_int_equal(emu_table_make(emu_table_get("multihomed"), &config, pair), 1);
    assert_int_not_equal(pair[0]->address, pair[0]->notify_address);
    emu_host_free(pair[0]);
}

TEST_MAIN(begin, end, NULL, NULL)
