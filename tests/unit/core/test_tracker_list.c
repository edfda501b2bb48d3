/*
 * test_tracker_list.c -- shows that the one list of clients has those of all protocols in it, in
 * the tracker's words, and that it can be read in pieces while clients come and go (D15).
 *
 * Lock clients, a registrant and clients of two other protocols are listed while they are there,
 * after a restart, and when grace ends without some of them.
 */
#include "tracker_fixture.h"
#include "unit/test.h"

#include <stdio.h>

static uint32_t list(const char *protocol, uint32_t states, char *ret_names, size_t size)
{
    struct tracker_filter filter = {.protocol = bytes_of_text(protocol), .states = states};
    struct tracker_view view;
    uint64_t cursor = 0;
    uint32_t count = 0;
    size_t len = 0;
    ret_names[0] = '\0';
    for (; tracker_list(core, &filter, &cursor, &view); count++)
        len += (size_t)snprintf(ret_names + len, size - len, "%.*s:%.*s ", (int)view.protocol.len,
                                (const char *)view.protocol.at, (int)view.name.len,
                                (const char *)view.name.at);
    assert_false(tracker_list(core, &filter, &cursor, &view)); /* the end stays the end */
    return count;
}

static uint32_t bit(enum record_tracked_state state)
{
    return UINT32_C(1) << state;
}

static void watch(const char *my_name)
{
    static const uint8_t priv[RECORD_PRIV_LEN];
    struct peer peer = fixture_peer("192.0.2.50", 800);
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("nas"),
                              .my_name = bytes_of_text(my_name),
                              .my_prog = 200000,
                              .priv = {priv, sizeof priv}};
    assert_int_equal(registrant_add(core, &peer, &request, core->wall_ns), REGISTRANT_ADDED);
}

static void lock_as(const char *address, const char *name)
{
    struct peer peer = fixture_peer(address, 700);
    struct lock_request request = lock_fixture_request("f", "oh");
    uint32_t client = lock_fixture_client(core, address, name);
    client_heard(core, client, &peer, &request, core->wall_ns);
    lock_fixture_lock(core, client, 1, name, 0);
    lock_fixture_lock(core, client, 1, name, 7);
}

TEST(test_tracker_list__shows_all_protocols)
{
    char names[256];
    struct core_limits with_grace = small_limits();
    with_grace.grace_ns = 60 * SECOND;
    begin_with(&with_grace);
    watch("statd1");
    lock_as("192.0.2.1", "web1");
    lock_as("192.0.2.2", "web2");
    (void)add("smb", "s1", "");
    (void)add("rpc-x", "x1", "");
    (void)tracker_disconnect(core, add("smb", "s2", "").ref, 300);
    assert_int_equal(list("", 0, names, sizeof names), 6);
    assert_string_equal(names, "nsm:statd1 nlm:web1 nlm:web2 smb:s1 rpc-x:x1 smb:s2 ");
    assert_int_equal(list("nlm", 0, names, sizeof names), 2);
    assert_int_equal(list("nsm", 0, names, sizeof names), 1);
    assert_int_equal(list("smb", 0, names, sizeof names), 2);
    assert_int_equal(list("afp", 0, names, sizeof names), 0);
    assert_int_equal(list("", bit(RECORD_TRACKED_CONNECTED), names, sizeof names), 5);
    assert_int_equal(list("smb", bit(RECORD_TRACKED_DISCONNECTED), names, sizeof names), 1);
    assert_string_equal(names, "smb:s2 ");

    /* A restart: everybody has to come back. */
    store();
    restart_after(10);
    assert_int_equal(list("", bit(RECORD_TRACKED_CONNECTED), names, sizeof names), 0);
    struct tracker_filter nlm = {.protocol = bytes_of_text("nlm")};
    struct tracker_view view;
    uint64_t cursor = 0;
    assert_true(tracker_list(core, &nlm, &cursor, &view));
    assert_int_equal(view.state, RECORD_TRACKED_DISCONNECTED);
    assert_true(view.deadline_ns == core->wall_ns + 60 * SECOND);
    assert_int_equal(view.lock_count, 2);
    assert_int_equal(view.window_s, 60);
    assert_int_equal(tracker_disconnect(core, view.ref, 1), TRACKER_GONE); /* only looked at */
    assert_false(tracker_remove(core, view.ref));

    /* One calls us; grace ends without the other. */
    struct address address = fixture_address("192.0.2.1");
    grace_reached(core, client_find(core, &address, bytes_of_text("web1")));
    assert_int_equal(list("nlm", bit(RECORD_TRACKED_CONNECTED), names, sizeof names), 1);
    assert_string_equal(names, "nlm:web1 ");
    wait_s(61);
    assert_int_equal(list("", bit(RECORD_TRACKED_EXPIRED), names, sizeof names), 1);
    assert_string_equal(names, "nlm:web2 ");
    wait_s(30);
    assert_int_equal(list("", bit(RECORD_TRACKED_EXPIRED), names, sizeof names), 3);
    assert_string_equal(names, "nlm:web2 smb:s1 rpc-x:x1 ");
}

/* Who is there all the time is seen once, whoever comes and goes meanwhile. */
TEST(test_tracker_list__goes_on_between_steps)
{
    char key[16];
    struct tracker_filter all = {0};
    struct tracker_view view, views[20];
    uint64_t cursor = 0;
    uint32_t seen[20] = {0};
    for (int i = 0; i < 20; i++) {
        (void)snprintf(key, sizeof key, "%02d", i);
        views[i] = add("smb", key, "");
    }
    for (uint32_t round = 0; tracker_list(core, &all, &cursor, &view); round++) {
        uint32_t number = (uint32_t)(view.name.at[0] - '0') * 10 + view.name.at[1] - '0';
        if (view.name.len == 2)
            seen[number]++;
        if (round % 3 == 0 && round < 15)
            assert_true(tracker_remove(core, views[round].ref));
        if (round % 4 == 0) {
            (void)snprintf(key, sizeof key, "new%u", round);
            (void)add("smb", key, "");
        }
        assert_true(round < 100);
    }
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(seen[i], 1);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
