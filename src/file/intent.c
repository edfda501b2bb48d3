/*
 * intent.c -- entries of the ring; see intent.h.
 *
 * Threads claim places by counting, so that no two begin in one entry. One that took so long that
 * all others were used since has lost its place. Words are atomic because others may look at an
 * entry while it is written; what they then see fails its checksum. The order of the stores is that
 * of the program, which is all that a kill asks for: an interrupt finds everything done that stands
 * before it, and nothing that stands behind.
 */
#include "file/intent_parts.h"

#include "base/check.h"
#include "base/units.h"

#include <string.h>
#include <time.h>

enum {
    AGE_MAX_MS = 600000, /* a client that lost its connection tries again within minutes */
    LATER_MS = 2000,     /* an answer that was not lost is there by then */
};

uint64_t intent_clock_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- words ---- */

static uint64_t get(const struct intent_entry *entry, uint32_t at)
{
    return atomic_load_explicit(&entry->words[at], memory_order_relaxed);
}

static void put(struct intent_entry *entry, uint32_t at, uint64_t word)
{
    atomic_store_explicit(&entry->words[at], word, memory_order_relaxed);
}

static void object_to_words(const struct handle_object *object, uint64_t ret[INTENT_OBJECT_WORDS])
{
    uint8_t bytes[INTENT_OBJECT_WORDS * 8] = {0};
    bytes[0] = object->type;
    bytes[1] = object->len;
    memcpy(bytes + 2, object->bytes, HANDLE_OBJECT_MAX);
    memcpy(ret, bytes, sizeof bytes);
}

static void object_of_words(const uint64_t words[INTENT_OBJECT_WORDS], struct handle_object *ret)
{
    uint8_t bytes[INTENT_OBJECT_WORDS * 8];
    memcpy(bytes, words, sizeof bytes);
    ret->type = bytes[0];
    ret->len = bytes[1];
    memcpy(ret->bytes, bytes + 2, HANDLE_OBJECT_MAX);
}

static uint64_t check_of(const struct intent_ring *ring, const uint64_t *words, uint32_t count)
{
    return mac_of(&ring->key, (struct bytes){(const uint8_t *)words, count * 8});
}

/* The checksum of an outcome is also of the entry that it belongs to. */
static uint64_t check_outcome(const struct intent_ring *ring, uint64_t number,
                              const uint64_t outcome[1 + INTENT_OBJECT_WORDS])
{
    uint64_t words[2 + INTENT_OBJECT_WORDS] = {number};
    memcpy(words + 1, outcome, sizeof words - sizeof words[0]);
    return check_of(ring, words, 2 + INTENT_OBJECT_WORDS);
}

/* ---- writing ---- */

uint64_t intent_begin(struct intent_ring *ring, const struct intent *intent)
{
    uint64_t number = atomic_fetch_add(&ring->next_number, 1);
    struct intent_entry *entry = &ring->entries[number % INTENT_COUNT];
    uint64_t words[INTENT_AT_END] = {
        [INTENT_AT_NUMBER] = number,
        [INTENT_AT_RUN] = ring->run,
        [INTENT_AT_KEY] = intent->key,
        [INTENT_AT_CLIENT] = intent->client,
        [INTENT_AT_PLACE] = intent->place,
        [INTENT_AT_BOOT] = ring->boot,
        [INTENT_AT_CLOCK] = intent->clock_ms != 0 ? intent->clock_ms : atomic_load(&ring->clock_ms),
        [INTENT_AT_ORDER] = intent->order != 0 ? intent->order : number,
        [INTENT_AT_BEGUN] = intent->begun_ns != 0 ? intent->begun_ns : intent_clock_ns(),
        [INTENT_AT_PROCEDURE] =
            (uint64_t)intent->to_place << 32 | (uint32_t)intent->procedure << 16 | intent->port,
    };
    object_to_words(&intent->first, words + INTENT_AT_FIRST);
    object_to_words(&intent->second, words + INTENT_AT_SECOND);
    put(entry, INTENT_AT_CHECK, 0);
    put(entry, INTENT_WORD_OUTCOME, 0);
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = INTENT_AT_OVER; i < INTENT_AT_END; i++)
        put(entry, i, words[i]);
    uint64_t check = check_of(ring, words + INTENT_AT_NUMBER, INTENT_AT_END - INTENT_AT_NUMBER);
    atomic_store_explicit(&entry->words[INTENT_AT_CHECK], check, memory_order_release);
    return number;
}

