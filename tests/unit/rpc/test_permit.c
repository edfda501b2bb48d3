/*
 * test_permit.c -- who may lock (R-SEC-11): what a guard of the files says becomes the answer to
 * LOCK, NM_LOCK, TEST and SHARE in every version, and to nothing that frees; a guard that does not
 * know yet leaves the call where it is; --allow comes first. Each refusal is reported with its
 * file.
 */
#include "base/network.h"
#include "peer/peer_nlm.h"
#include "proto/guard.h"
#include "proto/nlm.h"
#include "rpc/server.h"
#include "unit/test.h"

static const struct program *const programs[] = {&nlm_program};
static const struct file_set file_sets[] = {{.name = {(const uint8_t *)"default", 7}}};
static const uint8_t fh_bytes[32] = {1, 2, 3};
static struct packet call;
static uint8_t reply_bytes[4096];

struct fixture {
    struct core *core;
    struct rpc_server *server;
    struct guard guard;
    enum guard_verdict verdict;
    struct guard_question asked; /* the last question */
    uint32_t question_count, xid;
};

static enum guard_verdict judge(void *context, const struct guard_question *question)
{
    struct fixture *f = context;
    assert_int_equal(question->fh.len, sizeof fh_bytes);
    assert_memory_equal(question->fh.at, fh_bytes, sizeof fh_bytes);
    assert_int_equal(question->from->address.bytes[3], 2);
    assert_int_equal(question->credential->flavor, RPC_AUTH_SYS);
    f->asked = *question;
    f->question_count++;
    return f->verdict;
}

static void open_server(struct fixture *f)
{
    const struct core_limits core_limits = {.clients_max = 10,
                                            .locks_max = 100,
                                            .locks_per_client_max = 100,
                                            .waiters_max = 10,
                                            .bytes_max = 1 << 20,
                                            .batch_puts_max = 64,
                                            .server_name = bytes_of_text("holdfast.example"),
                                            .file_sets = file_sets,
                                            .file_set_count = 1};
    const struct rpc_server_limits limits = {.outbox_max = 16, .cache_max = 64};
    *f = (struct fixture){.core = core_new(&core_limits, 1)};
    assert_non_null(f->core);
    core_start(f->core, &(struct core_boot){0});
    f->server = rpc_server_new(&limits, programs, 1, f->core, 1);
    assert_non_null(f->server);
    f->guard = (struct guard){.judge = judge, .context = f};
}

static void close_server(struct fixture *f)
{
    rpc_server_free(f->server);
    core_free(f->core);
}

/* A call from 10.0.0.2; its answer in *ret, when it has one. */
static enum rpc_verdict ask(struct fixture *f, uint32_t vers, uint32_t procedure,
                            struct peer_nlm_args args, struct peer_nlm_res *ret)
{
    const struct rpc_source from = {.peer = {.address = {.family = 4, .bytes = {10, 0, 0, 2}},
                                             .port = 900,
                                             .transport = TRANSPORT_TCP},
                                    .route = 5};
    args.cookie = peer_nlm_bytes_of("12345678", 8);
    args.lock.caller_name = peer_nlm_text("web1");
    args.lock.fh = peer_nlm_bytes_of(fh_bytes, sizeof fh_bytes);
    args.lock.oh = peer_nlm_bytes_of("oh", 2);
    args.lock.svid = 7;
    args.lock.len = 10;
    args.state = 3;
    peer_nlm_put_call(&call, ++f->xid, vers, procedure, &args);
    struct xdr_out out = xdr_out_of(reply_bytes, sizeof reply_bytes);
    enum rpc_verdict verdict =
        rpc_server_receive(f->server, &from, (struct bytes){call.bytes, call.len}, 0, 0, &out);
    struct store_batch batch;
    if (core_take_batch(f->core, &batch))
        rpc_server_stored(f->server, batch.txn, true, 0, 0);
    struct rpc_reply reply = {.message = {reply_bytes, xdr_out_len(&out)}};
    if (verdict != RPC_ANSWERED && !rpc_server_next(f->server, 0, &reply))
        return verdict;
    struct packet_reply read;
    assert_true(packet_get_reply(reply.message.at, reply.message.len, &read));
    struct packet_reader body = {read.body, read.body_len, false};
    assert_true(peer_nlm_get_res(&body, vers, procedure, ret));
    rpc_server_check(f->server);
    return verdict;
}

