/*
 * drc.c -- replies kept for retransmitted calls; see drc.h.
 *
 * Entries live in a table with a hash index over the key. Done entries are on two queues, oldest
 * first: one of all, for expiry, and one of their address, for its quota. Caller addresses have a
 * small table of their own; an address is there while it has an entry, and an entry knows it by its
 * place there. The newest entry of each owner is found by a third index, until the next call of
 * that owner takes its place there. Replies lie in their entries, longer ones in an arena.
 *
 * Always true, and asserted by drc_check() in drc_check.c:
 *  (1) An entry is on both queues exactly when it is done.
 *  (2) done_count of an address is the length of its queue and at most DRC_PER_ADDRESS.
 *  (3) An address has at least one entry, and the entries of all addresses are all entries.
 *  (4) Of the entries of one owner at most one is not old, and that one is in by_owner.
 *  (5) whole_count is how many of those are of a client as a whole (FREE_ALL): mostly none, and
 *      then a LOCK need not look for one.
 *  (6) An entry has a cell of the arena, and is in the queues of those that have one, exactly when
 *      its reply is longer than DRC_REPLY_NEAR.
 *  (7) far_bytes of an address is what its cells take, and at most DRC_FAR_BYTES.
 *
 * Work per call is bounded: at most EXPIRE_PER_CALL entries are expired by one drc_find. There are
 * two exceptions. A long reply takes the cells of older ones until a block of the arena is free: as
 * many as came by calls of their own. An order of an operator looks at all entries
 * (drc_supersede_client).
 */
#include "rpc/drc.h"

#include "base/check.h"
#include "base/fetch.h"
#include "rpc/drc_parts.h"

#include <stdlib.h>

enum {
    EXPIRE_PER_CALL = 4,
    /* Where the cache is small, one reply of a rare size must not push out all the others: it needs
     * a block of the arena for itself. */
    REPLY_BYTES_SPARE = 16 * 64 * 1024,
};

static const struct drc_queue empty_queue = {SLOT_NONE, SLOT_NONE};

