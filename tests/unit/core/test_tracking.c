/*
 * test_tracking.c -- shows what a server of another protocol is answered over the control socket
 * (tracking.h): that everything may be said twice, that what concerns an older connection or an
 * earlier client of the same key changes nothing, that an expired client is handed out until it is
 * removed, and that every answer waits for the store.
 *
 * Everything goes through core_step, as from the daemon; tracker_fixture.h restarts the core.
 */
#include "core/tracking.h"

#include "core/view.h"
#include "tracker_fixture.h"
#include "unit/test.h"

static struct core_answer answer;

static enum tracking_result say(const struct tracking *tracking)
{
    struct core_input input = {.kind = CORE_TRACKING,
                               .now_ns = core->now_ns,
                               .wall_ns = core->wall_ns,
                               .tracking = tracking};
    answer = (struct core_answer){0};
    core_step(core, &input, &answer);
    core_check(core);
    return answer.tracking.result;
}

static struct tracking of(enum tracking_kind kind, const char *key)
{
    return (struct tracking){
        .kind = kind, .protocol = bytes_of_text("smb"), .key = bytes_of_text(key)};
}

static enum tracking_result say_of(enum tracking_kind kind, const char *key)
{
    struct tracking tracking = of(kind, key);
    return say(&tracking);
}

static enum tracking_result take(void)
{
    struct tracking tracking = {.kind = TRACKING_TAKE, .protocol = bytes_of_text("smb")};
    return say(&tracking);
}

static const struct tracker_view *seen(void)
{
    assert_true(answer.tracking.has_view);
    return &answer.tracking.view;
}

static void expect_text(struct bytes bytes, const char *text)
{
    assert_true(bytes_equal(bytes, bytes_of_text(text)));
}

/* ---- said twice ---- */

TEST(test_tracking__everything_may_be_said_twice)
{
    struct tracking hello = of(TRACKING_REGISTER, "a");
    hello.name = bytes_of_text("laptop");
    hello.bytes = bytes_of_text("path");
    hello.address = fixture_address("192.0.2.9");
    assert_int_equal(say(&hello), TRACKING_ADDED);
    uint64_t id = seen()->id;
    assert_int_equal(say(&hello), TRACKING_UPDATED);
    assert_true(seen()->id == id);
    assert_int_equal(seen()->generation, 2);
    expect_text(seen()->name, "laptop");
    expect_text(seen()->key, "a");

    struct tracking bytes = of(TRACKING_UPDATE, "a");
    bytes.bytes = bytes_of_text("other");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(say(&bytes), TRACKING_UPDATED);
        expect_text(seen()->bytes, "other");
        assert_int_equal(seen()->generation, 2);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(say_of(TRACKING_DISCONNECT, "a"), TRACKING_DISCONNECTED);
        assert_int_equal(seen()->state, RECORD_TRACKED_DISCONNECTED);
        assert_true(seen()->deadline_ns == core->wall_ns + 90 * SECOND);
        wait_s(10);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(say_of(TRACKING_RECONNECT, "a"), TRACKING_RECONNECTED);
        assert_true(seen()->id == id);
        expect_text(seen()->bytes, "other");
        struct address was = fixture_address("192.0.2.9");
        assert_true(address_equal(&seen()->address, &was));
    }
    assert_int_equal(say_of(TRACKING_REMOVE, "a"), TRACKING_REMOVED);
    assert_int_equal(say_of(TRACKING_REMOVE, "a"), TRACKING_UNKNOWN);
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_UNKNOWN);
    assert_int_equal(say(&hello), TRACKING_ADDED);
    assert_true(seen()->id > id);
}

/* The repeat of a lost "remove" finds another client of that key. */
TEST(test_tracking__an_id_means_one_client)
{
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_ADDED);
    struct tracking gone = of(TRACKING_REMOVE, "a");
    gone.id = seen()->id;
    assert_int_equal(say(&gone), TRACKING_REMOVED);
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_ADDED);
    for (enum tracking_kind kind = TRACKING_DISCONNECT; kind <= TRACKING_REMOVE; kind++) {
        gone.kind = kind;
        assert_int_equal(say(&gone), TRACKING_UNKNOWN);
    }
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_FOUND);
    assert_int_equal(seen()->state, RECORD_TRACKED_CONNECTED);
}

