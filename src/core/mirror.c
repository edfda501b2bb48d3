/*
 * mirror.c -- see mirror.h.
 *
 * Releasing is done by looking, not by counting: of bytes that became loose the lock table is asked
 * what is held now, and the mirror is lowered to that. So it does not matter in which order owners
 * come and go, or how locks were cut and merged meanwhile. Bytes that were released once more in a
 * batch that is not durable wait for that one.
 *
 * What is loose waits in a ring. When that is full, the file is gone through as a whole later
 * ("behind"); so is one that could not be mirrored, once a second, and one that had too many pieces
 * and has few again.
 */
#include "core/mirror.h"

#include "base/check.h"
#include "base/minmax.h"
#include "core/state.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LOOSE_MAX = 16384,
    STRETCHES_PER_TURN = 2048,
    LOOKED_PER_STRETCH = 64, /* elements of the ring that cost as much */
    WAITING_PER_TURN = 256,
    REFUSED_PER_TURN = 64,
    FEW_PIECES = 64, /* half of what makes a file be held as a whole: file/ofd.c */
};

int mirror_init(struct core *core, const uint32_t slots[])
{
    struct mirrors *all = &core->mirrors;
    list_init(&all->behind);
    list_init(&all->refused);
    list_init(&all->waiting);
    if (slots[RECORD_LOCK] == 0)
        return 0;
    all->loose = calloc(LOOSE_MAX, sizeof *all->loose);
    return all->loose == NULL ? -ENOMEM : 0;
}

void mirror_done(struct core *core)
{
    free(core->mirrors.loose);
    core->mirrors.loose = NULL;
}

static bool is_open(const struct file *file)
{
    return file->mirror < LOCAL_NOT_NOW;
}

/* ---- whose files they are ---- */

bool mirror_admits(const struct core *core, const struct address *address)
{
    uint32_t all = core->limits.local_files_max;
    return core->mirrors.world == NULL || core->mirrors.charged_count < all - all / 2 || all == 0 ||
           quota_admits_address(core, address, QUOTA_FILE);
}

void mirror_charge(struct core *core, uint32_t slot, const struct address *address)
{
    struct file *file = file_at(core, slot);
    if (core->limits.local_files_max == 0 || !is_open(file))
        return;
    CHECK(file->charged == SLOT_NONE);
    file->charged = quota_keep(core, address);
    quota_add(core, file->charged, QUOTA_FILE, 1);
    core->mirrors.charged_count++;
}

static void discharge(struct core *core, struct file *file)
{
    if (file->charged == SLOT_NONE)
        return;
    quota_remove(core, file->charged, QUOTA_FILE, 1);
    quota_release(core, file->charged);
    core->mirrors.charged_count--;
    file->charged = SLOT_NONE;
}

/* A file that was there before it could be mirrored counts for one of those who hold it. */
static void charge_holder(struct core *core, uint32_t slot)
{
    const struct claim all = {0, UINT64_MAX, SLOT_NONE, slot, true};
    uint32_t lock = lock_find_conflict(core, &all);
    if (file_at(core, slot)->charged != SLOT_NONE || lock == SLOT_NONE)
        return;
    const struct owner *owner = owner_at(core, lock_at(core, lock)->claim.owner);
    mirror_charge(core, slot, &quota_at(core, client_at(core, owner->client)->quota)->address);
}

/* ---- open and close ---- */

/* The file is to be gone through when what is open now is durable. */
static void fall_behind(struct core *core, uint32_t slot)
{
    struct file *file = file_at(core, slot);
    if (list_is_empty(&file->behind)) {
        file_keep(core, slot);
        list_append(&core->mirrors.behind, &file->behind);
    }
    file->behind_txn = core_gate_txn(core);
    file->behind_at = 0;
    file->is_refused_again = false;
}

void mirror_open(struct core *core, uint32_t slot)
{
    const struct local_locks *world = core->mirrors.world;
    struct file *file = file_at(core, slot);
    file->mirror =
        world == NULL ? LOCAL_NO_FILE : world->open(world->context, file_handle(core, slot));
}

static void set_refused(struct core *core, uint32_t slot, bool is_refused)
{
    struct mirrors *all = &core->mirrors;
    struct file *file = file_at(core, slot);
    if (is_refused == !list_is_empty(&file->refused))
        return;
    if (!is_refused) {
        list_remove(&file->refused);
        all->refused_count--;
        return;
    }
    MARK("mirror_refused");
    if (list_is_empty(&all->refused))
        all->refused_ns = core->now_ns + SECOND_NS;
    list_append(&all->refused, &file->refused);
    all->refused_count++;
    enum event_kind kind = is_open(file)                   ? EVENT_LOCAL_REFUSED
                           : file->mirror == LOCAL_NO_ROOM ? EVENT_LOCAL_NO_ROOM
                                                           : EVENT_LOCAL_UNSEEN;
    event_add_of_file(&core->events, kind, &(struct address){0}, (struct bytes){0}, 0,
                      file_handle(core, slot));
}

