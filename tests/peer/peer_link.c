/*
 * peer_link.c -- one connection of an NFS client; see peer_link.h.
 *
 * Sockets are dial.c's; records are cut and put together here, because dial's fit a packet. Closing
 * resets the connection (SO_LINGER with 0): no TIME_WAIT stands in the way of coming back from the
 * same port.
 */
#include "peer/peer_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LAST_FRAGMENT = 1 << 7, /* of a mark's first byte */
    PAUSE_MS = 20,          /* between two attempts to connect */
};

bool peer_link_init(struct peer_link *link, const struct dial_route *route)
{
    *link = (struct peer_link){.timeout_ms = 30000,
                               .next_xid = (uint32_t)dial_now_ns() ^ (uint32_t)getpid() << 20,
                               .route = *route,
                               .fd = -1,
                               .answer = malloc(PEER_LINK_RECORD_MAX)};
    return link->answer != NULL;
}

void peer_link_done(struct peer_link *link)
{
    peer_link_close(link);
    free(link->answer);
    link->answer = NULL;
}

/* Somebody else got it while this link was closed. */
static void forget_port(struct dial_endpoint *source)
{
    if (source->at.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&source->at)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&source->at)->sin_port = 0;
}

int peer_link_open(struct peer_link *link)
{
    if (link->fd >= 0)
        return 0;
    int fd = dial_open(&link->route, link->timeout_ms);
    if (fd == -EADDRINUSE && link->is_hard) {
        forget_port(&link->route.source);
        fd = dial_open(&link->route, link->timeout_ms);
    }
    if (fd < 0)
        return fd;
    struct dial_endpoint here = {.len = sizeof(here.at)};
    if (getsockname(fd, (struct sockaddr *)&here.at, &here.len) == 0)
        link->route.source = here;
    link->fd = fd;
    return 0;
}

void peer_link_close(struct peer_link *link)
{
    struct linger at_once = {.l_onoff = 1};
    if (link->fd < 0)
        return;
    if (!link->route.is_udp)
        setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(link->fd);
    link->fd = -1;
}

static void put_identity(struct packet *head, const struct peer_link_identity *who)
{
    static const char machine[] = "peer-nfs"; /* a multiple of four: no padding */
    packet_put_u32(head, who->is_none ? PACKET_AUTH_NONE : PACKET_AUTH_SYS);
    packet_put_u32(head, who->is_none ? 0 : 4 + 4 + 8 + 4 + 4 + 4 + 4 * who->group_count);
    if (!who->is_none) {
        packet_put_u32(head, 1); /* stamp */
        packet_put_text(head, machine);
        packet_put_u32(head, who->uid);
        packet_put_u32(head, who->gid);
        packet_put_u32(head, who->group_count);
        for (uint32_t i = 0; i < who->group_count; i++)
            packet_put_u32(head, who->groups[i]);
    }
    packet_put_u32(head, PACKET_AUTH_NONE); /* verifier */
    packet_put_u32(head, 0);
}

void peer_link_begin(struct peer_link *link, struct peer_link_call *call, uint32_t prog,
                     uint32_t vers, uint32_t proc)
{
    call->xid = link->next_xid++;
    call->data = NULL;
    call->data_len = 0;
    packet_clear(&call->head);
    packet_put_u32(&call->head, call->xid);
    packet_put_u32(&call->head, 0); /* a call */
    packet_put_u32(&call->head, 2); /* RPC version */
    packet_put_u32(&call->head, prog);
    packet_put_u32(&call->head, vers);
    packet_put_u32(&call->head, proc);
    put_identity(&call->head, &link->who);
}

/* The whole message in one piece of memory: head, data, padding. */
static uint8_t *whole_of(const struct peer_link_call *call, uint32_t *ret_len)
{
    uint32_t padded = (call->data_len + 3) / 4 * 4, len = call->head.len + padded;
    uint8_t *bytes = calloc(1, len + 1);
    if (!bytes)
        return NULL;
    memcpy(bytes, call->head.bytes, call->head.len);
    if (call->data_len > 0)
        memcpy(bytes + call->head.len, call->data, call->data_len);
    *ret_len = len;
    return bytes;
}

