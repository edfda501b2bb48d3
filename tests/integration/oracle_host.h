/*
 * oracle_host.h -- hosts that the server calls back, made of libtirpc's server side: a portmapper
 * and NLM at an address of their own.
 *
 * No thread: oracle_host_wait serves them until what the test waits for has arrived. They need a
 * network namespace of their own: port 111 of this machine may be taken.
 */
#ifndef INTEGRATION_ORACLE_HOST_H
#define INTEGRATION_ORACLE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define ORACLE_HOST_BYTES_MAX 64

/* The last call of NLM that a host got. */
struct oracle_host_call {
    uint32_t count; /* of all since it was forgotten */
    uint32_t vers, proc;
    uint32_t cookie_len, fh_len, oh_len;
    char cookie[ORACLE_HOST_BYTES_MAX], fh[ORACLE_HOST_BYTES_MAX], oh[ORACLE_HOST_BYTES_MAX];
    char name[ORACLE_HOST_BYTES_MAX];
    bool exclusive;
    int svid;
    uint64_t offset, len;
    uint32_t status; /* of a *_RES */
};

/* A host at this address (host byte order); its index, or -1. */
int oracle_host_add(uint32_t address);
const struct oracle_host_call *oracle_host_call(int host);
void oracle_host_forget(int host);
/* Serves until the host got this procedure. False: it did not within 10 s. */
bool oracle_host_wait(int host, uint32_t proc);
/* Serves what has arrived. */
void oracle_host_turn(void);

#endif
