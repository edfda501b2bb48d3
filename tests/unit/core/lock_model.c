/*
 * lock_model.c -- see lock_model.h. Loops over positions, no cleverness.
 */
#include "lock_model.h"

#include "base/check.h"

struct who lock_model_who(const struct lock_model *model, uint32_t owner, uint32_t file)
{
    return (struct who){.client = owner % model->client_count, .svid = 100 + owner, .file = file};
}

uint64_t lock_model_start(const struct lock_model *model, uint32_t first)
{
    return model->bounds[first];
}

uint64_t lock_model_end(const struct lock_model *model, uint32_t last)
{
    return last + 1 == model->position_count ? model->top : model->bounds[last + 1] - 1;
}

static bool is_same(struct model_kind a, struct model_kind b)
{
    if (!a.is_held || !b.is_held)
        return a.is_held == b.is_held;
    return a.exclusive == b.exclusive && a.is_unmonitored == b.is_unmonitored &&
           a.state == b.state && a.incarnation == b.incarnation;
}

static bool is_older(uint32_t state, uint32_t than)
{
    return state != than && than - state < UINT32_C(1) << 31;
}

bool lock_model_is_doomed(const struct lock_model *model, uint32_t owner, struct model_kind kind)
{
    uint32_t client = owner % model->client_count;
    uint32_t below = model->clients[client].free_below;
    if (!kind.is_held)
        return false;
    return kind.incarnation != model->clients[client].incarnation ||
           (below != 0 && kind.state != 0 && is_older(kind.state, below));
}

struct model_kind lock_model_kind(const struct lock_model *model, uint32_t owner, bool exclusive,
                                  uint32_t state, bool is_unmonitored)
{
    uint32_t client = owner % model->client_count;
    struct model_kind kind = {.is_held = true,
                              .exclusive = exclusive,
                              .is_unmonitored = is_unmonitored,
                              .state = state,
                              .incarnation = model->clients[client].incarnation};
    if (lock_model_is_doomed(model, owner, kind))
        kind.state = model->clients[client].free_below;
    return kind;
}

static bool overlap(struct model_range a, struct model_range b)
{
    return a.file == b.file && a.first <= b.last && b.first <= a.last;
}

bool lock_model_is_free(const struct lock_model *model, struct model_range range, bool exclusive)
{
    for (uint32_t owner = 0; owner < model->owner_count; owner++)
        for (uint32_t p = range.first; p <= range.last; p++) {
            struct model_kind held = model->at[range.file][owner][p];
            if (owner != range.owner && held.is_held && (held.exclusive || exclusive))
                return false;
        }
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++) {
        const struct model_offer *offer = &model->offers[i];
        if (offer->is_live && offer->range.owner != range.owner && overlap(offer->range, range) &&
            (offer->kind.exclusive || exclusive))
            return false;
    }
    return true;
}

bool lock_model_covers(const struct lock_model *model, struct model_range range, bool exclusive)
{
    for (uint32_t p = range.first; p <= range.last; p++) {
        struct model_kind held = model->at[range.file][range.owner][p];
        if (!held.is_held || (exclusive && !held.exclusive) ||
            lock_model_is_doomed(model, range.owner, held))
            return false;
    }
    return true;
}

/* The first position behind the lock that begins at `first`. */
static uint32_t run_end(const struct lock_model *model, const struct model_kind *at, uint32_t first)
{
    uint32_t p = first;
    while (p < model->position_count && is_same(at[p], at[first]))
        p++;
    return p;
}

/* Locks that are to be freed go whole when any of their bytes is touched. */
static void clear_doomed(struct lock_model *model, struct model_range range)
{
    struct model_kind *at = model->at[range.file][range.owner];
    for (uint32_t first = 0, end; first < model->position_count; first = end) {
        end = run_end(model, at, first);
        if (first <= range.last && end > range.first &&
            lock_model_is_doomed(model, range.owner, at[first]))
            for (uint32_t p = first; p < end; p++)
                at[p] = (struct model_kind){0};
    }
}

/* What became one lock was asked for when its latest byte was. */
static void unite(struct lock_model *model, struct model_range range)
{
    struct model_kind *at = model->at[range.file][range.owner];
    for (uint32_t first = 0, end; first < model->position_count; first = end) {
        end = run_end(model, at, first);
        uint64_t latest = 0;
        for (uint32_t p = first; p < end; p++)
            latest = at[p].asked > latest ? at[p].asked : latest;
        for (uint32_t p = first; p < end; p++)
            at[p].asked = latest;
    }
}

void lock_model_take(struct lock_model *model, struct model_range range, struct model_kind kind)
{
    clear_doomed(model, range);
    kind.asked = ++model->asked;
    for (uint32_t p = range.first; p <= range.last; p++)
        model->at[range.file][range.owner][p] = kind;
    unite(model, range);
}

