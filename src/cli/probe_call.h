/*
 * probe_call.h -- probes one host as the server would: portmapper, lock manager and status monitor.
 * Blocking, for a command; each call has its own timeout.
 */
#ifndef CLI_PROBE_CALL_H
#define CLI_PROBE_CALL_H

#include "base/address.h"

/* What one service replied. */
struct probe_service {
    uint16_t tcp_port, udp_port; /* 0: not registered */
    bool is_answering;           /* to NULL */
};

struct probe_report {
    bool has_portmapper;
    bool is_refused; /* nothing listens on the portmapper's port: the host is up */
    struct probe_service locks, status;
    bool has_state; /* SM_STAT was answered */
    uint32_t state;
};

/* Fills in everything; takes a few times `timeout_ms` at worst. */
void probe_host(const struct address *host, int timeout_ms, struct probe_report *ret);

/* The same for an SM_MON registrant: the service it wants to be called at. `port` is tried if its
 * portmapper does not know it (D3). */
void probe_callback(const struct address *host, uint32_t prog, uint32_t vers, uint16_t port,
                    int timeout_ms, struct probe_service *ret);

/* Could it be notified of a restart now? */
bool probe_can_be_told(const struct probe_report *report);
/* One sentence: OK, or what is missing and what to do. */
const char *probe_sentence(const struct probe_report *report);

#endif
