/*
 * fuzz_core.c -- any sequence of inputs into a real core: requests of both protocols, commits,
 * calls and how they end, time, pieces of work, and crashes; every invariant is checked after each.
 *
 * Input: a sequence of steps, each a byte (4 bits step, 4 bits detail) and what the step needs:
 *   LOCK     who (1 byte: 2 bits each of address, name, svid, file), where (1 byte: 4 bits offset,
 *            4 bits length, 0 is to the end), state (1 byte); detail has the bits exclusive, block,
 *            message, unmonitored. TEST, CANCEL, UNLOCK, SHARE, UNSHARE alike.
 *   RECLAIM  the same, as a reclaim
 *   RESULT   who, cookie (of a call that was made), status: GRANTED_RES
 *   FREE     who: FREE_ALL
 *   STATUS   which (1 byte), names (1 byte), state: a request of NSM
 *   TAKE     the store takes the open batch, if it has none; detail: and reports it at once
 *   STORE    the store reports it durable; detail says whether there is room for more
 *   WORK     the core works; detail says how often
 *   CALL     calls that are due leave
 *   DONE     the oldest call ends (detail: how), with a status (1 byte)
 *   WAIT     time passes, by a number of seconds (1 byte)
 *   CRASH    the process ends and starts again with what was durable; detail says whether the batch
 *            that was out had landed
 *
 * Beside the invariants of the core this is promised, from the stored bytes alone: no two owners
 * have locks or offers there that conflict (P2), and one owner's held locks do not overlap; GRANTED
 * is called for an offer that is stored (P1); answers wait for transactions that never decrease; a
 * restart finds every lock and client. In the end, and whenever nothing is left to write, the lock
 * table and the stored records say the same of every byte: TEST names an owner, a range and a mode
 * that is stored, and nobody where nothing is.
 */
#include "base/units.h"
#include "core/core.h"
#include "fuzz.h"

enum step {
    STEP_LOCK,
    STEP_TEST,
    STEP_CANCEL,
    STEP_UNLOCK,
    STEP_SHARE,
    STEP_UNSHARE,
    STEP_RECLAIM,
    STEP_RESULT,
    STEP_FREE,
    STEP_STATUS,
    STEP_TAKE,
    STEP_STORE,
    STEP_WORK,
    STEP_CALL,
    STEP_DONE,
    STEP_WAIT_OR_CRASH, /* detail 0 to 11: WAIT, 12 to 15: CRASH */
};

enum {
    STEPS_MAX = 500,
    CLIENTS_MAX = 8,
    LOCKS_MAX = 24,
    LOCKS_PER_CLIENT_MAX = 12,
    WAITERS_MAX = 10,
    SLOTS_MAX = 160,
    CALLS_OUT_MAX = 8,
    COOKIES_MAX = 8,
    FILES = 4,
    CELLS = 33, /* offsets and ends that a request can have, and one beyond them */
    STATE_AT = 32,
};

struct stored_record {
    uint32_t len; /* 0: none */
    uint8_t value[RECORD_VALUE_MAX];
};

/* The world around the core. One at a time: it is large, and libFuzzer has one thread. */
static struct {
    struct core *core;
    struct stored_record disk[RECORD_KIND_END][SLOTS_MAX];
    struct record_lock locks[SLOTS_MAX]; /* views of it */
    uint32_t lock_count;
    struct store_batch out;
    bool is_out, is_ready;
    uint64_t answer_txn; /* of the last answer of this run */
    struct {
        uint64_t id;
        enum core_call_kind kind;
        uint32_t status_count;
    } calls[CALLS_OUT_MAX];
    uint32_t call_count;
    uint8_t cookies[COOKIES_MAX][8]; /* of calls that were made, also in runs before */
    uint32_t cookie_count;
    uint64_t now_ns;
} world;

static const struct file_set shares[2] = {
    {.name = {(const uint8_t *)"default", 7}},
    {.name = {(const uint8_t *)"second", 6}, .prefix = {(const uint8_t *)"\1", 1}}};

/* ---- the store ---- */

static void apply(const struct store_batch *batch)
{
    struct record_change change;
    uint32_t count = 0;
    for (uint64_t at = 0; store_batch_next(batch, &at, &change); count++) {
        CHECK(change.slot < SLOTS_MAX);
        CHECK(change.value.len <= RECORD_VALUE_MAX);
        struct stored_record *record = &world.disk[change.kind][change.slot];
        record->len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(record->value, change.value.at, change.value.len);
    }
    CHECK(count == batch->count);
}

