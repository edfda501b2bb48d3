/*
 * test_lock_model.c -- the lock table agrees with the per-byte model (R-RNG-3).
 *
 * First every short history of two owners on four positions, once with positions that are bytes 0
 * to 3 and once with positions that end at 2^63 - 1 and 2^64 - 1. Then one operation on every state
 * that one owner's four positions can be in, over modes, stamps and locks that are to be freed.
 * Then a long random history of ten owners of four clients on two files, with offers and clients
 * that start anew (HOLDFAST_LOCK_OPS operations).
 *
 * After each operation: the same elements, the same answers to what is in the way, and nobody who
 * waits was forgotten (R-BLK-17): every element that went, shrank or became weaker was announced,
 * and no other. Along the random history the marked slots are written to a store as batches would
 * be; the store always equals the table, and a table loaded from it equals the model.
 */
#include "lock_model.h"

#include "base/prng.h"
#include "unit/test.h"

enum { SLOTS_MAX = 512, WAITER_BASE = 7000 };

/* An element before an operation. */
struct seen {
    bool is_live, exclusive;
    uint32_t owner, file;
    uint64_t start, end;
};

struct stored {
    uint32_t len; /* 0: no record */
    uint8_t value[RECORD_VALUE_MAX];
};

struct trial {
    struct core *core;
    struct lock_model model;
    struct seen before[SLOTS_MAX];
    uint32_t before_count;
    uint32_t owner_counts[MODEL_OWNERS_MAX], client_counts[MODEL_CLIENTS_MAX];
    struct stored store[SLOTS_MAX];
};

static struct trial trial;

static void trial_new(uint32_t owners, uint32_t clients, uint32_t files)
{
    memset(&trial, 0, sizeof trial);
    trial.core = lock_world_new(clients, SLOTS_MAX, &lock_world_limits);
    trial.model.owner_count = owners;
    trial.model.client_count = clients;
    trial.model.file_count = files;
    for (uint32_t i = 0; i < clients; i++)
        trial.model.clients[i].incarnation = 1;
}

static void use_bytes(uint32_t count)
{
    trial.model.position_count = count;
    for (uint32_t i = 0; i < count; i++)
        trial.model.bounds[i] = i;
    trial.model.top = count - 1;
}

