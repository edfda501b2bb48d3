/*
 * drc.c -- replies kept for retransmitted calls; see drc.h.
 *
 * Entries live in a table with a hash index over the key. Done entries are on two queues, oldest
 * first: one of all, for expiry, and one of their address, for its quota. Caller addresses have a
 * small table of their own; an address is there while it has an entry. The newest entry of each
 * owner is found by a third index, until the next call of that owner takes its place there.
 *
 * Always true, and asserted by drc_check():
 *  (1) An entry is on both queues exactly when it is done.
 *  (2) done_count of an address is the length of its queue and at most DRC_PER_ADDRESS.
 *  (3) An address has at least one entry, and the entries of all addresses are all entries.
 *  (4) Of the entries of one owner at most one is not old, and that one is in by_owner.
 *  (5) whole_count is how many of those are of a client as a whole (FREE_ALL): mostly none, and
 *      then a LOCK need not look for one.
 *
 * Work per call is bounded: at most EXPIRE_PER_CALL entries are expired by one drc_find. An order
 * of an operator looks at all of them (drc_supersede_client).
 */
#include "rpc/drc.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/list.h"
#include "base/table.h"

#include <stdlib.h>

enum {
    EXPIRE_PER_CALL = 4,
    REPLY_BYTES_PER_ENTRY = 128,
    /* A block of the arena for every size of reply: where the cache is small, one of a rare size
     * must not push out all the others. */
    REPLY_BYTES_SPARE = 16 * 64 * 1024,
};

struct entry {
    struct drc_key key;
    uint64_t waiting;
    uint64_t before; /* handle of the entry that it has made old; DRC_NONE: none */
    uint64_t done_ns;
    struct list in_all, in_address; /* the two queues, when done */
    uint32_t slot;
    uint32_t caller; /* slot in the table of callers */
    uint32_t reply_cell, reply_len;
    uint32_t life; /* of its caller when it began; an older one is not kept */
    uint16_t port; /* the last that asked while it was in progress */
    bool done;
    bool is_old;     /* a later call of its owner was begun; else it is in by_owner if it has one */
    bool is_passing; /* its answer was for the moment */
};

struct caller {
    struct address address;
    struct list done; /* oldest first */
    uint32_t done_count, entry_count;
    uint32_t life; /* grows when the caller reboots */
};

struct drc {
    struct table entries, callers;
    struct hash_index by_key, by_address, by_owner;
    struct arena *replies;
    struct list done; /* of all callers, oldest first */
    uint32_t whole_count;
    uint64_t seed;
    struct address last_address; /* that was hashed: the next call is mostly of the same caller */
    uint64_t last_address_hash;
};

struct drc *drc_new(uint32_t entries_max, uint64_t seed)
{
    struct drc *drc = calloc(1, sizeof *drc);
    if (drc == NULL)
        return NULL;
    drc->seed = seed;
    drc->last_address_hash = hash_bytes(
        seed, (struct bytes){(const uint8_t *)&drc->last_address, sizeof drc->last_address});
    list_init(&drc->done);
    drc->replies = arena_new((uint64_t)entries_max * REPLY_BYTES_PER_ENTRY + REPLY_BYTES_SPARE);
    if (drc->replies == NULL || table_init(&drc->entries, entries_max, sizeof(struct entry)) != 0 ||
        table_init(&drc->callers, entries_max, sizeof(struct caller)) != 0 ||
        hash_index_init(&drc->by_key, entries_max) != 0 ||
        hash_index_init(&drc->by_address, entries_max) != 0 ||
        hash_index_init(&drc->by_owner, entries_max) != 0) {
        drc_free(drc);
        return NULL;
    }
    return drc;
}

void drc_free(struct drc *drc)
{
    if (drc == NULL)
        return;
    arena_free(drc->replies);
    table_done(&drc->entries);
    table_done(&drc->callers);
    hash_index_done(&drc->by_key);
    hash_index_done(&drc->by_address);
    hash_index_done(&drc->by_owner);
    free(drc);
}

uint64_t drc_args_hash(const struct drc *drc, struct bytes args)
{
    return hash_key(drc->seed, args);
}

static uint64_t address_hash(struct drc *drc, const struct address *address)
{
    if (!address_equal(&drc->last_address, address)) {
        drc->last_address = *address;
        drc->last_address_hash =
            hash_bytes(drc->seed, (struct bytes){(const uint8_t *)address, sizeof *address});
    }
    return drc->last_address_hash;
}

