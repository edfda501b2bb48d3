/*
 * emu_statd.h -- the status monitor of an emulated host.
 */
#ifndef PEER_EMU_STATD_H
#define PEER_EMU_STATD_H

#include "peer/emu_host.h"

/* One call, its arguments left in the reader; the lock is held. True: *reply goes back. */
bool emu_statd_serve(struct emu_host *host, const struct emu_net_message *message,
                     const struct packet_call *call, struct packet_reader *reader,
                     struct packet *reply);

#endif
