/*
 * lease.c -- see lease.h.
 */
#include "base/lease.h"

#include "base/units.h"

#include <stddef.h>

bool lease_is_shared(const struct lease *lease)
{
    return lease != NULL && lease->is_shared;
}

void lease_renew(struct lease *lease, uint64_t confirmed_ns)
{
    lease->confirmed_ns = confirmed_ns;
}

bool lease_may_send(const struct lease *lease, uint64_t boot_ns)
{
    return !lease_is_shared(lease) || boot_ns < lease->confirmed_ns + LEASE_SEND_MS * MS_NS;
}

bool lease_may_move(const struct lease *lease, uint64_t boot_ns)
{
    return !lease_is_shared(lease) || boot_ns <= lease->confirmed_ns + LEASE_HOOK_MS * MS_NS;
}

uint32_t lease_kept_ms(void)
{
    return LEASE_KEPT_MS;
}

static uint64_t left_ns(const struct lease *lease, uint64_t boot_ns, uint64_t length_ms)
{
    uint64_t end_ns = lease_is_shared(lease) ? lease->raised_ns + length_ms * MS_NS : 0;
    return end_ns > boot_ns ? end_ns - boot_ns : 0;
}

uint64_t lease_sends_left_ns(const struct lease *lease, uint64_t boot_ns)
{
    return left_ns(lease, boot_ns, LEASE_SEND_MS);
}

uint64_t lease_echoes_left_ns(const struct lease *lease, uint64_t boot_ns)
{
    return left_ns(lease, boot_ns, (uint64_t)LEASE_SEND_MS + LEASE_KEPT_MS);
}
