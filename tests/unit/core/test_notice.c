/*
 * test_notice.c -- SM_NOTIFY through the core: whose word counts, what is kept, and for how long
 * (D7).
 */
#include "core/hearsay.h"
#include "fixture.h"
#include "unit/test.h"

static struct core *core;

TEST_FIXTURE(set_up)
{
    core = fixture_new(&fixture_limits);
}

TEST_FIXTURE(tear_down)
{
    core_free(core);
}

TEST(test_notice__needs_somebody_who_watches)
{
    fixture_store(core);
    assert_false(fixture_notify_restarts(core, "10.0.0.7", "10.0.0.7", 5));
    assert_int_equal(fixture_status(core).notices, 0);
    assert_int_equal(fixture_store(core), 0);
    fixture_mon(core, "10.0.0.2", "10.0.0.7", "lockd", 1);
    assert_true(fixture_notify_restarts(core, "10.0.0.7", "10.0.0.7", 5));
    assert_int_equal(fixture_status(core).notices, 1);
}

/* Whoever may not speak for the name is refused, and said so once. */
static uint32_t refusals(void)
{
    struct event event;
    uint32_t count = 0;
    while (event_take(core_events(core), &event))
        count += event.kind == EVENT_NOTICE_FOREIGN || event.kind == EVENT_NOTICE_IGNORED;
    return count;
}

TEST(test_notice__standing)
{
    static const char *const addresses[] = {"10.0.0.8", "2001:db8::7", "10.0.0.7", NULL};
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "10.0.0.7", "lockd", 1);
    (void)refusals();
    /* A stranger, who is looked up; a host that is named but is not the sender, who is not. */
    fixture_notify(core, "10.0.0.66", "client7", 5);
    assert_int_equal(refusals(), 0);
    assert_true(fixture_resolve(core, addresses));
    assert_int_equal(refusals(), 1);
    fixture_notify(core, "10.0.0.66", "10.0.0.7", 5);
    assert_false(fixture_resolve(core, addresses));
    assert_int_equal(refusals(), 1);
    /* A8: an SM_MON of that name came from there. That gives no right to speak for it. */
    fixture_notify(core, "10.0.0.2", "CLIENT7", 5);
    assert_int_equal(fixture_status(core).notices, 0);
    assert_true(fixture_resolve(core, addresses));
    assert_int_equal(refusals(), 1);
    fixture_notify(core, "10.0.0.2", "client7", 5); /* nor does a resolver that does not know */
    assert_true(fixture_resolve(core, NULL));
    assert_int_equal(refusals(), 1);
    assert_int_equal(fixture_status(core).notices, 0);
    /* The name has that address. */
    fixture_notify(core, "10.0.0.7", "CLIENT7", 5);
    assert_int_equal(fixture_status(core).notices, 0);
    assert_true(fixture_resolve(core, addresses));
    assert_int_equal(fixture_status(core).notices, 1);
    fixture_notify(core, "10.0.0.7", "client7", 5); /* a repeat needs no resolver */
    assert_false(fixture_resolve(core, addresses));
    /* The name is the sender's address, also when it comes v4-mapped. */
    fixture_notify(core, "::ffff:10.0.0.7", "10.0.0.7", 5);
    assert_int_equal(fixture_status(core).notices, 2);
    assert_int_equal(refusals(), 0);
}

/* What it said last counts, and who stopped watching meanwhile is not told. */
TEST(test_notice__while_the_resolver_is_asked)
{
    static const char *const addresses[] = {"10.0.0.7", NULL};
    struct core_lookup lookup;
    struct address list[] = {fixture_address("10.0.0.7")};
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_notify(core, "10.0.0.7", "client7", 5);
    assert_int_equal(core_lookup_deadline_ns(core), fixture_now_ns());
    assert_true(core_next_lookup(core, fixture_now_ns(), &lookup));
    assert_int_equal(core_lookup_deadline_ns(core), UINT64_MAX);
    fixture_notify(core, "10.0.0.7", "Client7", 7); /* one look-up tells both */
    assert_false(core_next_lookup(core, fixture_now_ns(), &lookup));
    struct core_input input = {.kind = CORE_RESOLVED,
                               .now_ns = fixture_now_ns(),
                               .lookup = lookup.id,
                               .addresses = list,
                               .address_count = 1};
    core_step(core, &input, NULL);
    core_check(core);
    assert_int_equal(fixture_status(core).notices, 1);
    assert_true(fixture_notify_restarts(core, "10.0.0.7", "10.0.0.7", 7) == false);
    fixture_notify(core, "10.0.0.7", "client7", 9);
    fixture_unmon(core, "10.0.0.2", "client7", "lockd");
    assert_true(fixture_resolve(core, addresses));
    assert_int_equal(fixture_status(core).notices, 0);
    assert_int_equal(fixture_status(core).names, 0);
}

