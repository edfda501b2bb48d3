/*
 * notice.c -- reboots of monitored hosts, as SM_NOTIFY reported them; see notice.h.
 *
 * Always true after core_start, and asserted by notice_check():
 *  (1) Every notice's name is watched by at least one registrant, in some spelling.
 *  (2) There is at most one notice per name, whatever the spelling.
 *
 * Who may speak for a name (D7): only its host. That is a lock client of that name and address
 * which is believed to have rebooted (reboot.h), the address that the name spells, or one that the
 * resolver knows under that name (hearsay.h). To watch a name gives no right to speak for it.
 * Everybody else is ignored: a notice makes us call every registrant of the name, and such calls
 * are not for strangers to order (P5).
 */
#include "core/notice.h"

#include "base/check.h"
#include "core/state.h"

static struct notice *notice_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->notices.table, slot);
}

int notice_init(struct core *core, const uint32_t slots[])
{
    uint32_t slots_max = slots[RECORD_NOTICE];
    int err = table_init(&core->notices.table, slots_max, sizeof(struct notice));
    if (err == 0)
        err = chains_init(&core->notices.by_name, core->folds.table.max, slots_max);
    return err;
}

void notice_done(struct core *core)
{
    table_done(&core->notices.table);
    chains_done(&core->notices.by_name);
}

/* The notice of a name without case, or SLOT_NONE. */
static uint32_t find(const struct core *core, uint32_t fold)
{
    return chains_first(&core->notices.by_name, fold);
}

/* The last thing that was believed of this name is the same, from the same host. */
static bool is_repeat(const struct core *core, const struct address *from, uint32_t fold,
                      uint32_t state)
{
    uint32_t slot = find(core, fold);
    return slot != SLOT_NONE && notice_at(core, slot)->state == state &&
           address_equal(&notice_at(core, slot)->address, from);
}

/* Somebody says so. NOTICE_NEW: it is the host of that name; NOTICE_KNOWN: and it was believed
 * before. */
static enum notice_result weigh(struct core *core, const struct address *from,
                                struct bytes mon_name, uint32_t state, bool is_minor)
{
    struct address named;
    if (is_repeat(core, from, core_find_fold(core, mon_name), state)) {
        MARK("notice_repeated");
        return NOTICE_KNOWN;
    }
    if (!address_parse(mon_name, &named))
        return hearsay_add(core, from, mon_name, state, is_minor) ? NOTICE_ASKING : NOTICE_CROWDED;
    if (!address_equal(&named, from))
        return NOTICE_UNHEARD;
    MARK("notice_by_address");
    return NOTICE_NEW;
}

/* A notice in this slot, linked and holding references to its name. False: no bytes for that. */
static bool fill(struct core *core, uint32_t slot, struct bytes mon_name, struct notice content)
{
    content.mon_name = intern_add(&core->names, mon_name);
    content.mon_fold = core_add_fold(core, mon_name);
    if (content.mon_name == SLOT_NONE || content.mon_fold == SLOT_NONE) {
        if (content.mon_name != SLOT_NONE)
            (void)intern_release(&core->names, content.mon_name);
        if (content.mon_fold != SLOT_NONE)
            (void)intern_release(&core->folds, content.mon_fold);
        return false;
    }
    *notice_at(core, slot) = content;
    chains_add(&core->notices.by_name, content.mon_fold, slot);
    return true;
}

static void drop(struct core *core, uint32_t slot)
{
    struct notice notice = *notice_at(core, slot);
    chains_remove(&core->notices.by_name, notice.mon_fold, slot);
    table_remove(&core->notices.table, slot);
    dirty_delete(&core->dirty, RECORD_NOTICE, slot);
    (void)intern_release(&core->names, notice.mon_name);
    (void)intern_release(&core->folds, notice.mon_fold);
}

