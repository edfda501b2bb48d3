/*
 * machine.h -- what this machine says of itself, for the monitor role.
 *
 * The identity of a run of a status monitor is the boot of its machine and the network that it is
 * in, not the process (docs/decisions/030): the locks that it stands for die with that boot.
 */
#ifndef DAEMON_MACHINE_H
#define DAEMON_MACHINE_H

#include "base/address.h"
#include "base/text.h"
#include "store/record.h"

struct machine_identity {
    uint8_t boot[RECORD_BOOT_LEN]; /* /proc/sys/kernel/random/boot_id */
    uint64_t netns;                /* SO_NETNS_COOKIE; 0: this kernel has none */
};

/* 0, or a negative errno with a sentence: the boot is not known. */
__attribute__((warn_unused_result)) int machine_identify(struct machine_identity *ret,
                                                         struct text *ret_why);

/* The addresses of all interfaces, at most `max`; returns how many. */
uint32_t machine_addresses(struct address *ret, uint32_t max);

/* Is an NFS server meant to run here? The kernel's (exports, or it runs), or nfs-ganesha's. */
bool machine_exports(void);

/* When it booted, wall clock, as the clock is set now. */
uint64_t machine_booted_ns(void);
/* sm-notify has run in this boot, or somebody says so: it leaves a file in /run. */
bool machine_ran_sm_notify(void);

/*
 * The kernel's own copy of our state number, and the end of its grace period. Both need root: 0, or
 * a negative errno. -ENOENT: the kernel's lock manager is not loaded.
 */
__attribute__((warn_unused_result)) int machine_set_state(uint32_t state);
__attribute__((warn_unused_result)) int machine_end_grace(void);

#endif