/* One name of each sender at a time, and a share of the places: a stranger delays nobody. */
TEST(test_notice__senders_take_turns)
{
    enum { NAMES = HEARSAY_SHARE + 4 };
    struct core_lookup first, second, lookup;
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "evil%u", i);
        fixture_mon(core, "10.0.0.66", name, "lockd", 1);
    }
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_store(core);
    uint32_t unanswered = 0;
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "evil%u", i);
        struct core_answer answer = fixture_notify(core, "10.0.0.66", name, 5);
        unanswered += answer.response.when == ANSWER_NEVER;
    }
    assert_int_equal(unanswered, NAMES - HEARSAY_SHARE);
    fixture_notify(core, "10.0.0.7", "client7", 5);
    assert_true(core_next_lookup(core, fixture_now_ns(), &first));
    assert_true(core_next_lookup(core, fixture_now_ns(), &second));
    assert_true(bytes_equal(second.name, bytes_of_text("client7")));
    assert_false(core_next_lookup(core, fixture_now_ns(), &lookup));
    struct core_input input = {
        .kind = CORE_RESOLVED, .now_ns = fixture_now_ns(), .lookup = first.id};
    core_step(core, &input, NULL); /* his next one comes */
    core_check(core);
    assert_true(core_next_lookup(core, fixture_now_ns(), &lookup));
    assert_false(core_next_lookup(core, fixture_now_ns(), &first));
}

/* However often somebody asks for it: 50 at once, then 50 per second. */
TEST(test_notice__look_ups_have_a_pace)
{
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    uint64_t start_ns = fixture_now_ns();
    uint32_t count = 0;
    while (fixture_now_ns() < start_ns + 2 * FIXTURE_SECOND) {
        fixture_notify(core, "10.0.0.66", "client7", 5);
        count += fixture_resolve(core, NULL);
        fixture_wait(FIXTURE_SECOND / 1000);
    }
    assert_in_range(count, 149, 151);
    assert_true(core_lookup_deadline_ns(core) <= fixture_now_ns() + FIXTURE_SECOND / 50);
}

TEST(test_notice__one_per_name_in_any_spelling)
{
    fixture_mon(core, "10.0.0.2", "Client7", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_notify_named(core, "10.0.0.2", "client7", 5);
    fixture_store(core);
    fixture_notify_named(core, "10.0.0.2", "CLIENT7", 5); /* a repeat */
    assert_int_equal(fixture_store(core), 0);
    fixture_notify_named(core, "10.0.0.3", "CLIENT7", 5); /* from another address of it */
    assert_int_equal(fixture_store(core), 0);
    fixture_notify_named(core, "10.0.0.2", "CLIENT7", 7);
    assert_int_equal(fixture_status(core).notices, 1);

    struct store_batch batch;
    struct record_change change;
    struct record_notice record = {0};
    assert_true(core_take_batch(core, &batch));
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);)
        if (change.kind == RECORD_NOTICE)
            assert_int_equal(record_get_notice(change.value, change.slot, &record), RECORD_GOOD);
    assert_int_equal(record.state, 7);
}

TEST(test_notice__goes_with_the_last_who_watches)
{
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_mon(core, "10.0.0.3", "Client7", "lockd", 1);
    fixture_notify_named(core, "10.0.0.2", "client7", 5);
    fixture_unmon(core, "10.0.0.2", "client7", "lockd");
    assert_int_equal(fixture_status(core).notices, 1);
    fixture_unmon(core, "10.0.0.3", "Client7", "lockd");
    struct core_status status = fixture_status(core);
    assert_int_equal(status.notices, 0);
    assert_int_equal(status.names, 0);
}

/* Who registers after a reboot need not hear of it; who was there before must. */
TEST(test_notice__newcomer_is_not_told)
{
    fixture_mon(core, "10.0.0.2", "client7", "lockd", 1);
    fixture_notify_named(core, "10.0.0.2", "client7", 5);
    fixture_mon(core, "10.0.0.3", "client7", "lockd", 1);
    struct store_batch batch;
    struct record_change change;
    assert_true(core_take_batch(core, &batch));
    uint32_t seen = 0;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);) {
        struct record_registrant record;
        if (change.kind != RECORD_REGISTRANT)
            continue;
        assert_int_equal(record_get_registrant(change.value, change.slot, &record), RECORD_GOOD);
        assert_int_equal(record.relayed_state, change.slot == 0 ? 0 : 5);
        seen++;
    }
    assert_int_equal(seen, 2);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