void mirror_close(struct core *core, uint32_t slot)
{
    const struct local_locks *world = core->mirrors.world;
    struct file *file = file_at(core, slot);
    CHECK(list_is_empty(&file->behind)); /* it would keep it */
    set_refused(core, slot, false);
    if (is_open(file))
        world->close(world->context, file->mirror);
    file->mirror = LOCAL_NO_FILE;
    discharge(core, file);
}

static struct local_range range_of(const struct claim *claim)
{
    return (struct local_range){claim->start, claim->end,
                                claim->exclusive ? LOCAL_EXCLUSIVE : LOCAL_SHARED};
}

/* It could not be opened before. What is on it already comes along. */
static void open_again(struct core *core, uint32_t slot)
{
    mirror_open(core, slot);
    charge_holder(core, slot);
    if (file_at(core, slot)->mirror != LOCAL_NO_FILE && file_at(core, slot)->lock_count > 0)
        fall_behind(core, slot);
}

enum mirror_result mirror_take(struct core *core, const struct claim *claim)
{
    const struct local_locks *world = core->mirrors.world;
    if (world == NULL)
        return MIRROR_TAKEN;
    const struct file *file = file_at(core, claim->file);
    if (!is_open(file))
        open_again(core, claim->file);
    if (file->mirror == LOCAL_NO_ROOM || file->mirror == LOCAL_NOT_NOW)
        return file->mirror == LOCAL_NO_ROOM ? MIRROR_NO_ROOM : MIRROR_NOT_NOW;
    const struct local_range range = range_of(claim);
    return !is_open(file) || world->raise(world->context, file->mirror, &range) ? MIRROR_TAKEN
                                                                                : MIRROR_REFUSED;
}

void mirror_loosen(struct core *core, const struct claim *claim)
{
    struct mirrors *all = &core->mirrors;
    if (all->world == NULL || !is_open(file_at(core, claim->file)))
        return;
    if (all->loose_count == LOOSE_MAX) {
        MARK("mirror_falls_behind");
        fall_behind(core, claim->file);
        return;
    }
    file_keep(core, claim->file);
    file_at(core, claim->file)->is_loose = true;
    file_at(core, claim->file)->loose_txn = core_gate_txn(core);
    all->loose[(all->loose_first + all->loose_count++) % LOOSE_MAX] =
        (struct mirror_loose){claim->start, claim->end, core_gate_txn(core), claim->file};
}

bool mirror_test(const struct core *core, struct bytes fh, const struct claim *claim,
                 struct lock_holder *ret)
{
    const struct local_locks *world = core->mirrors.world;
    const struct local_range range = range_of(claim);
    struct local_holder holder;
    if (world == NULL || !world->find(world->context, fh, &range, &holder))
        return true;
    MARK("mirror_test_meets_a_program");
    *ret = (struct lock_holder){
        .exclusive = holder.range.mode == LOCAL_EXCLUSIVE,
        .svid = holder.pid,
        .oh = bytes_of_text("a program on the server"),
        .start = holder.range.start,
        .end = holder.range.end,
    };
    return false;
}

/* ---- the mirror follows the lock table ---- */

/* The bytes from this one on that are held alike, as far as this end. */
static struct local_range stretch_at(const struct core *core, uint32_t file, uint64_t at,
                                     uint64_t end)
{
    struct local_range stretch = {at, end, LOCAL_NONE};
    struct claim claim = {at, end, SLOT_NONE, file, false};
    uint32_t slot = lock_find_conflict(core, &claim); /* an exclusive one, of anybody */
    if (slot != SLOT_NONE) {
        const struct claim *found = &lock_at(core, slot)->claim;
        if (found->start <= at)
            return (struct local_range){at, min_u64(end, found->end), LOCAL_EXCLUSIVE};
        stretch.end = claim.end = found->start - 1;
    }
    claim.exclusive = true;
    slot = lock_find_conflict(core, &claim); /* any one */
    if (slot == SLOT_NONE)
        return stretch;
    const struct claim *found = &lock_at(core, slot)->claim;
    if (found->start > at) {
        stretch.end = found->start - 1;
        return stretch;
    }
    stretch.mode = LOCAL_SHARED;
    stretch.end = min_u64(stretch.end, found->end);
    return stretch;
}

/* Was the first byte of this stretch released in a batch that is not durable? It has its own turn
 * then. The stretch ends where that changes. */
