/*
 * test_callout.c -- what the program of --callout is to be told: in order, once, when it is
 * durable; and what finds no room is counted.
 */
#include "watched_fixture.h"

#include "unit/test.h"

static void assert_callout(enum core_callout_kind kind, const char *mon_name, const char *my_name,
                           const char *from, uint32_t notified)
{
    struct core_callout told;
    struct address address = {0};
    if (from != NULL)
        address = fixture_address(from);
    assert_true(core_next_callout(the_monitor, &told));
    assert_int_equal(told.kind, kind);
    assert_true(bytes_equal(told.mon_name, bytes_of_text(mon_name)));
    assert_true(bytes_equal(told.my_name, bytes_of_text(my_name)));
    assert_true(address_equal(&told.from, &address));
    assert_int_equal(told.state, notified);
    core_check(the_monitor);
}

static void assert_no_callout(void)
{
    struct core_callout told;
    assert_false(core_next_callout(the_monitor, &told));
    core_check(the_monitor);
}

static void begin_calling_out(void)
{
    begin();
    limits.has_callout = true;
    restart();
    input(CORE_SERVED);
}

TEST(test_watched__callouts_in_order)
{
    begin_calling_out();
    (void)mon("10.0.0.2", "us", 1);
    (void)mon("10.0.0.2", "us", 1); /* a repeat is nothing new */
    (void)mon("10.0.0.3", "us", 1);
    notice("10.0.0.2", "c2", 5);
    notice("10.0.0.2", "c2.example", 5);
    notice("10.0.0.9", "c2", 7); /* a stranger */
    unmon("10.0.0.3", "us");
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    assert_callout(CALLOUT_ADD, "10.0.0.3", "us", NULL, 0);
    assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 5);
    assert_callout(CALLOUT_DELETE, "10.0.0.3", "us", NULL, 0);
    assert_no_callout();
    end();
}

TEST(test_watched__callouts_wait_until_they_are_true)
{
    begin_calling_out();
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("10.0.0.2"),
                              .my_name = bytes_of_text("us"),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .priv = bytes_of_text("0123456789abcdef")};
    struct peer from = fixture_peer("127.0.0.1", 900);
    (void)fixture_step(the_monitor, &from, &request);
    assert_no_callout();
    store();
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    end();
}

TEST(test_watched__a_host_of_the_boot_before_is_added_anew)
{
    begin_calling_out();
    (void)mon("10.0.0.2", "us", 1);
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    reboot();
    assert_no_callout();
    unmon("10.0.0.2", "us"); /* nobody registered it in this boot */
    assert_no_callout();
    (void)mon("10.0.0.2", "us", 2);
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    end();
}

TEST(test_watched__callouts_that_find_no_room_are_counted)
{
    begin_calling_out();
    (void)mon("10.0.0.2", "us", 1);
    for (uint32_t i = 0; i < CALLOUT_MAX; i++)
        notice("10.0.0.2", "c2", 2 * i + 1);
    assert_int_equal(core_lost_callouts(the_monitor), 1);
    assert_callout(CALLOUT_ADD, "10.0.0.2", "us", NULL, 0);
    assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 1);
    notice("10.0.0.2", "c2", 9999); /* in the place of the first */
    assert_int_equal(core_lost_callouts(the_monitor), 1);
    for (uint32_t i = 1; i + 1 < CALLOUT_MAX; i++)
        assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 2 * i + 1);
    assert_callout(CALLOUT_NOTIFY, "c2", "", "10.0.0.2", 9999);
    assert_no_callout();
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)
