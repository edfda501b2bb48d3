/*
 * deadlock.h -- would this wait close a circle of owners (R-BLK-18)?
 */
#ifndef CORE_DEADLOCK_H
#define CORE_DEADLOCK_H

#include "core/claim.h"

struct core;

/* Would waiting for this close a circle? `waiter` is the one of this request, if it waits already,
 * else SLOT_NONE: its search continues where the last one ended. */
bool deadlock_closes(struct core *core, const struct claim *claim, uint32_t waiter);

#endif