struct drc *drc_new(uint32_t entries_max, uint64_t seed)
{
    struct drc *drc = calloc(1, sizeof *drc);
    if (drc == NULL)
        return NULL;
    drc->seed = seed;
    drc->done = drc->far = empty_queue;
    drc->last_caller = SLOT_NONE;
    drc->replies = arena_new((uint64_t)entries_max * DRC_REPLY_BYTES + REPLY_BYTES_SPARE);
    if (drc->replies == NULL ||
        table_init(&drc->entries, entries_max, sizeof(struct drc_entry)) != 0 ||
        table_init_linked(&drc->callers, entries_max, sizeof(struct drc_caller)) != 0 ||
        hash_index_init(&drc->by_key, entries_max) != 0 ||
        hash_index_init_in(&drc->by_address, &drc->callers) != 0 ||
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

/* ---- callers ---- */

static uint64_t address_hash(const struct drc *drc, const struct address *address)
{
    return hash_bytes(drc->seed, (struct bytes){(const uint8_t *)address, sizeof *address});
}

static bool is_at(const struct drc *drc, uint32_t caller, const struct address *address)
{
    const struct drc_caller *at = table_at(&drc->callers, caller);
    return address_equal(&at->address, address);
}

/* SLOT_NONE: it has no entry. */
static uint32_t find_caller(struct drc *drc, const struct address *address)
{
    if (drc->last_caller != SLOT_NONE && is_at(drc, drc->last_caller, address))
        return drc->last_caller;
    uint32_t slot = hash_index_first(&drc->by_address, address_hash(drc, address));
    while (slot != SLOT_NONE && !is_at(drc, slot, address))
        slot = hash_index_next(&drc->by_address, slot);
    if (slot != SLOT_NONE)
        drc->last_caller = slot;
    return slot;
}

static uint32_t add_caller(struct drc *drc, const struct address *address)
{
    uint32_t slot = table_add(&drc->callers);
    CHECK(slot != SLOT_NONE); /* as many slots as entries, and every caller has an entry */
    struct drc_caller *caller = table_at(&drc->callers, slot); /* all zero */
    caller->address = *address;
    caller->done = caller->far = empty_queue;
    hash_index_add(&drc->by_address, address_hash(drc, address), slot);
    drc->last_caller = slot;
    return slot;
}

static void remove_caller(struct drc *drc, uint32_t slot)
{
    hash_index_remove(&drc->by_address, slot);
    table_remove(&drc->callers, slot);
    if (drc->last_caller == slot)
        drc->last_caller = SLOT_NONE;
}

/* ---- entries ---- */

/* An entry that was not touched for thousands of calls will be. */
static void fetch(const struct drc *drc, uint32_t slot)
{
    if (slot == SLOT_NONE)
        return;
    const struct drc_entry *entry = table_memory(&drc->entries, slot);
    table_fetch(&drc->entries, slot);
    fetch_line(entry->reply_near);
}

static uint32_t slot_in_progress(const struct drc *drc, uint64_t handle)
{
    uint32_t slot = table_find(&drc->entries, handle);
    CHECK(slot != SLOT_NONE);
    const struct drc_entry *entry = table_at(&drc->entries, slot);
    CHECK(!entry->is_done);
    return slot;
}

/* ---- owners ---- */

/* It is the newest of its owner. */
static void note_newest(struct drc *drc, uint32_t slot, const struct drc_entry *entry)
{
    hash_index_add(&drc->by_owner, drc_owner_hash(drc, entry->caller, entry->owner), slot);
    drc->whole_count += drc_is_whole(entry);
}

static void forget_newest(struct drc *drc, uint32_t slot, const struct drc_entry *entry)
{
    if (entry->owner == 0 || entry->is_old)
        return;
    hash_index_remove(&drc->by_owner, slot);
    drc->whole_count -= drc_is_whole(entry);
}

/* What this owner asked last is old now: its handle. */
static uint64_t make_old(struct drc *drc, uint32_t caller, uint32_t owner)
{
    if (caller == SLOT_NONE || owner == 0)
        return DRC_NONE;
    uint32_t slot = hash_index_first(&drc->by_owner, drc_owner_hash(drc, caller, owner));
    for (; slot != SLOT_NONE; slot = hash_index_next(&drc->by_owner, slot)) {
        struct drc_entry *entry = table_at(&drc->entries, slot);
        if (entry->owner != owner || entry->caller != caller)
            continue;
        forget_newest(drc, slot, entry);
        entry->is_old = true;
        return table_handle(&drc->entries, slot);
    }
    return DRC_NONE;
}

void drc_supersede_whole(struct drc *drc, const struct address *address, uint32_t client)
{
    if (drc->whole_count > 0)
        (void)make_old(drc, find_caller(drc, address), client);
}

void drc_void(struct drc *drc, uint64_t entry)
{
    uint32_t slot = slot_in_progress(drc, entry);
    struct drc_entry *begun = table_at(&drc->entries, slot);
    uint32_t before_slot =
        begun->before == DRC_NONE ? SLOT_NONE : table_find(&drc->entries, begun->before);
    if (before_slot == SLOT_NONE || begun->is_old)
        return;
    MARK("drc_void");
    struct drc_entry *before = table_at(&drc->entries, before_slot);
    forget_newest(drc, slot, begun);
    begun->is_old = true;
    before->is_old = false;
    note_newest(drc, before_slot, before);
}

void drc_supersede_client(struct drc *drc, const struct address *address, uint32_t client)
{
    uint32_t caller = find_caller(drc, address);
    uint32_t slot = table_next(&drc->entries, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->entries, slot)) {
        struct drc_entry *entry = table_at(&drc->entries, slot);
        if (entry->client != client || entry->caller != caller || drc_is_whole(entry))
            continue;
        MARK("drc_overridden");
        forget_newest(drc, slot, entry);
        entry->is_old = true;
    }
}

/* ---- calls ---- */

/* An entry goes, and its caller with its last one. */
static void drop(struct drc *drc, uint32_t slot)
{
    struct drc_entry *entry = table_at(&drc->entries, slot);
    struct drc_caller *caller = table_at(&drc->callers, entry->caller);
    forget_newest(drc, slot, entry);
    if (entry->is_done) {
        drc_queue_remove(drc, &drc->done, DRC_OF_ALL, entry);
        drc_queue_remove(drc, &caller->done, DRC_OF_CALLER, entry);
        caller->done_count--;
    }
    if (entry->reply_len > DRC_REPLY_NEAR) {
        drc_queue_remove(drc, &drc->far, DRC_FAR_OF_ALL, entry);
        drc_queue_remove(drc, &caller->far, DRC_FAR_OF_CALLER, entry);
        arena_remove(drc->replies, entry->reply_cell, entry->reply_len);
        caller->far_bytes -= arena_cell_len(entry->reply_len);
    }
    caller->entry_count--;
    if (caller->entry_count == 0)
        remove_caller(drc, entry->caller);
    hash_index_remove(&drc->by_key, slot);
    table_remove(&drc->entries, slot);
}

static void expire(struct drc *drc, uint64_t now_ns)
{
    for (uint32_t i = 0; i < EXPIRE_PER_CALL && drc->done.first != SLOT_NONE; i++) {
        const struct drc_entry *oldest = table_at(&drc->entries, drc->done.first);
        if (now_ns - oldest->done_ns < DRC_LIFE_NS)
            return;
        MARK("drc_expired");
        drop(drc, drc->done.first);
    }
}

/* The rest of the key follows from these, but for accidents. */
static uint64_t key_hash(uint32_t caller, const struct drc_key *key)
{
    return hash_number(key->args_hash, (uint64_t)caller << 32 | key->xid);
}

static bool has_key(const struct drc_entry *entry, uint32_t caller, const struct drc_key *key)
{
    return entry->args_hash == key->args_hash && entry->xid == key->xid &&
           entry->caller == caller && entry->owner == key->owner && entry->client == key->client &&
           entry->proc == key->proc && entry->prog == key->prog && entry->vers == key->vers &&
           entry->args_len == key->args_len;
}

static uint32_t find(struct drc *drc, const struct drc_key *key)
{
    uint32_t caller = find_caller(drc, &key->address);
    if (caller == SLOT_NONE)
        return SLOT_NONE;
    if (key->owner != 0) /* drc_begin looks there */
        hash_index_fetch(&drc->by_owner, drc_owner_hash(drc, caller, key->owner));
    uint32_t slot = hash_index_first(&drc->by_key, key_hash(caller, key));
    while (slot != SLOT_NONE && !has_key(table_at(&drc->entries, slot), caller, key))
        slot = hash_index_next(&drc->by_key, slot);
    return slot;
}

static struct bytes reply_of(const struct drc *drc, const struct drc_entry *entry)
{
    if (entry->reply_len > DRC_REPLY_NEAR)
        return arena_at(drc->replies, entry->reply_cell, entry->reply_len);
    return (struct bytes){entry->reply_near, entry->reply_len};
}

static enum drc_verdict repeated(struct drc *drc, uint32_t slot, uint16_t port,
                                 struct drc_found *ret)
{
    struct drc_entry *entry = table_at(&drc->entries, slot);
    ret->entry = table_handle(&drc->entries, slot);
    if (!entry->is_done) {
        MARK("drc_in_progress");
        ret->waiting = entry->waiting;
        entry->port = port; /* that is where its answer goes */
        return DRC_IN_PROGRESS;
    }
    ret->reply = reply_of(drc, entry);
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
    uint32_t slot = find(drc, key);
    return slot == SLOT_NONE ? DRC_NEW : repeated(drc, slot, port, ret);
}

/* False: every entry is in progress. */
static bool make_room(struct drc *drc)
{
    if (drc->entries.count < drc->entries.max)
        return true;
    if (drc->done.first == SLOT_NONE)
        return false;
    MARK("drc_oldest_makes_room");
    drop(drc, drc->done.first);
    return true;
}

uint64_t drc_begin(struct drc *drc, const struct drc_key *key, uint16_t port)
{
    bool has_room = make_room(drc);
    uint32_t caller_slot = find_caller(drc, &key->address);
    uint64_t before = make_old(drc, caller_slot, key->owner);
    if (!has_room)
        return DRC_NONE;
    if (caller_slot == SLOT_NONE)
        caller_slot = add_caller(drc, &key->address);
    struct drc_caller *caller = table_at(&drc->callers, caller_slot);
    caller->entry_count++;
    uint32_t slot = table_add(&drc->entries);
    struct drc_entry *entry = table_at(&drc->entries, slot); /* all zero */
    entry->waiting = DRC_NONE;
    entry->before = before;
    entry->args_hash = key->args_hash;
    entry->caller = caller_slot;
    entry->owner = key->owner;
    entry->client = key->client;
    entry->xid = key->xid;
    entry->proc = key->proc;
    entry->life = caller->life;
    entry->port = port;
    entry->prog = key->prog;
    entry->vers = key->vers;
    entry->args_len = key->args_len;
    hash_index_add(&drc->by_key, key_hash(caller_slot, key), slot);
    if (key->owner != 0)
        note_newest(drc, slot, entry);
    return table_handle(&drc->entries, slot);
}

void drc_wait(struct drc *drc, uint64_t entry, uint64_t waiting, bool is_passing)
{
    struct drc_entry *begun = table_at(&drc->entries, slot_in_progress(drc, entry));
    const struct drc_caller *caller = table_at(&drc->callers, begun->caller);
    begun->waiting = waiting;
    begun->life = caller->life; /* the call that announced the reboot belongs to the new life */
    begun->is_passing = is_passing;
}

void drc_move(struct drc *drc, uint64_t entry, uint64_t waiting)
{
    struct drc_entry *begun = table_at(&drc->entries, slot_in_progress(drc, entry));
    begun->waiting = waiting;
}

void drc_abandon(struct drc *drc, uint64_t entry)
{
    drop(drc, slot_in_progress(drc, entry));
}

void drc_discard(struct drc *drc, uint64_t handle)
{
    uint32_t slot = table_find(&drc->entries, handle);
    CHECK(slot != SLOT_NONE);
    const struct drc_entry *entry = table_at(&drc->entries, slot);
    CHECK(entry->is_done);
    drop(drc, slot);
}

/* A cell for a long reply, or ARENA_NONE. Older long ones make room, and no short ones: those of
 * its caller beyond its share of the arena, then anybody's. */
static uint32_t add_cell(struct drc *drc, struct drc_caller *caller, struct bytes reply)
{
    uint32_t len = arena_cell_len(reply.len);
    while (caller->far_bytes + len > DRC_FAR_BYTES) {
        MARK("drc_address_bytes");
        drop(drc, caller->far.first);
    }
    uint32_t cell = arena_add(drc->replies, reply);
    while (cell == ARENA_NONE && drc->far.first != SLOT_NONE) {
        drop(drc, drc->far.first);
        cell = arena_add(drc->replies, reply);
    }
    return cell;
}

/* Of an entry that is about to be done. False: its reply cannot be kept. */
static bool keep_far(struct drc *drc, uint32_t slot, struct drc_entry *entry, struct bytes reply)
{
    struct drc_caller *caller = table_at(&drc->callers, entry->caller);
    uint32_t cell = add_cell(drc, caller, reply);
    if (cell == ARENA_NONE)
        return false;
    caller->far_bytes += arena_cell_len(reply.len);
    entry->reply_cell = cell;
    drc_queue_append(drc, &drc->far, DRC_FAR_OF_ALL, slot, entry);
    drc_queue_append(drc, &caller->far, DRC_FAR_OF_CALLER, slot, entry);
    return true;
}

/* False: it cannot be kept. */
static bool keep_reply(struct drc *drc, uint32_t slot, struct drc_entry *entry, struct bytes reply)
{
    if (reply.len > DRC_REPLY_MAX)
        return false;
    if (reply.len <= DRC_REPLY_NEAR)
        memcpy(entry->reply_near, reply.at, reply.len);
    else if (!keep_far(drc, slot, entry, reply))
        return false;
    entry->reply_len = (uint16_t)reply.len;
    return true;
}

void drc_end(struct drc *drc, uint64_t handle, struct bytes reply, uint64_t now_ns)
{
    uint32_t slot = slot_in_progress(drc, handle);
    struct drc_entry *entry = table_at(&drc->entries, slot);
    struct drc_caller *caller = table_at(&drc->callers, entry->caller);
    bool is_forgotten = entry->life != caller->life; /* it rebooted meanwhile */
    if (caller->done_count == DRC_PER_ADDRESS) {
        MARK("drc_address_quota");
        drop(drc, caller->done.first);
        fetch(drc, caller->done.first); /* it goes with the next answer */
    }
    if (is_forgotten || !keep_reply(drc, slot, entry, reply)) {
        drop(drc, slot);
        return;
    }
    entry->is_done = true;
    entry->done_ns = now_ns;
    drc_queue_append(drc, &drc->done, DRC_OF_ALL, slot, entry);
    drc_queue_append(drc, &caller->done, DRC_OF_CALLER, slot, entry);
    caller->done_count++;
}

void drc_forget(struct drc *drc, const struct address *address)
{
    uint32_t slot = find_caller(drc, address);
    if (slot == SLOT_NONE)
        return;
    MARK("drc_forget");
    struct drc_caller *caller = table_at(&drc->callers, slot);
    caller->life++; /* what is in progress ends without being kept */
    for (uint32_t left = caller->done_count; left > 0; left--)
        drop(drc, caller->done.first);
}

void drc_forget_client(struct drc *drc, const struct address *address, uint32_t client)
{
    uint32_t slot = find_caller(drc, address);
    if (slot == SLOT_NONE)
        return;
    struct drc_caller *caller = table_at(&drc->callers, slot);
    uint32_t next = caller->done.first;
    for (uint32_t left = caller->done_count; left > 0; left--) {
        const struct drc_entry *entry = table_at(&drc->entries, next);
        uint32_t at = next;
        next = entry->links[DRC_OF_CALLER].next;
        if (entry->client == client)
            drop(drc, at);
    }
}

void drc_forget_all(struct drc *drc)
{
    MARK("drc_forget_all");
    uint32_t slot = table_next(&drc->callers, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&drc->callers, slot)) {
        struct drc_caller *caller = table_at(&drc->callers, slot);
        caller->life++;
    }
    while (drc->done.first != SLOT_NONE)
        drop(drc, drc->done.first);
}