/* "Connection closed" of a connection that was replaced, also by a run before this one. */
TEST(test_tracking__an_older_connection_says_nothing)
{
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_ADDED);
    struct tracking late = of(TRACKING_DISCONNECT, "a");
    late.connection = seen()->generation;
    assert_int_equal(say_of(TRACKING_RECONNECT, "a"), TRACKING_RECONNECTED);
    uint32_t newest = seen()->generation;
    for (enum tracking_kind kind = TRACKING_DISCONNECT; kind <= TRACKING_REMOVE; kind++) {
        late.kind = kind;
        assert_int_equal(say(&late), TRACKING_REPLACED);
        assert_int_equal(seen()->state, RECORD_TRACKED_CONNECTED);
    }
    store();
    restart_after(1);
    late.kind = TRACKING_DISCONNECT;
    assert_int_equal(say(&late), TRACKING_REPLACED);
    late.connection = newest; /* it is stored */
    late.timeout_s = 300;
    assert_int_equal(say(&late), TRACKING_DISCONNECTED);
    assert_true(seen()->deadline_ns == core->wall_ns + 300 * SECOND);
}

/* ---- those whose time has run out ---- */

TEST(test_tracking__expired_until_removed)
{
    struct event event;
    assert_int_equal(take(), TRACKING_NONE);
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_ADDED);
    uint64_t id = seen()->id;
    struct tracking away = of(TRACKING_DISCONNECT, "a");
    away.timeout_s = 5;
    assert_int_equal(say(&away), TRACKING_DISCONNECTED);
    assert_int_equal(take(), TRACKING_NONE);
    lock_fixture_wait(core, 5); /* core_work has not run */
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_FOUND);
    assert_int_equal(seen()->state, RECORD_TRACKED_EXPIRED);
    assert_true(event_take(core_feed(core), &event));
    assert_int_equal(event.kind, EVENT_TRACKED_EXPIRED);
    expect_text((struct bytes){event.name, event.name_len}, "smb/a");
    assert_true(event.value == id);
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_EXPIRED);
    assert_int_equal(say_of(TRACKING_RECONNECT, "a"), TRACKING_EXPIRED);
    assert_int_equal(say_of(TRACKING_UPDATE, "a"), TRACKING_EXPIRED);
    assert_int_equal(say(&away), TRACKING_EXPIRED);

    /* Its answer is lost: it comes again, not at once. */
    assert_int_equal(take(), TRACKING_TAKEN);
    assert_true(seen()->id == id);
    assert_int_equal(take(), TRACKING_NONE);
    wait_s(29);
    assert_int_equal(take(), TRACKING_NONE);
    wait_s(1);
    assert_int_equal(take(), TRACKING_TAKEN);
    assert_true(seen()->id == id);
    store();
    restart_after(1);
    assert_int_equal(take(), TRACKING_TAKEN);
    assert_int_equal(take(), TRACKING_NONE);
    struct tracking gone = of(TRACKING_REMOVE, "a");
    gone.id = id;
    assert_int_equal(say(&gone), TRACKING_REMOVED);
    wait_s(40);
    assert_int_equal(take(), TRACKING_NONE);
}

/* Those that were never taken do not wait behind those that were. */
TEST(test_tracking__taken_ones_keep_nobody_waiting)
{
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        struct tracking away = of(TRACKING_DISCONNECT, keys[i]);
        away.timeout_s = 5;
        assert_int_equal(say_of(TRACKING_REGISTER, keys[i]), TRACKING_ADDED);
        assert_int_equal(say(&away), TRACKING_DISCONNECTED);
        wait_s(1);
    }
    wait_s(5);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(take(), TRACKING_TAKEN);
        expect_text(seen()->key, keys[i]);
        wait_s(1);
    }
    assert_int_equal(take(), TRACKING_NONE);
    assert_int_equal(say_of(TRACKING_REMOVE, "b"), TRACKING_REMOVED);
    wait_s(30);
    assert_int_equal(take(), TRACKING_TAKEN);
    expect_text(seen()->key, "a");
    assert_int_equal(take(), TRACKING_TAKEN);
    expect_text(seen()->key, "c");
    assert_int_equal(take(), TRACKING_NONE);
}

