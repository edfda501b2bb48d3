/*
 * parts.h -- what the core is made of: one row for each part, for code that means all of them.
 */
#ifndef CORE_PARTS_H
#define CORE_PARTS_H

#include <stdint.h>

struct core;

/* Reserves what each needs, by how many slots the tables of the store's kinds have. */
__attribute__((warn_unused_result)) int parts_init(struct core *core, const uint32_t slots[]);
void parts_done(struct core *core);

/* One piece of whatever is done in pieces; when the next is due, UINT64_MAX: not as things are. */
void parts_work(struct core *core);
uint64_t parts_deadline_ns(const struct core *core);

void parts_check(const struct core *core);

#endif