/* Four positions: the last byte of the largest file and the last byte of all are each alone. */
static void use_edges(void)
{
    const uint64_t bounds[] = {0, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    trial.model.position_count = 4;
    memcpy(trial.model.bounds, bounds, sizeof bounds);
    trial.model.top = UINT64_MAX;
}

/* ---- one operation on both ---- */

static void remember(void)
{
    const struct table *table = &trial.core->locks.table;
    trial.before_count = table->used;
    for (uint32_t slot = 0; slot < table->used; slot++) {
        trial.before[slot] = (struct seen){0};
        if (!table_is_live(table, slot))
            continue;
        const struct lock *lock = lock_at(trial.core, slot);
        trial.before[slot] = (struct seen){true,
                                           lock->claim.exclusive,
                                           lock->claim.owner,
                                           lock->claim.file,
                                           lock->claim.start,
                                           lock->claim.end};
    }
    for (uint32_t i = 0; i < trial.model.client_count; i++)
        trial.client_counts[i] = client_at(trial.core, i)->life.lock_count;
    for (uint32_t i = 0; i < trial.model.owner_count; i++) {
        uint32_t owner = lock_world_owner(trial.core, lock_model_who(&trial.model, i, 0));
        trial.owner_counts[i] = owner == SLOT_NONE ? 0 : owner_at(trial.core, owner)->lock_count;
    }
    lock_world_forget();
}

static bool is_less_now(uint32_t slot)
{
    const struct seen *before = &trial.before[slot];
    if (!table_is_live(&trial.core->locks.table, slot))
        return true;
    const struct lock *lock = lock_at(trial.core, slot);
    return lock->claim.owner != before->owner || lock->claim.file != before->file ||
           lock->claim.start > before->start || lock->claim.end < before->end ||
           (before->exclusive && !lock->claim.exclusive);
}

/* Whoever waits was told, of nothing else than what is less; first locks and counts were told. */
static void assert_told(bool may_tell_more)
{
    for (uint32_t slot = 0; slot < trial.before_count; slot++) {
        if (!trial.before[slot].is_live)
            assert_false(lock_world_was_changed(slot));
        else if (is_less_now(slot))
            assert_true(lock_world_was_changed(slot));
        else
            assert_true(may_tell_more || !lock_world_was_changed(slot));
    }
    uint32_t first_locks = 0;
    for (uint32_t i = 0; i < trial.model.owner_count; i++) {
        uint32_t owner = lock_world_owner(trial.core, lock_model_who(&trial.model, i, 0));
        uint32_t count = owner == SLOT_NONE ? 0 : owner_at(trial.core, owner)->lock_count;
        assert_true(owner == SLOT_NONE || count > 0);
        first_locks += trial.owner_counts[i] == 0 && count > 0 ? 1 : 0;
    }
    assert_int_equal(lock_world_log.holds_count, first_locks);
    for (uint32_t i = 0; i < trial.model.client_count; i++)
        if (client_at(trial.core, i)->life.lock_count != trial.client_counts[i])
            assert_true(lock_world_log.settled_count > 0);
}

static void assert_same(uint32_t file)
{
    const char *difference = lock_model_difference(&trial.model, trial.core, file);
    if (difference != NULL)
        fail_msg("%s", difference);
}

static struct lock_want want_of(struct model_range range, bool exclusive, uint32_t state,
                                bool is_unmonitored)
{
    struct lock_want want = lock_world_want(lock_model_start(&trial.model, range.first),
                                            lock_model_end(&trial.model, range.last), exclusive);
    want.state = state;
    want.is_unmonitored = is_unmonitored;
    return want;
}

/* As the core does before it takes anything. */
static void see_state(uint32_t owner, uint32_t state)
{
    struct client *client = client_at(trial.core, owner % trial.model.client_count);
    if (client_is_newer_state(state, client->stored.state_seen))
        client->stored.state_seen = state;
}

/* Asks who is in the way, and takes the range if nobody is. */
static bool take(struct model_range range, bool exclusive, uint32_t state, bool is_unmonitored)
{
    see_state(range.owner, state);
    bool is_free = lock_model_is_free(&trial.model, range, exclusive);
    struct who who = lock_model_who(&trial.model, range.owner, range.file);
    struct lock_want want = want_of(range, exclusive, state, is_unmonitored);
    uint32_t obstacle =
        lock_world_obstacle(trial.core, who, want.claim.start, want.claim.end, exclusive);
    assert_int_equal(obstacle == SLOT_NONE, is_free);
    if (!is_free)
        return false;
    struct model_kind kind =
        lock_model_kind(&trial.model, range.owner, exclusive, state, is_unmonitored);
    assert_true(lock_world_carry_out(trial.core, who, &want));
    lock_model_take(&trial.model, range, kind);
    return true;
}

static void release(struct model_range range)
{
    assert_true(lock_world_release(
        trial.core, lock_model_who(&trial.model, range.owner, range.file),
        lock_model_start(&trial.model, range.first), lock_model_end(&trial.model, range.last)));
    lock_model_release(&trial.model, range);
}

/* False: somebody is in the way, or there are enough offers. */
static bool offer(struct model_range range, bool exclusive, uint32_t state)
{
    uint32_t i = 0;
    while (i < MODEL_OFFERS_MAX && trial.model.offers[i].is_live)
        i++;
    if (i == MODEL_OFFERS_MAX || !lock_model_is_free(&trial.model, range, exclusive))
        return false;
    see_state(range.owner, state);
    struct lock_want want = want_of(range, exclusive, state, false);
    struct model_kind kind = lock_model_kind(&trial.model, range.owner, exclusive, state, false);
    uint32_t slot = lock_world_offer(
        trial.core, lock_model_who(&trial.model, range.owner, range.file), &want, WAITER_BASE + i);
    assert_int_not_equal(slot, SLOT_NONE);
    kind.asked = ++trial.model.asked;
    trial.model.offers[i] = (struct model_offer){true, range, kind, slot};
    return true;
}

static void accept(struct model_offer *offer)
{
    bool is_doomed = lock_model_is_doomed(&trial.model, offer->range.owner, offer->kind);
    assert_int_equal(lock_offer_accept(trial.core, offer->slot, false), !is_doomed);
    if (!is_doomed)
        lock_model_accept(&trial.model, offer);
}

static void withdraw(struct model_offer *offer)
{
    lock_offer_withdraw(trial.core, offer->slot);
    offer->is_live = false;
}

static void empty(void)
{
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++)
        if (trial.model.offers[i].is_live)
            withdraw(&trial.model.offers[i]);
    for (uint32_t owner = 0; owner < trial.model.owner_count; owner++)
        for (uint32_t file = 0; file < trial.model.file_count; file++)
            release((struct model_range){file, owner, 0, trial.model.position_count - 1});
    dirty_clear(&trial.core->dirty);
}

