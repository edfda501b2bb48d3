/*
 * emu_host.c -- one emulated client host; see emu_host.h.
 *
 * Sockets, what came in, and answers that are kept back. A host that is unreachable has no sockets
 * for services: the kernel refuses callers as that of a firewall that rejects does.
 */
#include "peer/emu_host.h"

#include "peer/emu_granted.h"
#include "peer/emu_portmap.h"
#include "peer/emu_statd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRIVILEGED_FIRST 1023
#define PRIVILEGED_LAST  600

const char *emu_host_address_text(uint32_t address)
{
    static _Thread_local char text[INET_ADDRSTRLEN];
    snprintf(text, sizeof(text), "%u.%u.%u.%u", address >> 24, address >> 16 & 255,
             address >> 8 & 255, address & 255);
    return text;
}

uint32_t emu_host_next_xid(struct emu_host *host)
{
    emu_net_lock();
    uint32_t xid = ++host->xid;
    emu_net_unlock();
    return xid;
}

/* ---- what comes in ---- */

struct emu_record *emu_host_record(struct emu_host *host, const struct emu_net_message *message,
                                   const struct packet_call *call)
{
    struct sockaddr_in from;
    if (host->record_count == EMU_HOST_RECORDS_MAX) {
        host->records_lost++;
        host->record_count--;
    }
    struct emu_record *record = &host->records[host->record_count++];
    memcpy(&from, &message->from.at, sizeof(from));
    memset(record, 0, sizeof(*record));
    record->at_ns = dial_now_ns();
    record->service = (enum emu_service)message->service;
    record->is_udp = message->is_udp;
    record->from = ntohl(from.sin_addr.s_addr);
    record->from_port = ntohs(from.sin_port);
    record->call = *call;
    return record;
}

static bool serve(const struct emu_net_message *message, struct packet *reply)
{
    struct emu_host *host = message->host;
    struct packet_reader reader = {message->bytes, message->len, false};
    struct packet_call call;
    if (!packet_get_call(&reader, &call))
        return false; /* the void answer to a call of ours */
    switch ((enum emu_service)message->service) {
    case EMU_SERVICE_PORTMAP:
        return emu_portmap_serve(host, message, &call, &reader, reply);
    case EMU_SERVICE_STATD:
        return emu_statd_serve(host, message, &call, &reader, reply);
    case EMU_SERVICE_NLM:
    case EMU_SERVICE_OWN:
        return emu_granted_serve(host, message, &call, &reader, reply);
    }
    return false;
}

/* ---- sockets ---- */

/* Both transports at the same port where that is wished. False: errno says why. */
static bool listen_both(struct emu_host *host, enum emu_service service, uint16_t port,
                        uint16_t *ret_ports)
{
    struct emu_net_owner owner = {.host = host, .service = service, .serve = serve};
    struct dial_endpoint at = dial_endpoint_v4(host->address, port);
    for (int is_udp = 0; is_udp <= 1; is_udp++) {
        int got = emu_net_listen(&owner, &at, is_udp == 1, NULL);
        if (got < 0) {
            errno = -got;
            return false;
        }
        ret_ports[is_udp] = (uint16_t)got;
        if (service == EMU_SERVICE_PORTMAP) /* it has one port, whichever it is */
            at = dial_endpoint_v4(host->address, (uint16_t)got);
    }
    return true;
}

static bool open_services(struct emu_host *host, uint16_t portmap_port)
{
    uint16_t portmap[2];
    if (host->kind->is_unreachable)
        return true;
    if (!listen_both(host, EMU_SERVICE_PORTMAP, portmap_port, portmap) ||
        !listen_both(host, EMU_SERVICE_NLM, 0, host->nlm_port) ||
        (host->kind->statd != EMU_STATD_NONE &&
         !listen_both(host, EMU_SERVICE_STATD, 0, host->statd_port)))
        return false;
    host->portmap_port = portmap[0];
    return true;
}

/* Ports go down from the last one used: the one before may still be in the way. */
static int open_privileged(struct emu_host *host, struct dial_route *route, uint32_t address)
{
    int fd = -EADDRINUSE;
    for (uint32_t tries = 0; tries <= PRIVILEGED_FIRST - PRIVILEGED_LAST; tries++) {
        if (--host->last_privileged_port < PRIVILEGED_LAST)
            host->last_privileged_port = PRIVILEGED_FIRST;
        route->source = dial_endpoint_v4(address, host->last_privileged_port);
        fd = dial_open(route, host->timeout_ms);
        if (fd != -EADDRINUSE && fd != -EADDRNOTAVAIL)
            return fd;
    }
    return fd;
}

int emu_host_open(struct emu_host *host, bool is_udp, uint32_t source_address)
{
    struct dial_route route = {
        .is_udp = is_udp, .server = host->server, .source = dial_endpoint_v4(source_address, 0)};
    emu_net_lock(); /* the services open sockets as well */
    int fd = host->is_privileged ? open_privileged(host, &route, source_address)
                                 : dial_open(&route, host->timeout_ms);
    emu_net_unlock();
    return fd;
}

