/*
 * emu_table.h -- the clients that are emulated, and how many hosts each takes.
 */
#ifndef PEER_EMU_TABLE_H
#define PEER_EMU_TABLE_H

#include "peer/emu_host.h"

enum { EMU_TABLE_HOSTS_MAX = 2 };

/* How the hosts of one row differ. */
enum emu_arrangement {
    EMU_ONE,
    EMU_SAME_ADDRESS,  /* two names behind one address */
    EMU_SAME_NAME,     /* two addresses, both say "localhost" */
    EMU_TWO_ADDRESSES, /* one host that locks from one address and sends SM_NOTIFY from another */
};

struct emu_row {
    struct emu_kind kind;
    enum emu_arrangement arrangement;
};

uint32_t emu_table_count(void);
const struct emu_row *emu_table_at(uint32_t index);
/* By name, or NULL. */
const struct emu_row *emu_table_get(const char *name);

/* Makes the hosts of a row; they use config->address and, for two addresses, the one behind it. The
   number of hosts, or 0 with errno. */
uint32_t emu_table_make(const struct emu_row *row, const struct emu_host_config *config,
                        struct emu_host *ret_hosts[static EMU_TABLE_HOSTS_MAX]);

#endif
