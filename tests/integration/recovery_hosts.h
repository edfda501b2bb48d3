/*
 * recovery_hosts.h -- the hosts of lock clients, up to thousands: each has an address, a
 * portmapper, a status monitor and a lock manager.
 *
 * All three are on port 111 of the host's address, over UDP and TCP; the portmapper says so. One
 * thread serves all of them, whatever the test is waiting for. A host that is cut is one whose
 * cable was pulled: nothing that is sent to it arrives, and nobody says so.
 *
 * They need a network namespace of their own: port 111 of this machine may be taken.
 */
#ifndef INTEGRATION_RECOVERY_HOSTS_H
#define INTEGRATION_RECOVERY_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define RECOVERY_HOSTS_NAME_MAX 64

struct recovery_host {
    uint32_t address; /* host byte order, as everywhere here */
    char name[RECOVERY_HOSTS_NAME_MAX];
    uint32_t state;   /* its own NSM state, as SM_STAT is told */
    bool is_udp_only; /* its portmapper knows no TCP services */

    /* What it heard so far. */
    uint32_t notices;       /* SM_NOTIFY, under whatever name */
    uint32_t told_state;    /* the state in the last one */
    uint32_t told_count;    /* how many different ones, one after another */
    uint64_t told_ns;       /* when it heard of the last one first */
    uint32_t stats;         /* SM_STAT */
    uint32_t grants;        /* GRANTED */
    uint32_t granted_svid;  /* for whom, in the last one */
    uint64_t granted_ns;    /* when that came */
    uint32_t strange_calls; /* what no server should send here */
};

/* False: no memory, no thread. */
bool recovery_hosts_start(uint32_t hosts_max);
void recovery_hosts_stop(void);

/* Its index, counted from 0. Ends the test when it cannot have its sockets. */
uint32_t recovery_hosts_add(uint32_t address, const char *name, bool is_udp_only);
/* What it is and has heard by now. */
struct recovery_host recovery_hosts_look(uint32_t host);
void recovery_hosts_set_state(uint32_t host, uint32_t state);
void recovery_hosts_cut(uint32_t host, bool is_cut);

/* The next host that has heard of a state that is new to it, in order of hearing; each is given out
   once per state. False: none so far. */
bool recovery_hosts_take_told(uint32_t *ret_host);
/* Forgets those that were not taken. */
void recovery_hosts_forget_told(void);

#endif
