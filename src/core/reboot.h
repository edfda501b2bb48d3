/*
 * reboot.h -- clients that rebooted, and how that is believed (R-ID-3, R-SEC-3..5, P5).
 *
 * Three things say so: an SM_NOTIFY, a LOCK with a newer state than any before, and FREE_ALL
 * (client.h). What the client held before is freed, on all shares, and its waiters end; what it
 * took since is not touched, because every lock is stamped with the state it was granted under.
 *
 *   SM_NOTIFY(name, state) from an address:
 *     (a) the client of that address and exactly that name .................. believed; a name
 *         without a domain that several clients of that address have ........ ignored, logged
 *     (b) the only client of that address, under another name, or the only
 *         one that has it with or without a domain .......................... if its own status
 *         monitor says exactly that state, and it is newer than the one we know;
 *         if it is not newer ................................................ ignored, not logged
 *     (c) a client of that name at another address .......................... if the status monitor
 *         at the recorded address says a newer state than the one we know
 *     otherwise ............................................................. ignored, logged once
 *
 *   a status monitor counts when it is calibrated (client.h), and in (b), (c) and what we ask of
 *   our own accord only of the single client of an address; else it is as if it had not answered
 *
 *   a state that is believed, against `state_seen` (serial comparison):
 *     newer ..... everything stamped older is freed; it becomes state_seen
 *     equal ..... what is stamped older is freed: a repeat frees nothing
 *     older ..... ignored, unless the status monitor confirms it: its counter started over
 *     unknown ... believed under (a)
 */
#ifndef CORE_REBOOT_H
#define CORE_REBOOT_H

#include "core/message.h"
#include "core/status.h"

struct core;
struct probe_question;

/* What a notice was; when it concerned several clients, the last of these that applies. */
enum reboot_heard {
    REBOOT_UNHEARD,   /* no client is meant, or none that it is believed of */
    REBOOT_NOT_NEW,   /* the same: one is meant, by another name, whose state is as new; a host
                       * sends all its names one after another */
    REBOOT_AMBIGUOUS, /* the same: one of several is meant, nobody knows which; logged */
    REBOOT_ASKING,    /* nothing yet: a status monitor is asked */
    REBOOT_REPEATED,  /* believed, and known before */
    REBOOT_NEWS,      /* believed */
};

/* SM_NOTIFY with an acceptable name. */
enum reboot_heard reboot_hear(struct core *core, const struct address *from, struct bytes mon_name,
                              uint32_t state);

/*
 * An ordinary LOCK of a known client carries this state (0: none; SHARE has none). A newer one
 * means that its SM_NOTIFY was lost: what it held before is to be freed first (R-SEC-5). An older
 * one starts a probe.
 */
void reboot_of_request(struct core *core, uint32_t client, uint32_t state);
/* A reclaim's state: remembered if it is newer, and nothing is freed (R-SEC-3). */
void reboot_of_reclaim(struct core *core, uint32_t client, uint32_t state);

/* The answer to a probe (probe.h): the host's own state, 0 when it did not say. */
void reboot_probed(struct core *core, uint32_t client, const struct probe_question *question,
                   uint32_t state);

#endif