static uint32_t status_of(struct fixture *f, uint32_t vers, uint32_t procedure,
                          struct peer_nlm_args args)
{
    struct peer_nlm_res res = {.status = 99};
    enum rpc_verdict verdict = ask(f, vers, procedure, args, &res);
    /* a TEST of what is durable waits for nothing */
    assert_true(verdict == RPC_WAITING || (verdict == RPC_ANSWERED && procedure == PEER_NLM_TEST));
    return res.status;
}

static const struct peer_nlm_args exclusive = {.exclusive = true};

static void assert_event(struct fixture *f, enum event_kind kind)
{
    struct event event;
    assert_true(event_take(core_events(f->core), &event));
    assert_int_equal(event.kind, kind);
    assert_int_equal(event.name_len, 4);
    assert_memory_equal(event.name, "web1", 4);
    assert_int_equal(event.fh_len, sizeof fh_bytes);
    assert_false(event_take(core_events(f->core), &event));
}

TEST(test_permit__each_verdict_has_its_answer)
{
    static const struct {
        enum guard_verdict verdict;
        uint32_t in_4, in_3;
        enum event_kind event; /* EVENT_KIND_END: none */
    } rows[] = {
        {GUARD_STALE, PEER_NLM_IS_STALE_FH, PEER_NLM_IS_NOLOCKS, EVENT_KIND_END},
        {GUARD_NOT_EXPORTED, PEER_NLM_IS_DENIED, PEER_NLM_IS_DENIED, EVENT_LOCK_NOT_EXPORTED},
        {GUARD_READ_ONLY, PEER_NLM_IS_ROFS, PEER_NLM_IS_NOLOCKS, EVENT_LOCK_READ_ONLY},
        {GUARD_NO_ACCESS, PEER_NLM_IS_DENIED, PEER_NLM_IS_DENIED, EVENT_LOCK_NO_ACCESS},
        {GUARD_STUCK, PEER_NLM_IS_NOLOCKS, PEER_NLM_IS_NOLOCKS, EVENT_LOCK_STUCK},
        {GUARD_ALLOWED, PEER_NLM_IS_GRANTED, PEER_NLM_IS_GRANTED, EVENT_KIND_END},
    };
    static const uint32_t procedures[] = {PEER_NLM_TEST, PEER_NLM_LOCK, PEER_NLM_NM_LOCK,
                                          PEER_NLM_SHARE};
    struct fixture f;
    open_server(&f);
    rpc_server_set_guard(f.server, &f.guard);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.verdict = rows[i].verdict;
        for (size_t j = 0; j < sizeof procedures / sizeof procedures[0]; j++) {
            assert_int_equal(status_of(&f, 4, procedures[j], exclusive), rows[i].in_4);
            if (rows[i].event != EVENT_KIND_END)
                assert_event(&f, rows[i].event);
            assert_int_equal(status_of(&f, 3, procedures[j], exclusive), rows[i].in_3);
            if (rows[i].event != EVENT_KIND_END)
                assert_event(&f, rows[i].event);
        }
    }
    close_server(&f);
}

TEST(test_permit__a_refused_test_names_nobody)
{
    struct fixture f;
    struct peer_nlm_res res;
    open_server(&f);
    rpc_server_set_guard(f.server, &f.guard);
    f.verdict = GUARD_NO_ACCESS;
    struct peer_nlm_args args = {.lock = {.offset = 5}};
    assert_int_equal(ask(&f, 4, PEER_NLM_TEST, args, &res), RPC_WAITING);
    assert_int_equal(res.status, PEER_NLM_IS_DENIED);
    assert_int_equal(res.oh.len, 0);
    assert_int_equal(res.svid, 0);
    assert_true(res.exclusive && res.offset == 5 && res.len == 10);
    close_server(&f);
}

