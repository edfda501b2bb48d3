/*
 * machine.h -- the server machine: boots, serves, commits, dies.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "world.h"

/* Load the disk into a new core and a new server: a new run. */
void machine_boot(struct world *world);

/* The process dies here. A batch in flight lands or not; with `power` the disk also loses what was
 * not synced. A restart is put into the queue. */
void machine_crash(struct world *world, const char *why, bool power);

/* One message for the server; false: it is too busy and the sender must keep it. */
bool machine_receive(struct world *world, const struct parcel *parcel);

/* The disk finished the batch with this ticket. */
void machine_commit(struct world *world, uint64_t ticket);

/* The time as the server believes to have lived it (base/pace.h). */
uint64_t machine_now_ns(struct world *world);
/* For stories: the process is not scheduled for so long. Everybody else goes on. */
void machine_stand_still(struct world *world, uint64_t for_ns);

/* It serves and is registered: whoever must be told something is called from now on. */
void machine_ready(struct world *world, uint64_t run);
/* The tick that was asked for last has come. */
void machine_tick(struct world *world, uint64_t ticket);
/* A callback leaves: on a shared disk that is a moment to be replaced at, sometimes. */
void machine_overtake(struct world *world);
/* A server that stood still when the run after this one began goes on. */
void machine_thaw(struct world *world, uint64_t run);
/* Something happened to a call that the server makes. */
void machine_called(struct world *world);

/* The rest of a turn of the loop: hand over a batch, send what may leave, make calls. */
void machine_turn(struct world *world);
/* The same from this step on, 0 being the first. */
void machine_turn_from(struct world *world, uint32_t step);

/* Raw bytes from an address that no owner has. The answer that leaves at once is in *ret, if any.
 */
enum rpc_verdict machine_receive_raw(struct world *world, const struct rpc_source *from,
                                     struct bytes message, struct bytes *ret);

/* The same from a host that answers a call which left from where we listen. */
void machine_hear(struct world *world, const struct address *from, uint16_t port,
                  struct bytes message);
/* What follows a message that was taken: the rest of the turn, if the process lives. */
void machine_received(struct world *world);
/* What the disk holds, loaded into another core, is the same history. */
void machine_compare(struct world *world);

/* SM_SIMU_CRASH was executed: for everybody outside this is another start (D6). */
void machine_begin_anew(struct world *world);

/* Ends the run without a restart. */
void machine_stop(struct world *world);

#endif
