/*
 * test_registrant.c -- SM_MON registrations through the core: what makes two of them the same, what
 * a repeat changes, who can remove them, and what the limits refuse (D1, D2).
 */
#include "fixture.h"
#include "unit/test.h"

static struct core *core;

/* The record of slot as the next batch writes it. */
static bool find_record(uint32_t slot, uint8_t *buffer, struct record_registrant *ret)
{
    struct store_batch batch;
    struct record_change change;
    bool found = false;
    if (!core_take_batch(core, &batch))
        return false;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);)
        if (change.kind == RECORD_REGISTRANT && change.slot == slot && !change.deleted) {
            memcpy(buffer, change.value.at, change.value.len);
            found = record_get_registrant((struct bytes){buffer, change.value.len}, slot, ret) ==
                    RECORD_GOOD;
        }
    fixture_stored(core, batch.txn, true);
    return found;
}

TEST_FIXTURE(set_up)
{
    core = fixture_new(&fixture_limits);
}

TEST_FIXTURE(tear_down)
{
    core_free(core);
}

TEST(test_registrant__key)
{
    static const uint8_t priv[RECORD_PRIV_LEN];
    struct peer peer = fixture_peer("10.0.0.2", 900);
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text("srv"),
                              .my_name = bytes_of_text("lockd"),
                              .my_prog = 100021,
                              .my_vers = 4,
                              .my_proc = 16,
                              .priv = {priv, sizeof priv}};
    fixture_step(core, &peer, &request);
    assert_int_equal(fixture_status(core).registrants, 1);
    fixture_step(core, &peer, &request);
    peer.port = 55; /* neither the port nor the transport is part of the key */
    peer.transport = TRANSPORT_UDP;
    fixture_step(core, &peer, &request);
    assert_int_equal(fixture_status(core).registrants, 1);

    struct request other = request;
    other.mon_name = bytes_of_text("SRV"); /* as it was sent, also in its spelling */
    fixture_step(core, &peer, &other);
    other = request;
    other.my_name = bytes_of_text("lockd2");
    fixture_step(core, &peer, &other);
    other = request;
    other.my_prog = 300000;
    fixture_step(core, &peer, &other);
    other = request;
    other.my_vers++;
    fixture_step(core, &peer, &other);
    other = request;
    other.my_proc++;
    fixture_step(core, &peer, &other);
    peer.address = fixture_address("10.0.0.3");
    fixture_step(core, &peer, &request);
    assert_int_equal(fixture_status(core).registrants, 7);
}

TEST(test_registrant__mapped_address_is_the_same)
{
    fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    fixture_mon(core, "::ffff:10.0.0.2", "srv", "lockd", 1);
    assert_int_equal(fixture_status(core).registrants, 1);
    fixture_mon(core, "fe80::1%1", "srv", "lockd", 1);
    fixture_mon(core, "fe80::1%2", "srv", "lockd", 1);
    assert_int_equal(fixture_status(core).registrants, 3);
}

TEST(test_registrant__repeat_updates_in_place)
{
    uint8_t buffer[RECORD_VALUE_MAX];
    struct record_registrant first, second;
    fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    assert_true(find_record(0, buffer, &first));
    uint64_t id = first.id;
    uint32_t told = first.told_state;
    assert_int_equal(first.priv[15], 1);
    assert_int_equal(told, fixture_status(core).state);
    fixture_simu_crash(core, "127.0.0.1", 600);
    fixture_mon(core, "10.0.0.2", "srv", "lockd", 9);
    assert_true(find_record(0, buffer, &second));
    assert_int_equal(second.priv[0], 9);
    assert_true(second.id == id);
    assert_int_equal(second.told_state, told); /* it must still hear of the crash (P3) */
    assert_int_equal(fixture_status(core).registrants, 1);
    fixture_mon(core, "10.0.0.2", "srv", "lockd", 9);
    assert_int_equal(fixture_store(core), 0); /* nothing new, nothing written */
}

