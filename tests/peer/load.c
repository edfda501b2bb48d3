/*
 * load.c -- the load engine; see load.h.
 *
 * A link has LOAD_IN_FLIGHT_MAX slots; a call's xid is a running number with the slot in its low
 * bits, so an answer finds its call without a search and a stale xid is recognised. What is posted
 * gathers in the link's output and leaves at the start of the next turn, many calls in one write.
 */
#include "peer/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RESEND_NS   UINT64_C(1000000000)
#define INPUT_MAX   65536
#define EVENTS_MAX  256
#define MARK_LAST   UINT32_C(0x80000000)
#define RECEIVE_MAX 64 /* datagrams per link and turn */

struct slot {
    uint32_t xid; /* 0: free */
    uint64_t tag;
    uint64_t sent_ns;
    uint8_t *datagram; /* UDP: for sending it again */
    uint32_t datagram_len;
};

struct link {
    int fd; /* -1: closed */
    bool is_udp;
    bool wants_write; /* registered for EPOLLOUT */
    bool is_queued;   /* in load->dirty */
    uint32_t in_flight;
    uint32_t sequence;
    uint8_t *out;
    uint32_t out_len, out_max, out_sent;
    uint8_t *in;
    uint32_t in_len;
    struct slot slots[LOAD_IN_FLIGHT_MAX];
};

struct load {
    int epoll_fd;
    uint32_t links_count, links_max;
    struct link *links;
    uint32_t *dirty; /* links with something to write */
    uint32_t dirty_count;
    uint64_t resend_ns; /* when UDP slots are looked at next */
    uint32_t turn_answers;
    load_answer_fn answer;
    void *context;
    struct load_counts counts;
};

struct load *load_new(uint32_t links_max, load_answer_fn answer, void *context)
{
    struct load *load = calloc(1, sizeof(*load));
    if (!load)
        return NULL;
    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    load->links = calloc(links_max, sizeof(*load->links));
    load->dirty = calloc(links_max, sizeof(*load->dirty));
    load->links_max = links_max;
    load->answer = answer;
    load->context = context;
    if (load->epoll_fd < 0 || !load->links || !load->dirty) {
        load_free(load);
        return NULL;
    }
    return load;
}

void load_free(struct load *load)
{
    if (!load)
        return;
    for (uint32_t i = 0; i < load->links_count; i++) {
        load_close(load, i);
        free(load->links[i].out);
        free(load->links[i].in);
    }
    if (load->epoll_fd >= 0)
        close(load->epoll_fd);
    free(load->links);
    free(load->dirty);
    free(load);
}

static void free_slot(struct link *link, struct slot *slot)
{
    free(slot->datagram);
    *slot = (struct slot){0};
    link->in_flight--;
}

void load_close(struct load *load, uint32_t index)
{
    struct link *link = &load->links[index];
    if (link->fd < 0)
        return;
    close(link->fd);
    link->fd = -1;
    load->counts.links_open--;
    for (uint32_t i = 0; i < LOAD_IN_FLIGHT_MAX; i++)
        if (link->slots[i].xid != 0)
            free_slot(link, &link->slots[i]);
}

int load_open(struct load *load, const struct dial_route *route)
{
    if (load->links_count == load->links_max)
        return -ENOSPC;
    uint32_t index = load->links_count;
    struct link *link = &load->links[index];
    int fd = dial_start(route);
    if (fd < 0)
        return fd;
    *link = (struct link){.fd = fd, .is_udp = route->is_udp, .sequence = 1};
    link->in = malloc(INPUT_MAX);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    if (!link->in || epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(link->in);
        close(fd);
        return -ENOMEM;
    }
    load->links_count++;
    load->counts.links_open++;
    return (int)index;
}

static bool reserve_out(struct link *link, uint32_t len)
{
    if (link->out_max - link->out_len >= len)
        return true;
    uint32_t max = link->out_max < 4096 ? 4096 : link->out_max;
    while (max - link->out_len < len)
        max *= 2;
    uint8_t *out = realloc(link->out, max);
    if (!out)
        return false;
    link->out = out;
    link->out_max = max;
    return true;
}