TEST(test_permit__what_frees_is_not_judged)
{
    struct fixture f;
    open_server(&f);
    assert_int_equal(status_of(&f, 4, PEER_NLM_LOCK, exclusive), PEER_NLM_IS_GRANTED);
    assert_int_equal(status_of(&f, 4, PEER_NLM_SHARE, exclusive), PEER_NLM_IS_GRANTED);
    rpc_server_set_guard(f.server, &f.guard);
    f.verdict = GUARD_STALE;
    assert_int_equal(status_of(&f, 4, PEER_NLM_CANCEL, exclusive),
                     PEER_NLM_IS_DENIED); /* it is held */
    assert_int_equal(status_of(&f, 4, PEER_NLM_UNLOCK, exclusive), PEER_NLM_IS_GRANTED);
    assert_int_equal(status_of(&f, 4, PEER_NLM_UNSHARE, exclusive), PEER_NLM_IS_GRANTED);
    assert_int_equal(f.question_count, 0);
    rpc_server_set_guard(f.server, NULL);
    struct peer_nlm_args other = exclusive;
    assert_int_equal(status_of(&f, 4, PEER_NLM_TEST, other), PEER_NLM_IS_GRANTED);
    close_server(&f);
}

TEST(test_permit__the_guard_hears_what_is_wanted)
{
    struct fixture f;
    open_server(&f);
    rpc_server_set_guard(f.server, &f.guard);
    f.verdict = GUARD_STALE;
    (void)status_of(&f, 4, PEER_NLM_LOCK, (struct peer_nlm_args){.exclusive = true});
    assert_true(f.asked.exclusive && !f.asked.is_stored);
    (void)status_of(&f, 4, PEER_NLM_LOCK, (struct peer_nlm_args){.reclaim = true});
    assert_true(!f.asked.exclusive && !f.asked.is_stored); /* it says so, and nobody knows of it */
    f.verdict = GUARD_ALLOWED;
    assert_int_equal(status_of(&f, 4, PEER_NLM_LOCK, exclusive), PEER_NLM_IS_GRANTED);
    assert_false(f.asked.is_stored);
    (void)status_of(&f, 4, PEER_NLM_LOCK, (struct peer_nlm_args){.reclaim = true});
    assert_true(f.asked.is_stored);
    f.verdict = GUARD_STALE;
    (void)status_of(&f, 4, PEER_NLM_SHARE, (struct peer_nlm_args){.access = 1});
    assert_false(f.asked.exclusive);
    (void)status_of(&f, 4, PEER_NLM_SHARE, (struct peer_nlm_args){.access = 3});
    assert_true(f.asked.exclusive);
    close_server(&f);
}

TEST(test_permit__a_guard_that_does_not_know_leaves_the_call)
{
    struct fixture f;
    struct peer_nlm_res res;
    open_server(&f);
    rpc_server_set_guard(f.server, &f.guard);
    f.verdict = GUARD_LATER;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(&f, 4, PEER_NLM_LOCK, exclusive, &res), RPC_BUSY);
    assert_int_equal(rpc_server_waiting(f.server), 0);
    f.verdict = GUARD_ALLOWED;
    f.xid--; /* the same call once more */
    assert_int_equal(status_of(&f, 4, PEER_NLM_LOCK, exclusive), PEER_NLM_IS_GRANTED);
    close_server(&f);
}

TEST(test_permit__allow_lists_who_may_lock)
{
    struct network networks[2];
    struct fixture f;
    open_server(&f);
    assert_int_equal(network_parse("192.0.2.0/24", &networks[0]), NETWORK_OK);
    assert_int_equal(network_parse("10.0.0.0/30", &networks[1]), NETWORK_OK);
    rpc_server_set_allowed(f.server, networks, 1);
    assert_int_equal(status_of(&f, 4, PEER_NLM_LOCK, exclusive), PEER_NLM_IS_DENIED);
    assert_event(&f, EVENT_LOCK_NOT_ALLOWED);
    rpc_server_set_allowed(f.server, networks, 2);
    assert_int_equal(status_of(&f, 4, PEER_NLM_LOCK, exclusive), PEER_NLM_IS_GRANTED);
    rpc_server_set_allowed(f.server, networks, 1); /* what it holds it may free */
    assert_int_equal(status_of(&f, 4, PEER_NLM_UNLOCK, exclusive), PEER_NLM_IS_GRANTED);
    rpc_server_set_allowed(f.server, NULL, 0);
    assert_int_equal(status_of(&f, 4, PEER_NLM_LOCK, exclusive), PEER_NLM_IS_GRANTED);
    close_server(&f);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