/* The rest of the key follows from these, but for accidents. */
static uint64_t key_hash(struct drc *drc, const struct drc_key *key)
{
    uint64_t hash = hash_number(address_hash(drc, &key->address), key->args_hash);
    return hash_number(hash, (uint64_t)key->xid << 32 | key->proc);
}
_Static_assert(sizeof(struct drc_key) ==
                   sizeof(struct address) + 6 * sizeof(uint32_t) + 2 * sizeof(uint64_t),
               "a key is compared as bytes, so it has no padding");

static uint32_t find_caller(const struct drc *drc, const struct address *address, uint64_t hash)
{
    uint32_t slot = hash_index_first(&drc->by_address, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&drc->by_address, slot)) {
        const struct caller *caller = table_at(&drc->callers, slot);
        if (address_equal(&caller->address, address))
            return slot;
    }
    return SLOT_NONE;
}

static uint32_t add_caller(struct drc *drc, const struct address *address)
{
    uint64_t hash = address_hash(drc, address);
    uint32_t slot = find_caller(drc, address, hash);
    if (slot != SLOT_NONE)
        return slot;
    slot = table_add(&drc->callers);
    CHECK(slot != SLOT_NONE); /* as many slots as entries, and every caller has an entry */
    struct caller *caller = table_at(&drc->callers, slot);
    *caller = (struct caller){.address = *address};
    list_init(&caller->done);
    hash_index_add(&drc->by_address, hash, slot);
    return slot;
}

static struct entry *entry_in_progress(struct drc *drc, uint64_t handle)
{
    uint32_t slot = table_find(&drc->entries, handle);
    CHECK(slot != SLOT_NONE);
    struct entry *entry = table_at(&drc->entries, slot);
    CHECK(!entry->done);
    return entry;
}

/* ---- owners ---- */

static uint64_t owner_hash(struct drc *drc, const struct address *address, uint32_t owner)
{
    return hash_number(address_hash(drc, address), owner);
}

static bool is_whole(const struct entry *entry)
{
    return entry->key.owner == entry->key.client;
}

/* It is the newest of its owner. */
static void note_newest(struct drc *drc, const struct entry *entry)
{
    const struct drc_key *key = &entry->key;
    hash_index_add(&drc->by_owner, owner_hash(drc, &key->address, key->owner), entry->slot);
    drc->whole_count += is_whole(entry);
}

static void forget_newest(struct drc *drc, const struct entry *entry)
{
    if (entry->key.owner == 0 || entry->is_old)
        return;
    hash_index_remove(&drc->by_owner, entry->slot);
    drc->whole_count -= is_whole(entry);
}

/* What this owner asked last is old now: its handle. */
static uint64_t make_old(struct drc *drc, const struct address *address, uint32_t owner)
{
    if (owner == 0)
        return DRC_NONE;
    uint32_t slot = hash_index_first(&drc->by_owner, owner_hash(drc, address, owner));
    for (; slot != SLOT_NONE; slot = hash_index_next(&drc->by_owner, slot)) {
        struct entry *entry = table_at(&drc->entries, slot);
        if (entry->key.owner != owner || !address_equal(&entry->key.address, address))
            continue;
        forget_newest(drc, entry);
        entry->is_old = true;
        return table_handle(&drc->entries, slot);
    }
    return DRC_NONE;
}

void drc_supersede_whole(struct drc *drc, const struct address *address, uint64_t client)
{
    if (drc->whole_count > 0)
        (void)make_old(drc, address, (uint32_t)client);
}

void drc_void(struct drc *drc, uint64_t entry)
{
    struct entry *begun = entry_in_progress(drc, entry);
    uint32_t slot =
        begun->before == DRC_NONE ? SLOT_NONE : table_find(&drc->entries, begun->before);
    if (slot == SLOT_NONE || begun->is_old)
        return;
    MARK("drc_void");
    struct entry *before = table_at(&drc->entries, slot);
    forget_newest(drc, begun);
    begun->is_old = true;
    before->is_old = false;
    note_newest(drc, before);
}

void drc_supersede_client(struct drc *drc, const struct address *address, uint64_t client)
{
    uint32_t slot = table_next(&drc->entries, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->entries, slot)) {
        struct entry *entry = table_at(&drc->entries, slot);
        if (entry->key.client != client || is_whole(entry) ||
            !address_equal(&entry->key.address, address))
            continue;
        MARK("drc_overridden");
        forget_newest(drc, entry);
        entry->is_old = true;
    }
}

/* An entry goes, and its caller with its last one. */
static void drop(struct drc *drc, struct entry *entry)
{
    struct caller *caller = table_at(&drc->callers, entry->caller);
    forget_newest(drc, entry);
    list_remove(&entry->in_all);
    list_remove(&entry->in_address);
    caller->done_count -= entry->done;
    caller->entry_count--;
    if (caller->entry_count == 0) {
        hash_index_remove(&drc->by_address, entry->caller);
        table_remove(&drc->callers, entry->caller);
    }
    if (entry->reply_cell != ARENA_NONE)
        arena_remove(drc->replies, entry->reply_cell, entry->reply_len);
    hash_index_remove(&drc->by_key, entry->slot);
    table_remove(&drc->entries, entry->slot);
}