TEST(test_registrant__only_its_own_address_removes_it)
{
    fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "two", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "srv", "other", 1);
    fixture_mon(core, "10.0.0.3", "srv", "lockd", 1);
    fixture_unmon(core, "10.0.0.4", "srv", "lockd");
    fixture_unmon_all(core, "10.0.0.4", "lockd");
    fixture_unmon(core, "10.0.0.3", "two", "lockd");
    assert_int_equal(fixture_status(core).registrants, 4);
    struct core_answer answer = fixture_unmon(core, "10.0.0.3", "srv", "lockd");
    assert_int_equal(answer.response.state, fixture_status(core).state);
    assert_int_equal(fixture_status(core).registrants, 3);
    fixture_unmon_all(core, "10.0.0.2", "lockd");
    assert_int_equal(fixture_status(core).registrants, 1);
    fixture_unmon(core, "10.0.0.2", "srv", "other");
    struct core_status status = fixture_status(core);
    assert_int_equal(status.registrants, 0);
    assert_int_equal(status.names, 0);
    assert_true(status.bytes_used == 0);
}

TEST_WITH(test_registrant__limit_refuses_only_new_ones, NULL, tear_down)
{
    struct core_limits limits = fixture_limits;
    limits.clients_max = 3;
    core = fixture_new(&limits);
    char name[16];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(fixture_mon(core, "10.0.0.2", name, "lockd", 1).response.refused, i >= 3);
    }
    assert_false(fixture_mon(core, "10.0.0.2", "n1", "lockd", 9).response.refused);
    fixture_unmon(core, "10.0.0.2", "n0", "lockd");
    assert_false(fixture_mon(core, "10.0.0.2", "n4", "lockd", 1).response.refused);
    assert_true(fixture_mon(core, "10.0.0.2", "n3", "lockd", 1).response.refused);
}

TEST_WITH(test_registrant__byte_budget, NULL, tear_down)
{
    struct core_limits limits = fixture_limits;
    limits.bytes_max = 8 * 1024;
    core = fixture_new(&limits);
    char name[1025];
    int accepted = 0;
    for (int i = 0; i < 40; i++) {
        memset(name, 'a' + i % 26, 1024);
        snprintf(name, sizeof name, "%04d", i);
        name[4] = 'x';
        name[1024] = '\0';
        accepted += !fixture_mon(core, "10.0.0.2", name, "lockd", 1).response.refused;
    }
    assert_in_range(accepted, 3, 5); /* four names of 1 KiB, each also without case */
    memset(name, 'a', 1024);
    snprintf(name, sizeof name, "%04d", 0);
    name[4] = 'x';
    assert_false(fixture_mon(core, "10.0.0.2", name, "lockd", 2).response.refused);
    fixture_unmon_all(core, "10.0.0.2", "lockd");
    assert_true(fixture_status(core).bytes_used == 0);
    assert_false(fixture_mon(core, "10.0.0.2", "new", "lockd", 1).response.refused);
}

TEST(test_registrant__full_store_takes_updates_only)
{
    fixture_mon(core, "10.0.0.2", "one", "lockd", 1);
    struct store_batch batch;
    assert_true(core_take_batch(core, &batch));
    fixture_stored(core, batch.txn, false);
    assert_false(fixture_status(core).has_room);
    assert_true(fixture_mon(core, "10.0.0.2", "two", "lockd", 1).response.refused);
    assert_false(fixture_mon(core, "10.0.0.2", "one", "lockd", 2).response.refused);
    fixture_unmon(core, "10.0.0.2", "one", "lockd");
    fixture_store(core); /* reports room again */
    assert_false(fixture_mon(core, "10.0.0.2", "two", "lockd", 1).response.refused);
}

TEST(test_registrant__ids_are_never_used_again)
{
    uint8_t buffer[RECORD_VALUE_MAX];
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        struct record_registrant record;
        fixture_mon(core, "10.0.0.2", "srv", "lockd", 1);
        assert_true(find_record(0, buffer, &record));
        assert_true(record.id > last);
        last = record.id;
        fixture_unmon(core, "10.0.0.2", "srv", "lockd");
        fixture_store(core);
    }
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