/* Nothing is left of anything: no lock, owner, file, holding or string. */
static void trial_end(void)
{
    empty();
    const struct core *core = trial.core;
    lock_world_check(core);
    assert_int_equal(core->locks.table.count, 0);
    assert_int_equal(core->locks.offer_count, 0);
    assert_int_equal(core->locks.holdings.count, 0);
    assert_int_equal(core->locks.ohs.table.count, 0);
    assert_int_equal(core->owners.table.count, 0);
    assert_int_equal(core->files.handles.table.count, 0);
    assert_int_equal(arena_used(core->arena), 0);
    lock_world_free(trial.core);
}

/* ---- every short history ---- */

static uint32_t lock_ops(void)
{
    const char *text = getenv("HOLDFAST_LOCK_OPS");
    return text == NULL ? 20000 : (uint32_t)strtoul(text, NULL, 10);
}

struct step {
    struct model_range range;
    enum { TAKE_SHARED, TAKE_EXCLUSIVE, RELEASE } what;
};

enum { STEPS_MAX = 2 * 10 * 3 };

static uint32_t list_steps(struct step *steps)
{
    uint32_t count = 0;
    for (uint32_t owner = 0; owner < 2; owner++)
        for (uint32_t first = 0; first < 4; first++)
            for (uint32_t last = first; last < 4; last++)
                for (uint32_t what = 0; what < 3; what++)
                    steps[count++] = (struct step){{0, owner, first, last}, what};
    return count;
}

/* A step that cannot be taken ends the history: the shorter one was looked at already. */
static bool do_step(const struct step *step)
{
    if (step->what == RELEASE) {
        release(step->range);
        return true;
    }
    return take(step->range, step->what == TAKE_EXCLUSIVE, 1, false);
}

static void run_histories(uint32_t length)
{
    struct step steps[STEPS_MAX];
    uint32_t count = list_steps(steps), index[4] = {0};
    assert_int_equal(count, STEPS_MAX);
    /* Which owner comes first is the same but for its name. */
    while (index[0] < STEPS_MAX / 2) {
        bool is_whole = true;
        for (uint32_t i = 0; i + 1 < length && is_whole; i++)
            is_whole = do_step(&steps[index[i]]);
        if (is_whole) {
            remember();
            if (do_step(&steps[index[length - 1]]))
                assert_told(false);
            assert_same(0);
        }
        empty();
        uint32_t digit = length - 1;
        while (++index[digit] == STEPS_MAX && digit > 0)
            index[digit--] = 0;
    }
}

TEST(test_lock_model__every_short_history)
{
    uint32_t length = lock_ops() >= 1000000 ? 4 : 3;
    trial_new(2, 2, 1);
    use_bytes(4);
    for (uint32_t i = 1; i <= length; i++)
        run_histories(i);
    use_edges();
    for (uint32_t i = 1; i <= 3; i++)
        run_histories(i);
    trial_end();
}

/* ---- one operation on every state ---- */

enum { KINDS = 7 }; /* nothing, two modes of the stamp at hand, of another, and of an old client */

