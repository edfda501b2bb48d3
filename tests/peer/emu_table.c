/*
 * emu_table.c -- the clients that are emulated; see emu_table.h.
 *
 * A row says only what tells a client apart; what all have in common is in emu_client.c. The last
 * four are arrangements of Linux clients.
 */
#include "peer/emu_table.h"

#include <stdio.h>
#include <string.h>

/* What every Linux client does. */
#define LINUX                                                                                      \
    .vers = 4, .oh = EMU_OH_TEXT, .cookie_len = 4, .match = EMU_MATCH_ADDRESS,                     \
    .statd = EMU_STATD_ADDRESS_OR_NAME, .lookup = EMU_LOOKUP_PMAP2, .poll = EMU_POLL_REPEAT,       \
    .uses_udp = true

static const struct emu_row rows[] = {
    {.kind = {.name = "linux", LINUX}},
    {.kind = {.name = "linux-2026", LINUX, .is_granted_msg_broken = true}},
    {.kind = {.name = "freebsd",
              .vers = 4,
              .oh = EMU_OH_TEXT,
              .cookie_len = 4,
              .match = EMU_MATCH_EXACT,
              .statd = EMU_STATD_EXACT_NAME,
              .lookup = EMU_LOOKUP_RPCB4_FIRST,
              .poll = EMU_POLL_REPEAT,
              .is_denied_cancel_owned = true,
              .uses_udp = true,
              .is_udp_first = true}},
    {.kind = {.name = "macos",
              .vers = 4,
              .oh = EMU_OH_LOCKD,
              .cookie_len = 8,
              .match = EMU_MATCH_COOKIE,
              .statd = EMU_STATD_NAME_OR_REVERSE,
              .lookup = EMU_LOOKUP_RPCB_ONLY,
              .poll = EMU_POLL_RELOCK,
              .is_async = true,
              .is_boot_state_even = true,
              .uses_udp = true,
              .is_udp_first = true}},
    {.kind = {.name = "solaris",
              .vers = 4,
              .oh = EMU_OH_SYSID,
              .cookie_len = 4,
              .match = EMU_MATCH_OH,
              .statd = EMU_STATD_BUCKET,
              .lookup = EMU_LOOKUP_RPCB4_FIRST,
              .poll = EMU_POLL_REPEAT,
              .is_eof_all_ones = true,
              .uses_udp = true}},
    {.kind = {.name = "pcnfs",
              .vers = 3,
              .oh = EMU_OH_TEXT,
              .cookie_len = 4,
              .match = EMU_MATCH_EXACT,
              .statd = EMU_STATD_NONE,
              .lookup = EMU_LOOKUP_PMAP2,
              .poll = EMU_POLL_REPEAT,
              .is_unmonitored = true,
              .uses_udp = true,
              .is_udp_first = true}},
    {.kind = {.name = "hpux-like",
              .vers = 3,
              .oh = EMU_OH_TEXT,
              .cookie_len = 0,
              .match = EMU_MATCH_EXACT,
              .statd = EMU_STATD_EXACT_NAME,
              .lookup = EMU_LOOKUP_PMAP2,
              .poll = EMU_POLL_REPEAT,
              .uses_udp = true,
              .is_udp_first = true}},
    {.kind = {.name = "nat", LINUX, .is_unreachable = true}, .arrangement = EMU_SAME_ADDRESS},
    {.kind = {.name = "clone", LINUX}, .arrangement = EMU_SAME_NAME},
    {.kind = {.name = "multihomed", LINUX}, .arrangement = EMU_TWO_ADDRESSES},
    {.kind = {.name = "spoofer", LINUX}},
};

uint32_t emu_table_count(void)
{
    return sizeof(rows) / sizeof(rows[0]);
}

const struct emu_row *emu_table_at(uint32_t index)
{
    return &rows[index];
}

const struct emu_row *emu_table_get(const char *name)
{
    for (uint32_t i = 0; i < emu_table_count(); i++)
        if (strcmp(rows[i].kind.name, name) == 0)
            return &rows[i];
    return NULL;
}

uint32_t emu_table_make(const struct emu_row *row, const struct emu_host_config *config,
                        struct emu_host *ret_hosts[static EMU_TABLE_HOSTS_MAX])
{
    bool is_pair = row->arrangement == EMU_SAME_ADDRESS || row->arrangement == EMU_SAME_NAME;
    uint32_t count = is_pair ? 2 : 1;
    struct emu_host *hosts[EMU_TABLE_HOSTS_MAX] = {NULL, NULL};
    for (uint32_t i = 0; i < count; i++) {
        struct emu_host_config one = *config;
        char name[EMU_HOST_NAME_MAX];
        snprintf(name, sizeof(name), is_pair ? "%s%u" : "%s", config->name, i + 1);
        one.name = row->arrangement == EMU_SAME_NAME ? "localhost" : name;
        if (row->arrangement == EMU_SAME_NAME)
            one.address += i;
        hosts[i] = emu_host_new(&row->kind, &one);
        if (!hosts[i]) {
            emu_host_free(hosts[0]);
            return 0;
        }
    }
    if (row->arrangement == EMU_TWO_ADDRESSES)
        hosts[0]->notify_address = hosts[0]->address + 1;
    memcpy(ret_hosts, hosts, sizeof(hosts));
    return count;
}
