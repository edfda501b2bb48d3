/*
 * emu_boot.h -- an emulated host restarts and says so.
 */
#ifndef PEER_EMU_BOOT_H
#define PEER_EMU_BOOT_H

#include "peer/emu_host.h"

/* SM_NOTIFY over UDP from host->notify_address. 0 when the void answer came. */
int emu_boot_notify(struct emu_host *host, const char *mon_name, uint32_t state);
/* Everything is forgotten, the state grows, SM_NOTIFY goes out as the kind does it. A kind without
   a status monitor says nothing. */
int emu_boot_restart(struct emu_host *host);

#endif
