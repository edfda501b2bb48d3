/*
 * watched_fixture.c -- see watched_fixture.h.
 */
#include "watched_fixture.h"

#include "unit/test.h"

enum { SLOTS = 64 };

#define SECOND FIXTURE_SECOND

static struct {
    uint32_t len;
    uint8_t bytes[RECORD_VALUE_MAX];
} image[RECORD_KIND_END][SLOTS];

struct bytes stored(enum record_kind kind, uint32_t slot)
{
    return (struct bytes){image[kind][slot].bytes, image[kind][slot].len};
}
struct core *the_monitor;
struct core_limits limits;
uint8_t boot; /* which one this is */

void store(void)
{
    struct store_batch batch;
    if (!core_take_batch(the_monitor, &batch))
        return;
    struct record_change change;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);) {
        assert_true(change.slot < SLOTS);
        image[change.kind][change.slot].len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(image[change.kind][change.slot].bytes, change.value.at, change.value.len);
    }
    fixture_stored(the_monitor, batch.txn, true);
}

void set_locals(const char *const *texts)
{
    struct address locals[CORE_LOCALS_MAX];
    uint32_t count = 0;
    for (; texts[count] != NULL; count++)
        locals[count] = fixture_address(texts[count]);
    core_set_locals(the_monitor, locals, count);
}

static const char *const one_local[] = {"127.0.0.1", "10.0.0.1", NULL};

void input(enum core_input_kind kind)
{
    struct core_input step = {.kind = kind, .now_ns = fixture_now_ns(), .wall_ns = 1};
    core_step(the_monitor, &step, NULL);
    core_check(the_monitor);
}

/* A process starts from what is durable, in the boot of now. */
static void start(void)
{
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++) {
        limits.slots_used[kind] = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            if (image[kind][slot].len > 0)
                limits.slots_used[kind] = slot + 1;
    }
    the_monitor = core_new(&limits, 43);
    assert_non_null(the_monitor);
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct bytes value = {image[kind][slot].bytes, image[kind][slot].len};
            if (value.len > 0)
                assert_int_equal(core_load(the_monitor, (enum record_kind)kind, slot, value),
                                 RECORD_GOOD);
        }
    assert_true(core_is_of_role(the_monitor));
    struct core_boot start = {.boot = {boot}, .netns = 7, .now_ns = fixture_now_ns()};
    core_start(the_monitor, &start);
    core_check(the_monitor);
    store();
    set_locals(one_local);
}

void begin(void)
{
    memset(image, 0, sizeof image);
    fixture_reset();
    boot = 1;
    limits = fixture_limits;
    limits.is_monitor = limits.mon_from_loopback = true;
    limits.notify_after_ns = 30 * SECOND;
    limits.grace_ns = 0;
    start();
    fixture_ready(the_monitor);
    input(CORE_SERVED);
}

void restart(void)
{
    core_free(the_monitor);
    start();
    fixture_ready(the_monitor);
}

void reboot(void)
{
    boot++;
    restart();
}

void end(void)
{
    core_free(the_monitor);
}

struct core_answer mon(const char *mon_name, const char *my_name, uint8_t priv)
{
    uint8_t bytes[RECORD_PRIV_LEN];
    memset(bytes, priv, sizeof bytes);
    struct request request = {.kind = REQUEST_NSM_MON,
                              .mon_name = bytes_of_text(mon_name),
                              .my_name = bytes_of_text(my_name),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .priv = {bytes, sizeof bytes}};
    struct peer from = fixture_peer("127.0.0.1", 900);
    struct core_answer answer = fixture_step(the_monitor, &from, &request);
    store();
    return answer;
}

void unmon(const char *mon_name, const char *my_name)
{
    struct request request = {.kind = REQUEST_NSM_UNMON,
                              .mon_name = bytes_of_text(mon_name),
                              .my_name = bytes_of_text(my_name),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16};
    struct peer from = fixture_peer("127.0.0.1", 900);
    (void)fixture_step(the_monitor, &from, &request);
    store();
}

void notice(const char *from, const char *name, uint32_t state)
{
    (void)fixture_notify(the_monitor, from, name, state);
    store();
}

void assert_quiet(void)
{
    struct core_call call;
    store();
    assert_false(fixture_next_call(the_monitor, &call));
}

struct core_call next(enum core_call_kind kind, const char *to)
{
    struct core_call call;
    struct address address = fixture_address(to);
    store();
    assert_true(fixture_next_call(the_monitor, &call));
    assert_int_equal(call.kind, kind);
    assert_true(address_equal(&call.to, &address));
    return call;
}

void done(const struct core_call *call, bool is_answered)
{
    fixture_call_done(the_monitor, call->id, is_answered, is_answered ? 8 : 0);
    store();
}

void assert_upcall(const char *mon_name, uint32_t state, uint8_t priv)
{
    struct core_call call = next(CALL_STATUS, "127.0.0.1");
    assert_true(call.is_upcall);
    assert_int_equal(call.port_hint, 0);
    assert_int_equal(call.my_proc, 16);
    assert_int_equal(call.status_count, 1);
    assert_int_equal(call.status[0].state, state);
    assert_int_equal(call.priv.at[0], priv);
    assert_true(bytes_equal(call.status[0].mon_name, bytes_of_text(mon_name)));
    done(&call, true);
}

bool has_name(const struct core_call *call, const char *name)
{
    bool is_there = false;
    for (uint32_t i = 0; i < call->our_name_count; i++)
        is_there |= bytes_equal(call->our_names[i], bytes_of_text(name));
    return is_there;
}