static void set_word(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static struct slot *find_free_slot(struct link *link)
{
    for (uint32_t i = 0; i < LOAD_IN_FLIGHT_MAX; i++)
        if (link->slots[i].xid == 0)
            return &link->slots[i];
    return NULL;
}

bool load_post(struct load *load, uint32_t index, uint64_t tag, const struct packet *call)
{
    struct link *link = &load->links[index];
    if (link->fd < 0 || link->in_flight == LOAD_IN_FLIGHT_MAX)
        return false;
    struct slot *slot = find_free_slot(link);
    uint32_t xid = link->sequence++ * LOAD_IN_FLIGHT_MAX + (uint32_t)(slot - link->slots);
    if (link->is_udp) {
        slot->datagram = malloc(call->len);
        if (!slot->datagram)
            return false;
        memcpy(slot->datagram, call->bytes, call->len);
        slot->datagram_len = call->len;
        set_word(slot->datagram, xid);
    } else {
        if (!reserve_out(link, call->len + 4))
            return false;
        set_word(link->out + link->out_len, MARK_LAST | call->len);
        memcpy(link->out + link->out_len + 4, call->bytes, call->len);
        set_word(link->out + link->out_len + 4, xid);
        link->out_len += call->len + 4;
    }
    slot->xid = xid;
    slot->tag = tag;
    link->in_flight++;
    load->counts.posted++;
    if (!link->is_queued) {
        link->is_queued = true;
        load->dirty[load->dirty_count++] = index;
    }
    return true;
}

uint32_t load_in_flight(const struct load *load, uint32_t link)
{
    return load->links[link].in_flight;
}

bool load_is_open(const struct load *load, uint32_t link)
{
    return load->links[link].fd >= 0;
}

void load_count(const struct load *load, struct load_counts *ret)
{
    *ret = load->counts;
}

static void watch_write(struct load *load, uint32_t index, bool on)
{
    struct link *link = &load->links[index];
    if (link->wants_write == on)
        return;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    if (on)
        event.events |= EPOLLOUT;
    epoll_ctl(load->epoll_fd, EPOLL_CTL_MOD, link->fd, &event);
    link->wants_write = on;
}

/* UDP: sends every slot that was never sent, or not answered for RESEND_NS. */
static void flush_udp(struct load *load, struct link *link, uint64_t now_ns)
{
    for (uint32_t i = 0; i < LOAD_IN_FLIGHT_MAX; i++) {
        struct slot *slot = &link->slots[i];
        if (slot->xid == 0 || (slot->sent_ns != 0 && now_ns - slot->sent_ns < RESEND_NS))
            continue;
        if (slot->sent_ns != 0)
            load->counts.resent++;
        slot->sent_ns = now_ns;
        /* A lost datagram, also one lost right here, is sent again later. */
        (void)send(link->fd, slot->datagram, slot->datagram_len, MSG_NOSIGNAL);
    }
}

static void flush_tcp(struct load *load, uint32_t index)
{
    struct link *link = &load->links[index];
    while (link->out_sent < link->out_len) {
        ssize_t sent = send(link->fd, link->out + link->out_sent, link->out_len - link->out_sent,
                            MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
            watch_write(load, index, true);
            return;
        }
        if (sent < 0)
            break; /* the connection is gone; what it still holds for us is read first */
        link->out_sent += (uint32_t)sent;
    }
    link->out_len = link->out_sent = 0;
    watch_write(load, index, false);
}

static void flush(struct load *load)
{
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < load->dirty_count; i++) {
        struct link *link = &load->links[load->dirty[i]];
        link->is_queued = false;
        if (link->fd < 0)
            continue;
        if (link->is_udp)
            flush_udp(load, link, now_ns);
        else
            flush_tcp(load, load->dirty[i]);
    }
    load->dirty_count = 0;
    if (now_ns < load->resend_ns)
        return;
    load->resend_ns = now_ns + RESEND_NS / 4;
    for (uint32_t i = 0; i < load->links_count; i++)
        if (load->links[i].fd >= 0 && load->links[i].is_udp)
            flush_udp(load, &load->links[i], now_ns);
}

/* One whole answer. */
static void take_answer(struct load *load, uint32_t index, const uint8_t *bytes, uint32_t len)
{
    struct link *link = &load->links[index];
    struct packet_reply reply;
    if (!packet_get_reply(bytes, len, &reply)) {
        load->counts.unreadable++;
        return;
    }
    struct slot *slot = &link->slots[reply.xid % LOAD_IN_FLIGHT_MAX];
    if (slot->xid != reply.xid) {
        load->counts.unexpected++;
        return;
    }
    uint64_t tag = slot->tag;
    free_slot(link, slot);
    load->counts.answered++;
    load->turn_answers++;
    load->answer(load->context, index, tag, &reply);
}

static void read_udp(struct load *load, uint32_t index)
{
    struct link *link = &load->links[index];
    for (uint32_t i = 0; i < RECEIVE_MAX && link->fd >= 0; i++) {
        ssize_t got = recv(link->fd, link->in, INPUT_MAX, 0);
        if (got < 0)
            return; /* nothing there, or an ICMP error of a server that is down: ask again later */
        take_answer(load, index, link->in, (uint32_t)got);
    }
}

/* The records at the front of the input; answers of this server are one fragment each. */
static bool take_records(struct load *load, uint32_t index)
{
    struct link *link = &load->links[index];
    uint32_t at = 0;
    while (link->in_len - at >= 4) {
        uint32_t mark = packet_xid(link->in + at, 4), len = mark & ~MARK_LAST;
        if ((mark & MARK_LAST) == 0 || len > INPUT_MAX - 4) {
            load->counts.unreadable++;
            return false;
        }
        if (link->in_len - at - 4 < len)
            break;
        take_answer(load, index, link->in + at + 4, len);
        if (link->fd < 0)
            return true; /* the owner closed it */
        at += 4 + len;
    }
    memmove(link->in, link->in + at, link->in_len - at);
    link->in_len -= at;
    return true;
}

static void read_tcp(struct load *load, uint32_t index)
{
    struct link *link = &load->links[index];
    ssize_t got = recv(link->fd, link->in + link->in_len, INPUT_MAX - link->in_len, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        load_close(load, index);
        return;
    }
    link->in_len += (uint32_t)got;
    if (!take_records(load, index))
        load_close(load, index);
}

uint32_t load_turn(struct load *load, uint32_t timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    load->turn_answers = 0;
    flush(load);
    int count = epoll_wait(load->epoll_fd, events, EVENTS_MAX, (int)timeout_ms);
    for (int i = 0; i < count; i++) {
        uint32_t index = events[i].data.u32;
        struct link *link = &load->links[index];
        if (link->fd >= 0 && link->is_udp) {
            read_udp(load, index);
            continue;
        }
        if (link->fd >= 0 && (events[i].events & EPOLLOUT) != 0)
            flush_tcp(load, index);
        if (link->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
            read_tcp(load, index);
    }
    return load->turn_answers;
}
