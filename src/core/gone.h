/*
 * gone.h -- locks of files that were removed (F-LOCK).
 *
 * A handle whose file has lost its last name is stale for every client: nobody can use what is
 * locked there any more. Who serves the files says so, and what is held goes, with share
 * reservations. Those who wait are then offered what they wait for: GRANTED is the only word by
 * which NLM ends a wait, and what they do next tells them that the file is gone.
 *
 *               gone_begin             all is freed
 *   (nothing) ------------> GOING ---------------------> (nothing)
 *                            |  ^
 *                            +--+ gone_work: GONE_PER_TURN at a time
 */
#ifndef CORE_GONE_H
#define CORE_GONE_H

#include "base/bytes.h"
#include "base/list.h"

struct core;

enum { GONE_PER_TURN = 2000 };

struct gone {
    struct list files; /* whose locks are being freed, with a reference */
};

__attribute__((warn_unused_result)) int gone_init(struct core *core, const uint32_t slots[]);

/* This file was removed. */
void gone_begin(struct core *core, struct bytes fh);

void gone_work(struct core *core);
uint64_t gone_deadline_ns(const struct core *core);

#endif
