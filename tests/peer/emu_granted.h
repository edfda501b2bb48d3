/*
 * emu_granted.h -- the NLM service of an emulated host: callbacks and late answers of the server.
 */
#ifndef PEER_EMU_GRANTED_H
#define PEER_EMU_GRANTED_H

#include "peer/emu_host.h"

/* One call, its arguments left in the reader; the lock is held. True: *reply goes back. */
bool emu_granted_serve(struct emu_host *host, const struct emu_net_message *message,
                       const struct packet_call *call, struct packet_reader *reader,
                       struct packet *reply);

#endif
