/*
 * watched.h -- the hosts that a status monitor watches for its machine (--role monitor).
 *
 * In that role SM_MON comes from the lock manager of this machine, most often the kernel's,
 * and its locks die with the boot of the machine, not with us. A registrant then means two duties
 * towards two different hosts (docs/decisions/030):
 *
 *   upcall   the host mon_name rebooted: the lock manager is told, over loopback, by the call that
 *            it asked for (a relay, notify.h). Only with a priv of this boot of the machine: to an
 *            older one the kernel frees what somebody else holds by now
 *   peer     this machine rebooted: the host mon_name is told, by SM_NOTIFY under each of our
 *            names, from each of our addresses
 *
 *                SM_MON               the machine reboots
 *   (nothing) -----------> CURRENT -----------------------> OWED ------> (nothing)
 *       ^                  |     ^                          |  ^  told
 *       |   SM_UNMON       |     | told              SM_MON |  | SM_UNMON, or a reboot
 *       +------------------+     |                          v  |
 *                                +------------------- OWED and CURRENT
 *
 * CURRENT: registered in this boot (watched_is_current): the upcall duty stands. OWED: not yet told
 * of our last reboot (watched_is_owed): the peer duty stands. Both are in the record: server_epoch
 * against the server's boot_epoch, told_state against its restart_state. A restart of this process
 * changes neither, so it is an event for nobody.
 *
 * Where the host is: the address that mon_name spells, or what the resolver says of it, which is
 * kept in the record. SM_MON never waits for the resolver (watched_name.c).
 *
 * When: not before the NFS server of this machine is up (core_input CORE_SERVED), or clients would
 * reclaim where nobody answers; --notify-after at the latest. Upcalls do not wait for that.
 */
#ifndef CORE_WATCHED_H
#define CORE_WATCHED_H

#include "base/chains.h"
#include "base/intern.h"
#include "base/timers.h"
#include "core/core.h"
#include "core/notice.h"

struct core;

#define WATCHED_DOUBTS_MAX    4   /* states of one host that are in doubt at a time */
#define WATCHED_VERIFYING_MAX 512 /* hosts that are asked at a time */

/* Of a registrant, beside its record. */
struct watched {
    uint32_t hosts[RECORD_HOSTS_MAX]; /* slots of their addresses, with references; SLOT_NONE */
    uint32_t host_count;
    uint32_t told_from, tried_from; /* bits of core->watching.locals: of this round of SM_NOTIFY */
    uint32_t from;                  /* index of the one that is tried; SLOT_NONE: any */
    uint32_t lookups_failed;        /* in a row */
    bool is_name;                   /* mon_name is for the resolver */
    bool is_asking;
    bool is_reported; /* that it does not resolve */

    /* --verify-notify always: states that it is said to have, and its host is asked about. */
    uint32_t doubts[WATCHED_DOUBTS_MAX];
    uint32_t doubt_count, doubt_attempts;
    uint64_t doubt_until_ns; /* how long its host is asked; 0: it was not asked yet */
    bool is_doubt_newer;     /* than the question in flight */
    bool is_doubt_lost;      /* there were more states than fit: whatever it says was claimed */
    bool is_verifying;
    bool is_heard; /* it registered again since: what is locked now was locked after that reboot */
};

struct watching {
    struct watched *at; /* by slot of the registrant; NULL: another role */
    uint32_t slots_max;
    struct intern addresses;
    struct chains by_host[RECORD_HOSTS_MAX]; /* chain = slot of the address */
    struct timers lookups;                   /* slots whose names are to be asked */
    struct timers doubts;                    /* slots whose hosts are to be asked for their state */
    uint32_t verifying;                      /* hosts that are asked just now */
    uint32_t unresolved;                     /* names without an address */
    uint32_t owed;                           /* hosts not yet told of our last reboot */
    struct address locals[CORE_LOCALS_MAX];
    uint32_t local_count;
    bool is_served;             /* SM_NOTIFY may leave */
    uint64_t served_ns;         /* from then on in any case; UINT64_MAX: we are not ready yet */
    uint64_t lockd_reported_ns; /* when a restart of the lock manager may be reported again */
};

__attribute__((warn_unused_result)) int watched_init(struct core *core, const uint32_t slots[]);
void watched_done(struct core *core);

/* A registrant came, new or with these addresses from the store; it goes. */
void watched_add(struct core *core, uint32_t slot, const struct address *hosts);
void watched_remove(struct core *core, uint32_t slot);
struct watched *watched_at(const struct core *core, uint32_t slot);
/* The addresses as the store keeps them: none for a mon_name that spells its own. */
void watched_put_hosts(const struct core *core, uint32_t slot,
                       struct address ret[static RECORD_HOSTS_MAX]);
/* Where its host is; family 0: not known (yet). */
struct address watched_address(const struct core *core, uint32_t slot);