void lock_model_release(struct lock_model *model, struct model_range range)
{
    clear_doomed(model, range);
    for (uint32_t p = range.first; p <= range.last; p++)
        model->at[range.file][range.owner][p] = (struct model_kind){0};
}

/* What was taken in a later life than the offer was asked for in stays that life's. */
static bool is_later(struct model_kind held, const struct model_offer *offer)
{
    return held.is_held && held.state != 0 && held.state != offer->kind.state &&
           held.asked > offer->kind.asked;
}

void lock_model_accept(struct lock_model *model, struct model_offer *offer)
{
    struct model_range range = offer->range;
    clear_doomed(model, range);
    for (uint32_t p = range.first; p <= range.last; p++) {
        struct model_kind *at = &model->at[range.file][range.owner][p];
        bool exclusive = (at->is_held && at->exclusive) || offer->kind.exclusive;
        struct model_kind before = *at, later = is_later(*at, offer) ? *at : offer->kind;
        *at = offer->kind;
        at->exclusive = exclusive;
        at->state = later.state;
        at->asked = is_same(*at, before) && before.asked > later.asked ? before.asked : later.asked;
        unite(model, range);
    }
    offer->is_live = false;
}

/* ---- comparing ---- */

static struct model_kind kind_of(const struct lock *lock)
{
    return (struct model_kind){.is_held = true,
                               .exclusive = lock->claim.exclusive,
                               .is_unmonitored = (lock->flags & RECORD_LOCK_UNMONITORED) != 0,
                               .state = lock->state,
                               .incarnation = lock->incarnation};
}

static const struct model_offer *find_offer(const struct lock_model *model, uint32_t slot)
{
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++)
        if (model->offers[i].is_live && model->offers[i].slot == slot)
            return &model->offers[i];
    return NULL;
}

/* Is this held lock exactly one run of the model? */
static bool is_run(const struct lock_model *model, const struct lock *lock, uint32_t file,
                   uint32_t owner)
{
    const struct model_kind *at = model->at[file][owner];
    for (uint32_t first = 0, end; first < model->position_count; first = end) {
        end = run_end(model, at, first);
        if (at[first].is_held && lock_model_start(model, first) == lock->claim.start)
            return lock_model_end(model, end - 1) == lock->claim.end &&
                   is_same(at[first], kind_of(lock));
    }
    return false;
}

static bool is_offer(const struct lock_model *model, const struct lock *lock, uint32_t slot,
                     uint32_t file, uint32_t owner)
{
    const struct model_offer *offer = find_offer(model, slot);
    return offer != NULL && offer->range.file == file && offer->range.owner == owner &&
           lock_model_start(model, offer->range.first) == lock->claim.start &&
           lock_model_end(model, offer->range.last) == lock->claim.end &&
           is_same(offer->kind, kind_of(lock));
}

/* Elements of the file; if there is a range, those of other owners that are in its way. */
static uint32_t count_elements(const struct lock_model *model, uint32_t file,
                               const struct model_range *range, bool exclusive, uint32_t *ret_first)
{
    uint32_t count = 0, lowest = UINT32_MAX;
    for (uint32_t owner = 0; owner < model->owner_count; owner++) {
        const struct model_kind *at = model->at[file][owner];
        for (uint32_t first = 0, end; first < model->position_count; first = end) {
            end = run_end(model, at, first);
            if (!at[first].is_held)
                continue;
            if (range != NULL && (owner == range->owner || first > range->last ||
                                  end <= range->first || !(exclusive || at[first].exclusive)))
                continue;
            count++;
            lowest = first < lowest ? first : lowest;
        }
    }
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++) {
        const struct model_offer *offer = &model->offers[i];
        if (!offer->is_live || offer->range.file != file)
            continue;
        if (range != NULL &&
            (offer->range.owner == range->owner || !overlap(offer->range, *range) ||
             !(exclusive || offer->kind.exclusive)))
            continue;
        count++;
        lowest = offer->range.first < lowest ? offer->range.first : lowest;
    }
    *ret_first = lowest;
    return count;
}

const char *lock_model_difference(const struct lock_model *model, const struct core *core,
                                  uint32_t file)
{
    uint32_t ignored, wanted = count_elements(model, file, NULL, true, &ignored), count = 0;
    uint32_t at = lock_world_file(core, file);
    if (at == SLOT_NONE)
        return wanted == 0 ? NULL : "the file is gone";
    const struct spans *spans = &core->locks.by_start;
    uint32_t slot = span_first(spans, file_at(core, at)->locks);
    for (; slot != SLOT_NONE; slot = span_next(spans, file_at(core, at)->locks, slot), count++) {
        const struct lock *lock = lock_at(core, slot);
        uint32_t owner = owner_at(core, lock->claim.owner)->svid - 100;
        if (lock->flags & RECORD_LOCK_OFFER) {
            if (!is_offer(model, lock, slot, file, owner))
                return "an offer that the model does not have";
        } else if (!is_run(model, lock, file, owner)) {
            return "a held lock that the model does not have";
        }
    }
    return count == wanted ? NULL : "fewer elements than the model has";
}