static void build_state(uint32_t code)
{
    trial.model.clients[0].incarnation = client_at(trial.core, 0)->stored.incarnation = 1;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t rest = code;
        for (uint32_t p = 0; p < trial.model.position_count; p++, rest /= KINDS) {
            uint32_t kind = rest % KINDS;
            bool is_old = kind >= 5;
            if (kind == 0 || is_old != (pass == 0))
                continue;
            uint32_t stamp = kind == 1 || kind == 2 ? 1 : 3;
            assert_true(take((struct model_range){0, 0, p, p}, kind % 2 == 0, stamp, false));
        }
        /* The client starts anew; what it took before is to be freed. */
        trial.model.clients[0].incarnation = client_at(trial.core, 0)->stored.incarnation = 2;
    }
}

static void try_operation(uint32_t code, uint32_t what, uint32_t first, uint32_t last)
{
    struct model_range range = {0, 0, first, last};
    build_state(code);
    bool is_offer = what >= 3;
    if (is_offer)
        assert_true(offer(range, what == 4, 1));
    remember();
    if (is_offer)
        accept(&trial.model.offers[0]);
    else if (what == 2)
        release(range);
    else
        assert_true(take(range, what == 1, 1, false));
    assert_told(is_offer);
    assert_same(0);
    empty();
}

TEST(test_lock_model__one_operation_on_every_state)
{
    trial_new(1, 1, 1);
    use_bytes(4);
    for (uint32_t code = 0; code < KINDS * KINDS * KINDS * KINDS; code++)
        for (uint32_t what = 0; what < 5; what++)
            for (uint32_t first = 0; first < 4; first++)
                for (uint32_t last = first; last < 4; last++)
                    try_operation(code, what, first, last);
    trial_end();
}

/* ---- a long random history ---- */

/* The marked slots go to the store, as they do when a batch is taken. */
static void write_batch(void)
{
    struct core *core = trial.core;
    const struct dirty_slots *dirty = &core->dirty.of[RECORD_LOCK];
    uint32_t slot = dirty_next(dirty, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = dirty_next(dirty, slot)) {
        struct stored *stored = &trial.store[slot];
        stored->len = 0;
        if (table_is_live(&core->locks.table, slot))
            stored->len = lock_encode(core, slot, stored->value);
    }
    dirty_clear(&core->dirty);
}

static void assert_stored(void)
{
    struct core *core = trial.core;
    uint8_t value[RECORD_VALUE_MAX];
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        const struct stored *stored = &trial.store[slot];
        uint32_t len = 0;
        if (table_is_live(&core->locks.table, slot))
            len = lock_encode(core, slot, value);
        assert_int_equal(stored->len, len);
        assert_memory_equal(stored->value, value, len);
    }
}

/* A table that is loaded from the store is the same as the one that wrote it. */
static void assert_loadable(void)
{
    struct core *written = trial.core;
    struct core *loaded = lock_world_new(trial.model.client_count, SLOTS_MAX, &lock_world_limits);
    for (uint32_t i = 0; i < trial.model.client_count; i++) {
        client_at(loaded, i)->stored.incarnation = client_at(written, i)->stored.incarnation;
        client_at(loaded, i)->stored.free_below = client_at(written, i)->stored.free_below;
    }
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        const struct stored *stored = &trial.store[slot];
        struct record_lock record;
        if (stored->len == 0)
            continue;
        assert_int_equal(record_get_lock((struct bytes){stored->value, stored->len}, slot, &record),
                         RECORD_GOOD);
        assert_true(lock_load(loaded, slot, &record));
    }
    lock_build(loaded);
    lock_world_check(loaded);
    assert_int_equal(lock_world_log.refused_count, 0);
    assert_true(dirty_is_empty(&loaded->dirty));
    for (uint32_t file = 0; file < trial.model.file_count; file++) {
        const char *difference = lock_model_difference(&trial.model, loaded, file);
        if (difference != NULL)
            fail_msg("loaded: %s", difference);
    }
    trial.core = loaded;
    assert_stored();
    trial.core = written;
    lock_world_free(loaded);
}

static void start_anew(struct prng *prng, uint32_t client)
{
    struct client *c = client_at(trial.core, client);
    if (prng_chance(prng, 50))
        trial.model.clients[client].incarnation = ++c->stored.incarnation;
    else
        trial.model.clients[client].free_below = c->stored.free_below =
            (uint32_t)prng_below(prng, 3) + UINT32_MAX; /* states go round: 2^32 - 1, 0, 1 */
    c->life.drain_at = chains_first(&trial.core->locks.by_client, client) + 1;
}