static void end(struct intent_ring *ring, uint64_t number, uint64_t outcome,
                const struct handle_object *made)
{
    struct intent_entry *entry = &ring->entries[number % INTENT_COUNT];
    uint64_t words[1 + INTENT_OBJECT_WORDS] = {outcome};
    if (atomic_load(&entry->words[INTENT_AT_NUMBER]) != number)
        return; /* it took so long that the place is another one's */
    object_to_words(made, words + 1);
    for (uint32_t i = 0; i < 1 + INTENT_OBJECT_WORDS; i++)
        put(entry, INTENT_AT_OUTCOME + i, words[i]);
    uint64_t check = check_outcome(ring, number, words);
    atomic_store_explicit(&entry->words[INTENT_WORD_OUTCOME], check, memory_order_release);
}

void intent_end(struct intent_ring *ring, uint64_t number, enum intent_outcome outcome,
                const struct handle_object *made)
{
    end(ring, number, (uint64_t)outcome, made);
}

void intent_fail(struct intent_ring *ring, uint64_t number, enum nfs_stat stat)
{
    end(ring, number, (uint64_t)stat << 32 | INTENT_FAILED, &(struct handle_object){0});
}

/* ---- reading ---- */

static void read_outcome(const struct intent_ring *ring, const uint64_t words[INTENT_WORDS],
                         struct intent *ret)
{
    uint32_t outcome = (uint32_t)words[INTENT_AT_OUTCOME];
    if (outcome == INTENT_BEGUN || outcome > INTENT_FOUND ||
        words[INTENT_WORD_OUTCOME] !=
            check_outcome(ring, words[INTENT_AT_NUMBER], words + INTENT_AT_OUTCOME))
        return;
    ret->outcome = (enum intent_outcome)outcome;
    ret->stat = (enum nfs_stat)(words[INTENT_AT_OUTCOME] >> 32);
    object_of_words(words + INTENT_AT_MADE, &ret->made);
}

bool intent_read(const struct intent_ring *ring, uint32_t slot, struct intent *ret)
{
    const struct intent_entry *entry = &ring->entries[slot];
    uint64_t words[INTENT_WORDS];
    words[INTENT_AT_CHECK] =
        atomic_load_explicit(&entry->words[INTENT_AT_CHECK], memory_order_acquire);
    if (words[INTENT_AT_CHECK] == 0)
        return false;
    for (uint32_t i = 1; i < INTENT_WORDS; i++)
        words[i] = get(entry, i);
    uint64_t number = words[INTENT_AT_NUMBER];
    if (number == 0 || number % INTENT_COUNT != slot ||
        words[INTENT_AT_CHECK] !=
            check_of(ring, words + INTENT_AT_NUMBER, INTENT_AT_END - INTENT_AT_NUMBER))
        return false;
    *ret = (struct intent){
        .key = words[INTENT_AT_KEY],
        .client = words[INTENT_AT_CLIENT],
        .place = words[INTENT_AT_PLACE],
        .to_place = (uint32_t)(words[INTENT_AT_PROCEDURE] >> 32),
        .procedure = (uint16_t)(words[INTENT_AT_PROCEDURE] >> 16),
        .port = (uint16_t)words[INTENT_AT_PROCEDURE],
        .begun_ns = words[INTENT_AT_BEGUN],
        .is_same_boot = words[INTENT_AT_BOOT] == ring->boot,
        .over_ns = words[INTENT_AT_OVER],
        .number = number,
        .run = words[INTENT_AT_RUN],
        .clock_ms = words[INTENT_AT_CLOCK],
        .order = words[INTENT_AT_ORDER],
    };
    object_of_words(words + INTENT_AT_FIRST, &ret->first);
    object_of_words(words + INTENT_AT_SECOND, &ret->second);
    read_outcome(ring, words, ret);
    return true;
}