static int send_fragment(struct peer_link *link, const uint8_t *bytes, uint32_t len, bool is_last)
{
    uint8_t mark[4] = {(uint8_t)((is_last ? LAST_FRAGMENT : 0) | (uint8_t)(len >> 24)),
                       (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    int result = dial_send(link->fd, mark, sizeof(mark), link->timeout_ms);
    return result < 0 ? result : dial_send(link->fd, bytes, len, link->timeout_ms);
}

int peer_link_send(struct peer_link *link, const struct peer_link_call *call)
{
    uint32_t len = 0, sent = 0;
    int result = peer_link_open(link);
    if (result < 0)
        return result;
    if (call->head.overflowed)
        return -EMSGSIZE;
    uint8_t *bytes = whole_of(call, &len);
    if (!bytes)
        return -ENOMEM;
    if (link->route.is_udp) {
        result = dial_send(link->fd, bytes, len, link->timeout_ms);
        sent = len;
    }
    while (result == 0 && sent < len) {
        uint32_t part = len - sent;
        if (link->fragment_len != 0 && part > link->fragment_len)
            part = link->fragment_len;
        result = send_fragment(link, bytes + sent, part, sent + part == len);
        sent += part;
    }
    free(bytes);
    return result;
}

static int receive_exactly(struct peer_link *link, uint8_t *to, uint32_t len)
{
    while (len > 0) {
        int got = dial_receive(link->fd, to, len, link->timeout_ms);
        if (got <= 0)
            return got == 0 ? -ECONNRESET : got;
        to += got;
        len -= (uint32_t)got;
    }
    return 0;
}

/* The length of a record, or negative errno. */
static int receive_record(struct peer_link *link)
{
    uint32_t len = 0;
    for (bool is_last = false; !is_last;) {
        uint8_t mark[4];
        int result = receive_exactly(link, mark, sizeof(mark));
        if (result < 0)
            return result;
        uint32_t part = (uint32_t)(mark[0] & ~LAST_FRAGMENT) << 24 | (uint32_t)mark[1] << 16 |
                        (uint32_t)mark[2] << 8 | mark[3];
        is_last = (mark[0] & LAST_FRAGMENT) != 0;
        if (part > PEER_LINK_RECORD_MAX - len)
            return -EBADMSG;
        result = receive_exactly(link, link->answer + len, part);
        if (result < 0)
            return result;
        len += part;
    }
    return (int)len;
}

int peer_link_receive(struct peer_link *link, struct packet_reply *ret)
{
    if (link->fd < 0)
        return -ENOTCONN;
    int len = link->route.is_udp
                  ? dial_receive(link->fd, link->answer, PEER_LINK_RECORD_MAX, link->timeout_ms)
                  : receive_record(link);
    if (len < 0)
        return len;
    return packet_get_reply(link->answer, (uint32_t)len, ret) ? 0 : -EBADMSG;
}

static int exchange_once(struct peer_link *link, const struct peer_link_call *call,
                         struct packet_reply *ret)
{
    int result = peer_link_send(link, call);
    while (result == 0) {
        result = peer_link_receive(link, ret);
        if (result == 0 && ret->xid == call->xid)
            return 0;
    }
    return result;
}

int peer_link_exchange(struct peer_link *link, const struct peer_link_call *call,
                       struct packet_reply *ret)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    uint64_t deadline_ns = dial_now_ns() + (uint64_t)link->timeout_ms * 1000000;
    for (;;) {
        int result = exchange_once(link, call, ret);
        bool is_lost = result == -ECONNRESET || result == -ECONNREFUSED || result == -EPIPE ||
                       result == -EADDRNOTAVAIL || result == -ENOTCONN;
        if (result < 0)
            peer_link_close(link); /* what comes late is not taken for an answer */
        if (!link->is_hard || !is_lost || dial_now_ns() > deadline_ns)
            return result;
        link->repeat_count++;
        nanosleep(&pause, NULL);
    }
}