static struct entry *oldest_of_all(const struct drc *drc)
{
    return LIST_ELEMENT(drc->done.next, struct entry, in_all);
}

static void expire(struct drc *drc, uint64_t now_ns)
{
    for (uint32_t i = 0; i < EXPIRE_PER_CALL && !list_is_empty(&drc->done); i++) {
        struct entry *oldest = oldest_of_all(drc);
        if (now_ns - oldest->done_ns < DRC_LIFE_NS)
            return;
        MARK("drc_expired");
        drop(drc, oldest);
    }
}

static uint32_t find(const struct drc *drc, const struct drc_key *key, uint64_t hash)
{
    uint32_t slot = hash_index_first(&drc->by_key, hash);
    for (; slot != SLOT_NONE; slot = hash_index_next(&drc->by_key, slot)) {
        const struct entry *entry = table_at(&drc->entries, slot);
        if (memcmp(&entry->key, key, sizeof *key) == 0)
            return slot;
    }
    return SLOT_NONE;
}

static enum drc_verdict repeated(struct drc *drc, uint32_t slot, uint16_t port,
                                 struct drc_found *ret)
{
    struct entry *entry = table_at(&drc->entries, slot);
    ret->entry = table_handle(&drc->entries, slot);
    ret->waiting = entry->waiting;
    if (!entry->done) {
        MARK("drc_in_progress");
        entry->port = port; /* that is where its answer goes */
        return DRC_IN_PROGRESS;
    }
    ret->reply = arena_at(drc->replies, entry->reply_cell, entry->reply_len);
    ret->is_moved = entry->port != port;
    if (entry->is_old || (ret->is_moved && entry->is_passing)) {
        MARK("drc_old");
        return DRC_OLD;
    }
    MARK("drc_answered_again");
    return DRC_DONE;
}

enum drc_verdict drc_find(struct drc *drc, const struct drc_key *key, uint16_t port,
                          uint64_t now_ns, struct drc_found *ret)
{
    expire(drc, now_ns);
    uint32_t slot = find(drc, key, key_hash(drc, key));
    return slot == SLOT_NONE ? DRC_NEW : repeated(drc, slot, port, ret);
}

uint64_t drc_begin(struct drc *drc, const struct drc_key *key, uint16_t port)
{
    uint64_t before = make_old(drc, &key->address, key->owner);
    if (drc->entries.count == drc->entries.max) {
        if (list_is_empty(&drc->done))
            return DRC_NONE;
        MARK("drc_oldest_makes_room");
        drop(drc, oldest_of_all(drc));
    }
    uint32_t slot = table_add(&drc->entries);
    struct entry *entry = table_at(&drc->entries, slot); /* all zero */
    entry->key = *key;
    entry->waiting = DRC_NONE;
    entry->before = before;
    entry->slot = slot;
    entry->port = port;
    entry->caller = add_caller(drc, &key->address);
    entry->reply_cell = ARENA_NONE;
    list_init(&entry->in_all);
    list_init(&entry->in_address);
    struct caller *caller = table_at(&drc->callers, entry->caller);
    caller->entry_count++;
    entry->life = caller->life;
    hash_index_add(&drc->by_key, key_hash(drc, key), slot);
    if (key->owner != 0)
        note_newest(drc, entry);
    return table_handle(&drc->entries, slot);
}

void drc_wait(struct drc *drc, uint64_t entry, uint64_t waiting, bool is_passing)
{
    struct entry *begun = entry_in_progress(drc, entry);
    const struct caller *caller = table_at(&drc->callers, begun->caller);
    begun->waiting = waiting;
    begun->life = caller->life; /* the call that announced the reboot belongs to the new life */
    begun->is_passing = is_passing;
}

void drc_move(struct drc *drc, uint64_t entry, uint64_t waiting)
{
    entry_in_progress(drc, entry)->waiting = waiting;
}

void drc_abandon(struct drc *drc, uint64_t entry)
{
    drop(drc, entry_in_progress(drc, entry));
}

void drc_discard(struct drc *drc, uint64_t handle)
{
    uint32_t slot = table_find(&drc->entries, handle);
    CHECK(slot != SLOT_NONE);
    struct entry *entry = table_at(&drc->entries, slot);
    CHECK(entry->done);
    drop(drc, entry);
}