/* ---- looking for one ---- */

const struct intent *intent_find(const struct intent_ring *ring, uint64_t key)
{
    if (ring->earlier_count == 0)
        return NULL;
    for (uint64_t at = key;; at++) {
        uint32_t place = ring->index[at & (ring->index_len - 1)];
        if (place == 0)
            return NULL;
        const struct intent *found = &ring->earlier[place - 1];
        if (found->key == key)
            return atomic_load(&ring->clock_ms) - found->clock_ms <= AGE_MAX_MS ? found : NULL;
    }
}

typedef bool (*match_fn)(const struct intent *intent, const struct intent *other);

/* Of earlier runs, also those whose place in the ring was taken since; and of this one, where
 * `word` spares most of the checksums: it stands at `at` in an entry that matches; at 0: any. */
static bool has_other(const struct intent_ring *ring, const struct intent *intent, match_fn matches,
                      uint32_t at, uint64_t word)
{
    for (uint32_t i = 0; i < ring->earlier_count; i++)
        if (matches(intent, &ring->earlier[i]))
            return true;
    uint64_t next = atomic_load(&ring->next_number), number = ring->first_number;
    if (next - number > INTENT_COUNT)
        number = next - INTENT_COUNT;
    for (; number < next; number++) {
        uint32_t slot = (uint32_t)(number % INTENT_COUNT);
        struct intent other;
        if ((at == 0 || get(&ring->entries[slot], at) == word) && intent_read(ring, slot, &other) &&
            matches(intent, &other))
            return true;
    }
    return false;
}

static bool is_object(const struct handle_object *a, const struct handle_object *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool is_superseded(const struct intent *intent, const struct intent *other)
{
    return other->client == intent->client && other->place == intent->place &&
           other->key != intent->key && other->outcome != INTENT_FAILED &&
           other->clock_ms >= intent->clock_ms + LATER_MS;
}

bool intent_is_superseded(const struct intent_ring *ring, const struct intent *intent)
{
    return has_other(ring, intent, is_superseded, INTENT_AT_PLACE, intent->place);
}

static bool is_made(const struct intent *intent, const struct intent *other)
{
    return other->key != intent->key && other->outcome == INTENT_DONE &&
           other->procedure >= NFS_CREATE && other->procedure <= NFS_MKNOD &&
           is_object(&other->made, &intent->made);
}

bool intent_is_made_by_another(const struct intent_ring *ring, const struct intent *intent)
{
    uint64_t words[INTENT_OBJECT_WORDS];
    object_to_words(&intent->made, words);
    return has_other(ring, intent, is_made, INTENT_AT_MADE, words[0]);
}

/* One that comes later and is no copy of an earlier one. */
static bool comes_after(const struct intent *intent, const struct intent *other)
{
    return other->key != intent->key && other->order > intent->order;
}

static bool is_seen(const struct intent *intent, const struct intent *other)
{
    if (!comes_after(intent, other))
        return false;
    bool goes = other->procedure == NFS_REMOVE || other->procedure == NFS_RMDIR ||
                other->procedure == NFS_RENAME;
    return (goes && other->place == intent->place && is_object(&other->first, &intent->first)) ||
           (other->procedure == NFS_RENAME && other->to_place == (uint32_t)intent->place &&
            is_object(&other->second, &intent->first));
}

bool intent_is_seen_by_another(const struct intent_ring *ring, const struct intent *intent)
{
    return has_other(ring, intent, is_seen, 0, 0);
}

static bool is_missed(const struct intent *intent, const struct intent *other)
{
    return comes_after(intent, other) && other->procedure == NFS_LINK &&
           other->place == intent->place && other->first.len == 0;
}

bool intent_is_missed_by_another(const struct intent_ring *ring, const struct intent *intent)
{
    return has_other(ring, intent, is_missed, INTENT_AT_PLACE, intent->place);
}
