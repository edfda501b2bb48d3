/*
 * vanish.h -- files that are removed (core/gone.h).
 *
 * Somebody removes a file, and another one is there at once. Nobody relies on anything in the old
 * one any more, client or program. For the sake of the model the new one has its handle: so whoever
 * waits for bytes of the old one is seen to get its answer, and what a crash brings back is locked
 * in the new one until its owner unlocks it, as in its farewell. A real handle never comes back.
 *
 *  V1  What was held in that file, and every reservation of it, is in the batch that follows.
 *
 * A file is removed when no answer and no callback is under way that would make somebody rely on
 * what went with it: a client would learn from NFS that it is gone, and there is none here.
 */
#ifndef SIM_VANISH_H
#define SIM_VANISH_H

#include "locker.h"

/* Nothing unless the plan has it. */
void vanish_init(struct world *world);
/* Some file is removed, if that can be just now: QUEUE_VANISH. */
void vanish_act(struct world *world, uint64_t ticket);
/* This one is; false: it cannot be just now. */
bool vanish_file(struct world *world, uint32_t file);
/* V1: a batch has landed, before the server knows. */
void vanish_stored(struct world *world);

#endif