/* ---- windows and names ---- */

TEST(test_tracking__windows_of_protocols)
{
    static const struct core_window windows[] = {
        {.protocol = {(const uint8_t *)"nfs4", 4}, .ns = 7 * SECOND},
        {.protocol = {(const uint8_t *)"smb", 3}, .ns = 20 * SECOND},
    };
    struct core_limits other = small_limits();
    other.windows = windows;
    other.window_count = 2;
    begin_with(&other);
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_ADDED);
    assert_int_equal(seen()->window_s, 20);
    struct tracking own = of(TRACKING_REGISTER, "b");
    own.window_s = 3;
    assert_int_equal(say(&own), TRACKING_ADDED);
    assert_int_equal(seen()->window_s, 3);
    own.protocol = bytes_of_text("afp");
    own.window_s = 0;
    assert_int_equal(say(&own), TRACKING_ADDED);
    assert_int_equal(seen()->window_s, 90);
    assert_int_equal(say_of(TRACKING_DISCONNECT, "a"), TRACKING_DISCONNECTED);
    assert_true(seen()->deadline_ns == core->wall_ns + 20 * SECOND);
    store();
    restart_after(1000);
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_FOUND);
    assert_true(seen()->deadline_ns == core->wall_ns + 20 * SECOND);
}

TEST(test_tracking__names_are_stored_and_counted)
{
    struct view_protocol_counts counts;
    struct tracking hello = of(TRACKING_REGISTER, "a");
    hello.name = bytes_of_text("laptop");
    assert_int_equal(say(&hello), TRACKING_ADDED);
    assert_int_equal(say_of(TRACKING_REGISTER, "b"), TRACKING_ADDED);
    assert_int_equal(say_of(TRACKING_DISCONNECT, "b"), TRACKING_DISCONNECTED);
    store();
    restart_after(1);
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_FOUND);
    expect_text(seen()->name, "laptop");
    hello.name = bytes_of_text("");
    assert_int_equal(say(&hello), TRACKING_RECONNECTED);
    expect_text(seen()->name, "a");
    assert_true(view_protocol(core, 0, &counts));
    expect_text(counts.name, "smb");
    assert_int_equal(counts.in[RECORD_TRACKED_CONNECTED], 1);
    assert_int_equal(counts.in[RECORD_TRACKED_DISCONNECTED], 1);
    assert_int_equal(counts.in[RECORD_TRACKED_EXPIRED], 0);
    assert_false(view_protocol(core, 1, &counts));
    assert_int_equal(say_of(TRACKING_REMOVE, "a"), TRACKING_REMOVED);
    assert_int_equal(say_of(TRACKING_REMOVE, "b"), TRACKING_REMOVED);
    assert_true(view_protocol(core, 0, &counts));
    assert_int_equal(counts.name.len, 0);
}

TEST(test_tracking__lists_in_pieces)
{
    struct tracker_view view;
    uint64_t cursor = 0;
    uint32_t budget = 1, count = 0;
    for (char key[] = "a"; key[0] < 'f'; key[0]++)
        assert_int_equal(say_of(TRACKING_REGISTER, key), TRACKING_ADDED);
    assert_int_equal(say_of(TRACKING_REMOVE, "b"), TRACKING_REMOVED);
    while (cursor != VIEW_END) {
        count += view_next_tracked(core, &cursor, &budget, &view);
        budget = 1;
    }
    assert_int_equal(count, 4);
    assert_true(view_find_tracked(core, bytes_of_text("smb"), bytes_of_text("c"), &view));
    assert_false(view_find_tracked(core, bytes_of_text("smb"), bytes_of_text("b"), &view));
}

/* ---- limits, and the store ---- */