/* What the stored locks say: decoded anew after every change. */
static void read_locks(void)
{
    world.lock_count = 0;
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        const struct stored_record *record = &world.disk[RECORD_LOCK][slot];
        struct bytes value = {record->value, record->len};
        struct record_lock *lock = &world.locks[world.lock_count];
        if (record->len == 0)
            continue;
        CHECK(record_get_lock(value, slot, lock) == RECORD_GOOD);
        CHECK(world.disk[RECORD_CLIENT][lock->of.client].len > 0);
        world.lock_count++;
    }
}

static uint32_t records_of(enum record_kind kind)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
        count += world.disk[kind][slot].len > 0;
    return count;
}

/* As read_locks has found them. */
static bool is_any_offer(void)
{
    for (uint32_t i = 0; i < world.lock_count; i++)
        if (world.locks[i].flags & RECORD_LOCK_OFFER)
            return true;
    return false;
}

static bool is_same_owner(const struct record_lock *a, const struct record_lock *b)
{
    return a->of.client_id == b->of.client_id && a->svid == b->svid;
}

/* What the stored bytes must be, whoever wrote them. */
static void check_disk(void)
{
    read_locks();
    for (uint32_t i = 0; i < world.lock_count; i++)
        for (uint32_t j = i + 1; j < world.lock_count; j++) {
            const struct record_lock *a = &world.locks[i], *b = &world.locks[j];
            if (!bytes_equal(a->fh, b->fh) || a->start > b->end || b->start > a->end)
                continue;
            uint32_t either = a->flags | b->flags;
            if (is_same_owner(a, b))
                CHECK(either & RECORD_LOCK_OFFER);
            else
                CHECK(!(either & RECORD_LOCK_EXCLUSIVE));
        }
}

static void store(bool has_room)
{
    if (!world.is_out)
        return;
    apply(&world.out);
    check_disk();
    world.is_out = false;
    struct core_input input = {.kind = CORE_STORED,
                               .now_ns = world.now_ns,
                               .wall_ns = world.now_ns,
                               .txn = world.out.txn,
                               .has_room = has_room};
    core_step(world.core, &input, NULL);
    if (!world.is_ready) {
        input = (struct core_input){.kind = CORE_READY, .now_ns = world.now_ns};
        core_step(world.core, &input, NULL);
        world.is_ready = true;
    }
}

/* True: there was something to write. */
static bool take(void)
{
    if (!world.is_out)
        world.is_out = core_take_batch(world.core, &world.out);
    return world.is_out;
}

/* The open batch takes no more: it must go. */
static void make_room(void)
{
    while (core_is_full(world.core)) {
        (void)take();
        store(true);
    }
}

/* ---- requests ---- */

static struct bytes handle_of(uint32_t file)
{
    static const uint8_t handles[FILES][4] = {{0, 1}, {0, 2}, {1, 1}, {1, 2}};
    return (struct bytes){handles[file], sizeof handles[file]};
}

static struct peer peer_of(uint32_t choice)
{
    struct peer peer = {.local = address_v4((const uint8_t[]){192, 0, 2, 254}),
                        .transport = choice % 2 == 0 ? TRANSPORT_TCP : TRANSPORT_UDP,
                        .port = 700};
    peer.address = choice == 3 ? address_v4((const uint8_t[]){127, 0, 0, 1})
                               : address_v4((const uint8_t[]){192, 0, 2, (uint8_t)(1 + choice)});
    return peer;
}

static struct bytes name_of(uint32_t choice)
{
    static const char *const names[] = {"one", "ONE", "two", "three"};
    return bytes_of_text(names[choice % 4]);
}

static struct core_answer ask(const struct peer *from, const struct request *request)
{
    struct core_answer answer = {0};
    struct core_input input = {.kind = CORE_REQUEST,
                               .now_ns = world.now_ns,
                               .wall_ns = world.now_ns,
                               .from = from,
                               .request = request};
    make_room();
    core_step(world.core, &input, &answer);
    CHECK(answer.after_txn >= world.answer_txn);
    world.answer_txn = answer.after_txn;
    return answer;
}