enum notice_result notice_hear(struct core *core, const struct address *from, struct bytes mon_name,
                               uint32_t state, enum notice_trust trust)
{
    uint32_t fold = core_find_fold(core, mon_name);
    /* State 0 says nothing: no host that counts its restarts is at 0, and here it means "none". */
    if (state == 0 || fold == SLOT_NONE || !registrant_any_of(core, fold)) {
        MARK("notice_unheard");
        return NOTICE_UNHEARD;
    }
    enum notice_result weighed =
        trust == NOTICE_TRUE ? NOTICE_NEW
                             : weigh(core, from, mon_name, state, trust == NOTICE_MINOR_CLAIM);
    if (weighed != NOTICE_NEW)
        return weighed;
    struct notice content = {.heard_ns = core->wall_ns, .state = state, .address = *from};
    uint32_t slot = find(core, fold);
    if (slot != SLOT_NONE) {
        struct notice *known = notice_at(core, slot);
        if (known->state == state)
            return NOTICE_KNOWN;
        MARK("notice_replaced");
        known->state = state;
        known->heard_ns = core->wall_ns;
        known->address = *from;
    } else {
        slot = table_add(&core->notices.table);
        CHECK(slot != SLOT_NONE); /* as many slots as registrants, and every notice has one */
        if (!fill(core, slot, mon_name, content)) {
            table_remove(&core->notices.table, slot);
            return NOTICE_BYTES;
        }
    }
    dirty_put(&core->dirty, RECORD_NOTICE, slot);
    notify_relay(core, fold);
    return NOTICE_NEW;
}

uint32_t notice_state(const struct core *core, uint32_t fold)
{
    uint32_t slot = find(core, fold);
    return slot == SLOT_NONE ? 0 : notice_at(core, slot)->state;
}

uint64_t notice_heard_ns(const struct core *core, uint32_t fold)
{
    uint32_t slot = find(core, fold);
    return slot == SLOT_NONE ? 0 : notice_at(core, slot)->heard_ns;
}

void notice_unwatched(struct core *core, uint32_t fold)
{
    uint32_t slot = find(core, fold);
    if (slot == SLOT_NONE || registrant_any_of(core, fold))
        return;
    MARK("notice_goes_with_last_registrant");
    drop(core, slot);
}

bool notice_load(struct core *core, uint32_t slot, const struct record_notice *record)
{
    uint32_t fold = core_find_fold(core, record->mon_name);
    bool is_known = fold != SLOT_NONE && find(core, fold) != SLOT_NONE;
    if (is_known || !table_add_at(&core->notices.table, slot))
        return false;
    struct notice content = {
        .heard_ns = record->heard_ns, .state = record->state, .address = record->address};
    CHECK(fill(core, slot, record->mon_name, content)); /* core_new reserved room for the store */
    return true;
}

uint32_t notice_encode(const struct core *core, uint32_t slot, uint8_t *buffer)
{
    const struct notice *notice = notice_at(core, slot);
    struct record_notice record = {.heard_ns = notice->heard_ns,
                                   .address = notice->address,
                                   .state = notice->state,
                                   .mon_name = intern_bytes(&core->names, notice->mon_name)};
    return record_put_notice(buffer, slot, &record);
}

void notice_sweep(struct core *core)
{
    uint32_t slot = table_next(&core->notices.table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&core->notices.table, slot))
        if (!registrant_any_of(core, notice_at(core, slot)->mon_fold))
            drop(core, slot);
}

void notice_check(const struct core *core)
{
    table_check(&core->notices.table);
    uint32_t slot = table_next(&core->notices.table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&core->notices.table, slot)) {
        const struct notice *notice = notice_at(core, slot);
        CHECK(find(core, notice->mon_fold) == slot);
        CHECK(chains_next(&core->notices.by_name, slot) == SLOT_NONE);
        CHECK(bytes_equal_fold(intern_bytes(&core->folds, notice->mon_fold),
                               intern_bytes(&core->names, notice->mon_name)));
        CHECK(registrant_any_of(core, notice->mon_fold) || !core->started);
    }
}