/* Its priv is of this boot of the machine. */
bool watched_is_current(const struct core *core, uint32_t slot);
/* Its host was not yet told of our last reboot. */
bool watched_is_owed(const struct core *core, uint32_t slot);
/* Our state went up, or we start: who is owed is counted again. */
void watched_count_owed(struct core *core);
/* Something is owed to it or for it, or no address is known of it. */
bool watched_has_duty(const struct core *core, uint32_t slot);
/* What the lock manager is still to be told of its host: a state; 0: nothing. */
uint32_t watched_upcall(const struct core *core, uint32_t slot);
/* The same, and it can be told now. */
bool watched_is_callable(const struct core *core, uint32_t slot);

/* An address of this machine: what it says of itself it knows already. */
bool watched_is_ours(const struct core *core, const struct address *address);
/* SM_NOTIFY came from this address, not one of ours: each registrant of its host is owed an upcall.
 * NOTICE_NEW: one of them did not know; NOTICE_UNHEARD: there is none. */
enum notice_result watched_hear(struct core *core, const struct address *from, uint32_t state);

/* Its lock manager registers it with another priv, and did not unregister it: it has lost its
 * locks, most likely. Reported; with --on-lockd-restart notify everybody is told. */
void watched_lockd_restarted(struct core *core, uint32_t slot);
/* Everybody is told that our locks are lost, though the machine did not reboot. */
void watched_restart_notice(struct core *core);
/* SM_UNMON: it goes, unless its host is still owed something. True: it is gone. */
bool watched_unregister(struct core *core, uint32_t slot);
/* SM_UNMON_ALL with --unmon-all notify: its host is told that its locks are lost. */
void watched_tell_lost(struct core *core, uint32_t slot);

/* Over UDP first, because it costs least; then in turns: one of them a firewall may let through. */
static inline uint32_t watched_transport(uint32_t attempt)
{
    return attempt % 2 == 0 ? TRANSPORT_UDP : TRANSPORT_TCP;
}
/* watched_call.c: the SM_NOTIFY that its host is owed, from the next of our addresses. */
void watched_put_call(struct core *core, uint32_t slot, struct core_call *ret);
/* It has ended. */
void watched_answered(struct core *core, uint32_t slot, uint32_t state, bool is_answered);
/* Another of our addresses was not tried since the last rest. */
bool watched_has_other_way(const struct core *core, uint32_t slot);
/* Not to be tried again in this run: who answered one of our addresses was told. */
void watched_given_up(struct core *core, uint32_t slot);
/* The last state of ours that it was told; 0: none. */
void watched_set_told(struct core *core, uint32_t slot, uint32_t state);
/* It knows this state of ours, from each of our addresses. */
void watched_note_told(struct core *core, uint32_t slot, uint32_t state);
/* What this machine itself is owed as a host that it watches is settled by being here. */
void watched_clear_our_debt(struct core *core);
/* The same of this one, if it is. */
void watched_clear_if_ours(struct core *core, uint32_t slot);
/* Told, and registered by nobody in this boot: the record has no more use. True: it is gone. */
bool watched_clear_debt(struct core *core, uint32_t slot);

/* CORE_READY, CORE_SERVED. */
void watched_ready(struct core *core);
void watched_served(struct core *core);
void watched_work(struct core *core);
uint64_t watched_deadline_ns(const struct core *core);

/* watched_name.c: names to be asked; what was said. `slot` is asked at this time. */
void watched_want_lookup(struct core *core, uint32_t slot, uint64_t time_ns);
bool watched_next_lookup(struct core *core, uint32_t *ret_slot, struct bytes *ret_name);
uint64_t watched_lookup_deadline_ns(const struct core *core);
void watched_resolved(struct core *core, uint32_t slot, const struct address *addresses,
                      uint32_t count);
/* The same of every registrant of this name, which was asked for another reason. */
void watched_resolved_name(struct core *core, struct bytes mon_name,
                           const struct address *addresses, uint32_t count);
/* The addresses of its host are these from now on, as many as there is room for. */
void watched_set_hosts(struct core *core, uint32_t slot, const struct address *hosts,
                       uint32_t count);

/* watched_doubt.c, --verify-notify always: its host is said to have rebooted into this state, and
 * is asked before anybody is told. */
void watched_doubt(struct core *core, uint32_t slot, uint32_t state);
void watched_doubt_name(struct core *core, struct bytes mon_name, uint32_t state);
/* A registrant whose host is asked whether it has this state: the host at this address, or the one
 * of this name without case (SLOT_NONE: of any). SLOT_NONE: there is none. */
uint32_t watched_find_doubt(const struct core *core, const struct address *from, uint32_t fold,
                            uint32_t state);
/* It is registered again. */
void watched_registered_again(struct core *core, uint32_t slot);
void watched_forget_doubts(struct core *core, uint32_t slot);
bool watched_next_question(struct core *core, struct core_call *ret);
uint64_t watched_question_deadline_ns(const struct core *core);
void watched_question_done(struct core *core, uint64_t handle, const struct core_input *input);

void watched_check(const struct core *core);

#endif