static void lock_request(struct fuzz *fuzz, enum request_kind kind, uint32_t detail,
                         bool is_reclaim)
{
    static const uint32_t versions[] = {4, 3, 1, 4};
    uint32_t who = fuzz_u8(fuzz), where = fuzz_u8(fuzz), state = fuzz_u8(fuzz);
    struct peer from = peer_of(who & 3);
    uint64_t offset = where >> 4, len = where & 15;
    struct request request = {
        .kind = kind,
        .cookie = bytes_of_text("12345678"),
        .lock = {.caller_name = name_of(who >> 2 & 3),
                 .fh = handle_of(who >> 6),
                 .oh = name_of(who >> 4 & 3),
                 .offset = offset,
                 .len = len,
                 .start = offset,
                 .end = len == 0 ? UINT64_MAX : offset + len - 1,
                 .is_too_big = state == 255,
                 .is_bad_handle = state == 254,
                 .exclusive = detail & 1,
                 .block = detail & 2,
                 .is_message = detail & 4,
                 .is_unmonitored = detail & 8,
                 .reclaim = is_reclaim,
                 .svid = who >> 4 & 3,
                 .version = versions[state & 3],
                 .state = state < 128 ? state / 8 : 0,
                 .mode = where & 3,
                 .access = where >> 2 & 3},
    };
    struct core_answer answer = ask(&from, &request);
    CHECK(bytes_equal(answer.response.cookie, request.cookie));
    if (is_reclaim)
        CHECK(answer.response.status != LOCK_BLOCKED);
    if (kind == REQUEST_NLM_UNLOCK) /* R-NLM-7 */
        CHECK(answer.response.status == LOCK_GRANTED || answer.response.status == LOCK_GRACE);
}

static void result_request(struct fuzz *fuzz)
{
    uint32_t who = fuzz_u8(fuzz), which = fuzz_u8(fuzz), status = fuzz_u8(fuzz);
    struct peer from = peer_of(who & 3);
    struct request request = {.kind = REQUEST_NLM_GRANTED_RES,
                              .cookie = {world.cookies[which % COOKIES_MAX], 8},
                              .lock = {.status = status % 12}};
    if (which >= 128)
        request.cookie.len = which % 8;
    (void)ask(&from, &request);
}

static void status_request(struct fuzz *fuzz)
{
    static const enum request_kind kinds[] = {REQUEST_NSM_STAT,   REQUEST_NSM_MON,
                                              REQUEST_NSM_UNMON,  REQUEST_NSM_UNMON_ALL,
                                              REQUEST_NSM_NOTIFY, REQUEST_NSM_SIMU_CRASH};
    uint32_t which = fuzz_u8(fuzz), names = fuzz_u8(fuzz), state = fuzz_u8(fuzz);
    struct peer from = peer_of(names & 3);
    struct request request = {.kind = kinds[(which & 7) % 6],
                              .mon_name = name_of(names >> 2 & 3),
                              .my_name = name_of(names >> 4 & 3),
                              .my_prog = 100021,
                              .my_vers = which >> 6,
                              .my_proc = 16,
                              .priv = bytes_of_text("0123456789abcdef"),
                              .state = state};
    (void)ask(&from, &request);
}

/* ---- calls ---- */

static bool is_offer_stored(const struct core_call *call)
{
    for (uint32_t i = 0; i < world.lock_count; i++) {
        const struct record_lock *lock = &world.locks[i];
        bool is_exclusive = lock->flags & RECORD_LOCK_EXCLUSIVE;
        if ((lock->flags & RECORD_LOCK_OFFER) && bytes_equal(lock->fh, call->fh) &&
            lock->svid == call->svid && lock->start == call->offset && lock->len == call->len &&
            is_exclusive == call->exclusive)
            return true;
    }
    return false;
}

static void make_calls(void)
{
    struct core_call call;
    while (world.call_count < CALLS_OUT_MAX && core_next_call(world.core, world.now_ns, &call)) {
        bool is_grant = call.kind == CALL_GRANTED || call.kind == CALL_GRANTED_MSG;
        bool is_known = false;
        for (uint32_t i = 0; i < 4; i++) {
            struct peer peer = peer_of(i);
            is_known |= address_equal(&peer.address, &call.to); /* R-SEC-2 */
        }
        CHECK(is_known);
        if (is_grant) {
            CHECK(is_offer_stored(&call));
            store_be64(world.cookies[world.cookie_count++ % COOKIES_MAX], call.cookie);
        }
        world.calls[world.call_count].id = call.id;
        world.calls[world.call_count].kind = call.kind;
        world.calls[world.call_count++].status_count =
            call.kind == CALL_STATUS ? call.status_count : 0;
    }
}