const char *lock_model_search_difference(const struct lock_model *model, const struct core *core,
                                         struct model_range range, bool exclusive)
{
    struct who who = lock_model_who(model, range.owner, range.file);
    uint64_t start = lock_model_start(model, range.first);
    uint64_t end = lock_model_end(model, range.last);
    struct claim claim = lock_world_claim(core, who, start, end, exclusive);
    uint32_t lowest, count = count_elements(model, range.file, &range, exclusive, &lowest);
    if (claim.file == SLOT_NONE)
        return count == 0 ? NULL : "the file is gone";
    uint32_t slot = lock_find_conflict(core, &claim);
    if (slot != SLOT_NONE &&
        (count == 0 || lock_at(core, slot)->claim.start != model->bounds[lowest]))
        return "the first in the way is another";
    for (uint32_t before = SLOT_NONE; slot != SLOT_NONE; count--) {
        const struct lock *lock = lock_at(core, slot);
        if (count == 0)
            return "more in the way than in the model";
        if (lock->claim.owner == claim.owner || lock->claim.start > end ||
            lock->claim.end < start || !(exclusive || lock->claim.exclusive))
            return "something that is not in the way";
        if (before != SLOT_NONE &&
            !(lock_at(core, before)->claim.start < lock->claim.start ||
              (lock_at(core, before)->claim.start == lock->claim.start && before < slot)))
            return "not in order";
        before = slot;
        slot = lock_next_conflict(core, &claim, slot);
    }
    if (count != 0)
        return "less in the way than in the model";
    bool covers = claim.owner != SLOT_NONE && lock_covers(core, &claim);
    return covers == lock_model_covers(model, range, exclusive) ? NULL : "covers something else";
}

/* ---- draining ---- */

static bool has_held(const struct core *core, struct who who, uint64_t start)
{
    uint32_t file = lock_world_file(core, who.file), owner = lock_world_owner(core, who);
    if (file == SLOT_NONE || owner == SLOT_NONE)
        return false;
    const struct spans *spans = &core->locks.by_start;
    for (uint32_t slot = span_first(spans, file_at(core, file)->locks); slot != SLOT_NONE;
         slot = span_next(spans, file_at(core, file)->locks, slot)) {
        const struct lock *lock = lock_at(core, slot);
        if (lock->claim.owner == owner && lock->claim.start == start &&
            !(lock->flags & RECORD_LOCK_OFFER))
            return true;
    }
    return false;
}

static uint32_t drained_in(struct lock_model *model, const struct core *core, uint32_t file,
                           uint32_t owner)
{
    uint32_t count = 0;
    struct model_kind *at = model->at[file][owner];
    struct who who = lock_model_who(model, owner, file);
    for (uint32_t first = 0, end; first < model->position_count; first = end) {
        end = run_end(model, at, first);
        if (!lock_model_is_doomed(model, owner, at[first]) ||
            has_held(core, who, lock_model_start(model, first)))
            continue;
        for (uint32_t p = first; p < end; p++)
            at[p] = (struct model_kind){0};
        count++;
    }
    return count;
}

uint32_t lock_model_drained(struct lock_model *model, const struct core *core, uint32_t client)
{
    uint32_t count = 0;
    for (uint32_t owner = client; owner < model->owner_count; owner += model->client_count)
        for (uint32_t file = 0; file < model->file_count; file++)
            count += drained_in(model, core, file, owner);
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++) {
        struct model_offer *offer = &model->offers[i];
        if (!offer->is_live || offer->range.owner % model->client_count != client ||
            !lock_model_is_doomed(model, offer->range.owner, offer->kind) ||
            table_is_live(&core->locks.table, offer->slot))
            continue;
        offer->is_live = false;
        count++;
    }
    return count;
}

bool lock_model_has_doomed(const struct lock_model *model, uint32_t client)
{
    for (uint32_t owner = client; owner < model->owner_count; owner += model->client_count)
        for (uint32_t file = 0; file < model->file_count; file++)
            for (uint32_t p = 0; p < model->position_count; p++)
                if (lock_model_is_doomed(model, owner, model->at[file][owner][p]))
                    return true;
    for (uint32_t i = 0; i < MODEL_OFFERS_MAX; i++) {
        const struct model_offer *offer = &model->offers[i];
        if (offer->is_live && offer->range.owner % model->client_count == client &&
            lock_model_is_doomed(model, offer->range.owner, offer->kind))
            return true;
    }
    return false;
}