static void drain(struct prng *prng, uint32_t client)
{
    uint32_t max = (uint32_t)prng_below(prng, 4), lost = 0;
    uint32_t left = trial.core->locks.offer_count;
    struct client *c = client_at(trial.core, client);
    uint32_t before = c->life.drained_count;
    uint32_t seen = lock_drain(trial.core, client, max);
    uint32_t freed = c->life.drained_count - before;
    left -= trial.core->locks.offer_count;
    assert_true(seen <= max);
    assert_true(seen == max || c->life.drain_at == 0);
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++) {
        bool is_lost = lock_world_was_lost(WAITER_BASE + i);
        assert_true(!is_lost || trial.model.offers[i].is_live);
        lost += is_lost ? 1 : 0;
    }
    assert_int_equal(lost, left);
    assert_int_equal(lock_model_drained(&trial.model, trial.core, client), freed);
    if (c->life.drain_at == 0) {
        assert_false(lock_model_has_doomed(&trial.model, client));
        trial.model.clients[client].free_below = c->stored.free_below = 0;
    }
}

static struct model_range random_range(struct prng *prng)
{
    uint32_t a = (uint32_t)prng_below(prng, trial.model.position_count);
    uint32_t b = a + (uint32_t)prng_below(prng, 6);
    return (struct model_range){
        .file = (uint32_t)prng_below(prng, trial.model.file_count),
        .owner = (uint32_t)prng_below(prng, trial.model.owner_count),
        .first = a,
        .last = b < trial.model.position_count ? b : trial.model.position_count - 1,
    };
}

static uint32_t random_operation(struct prng *prng)
{
    struct model_range range = random_range(prng);
    uint64_t choice = prng_below(prng, 1000);
    bool exclusive = prng_chance(prng, 40), may_tell_more = false;
    uint32_t stamp = (uint32_t)prng_below(prng, 4) - 1; /* 2^32 - 1, 0 (not known), 1, 2 */
    struct model_offer *chosen = &trial.model.offers[prng_below(prng, MODEL_OFFERS_MAX)];
    remember();
    if (choice < 550) {
        (void)take(range, exclusive, stamp, prng_chance(prng, 10));
    } else if (choice < 750) {
        release(range);
    } else if (choice < 850) {
        (void)offer(range, exclusive, stamp);
    } else if (choice < 930 && chosen->is_live) {
        accept(chosen);
        may_tell_more = true;
    } else if (choice < 950 && chosen->is_live) {
        withdraw(chosen);
    } else if (choice < 955) {
        start_anew(prng, range.owner % trial.model.client_count);
    } else if (choice >= 955) {
        drain(prng, range.owner % trial.model.client_count);
    }
    assert_told(may_tell_more);
    const char *difference =
        lock_model_search_difference(&trial.model, trial.core, random_range(prng), exclusive);
    if (difference != NULL)
        fail_msg("%s", difference);
    return range.file;
}

TEST(test_lock_model__a_long_random_history)
{
    uint32_t ops = lock_ops();
    struct prng prng = {20263};
    trial_new(10, 4, 2);
    use_bytes(MODEL_POSITIONS_MAX);
    trial.model.bounds[MODEL_POSITIONS_MAX - 1] = INT64_MAX; /* and one far away, to the end */
    trial.model.top = UINT64_MAX;
    for (uint32_t i = 1; i <= ops; i++) {
        assert_same(random_operation(&prng));
        if (prng_chance(&prng, 20))
            write_batch();
        if (i % 256 == 0 || i == ops) {
            lock_world_check(trial.core);
            for (uint32_t file = 0; file < 2; file++)
                assert_same(file);
            write_batch();
            assert_stored();
        }
        if (i % 16384 == 0 || i == ops)
            assert_loadable();
    }
    for (uint32_t client = 0; client < 4; client++) /* old incarnations hide nothing at the end */
        trial.model.clients[client].free_below = client_at(trial.core, client)->stored.free_below =
            0;
    trial_end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)