TEST(test_tracking__limits)
{
    static const uint8_t many[RECORD_BYTES_MAX + 1] = {1};
    struct core_limits few = small_limits();
    few.clients_max = 10;
    few.per_address_percent = 20;
    begin_with(&few);
    struct tracking here = of(TRACKING_REGISTER, "a");
    here.address = fixture_address("192.0.2.9");
    assert_int_equal(say(&here), TRACKING_ADDED);
    here.key = bytes_of_text("b");
    assert_int_equal(say(&here), TRACKING_ADDED);
    here.key = bytes_of_text("c");
    assert_int_equal(say(&here), TRACKING_LIMIT); /* a share of that address */
    assert_false(answer.tracking.has_view);
    for (char key[] = "c"; key[0] < 'k'; key[0]++)
        assert_int_equal(say_of(TRACKING_REGISTER, key), TRACKING_ADDED); /* of no address */
    assert_int_equal(say_of(TRACKING_REGISTER, "z"), TRACKING_LIMIT);
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_UPDATED);

    here.bytes = (struct bytes){many, RECORD_BYTES_MAX};
    assert_true(tracking_is_good(&here));
    here.bytes.len++;
    assert_false(tracking_is_good(&here));
    struct tracking named = of(TRACKING_REGISTER, "a");
    named.name = (struct bytes){many, TRACKING_NAME_MAX + 1};
    assert_false(tracking_is_good(&named));
    named = of(TRACKING_REGISTER, "");
    assert_false(tracking_is_good(&named));
    named = of(TRACKING_TAKE, "a");
    assert_false(tracking_is_good(&named));
    assert_false(tracking_is_protocol(bytes_of_text("nlm")));
    assert_false(tracking_is_protocol(bytes_of_text("Smb")));
    assert_true(tracking_is_protocol(bytes_of_text("smb-3")));
}

/* A name that does not fit leaves the client as it was. */
TEST(test_tracking__all_of_a_register_or_nothing)
{
    static uint8_t many[RECORD_BYTES_MAX];
    struct core_limits small = small_limits();
    small.bytes_max = 64 * 1024;
    begin_with(&small);
    struct tracking first = of(TRACKING_REGISTER, "first");
    first.name = bytes_of_text("a name");
    assert_int_equal(say(&first), TRACKING_ADDED);
    enum tracking_result result = TRACKING_ADDED;
    char key[16];
    for (uint32_t i = 0; result == TRACKING_ADDED; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        struct tracking full = of(TRACKING_REGISTER, key);
        full.bytes = (struct bytes){many, sizeof many};
        result = say(&full);
    }
    assert_int_equal(result, TRACKING_BYTES);
    first.name = bytes_of_text("another name");
    first.bytes = (struct bytes){many, sizeof many};
    assert_int_equal(say(&first), TRACKING_BYTES);
    assert_int_equal(say_of(TRACKING_LOOK, "first"), TRACKING_FOUND);
    expect_text(seen()->name, "a name");
    assert_int_equal(seen()->generation, 1);
}

TEST(test_tracking__every_answer_waits_for_the_store)
{
    store();
    assert_int_equal(say_of(TRACKING_REGISTER, "a"), TRACKING_ADDED);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
    /* Whoever looks sees what a crash could still take back. */
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_FOUND);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
    store();
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_FOUND);
    assert_true(answer.after_txn == core_durable_txn(core));
    struct tracking away = of(TRACKING_DISCONNECT, "a");
    away.timeout_s = 1;
    assert_int_equal(say(&away), TRACKING_DISCONNECTED);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
    store();
    wait_s(1);
    assert_int_equal(take(), TRACKING_TAKEN); /* that it is over is not stored yet */
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
    store();
    assert_int_equal(say_of(TRACKING_REMOVE, "a"), TRACKING_REMOVED);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
    assert_int_equal(take(), TRACKING_NONE);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
}

/* With a shared store each waits for a commit that began after it. */
TEST(test_tracking__a_shared_store_fences_every_answer)
{
    static const struct lease lease = {.is_shared = true};
    struct core_limits shared = small_limits();
    shared.lease = &lease;
    begin_with(&shared);
    store();
    assert_int_equal(say_of(TRACKING_LOOK, "a"), TRACKING_UNKNOWN);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
    store();
    assert_int_equal(take(), TRACKING_NONE);
    assert_true(answer.after_txn == core_durable_txn(core) + 1);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
