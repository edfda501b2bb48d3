/*
 * withheld.c -- see withheld.h.
 *
 * Always true between steps, and asserted by withheld_check():
 *  (1) An answer hangs on a notice of its sender that waits for the resolver, or on a registrant
 *      whose host is asked, or it is ready.
 *  (2) An address counts its answers here.
 *
 * A notice may be in doubt at several registrants, because its host is watched under several names.
 * Its answer hangs on one after another.
 */
#include "core/withheld.h"

#include "base/check.h"
#include "core/state.h"

_Static_assert(CALLBACK_LATE_MAX + WITHHELD_MAX == CORE_LATE_MAX, "both have their tickets");

int withheld_init(struct core *core, const uint32_t slots[])
{
    struct withhelds *all = &core->withhelds;
    list_init(&all->ready);
    int err = table_init(&all->table, WITHHELD_MAX, sizeof(struct withheld));
    if (err == 0)
        err = chains_init(&all->on_hearsay, HEARSAY_MAX, WITHHELD_MAX);
    if (err == 0)
        err = chains_init(&all->on_doubt, slots[RECORD_REGISTRANT], WITHHELD_MAX);
    return err;
}

void withheld_done(struct core *core)
{
    struct withhelds *all = &core->withhelds;
    table_done(&all->table);
    chains_done(&all->on_hearsay);
    chains_done(&all->on_doubt);
}

static struct withheld *withheld_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->withhelds.table, slot);
}

enum answer_when withheld_keep(struct core *core, const struct address *from,
                               const struct request *request, uint32_t *ret_ticket)
{
    struct withhelds *all = &core->withhelds;
    uint32_t hearsay = hearsay_find(core, from, request->mon_name), doubt = SLOT_NONE;
    if (hearsay == SLOT_NONE)
        doubt = watched_find_doubt(core, from, SLOT_NONE, request->state);
    if (hearsay == SLOT_NONE && doubt == SLOT_NONE)
        return ANSWER_NOW;
    uint32_t quota = quota_find(core, from), slot = SLOT_NONE;
    if (quota == SLOT_NONE || quota_at(core, quota)->withheld_count < WITHHELD_SHARE)
        slot = table_add(&all->table);
    if (slot == SLOT_NONE) {
        MARK("withheld_too_many");
        return ANSWER_NEVER;
    }
    quota = quota_keep(core, from);
    quota_at(core, quota)->keepers++;
    quota_at(core, quota)->withheld_count++;
    *withheld_at(core, slot) = (struct withheld){
        .quota = quota, .state = request->state, .hearsay = hearsay, .doubt = doubt};
    list_init(&withheld_at(core, slot)->ready);
    if (hearsay != SLOT_NONE)
        chains_add(&all->on_hearsay, hearsay, slot);
    else
        chains_add(&all->on_doubt, doubt, slot);
    *ret_ticket = CALLBACK_LATE_MAX + slot;
    return ANSWER_LATER;
}

/* On the next registrant whose host is asked about it, if there is one. */
static void hang(struct core *core, uint32_t slot, uint32_t fold)
{
    struct withheld *answer = withheld_at(core, slot);
    const struct address *from = &quota_at(core, answer->quota)->address;
    answer->hearsay = SLOT_NONE;
    answer->doubt = watched_find_doubt(core, from, fold, answer->state);
    if (answer->doubt != SLOT_NONE)
        chains_add(&core->withhelds.on_doubt, answer->doubt, slot);
    else
        list_append(&core->withhelds.ready, &answer->ready);
}

void withheld_resolved(struct core *core, uint32_t hearsay, bool is_unknown)
{
    struct chains *on_hearsay = &core->withhelds.on_hearsay;
    uint32_t slot, fold = core_find_fold(core, hearsay_name(core, hearsay));
    while ((slot = chains_first(on_hearsay, hearsay)) != SLOT_NONE) {
        chains_remove(on_hearsay, hearsay, slot);
        withheld_at(core, slot)->is_unknown = is_unknown;
        hang(core, slot, fold);
    }
}

void withheld_decided(struct core *core, uint32_t registrant)
{
    struct chains *on_doubt = &core->withhelds.on_doubt;
    uint32_t slot, fold = registrant_at(core, registrant)->mon_fold;
    CHECK(watched_at(core, registrant)->doubt_count == 0);
    while ((slot = chains_first(on_doubt, registrant)) != SLOT_NONE) {
        chains_remove(on_doubt, registrant, slot);
        hang(core, slot, fold);
    }
}

bool withheld_next_answer(struct core *core, struct core_late *ret)
{
    struct withhelds *all = &core->withhelds;
    if (list_is_empty(&all->ready))
        return false;
    MARK("withheld_answered");
    struct withheld *answer = LIST_ELEMENT(all->ready.next, struct withheld, ready);
    uint32_t slot = table_slot(&all->table, answer), quota = answer->quota;
    *ret = (struct core_late){.ticket = CALLBACK_LATE_MAX + slot, .is_unknown = answer->is_unknown};
    list_remove(&answer->ready);
    table_remove(&all->table, slot);
    quota_at(core, quota)->withheld_count--;
    quota_at(core, quota)->keepers--;
    quota_release(core, quota);
    return true;
}

void withheld_check(const struct core *core)
{
    const struct withhelds *all = &core->withhelds;
    table_check(&all->table);
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct withheld *answer = withheld_at(core, slot);
        bool is_ready = answer->hearsay == SLOT_NONE && answer->doubt == SLOT_NONE;
        CHECK(is_ready == !list_is_empty(&answer->ready));
        CHECK(quota_at(core, answer->quota)->withheld_count <= WITHHELD_SHARE);
        if (answer->hearsay != SLOT_NONE) {
            CHECK(chains_has(&all->on_hearsay, answer->hearsay, slot));
            CHECK(table_is_live(&core->hearsays.table, answer->hearsay));
        } else if (answer->doubt != SLOT_NONE) {
            CHECK(chains_has(&all->on_doubt, answer->doubt, slot));
            CHECK(watched_at(core, answer->doubt)->doubt_count > 0);
        }
    }
}