bool emu_host_send(struct emu_host *host, bool is_udp, const struct packet *call)
{
    struct emu_net_owner owner = {.host = host, .service = EMU_SERVICE_OWN, .serve = serve};
    emu_net_lock();
    bool is_sent = emu_net_send(host->own_socket[is_udp], NULL, call);
    if (!is_sent) {
        emu_net_close(host->own_socket[is_udp]);
        host->own_socket[is_udp] = 0;
        int fd = emu_host_open(host, is_udp, host->address);
        if (fd >= 0)
            host->own_socket[is_udp] = emu_net_adopt(&owner, fd, is_udp);
        is_sent = emu_net_send(host->own_socket[is_udp], NULL, call);
    }
    emu_net_unlock();
    return is_sent;
}

/* ---- life ---- */

static void drop_held(struct emu_host *host)
{
    for (uint32_t i = 0; i < EMU_HOST_HELD_MAX; i++)
        free(host->held[i].message);
    memset(host->held, 0, sizeof(host->held));
}

static void drop_connections(struct emu_host *host)
{
    for (int is_udp = 0; is_udp <= 1; is_udp++) {
        if (host->fd[is_udp] >= 0)
            close(host->fd[is_udp]);
        host->fd[is_udp] = -1;
        emu_net_close(host->own_socket[is_udp]);
        host->own_socket[is_udp] = 0;
    }
}

struct emu_host *emu_host_new(const struct emu_kind *kind, const struct emu_host_config *config)
{
    struct sockaddr_in server;
    struct emu_host *host = calloc(1, sizeof(*host));
    if (!host)
        return NULL;
    memcpy(&server, &config->server.at, sizeof(server));
    host->kind = kind;
    host->address = config->address;
    host->notify_address = config->address;
    host->server = config->server;
    snprintf(host->name, sizeof(host->name), "%s", config->name);
    snprintf(host->server_name, sizeof(host->server_name), "%s",
             config->server_name ? config->server_name
                                 : emu_host_address_text(ntohl(server.sin_addr.s_addr)));
    host->state = 11;
    host->timeout_ms = 10000;
    host->poll_ms = 250;
    host->resend_ms = 500;
    host->is_udp = kind->uses_udp && kind->is_udp_first;
    host->is_privileged = geteuid() == 0;
    host->last_privileged_port = PRIVILEGED_FIRST;
    host->portmap_version_max = 4;
    host->lockd_start = 1700000000;
    host->fd[0] = host->fd[1] = -1;
    host->xid = (uint32_t)dial_now_ns() ^ config->address << 12;
    host->next_svid = 1;
    host->last_call = calloc(1, sizeof(*host->last_call));
    if (!host->last_call || !open_services(host, config->portmap_port)) {
        int error = errno;
        emu_host_free(host);
        errno = error;
        return NULL;
    }
    return host;
}

void emu_host_free(struct emu_host *host)
{
    if (!host)
        return;
    emu_net_lock();
    drop_connections(host);
    emu_net_close_host(host);
    drop_held(host);
    emu_net_unlock();
    free(host->last_call);
    free(host);
}

void emu_host_restart_lockd(struct emu_host *host)
{
    emu_net_lock();
    drop_connections(host);
    drop_held(host);
    memset(host->waits, 0, sizeof(host->waits));
    memset(host->asks, 0, sizeof(host->asks));
    host->lockd_start += 60;
    emu_net_unlock();
}

/* ---- answers kept back ---- */

void emu_host_keep(struct emu_host *host, const struct emu_held *held, const struct packet *message)
{
    for (uint32_t i = 0; i < EMU_HOST_HELD_MAX; i++) {
        struct emu_held *slot = &host->held[i];
        if (slot->is_used)
            continue;
        struct packet *copy = malloc(sizeof(*copy));
        if (!copy)
            return;
        packet_clear(copy);
        packet_put_bytes(copy, message->bytes, message->len);
        *slot = *held;
        slot->is_used = true;
        slot->message = copy;
        return;
    }
}

void emu_host_release_answers(struct emu_host *host)
{
    emu_net_lock();
    host->answer = EMU_ANSWER_HONEST;
    for (uint32_t i = 0; i < EMU_HOST_HELD_MAX; i++) {
        const struct emu_held *held = &host->held[i];
        /* A connection that the server gave up takes its answer with it. */
        if (held->is_used && held->is_call)
            (void)emu_host_send(host, held->is_udp, held->message);
        else if (held->is_used)
            (void)emu_net_send(held->socket, &held->to, held->message);
    }
    drop_held(host);
    emu_net_unlock();
}

/* ---- looking ---- */

const struct emu_record *emu_host_nth(const struct emu_host *host, uint32_t prog, uint32_t proc,
                                      uint32_t nth)
{
    for (uint32_t i = 0; i < host->record_count; i++) {
        const struct emu_record *record = &host->records[i];
        if (record->call.prog == prog && record->call.proc == proc && nth-- == 0)
            return record;
    }
    return NULL;
}

uint32_t emu_host_count(const struct emu_host *host, uint32_t prog, uint32_t proc)
{
    uint32_t count = 0;
    while (emu_host_nth(host, prog, proc, count))
        count++;
    return count;
}

struct wanted {
    const struct emu_host *host;
    uint32_t prog, proc, count;
};

static bool has_enough(void *context)
{
    const struct wanted *wanted = context;
    return emu_host_count(wanted->host, wanted->prog, wanted->proc) >= wanted->count;
}

bool emu_host_wait_count(struct emu_host *host, uint32_t prog, uint32_t proc, uint32_t count,
                         uint32_t timeout_ms)
{
    struct wanted wanted = {host, prog, proc, count};
    return emu_net_wait(has_enough, &wanted, timeout_ms);
}