/* Its caller rebooted while it was in progress. */
static bool is_forgotten(const struct drc *drc, const struct entry *entry)
{
    const struct caller *caller = table_at(&drc->callers, entry->caller);
    return entry->life != caller->life;
}

/* A place for the reply; the oldest replies make room. ARENA_NONE: it cannot be kept. */
static uint32_t keep_reply(struct drc *drc, struct bytes reply)
{
    if (reply.len > DRC_REPLY_MAX)
        return ARENA_NONE;
    uint32_t cell = arena_add(drc->replies, reply);
    while (cell == ARENA_NONE && !list_is_empty(&drc->done)) {
        drop(drc, oldest_of_all(drc));
        cell = arena_add(drc->replies, reply);
    }
    return cell;
}

void drc_end(struct drc *drc, uint64_t handle, struct bytes reply, uint64_t now_ns)
{
    struct entry *entry = entry_in_progress(drc, handle);
    struct caller *caller = table_at(&drc->callers, entry->caller);
    if (caller->done_count == DRC_PER_ADDRESS) {
        MARK("drc_address_quota");
        drop(drc, LIST_ELEMENT(caller->done.next, struct entry, in_address));
    }
    entry->reply_cell = is_forgotten(drc, entry) ? ARENA_NONE : keep_reply(drc, reply);
    entry->reply_len = reply.len;
    entry->done = true;
    entry->done_ns = now_ns;
    caller->done_count++;
    list_append(&drc->done, &entry->in_all);
    list_append(&caller->done, &entry->in_address);
    if (entry->reply_cell == ARENA_NONE)
        drop(drc, entry);
}

void drc_forget(struct drc *drc, const struct address *address)
{
    uint32_t slot = find_caller(drc, address, address_hash(drc, address));
    if (slot == SLOT_NONE)
        return;
    MARK("drc_forget");
    struct caller *caller = table_at(&drc->callers, slot);
    caller->life++; /* what is in progress ends without being kept */
    for (uint32_t left = caller->done_count; left > 0; left--)
        drop(drc, LIST_ELEMENT(caller->done.next, struct entry, in_address));
}

void drc_forget_client(struct drc *drc, const struct address *address, uint64_t client)
{
    uint32_t slot = find_caller(drc, address, address_hash(drc, address));
    if (slot == SLOT_NONE)
        return;
    struct caller *caller = table_at(&drc->callers, slot);
    struct list *at = caller->done.next;
    for (uint32_t left = caller->done_count; left > 0; left--) {
        struct entry *entry = LIST_ELEMENT(at, struct entry, in_address);
        at = at->next;
        if (entry->key.client == client)
            drop(drc, entry);
    }
}

void drc_forget_all(struct drc *drc)
{
    MARK("drc_forget_all");
    uint32_t slot = table_next(&drc->callers, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->callers, slot)) {
        struct caller *caller = table_at(&drc->callers, slot);
        caller->life++;
    }
    while (!list_is_empty(&drc->done))
        drop(drc, oldest_of_all(drc));
}

uint32_t drc_check(struct drc *drc)
{
    table_check(&drc->entries);
    table_check(&drc->callers);
    uint32_t done = 0, in_callers = 0, whole = 0;
    for (const struct list *at = drc->done.next; at != &drc->done; at = at->next) {
        CHECK(LIST_ELEMENT(at, const struct entry, in_all)->done);
        done++;
    }
    uint32_t slot = table_next(&drc->entries, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->entries, slot)) {
        const struct entry *entry = table_at(&drc->entries, slot);
        CHECK(entry->done == !list_is_empty(&entry->in_all));
        CHECK(entry->done == !list_is_empty(&entry->in_address));
        CHECK(table_is_live(&drc->callers, entry->caller));
        bool is_newest = entry->key.owner != 0 && !entry->is_old;
        uint64_t hash = owner_hash(drc, &entry->key.address, entry->key.owner);
        CHECK(!is_newest || hash_index_has(&drc->by_owner, hash, slot));
        whole += is_newest && is_whole(entry);
    }
    CHECK(whole == drc->whole_count);
    slot = table_next(&drc->callers, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->callers, slot)) {
        const struct caller *caller = table_at(&drc->callers, slot);
        CHECK(caller->entry_count > 0);
        CHECK(caller->done_count <= DRC_PER_ADDRESS);
        uint32_t length = 0;
        for (const struct list *at = caller->done.next; at != &caller->done; at = at->next) {
            CHECK(LIST_ELEMENT(at, const struct entry, in_address)->caller == slot);
            length++;
        }
        CHECK(length == caller->done_count);
        done -= length;
        in_callers += caller->entry_count;
    }
    CHECK(done == 0);
    CHECK(in_callers == drc->entries.count);
    return in_callers;
}