static void end_call(struct fuzz *fuzz, uint32_t detail)
{
    uint32_t status = fuzz_u8(fuzz);
    if (world.call_count == 0)
        return;
    make_room();
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .now_ns = world.now_ns,
                               .wall_ns = world.now_ns,
                               .call = world.calls[0].id,
                               .outcome = (enum core_call_outcome)(detail & 3),
                               .status = LOCK_STATUS_NONE,
                               .is_repeated = detail & 4};
    if (input.outcome == CALL_ANSWERED) {
        input.answered_count = world.calls[0].status_count;
        input.status = world.calls[0].kind == CALL_GRANTED ? status % 10 : LOCK_STATUS_NONE;
        input.state = world.calls[0].kind == CALL_STAT ? status / 8 : 0;
    }
    core_step(world.core, &input, NULL);
    world.call_count--;
    memmove(world.calls, world.calls + 1, world.call_count * sizeof world.calls[0]);
}

/* ---- life and death ---- */

static void start(void)
{
    struct core_limits limits = {.clients_max = CLIENTS_MAX,
                                 .locks_max = LOCKS_MAX,
                                 .locks_per_client_max = LOCKS_PER_CLIENT_MAX,
                                 .waiters_max = WAITERS_MAX,
                                 .bytes_max = 1 << 14,
                                 .batch_puts_max = 6,
                                 .server_name = bytes_of_text("holdfast.example"),
                                 .file_sets = shares,
                                 .file_set_count = 2,
                                 .notify_timeout_ns = 5 * SECOND_NS,
                                 .window_ns = 90 * SECOND_NS,
                                 .give_up_ns = 900 * SECOND_NS};
    for (uint32_t kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            if (world.disk[kind][slot].len > 0)
                limits.slots_used[kind] = slot + 1;
    world.core = core_new(&limits, 1);
    CHECK(world.core != NULL);
    for (uint32_t kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
            const struct stored_record *record = &world.disk[kind][slot];
            struct bytes value = {record->value, record->len};
            if (record->len > 0)
                CHECK(core_load(world.core, (enum record_kind)kind, slot, value) == RECORD_GOOD);
        }
    struct core_boot boot = {.wall_ns = world.now_ns};
    core_start(world.core, &boot);
    struct core_status status;
    core_status(world.core, &status);
    const struct stored_record *server = &world.disk[RECORD_SERVER][0];
    CHECK(status.state % 2 == 1);
    CHECK(server->len == 0 || status.state > load_be32(server->value + STATE_AT));
    CHECK(!status.incomplete);
    /* An offer becomes its owner's lock, and may become one with what that has, or split it. */
    CHECK(is_any_offer() || status.locks + status.offers == records_of(RECORD_LOCK));
    CHECK(status.clients == records_of(RECORD_CLIENT));
    CHECK(status.shares == records_of(RECORD_SHARE));
    CHECK(status.registrants == records_of(RECORD_REGISTRANT));
    world.answer_txn = 0;
    world.is_out = world.is_ready = false;
    world.call_count = 0;
}

static void crash(bool has_landed)
{
    if (world.is_out && has_landed)
        apply(&world.out);
    core_free(world.core);
    check_disk();
    start();
}

/* ---- the two tables ---- */

/* Nothing is left to write: TEST and the stored records must say the same of this byte. */
static void compare_at(uint32_t file, uint64_t at)
{
    static const uint8_t nobody[] = {203, 0, 113, 9};
    struct peer judge = {.address = address_v4(nobody), .local = address_v4(nobody), .port = 900};
    struct request test = {.kind = REQUEST_NLM_TEST,
                           .lock = {.caller_name = bytes_of_text("judge"),
                                    .fh = handle_of(file),
                                    .offset = at,
                                    .len = 1,
                                    .start = at,
                                    .end = at,
                                    .exclusive = true,
                                    .version = 4}};
    struct core_answer answer = ask(&judge, &test);
    const struct lock_holder *holder = &answer.response.holder;
    bool is_stored = false, is_named = false;
    for (uint32_t i = 0; i < world.lock_count; i++) {
        const struct record_lock *lock = &world.locks[i];
        if (!bytes_equal(lock->fh, test.lock.fh) || lock->start > at || lock->end < at)
            continue;
        is_stored = true;
        is_named |= answer.response.status == LOCK_DENIED && holder->svid == lock->svid &&
                    holder->start == lock->start && holder->end == lock->end &&
                    bytes_equal(holder->oh, lock->oh) &&
                    holder->exclusive == ((lock->flags & RECORD_LOCK_EXCLUSIVE) != 0);
    }
    CHECK(answer.response.status == (is_stored ? LOCK_DENIED : LOCK_GRANTED));
    CHECK(is_named == is_stored);
}

static bool take_and_store(void)
{
    if (!take())
        return false;
    store(true);
    return true;
}

static void compare(void)
{
    /* Locks of clients that started anew are nobody's, and stored until their turn comes. */
    do
        core_work(world.core, world.now_ns, world.now_ns);
    while (take_and_store());
    struct core_status status;
    core_status(world.core, &status);
    /* An offer becomes its owner's lock, and may become one with what that has, or split it. */
    CHECK(is_any_offer() || status.locks + status.offers == records_of(RECORD_LOCK));
    CHECK(status.clients == records_of(RECORD_CLIENT));
    CHECK(status.shares == records_of(RECORD_SHARE));
    CHECK(status.registrants == records_of(RECORD_REGISTRANT));
    CHECK(status.notices == records_of(RECORD_NOTICE));
    for (uint32_t file = 0; file < FILES; file++)
        for (uint32_t at = 0; at < CELLS; at++)
            compare_at(file, at);
}

/* Everything is written. */
static void settle(void)
{
    while (take())
        store(true);
    compare();
    core_check(world.core);
}

static void step(struct fuzz *fuzz)
{
    static const enum request_kind kinds[] = {
        [STEP_LOCK] = REQUEST_NLM_LOCK,     [STEP_TEST] = REQUEST_NLM_TEST,
        [STEP_CANCEL] = REQUEST_NLM_CANCEL, [STEP_UNLOCK] = REQUEST_NLM_UNLOCK,
        [STEP_SHARE] = REQUEST_NLM_SHARE,   [STEP_UNSHARE] = REQUEST_NLM_UNSHARE,
        [STEP_RECLAIM] = REQUEST_NLM_LOCK};
    uint8_t choice = fuzz_u8(fuzz);
    uint32_t detail = choice >> 4;
    enum step what = (enum step)(choice & 15);
    switch (what) {
    case STEP_LOCK:
    case STEP_TEST:
    case STEP_CANCEL:
    case STEP_UNLOCK:
    case STEP_SHARE:
    case STEP_UNSHARE:
    case STEP_RECLAIM:
        lock_request(fuzz, kinds[what], detail, what == STEP_RECLAIM);
        break;
    case STEP_RESULT:
        result_request(fuzz);
        break;
    case STEP_FREE: {
        uint32_t who = fuzz_u8(fuzz);
        struct peer from = peer_of(who & 3);
        struct request request = {.kind = REQUEST_NLM_FREE_ALL, .mon_name = name_of(who >> 2 & 3)};
        (void)ask(&from, &request);
        break;
    }
    case STEP_STATUS:
        status_request(fuzz);
        break;
    case STEP_TAKE:
        if (!take())
            compare();
        else if (detail & 1)
            store(true);
        break;
    case STEP_STORE:
        store(!(detail & 1));
        break;
    case STEP_WORK:
        for (uint32_t i = 0; i <= detail; i++)
            core_work(world.core, world.now_ns, world.now_ns);
        break;
    case STEP_CALL:
        make_calls();
        break;
    case STEP_DONE:
        end_call(fuzz, detail);
        break;
    case STEP_WAIT_OR_CRASH:
        if (detail >= 12)
            crash(detail & 1);
        else
            world.now_ns += (fuzz_u8(fuzz) + UINT64_C(1)) * (SECOND_NS / 4) << detail % 4 * 2;
        break;
    }
    core_check(world.core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    for (uint32_t kind = 0; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++)
            world.disk[kind][slot].len = 0;
    memset(world.cookies, 0, sizeof world.cookies);
    world.lock_count = 0;
    world.cookie_count = 0;
    world.now_ns = SECOND_NS;
    start();
    for (uint32_t i = 0; i < STEPS_MAX && fuzz.left > 0; i++)
        step(&fuzz);
    settle();
    crash(false);
    settle();
    core_free(world.core);
    return 0;
}