static bool is_pending(const struct core *core, uint32_t slot, struct local_range *stretch,
                       uint32_t *budget)
{
    const struct mirrors *all = &core->mirrors;
    bool is_pending = false;
    uint32_t looked = 0;
    if (file_at(core, slot)->loose_txn <= core->durable_txn)
        return false;
    for (; looked < all->loose_count; looked++) {
        uint32_t at = all->loose_first + all->loose_count - 1 - looked;
        const struct mirror_loose *loose = &all->loose[at % LOOSE_MAX];
        if (loose->txn <= core->durable_txn)
            break; /* so are all before it */
        if (loose->file != slot || loose->end < stretch->start || loose->start > stretch->end)
            continue;
        bool is_first = loose->start <= stretch->start;
        is_pending |= is_first;
        stretch->end = min_u64(stretch->end, is_first ? loose->end : loose->start - 1);
    }
    *budget -= min_u32(*budget, looked / LOOKED_PER_STRETCH);
    return is_pending;
}

/* Nothing is left of it that a crash could bring back: one call gives back all of it, and what else
 * of it is loose has no more to do. */
static bool give_back_all(struct core *core, uint32_t slot, uint32_t *budget)
{
    static const struct local_range whole = {0, UINT64_MAX, LOCAL_NONE};
    const struct local_locks *world = core->mirrors.world;
    struct file *file = file_at(core, slot);
    if (!file->is_loose)
        return true;
    if (*budget == 0)
        return false;
    --*budget;
    if (!world->lower(world->context, file->mirror, &whole))
        fall_behind(core, slot);
    file->is_loose = false;
    return true;
}

/* Lowers the mirror to what is held, until the end of these bytes. False: the budget is used up,
 * and *at says how far it came. */
static bool tighten(struct core *core, uint32_t slot, uint64_t *at, uint64_t end, uint32_t *budget)
{
    const struct local_locks *world = core->mirrors.world;
    struct file *file = file_at(core, slot);
    if (!list_is_empty(&file->behind)) {
        file->behind_at = min_u64(file->behind_at, *at); /* it is gone through from here on */
        return true;
    }
    if (file->lock_count == 0 && file->loose_txn <= core->durable_txn)
        return give_back_all(core, slot, budget);
    while (*budget > 0) {
        --*budget;
        struct local_range stretch = stretch_at(core, slot, *at, end);
        if (!is_pending(core, slot, &stretch, budget) &&
            !world->lower(world->context, file->mirror, &stretch)) {
            if (file->lock_count <= FEW_PIECES)
                fall_behind(core, slot);
            return true;
        }
        if (stretch.end == end)
            return true;
        *at = stretch.end + 1;
    }
    return false;
}

static void tighten_loose(struct core *core, uint32_t *budget)
{
    struct mirrors *all = &core->mirrors;
    while (all->loose_count > 0) {
        struct mirror_loose *loose = &all->loose[all->loose_first];
        if (loose->txn > core->durable_txn ||
            !tighten(core, loose->file, &loose->start, loose->end, budget))
            return;
        uint32_t file = loose->file;
        all->loose_first = (all->loose_first + 1) % LOOSE_MAX;
        all->loose_count--;
        file_release(core, file);
    }
}

/* A program holds some of it: what is before that, if there is any. False: what is left of *stretch
 * is in its way. */
static bool take_part(const struct core *core, uint32_t slot, struct local_range *stretch)
{
    const struct local_locks *world = core->mirrors.world;
    struct local_holder holder;
    if (!world->find(world->context, file_handle(core, slot), stretch, &holder))
        return false;
    if (holder.range.start <= stretch->start) {
        stretch->end = min_u64(stretch->end, holder.range.end);
        return false;
    }
    stretch->end = holder.range.start - 1;
    return world->raise(world->context, file_at(core, slot)->mirror, stretch);
}

/* The next stretches of a file are mirrored as they are held. False: there is more of it. */
static bool catch_up(struct core *core, uint32_t slot, uint32_t *budget)
{
    const struct local_locks *world = core->mirrors.world;
    struct file *file = file_at(core, slot);
    if (!is_open(file))
        mirror_open(core, slot);
    if (!is_open(file)) {
        file->is_refused_again = file->mirror != LOCAL_NO_FILE;
        return true;
    }
    if (file->behind_at == 0 && file->lock_count <= FEW_PIECES)
        world->refine(world->context, file->mirror);
    while (*budget > 0) {
        --*budget;
        struct local_range stretch = stretch_at(core, slot, file->behind_at, UINT64_MAX);
        if (stretch.mode != LOCAL_NONE && !world->raise(world->context, file->mirror, &stretch)) {
            file->is_refused_again = true;
            (void)take_part(core, slot, &stretch);
        }
        bool is_whole = !is_pending(core, slot, &stretch, budget) &&
                        !world->lower(world->context, file->mirror, &stretch);
        if (is_whole || stretch.end == UINT64_MAX)
            return true;
        file->behind_at = stretch.end + 1;
    }
    return false;
}

