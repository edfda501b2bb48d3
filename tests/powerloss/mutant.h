/*
 * mutant.h -- tapes made worse, to show that the checks can fail.
 *
 * Each is the tape that a server with one mistake in its store would have left; nothing else is
 * changed. A replay that does not accuse it cannot accuse a server either.
 */
#ifndef POWERLOSS_MUTANT_H
#define POWERLOSS_MUTANT_H

#include "tape.h"

#define MUTANT_COUNT         8
#define MUTANT_COUNT_PROCESS 1 /* the first so many make sense for --sync process */

const char *mutant_name(uint32_t index);
/* What the mistake is. */
const char *mutant_text(uint32_t index);
/* Shares the data of the tape. False: the tape has no place for this mistake. */
bool mutant_make(uint32_t index, const struct tape *tape, struct tape *ret);

#endif
