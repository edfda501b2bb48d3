/*
 * emu_boot.c -- an emulated host restarts and says so; see emu_boot.h.
 *
 * Names and numbers are what the originals send: Linux says its name and then the name cut at the
 * first dot, illumos every alias it knows, macOS may say an even number at boot.
 */
#include "peer/emu_boot.h"

#include "peer/emu_call.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int emu_boot_notify(struct emu_host *host, const char *mon_name, uint32_t state)
{
    static struct packet call, answer;
    struct packet_reply reply;
    bool was_udp = host->is_udp;
    peer_nsm_put_notify(&call, emu_host_next_xid(host), mon_name, state);
    host->is_udp = true;
    int result = emu_call_raw(host, host->notify_address, &call, &answer, &reply);
    host->is_udp = was_udp;
    if (result < 0)
        return result;
    return peer_nsm_is_void(&reply) ? 0 : -EPROTO;
}

static int say_names(struct emu_host *host)
{
    char name[EMU_HOST_NAME_MAX];
    int result = emu_boot_notify(host, host->name, host->state);
    snprintf(name, sizeof(name), "%s", host->name);
    char *dot = strchr(name, '.');
    if (result == 0 && dot && host->kind->statd != EMU_STATD_EXACT_NAME) {
        *dot = '\0';
        result = emu_boot_notify(host, name, host->state);
    }
    if (result == 0 && host->kind->statd == EMU_STATD_BUCKET)
        result = emu_boot_notify(host, emu_host_address_text(host->address), host->state);
    return result;
}

int emu_boot_restart(struct emu_host *host)
{
    emu_host_restart_lockd(host);
    emu_net_lock();
    host->state += host->kind->is_boot_state_even && host->state % 2 == 1 ? 1 : 2;
    emu_net_unlock();
    return host->kind->statd == EMU_STATD_NONE ? 0 : say_names(host);
}
