/*
 * callout.h -- what to report to the program of --callout, in the order in which it happened.
 *
 *   add-client   a host is watched that was not, in this boot
 *   del-client   it is not any more
 *   sm-notify    a host rebooted, and is believed
 *
 * As rpc.statd does with -H. An entry leaves when what it reports is durable. There is room for a
 * fixed number; what does not fit is counted and lost, so that a slow program delays nothing.
 */
#ifndef CORE_CALLOUT_H
#define CORE_CALLOUT_H

#include "core/core.h"

#define CALLOUT_MAX 2048

struct callout {
    enum core_callout_kind kind;
    uint32_t mon_name;   /* slot in core->names, with a reference */
    uint32_t my_name;    /* the same; SLOT_NONE of sm-notify */
    struct address from; /* of sm-notify */
    uint32_t state;      /* of sm-notify */
    uint64_t after_txn;  /* the batch that must be durable */
};

struct callouts {
    struct callout *at; /* a ring; NULL: no --callout */
    uint32_t head, count;
    bool is_shown; /* the first was taken, and its names are looked at */
    uint64_t lost;
};

struct core;

__attribute__((warn_unused_result)) int callout_init(struct core *core, const uint32_t slots[]);
void callout_done(struct core *core);

/* Of the registrant in this slot. */
void callout_client(struct core *core, enum core_callout_kind kind, uint32_t slot);
void callout_notice(struct core *core, struct bytes name, const struct address *from,
                    uint32_t state);

void callout_check(const struct core *core);

#endif