static void catch_up_files(struct core *core, uint32_t *budget)
{
    struct list *behind = &core->mirrors.behind;
    while (!list_is_empty(behind)) {
        struct file *file = LIST_ELEMENT(behind->next, struct file, behind);
        uint32_t slot = (uint32_t)(file - core->files.at);
        if (file->behind_txn > core->durable_txn || !catch_up(core, slot, budget))
            return;
        list_remove(&file->behind);
        set_refused(core, slot, file->is_refused_again);
        file_release(core, slot);
    }
}

void core_mirror(struct core *core, const struct local_locks *world)
{
    struct mirrors *all = &core->mirrors;
    const struct table *table = &core->files.handles.table;
    CHECK(all->world == NULL);
    all->world = world;
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        open_again(core, slot);
        file_at(core, slot)->behind_txn = 0; /* it is as it was stored */
        uint32_t budget = UINT32_MAX;
        catch_up_files(core, &budget);
    }
}

void core_mirror_again(struct core *core)
{
    const struct table *table = &core->files.handles.table;
    if (core->mirrors.world == NULL)
        return;
    for (uint32_t slot = table_next(table, SLOT_NONE); slot != SLOT_NONE;
         slot = table_next(table, slot)) {
        if (!is_open(file_at(core, slot)))
            open_again(core, slot);
    }
}

/* ---- in turns ---- */

static void try_refused(struct core *core)
{
    struct mirrors *all = &core->mirrors;
    if (list_is_empty(&all->refused) || core->now_ns < all->refused_ns)
        return;
    all->refused_ns = core->now_ns + SECOND_NS;
    for (uint32_t i = 0; i < REFUSED_PER_TURN && i < all->refused_count; i++) {
        struct file *file = LIST_ELEMENT(all->refused.next, struct file, refused);
        list_remove(&file->refused);
        list_append(&all->refused, &file->refused);
        fall_behind(core, (uint32_t)(file - core->files.at));
    }
}

static void wake_waiting(struct core *core)
{
    struct list *waiting = &core->mirrors.waiting;
    if (list_is_empty(waiting) || core->now_ns < core->mirrors.waiting_ns)
        return;
    core->mirrors.waiting_ns = core->now_ns + MIRROR_AGAIN_NS;
    for (uint32_t i = 0; i < WAITING_PER_TURN && !list_is_empty(waiting); i++) {
        const struct waiter *waiter = LIST_ELEMENT(waiting->next, struct waiter, on_program);
        waiter_wake_up(core, table_slot(&core->waiters.table, waiter));
    }
}

uint32_t mirror_waiting_count(const struct core *core)
{
    return core->mirrors.waiting_count;
}

void mirror_work(struct core *core)
{
    if (core->mirrors.world == NULL)
        return;
    uint32_t budget = STRETCHES_PER_TURN;
    tighten_loose(core, &budget);
    try_refused(core);
    catch_up_files(core, &budget);
    wake_waiting(core);
}

uint64_t mirror_deadline_ns(const struct core *core)
{
    const struct mirrors *all = &core->mirrors;
    uint64_t next_ns = UINT64_MAX;
    if (all->loose_count > 0 && all->loose[all->loose_first].txn <= core->durable_txn)
        return core->now_ns;
    if (!list_is_empty(&all->behind) &&
        LIST_ELEMENT(all->behind.next, struct file, behind)->behind_txn <= core->durable_txn)
        return core->now_ns;
    if (!list_is_empty(&all->waiting))
        next_ns = all->waiting_ns;
    if (!list_is_empty(&all->refused))
        next_ns = min_u64(next_ns, all->refused_ns);
    return next_ns;
}

void mirror_check(const struct core *core)
{
    const struct mirrors *all = &core->mirrors;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < all->loose_count; i++) {
        const struct mirror_loose *loose = &all->loose[(all->loose_first + i) % LOOSE_MAX];
        CHECK(loose->start <= loose->end);
        CHECK(is_open(file_at(core, loose->file)));
        CHECK(loose->txn <= core_gate_txn(core));
    }
    for (const struct list *at = all->refused.next; at != &all->refused; at = at->next)
        refused++;
    CHECK(refused == all->refused_count);
    CHECK(all->world != NULL || (list_is_empty(&all->waiting) && all->loose_count == 0));
}
