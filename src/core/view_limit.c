/*
 * view_limit.c -- limits beside what is used of them, as operators see them; see view.h.
 */
#include "base/check.h"
#include "core/state.h"
#include "core/view.h"

/* `quota` QUOTA_KIND_END: addresses have no share of it. */
struct row {
    const char *name, *option;
    enum quota_kind quota;
    bool is_of_monitor;
};

enum { ROW_BYTES = QUOTA_KIND_END };

static const struct row rows[] = {
    [QUOTA_CLIENT] = {"lock_clients", "--max-clients", QUOTA_CLIENT, false},
    [QUOTA_REGISTRANT] = {"registrations", "--max-clients", QUOTA_REGISTRANT, true},
    [QUOTA_TRACKED] = {"tracked_clients", "--max-clients", QUOTA_TRACKED, false},
    [QUOTA_LOCK] = {"locks", "--max-locks", QUOTA_LOCK, false},
    [QUOTA_SHARE] = {"share_reservations", "--max-locks", QUOTA_SHARE, false},
    [QUOTA_WAITER] = {"waiters", "--max-waiters", QUOTA_WAITER, false},
    [QUOTA_FILE] = {"locked_files", "LimitNOFILE=", QUOTA_FILE, false},
    [ROW_BYTES] = {"name_bytes", "--max-bytes", QUOTA_KIND_END, true},
};

static uint64_t used_of(const struct core *core, size_t row)
{
    switch (row) {
    case QUOTA_CLIENT:
        return core->clients.table.count;
    case QUOTA_REGISTRANT:
        return core->registrants.table.count;
    case QUOTA_TRACKED:
        return core->tracker.table.count;
    case QUOTA_LOCK:
        return core->locks.table.count;
    case QUOTA_SHARE:
        return core->shares.table.count;
    case QUOTA_WAITER:
        return waiter_count(core);
    case QUOTA_FILE:
        return core->mirrors.charged_count;
    case ROW_BYTES:
        return arena_used(core->arena);
    }
    UNREACHABLE();
}

bool view_limit(const struct core *core, uint32_t index, struct view_limit *ret)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        uint64_t max = i == ROW_BYTES ? core->limits.bytes_max : quota_max(core, row->quota);
        if ((core->limits.is_monitor && !row->is_of_monitor) || max == 0 || index-- > 0)
            continue;
        *ret = (struct view_limit){
            .name = row->name, .option = row->option, .max = max, .used = used_of(core, i)};
        if (row->quota == QUOTA_KIND_END || core->limits.is_monitor)
            return true;
        uint32_t share = quota_share(core, row->quota);
        ret->address_max = share == UINT32_MAX ? 0 : share;
        ret->addresses_near = core->quotas.near[row->quota];
        return true;
    }
    return false;
}

uint32_t view_clients_near(const struct core *core, uint32_t *ret_max)
{
    *ret_max = core->limits.locks_per_client_max;
    return core->clients.near_count;
}
