/*
 * emu_net.c -- the sockets of emulated client hosts; see emu_net.h.
 *
 * Sockets are in one list, newest first. The thread looks a socket up by its number for every
 * event: an event that was fetched before its socket was closed finds nothing.
 */
#include "peer/emu_net.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX 16384
#define BATCH     64
#define WAKE_MS   20
#define SEND_MS   1000
#define MARK_LAST UINT32_C(0x80000000)

enum kind { KIND_DATAGRAMS, KIND_LISTENER, KIND_CONNECTION };

struct conduit {
    struct conduit *next;
    uint64_t number;
    enum kind kind;
    int fd;
    struct emu_net_owner owner;
    struct dial_endpoint from; /* connections: the other end */
    uint32_t in_len;
    uint8_t in[INPUT_MAX];
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_over;
    int epoll_fd;
    uint64_t last_number;
    struct conduit *all;
    struct packet reply;
} net;

bool emu_net_enter(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    bool is_up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return is_up;
}

void emu_net_lock(void)
{
    pthread_mutex_lock(&net.lock);
}

void emu_net_unlock(void)
{
    pthread_mutex_unlock(&net.lock);
}

/* ---- the list ---- */

static struct conduit **find(uint64_t number)
{
    struct conduit **at = &net.all;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void forget(struct conduit **at)
{
    struct conduit *gone = *at;
    /* A server that is being started has copies of our sockets for a moment: closing ours would not
       end its events. */
    (void)epoll_ctl(net.epoll_fd, EPOLL_CTL_DEL, gone->fd, NULL); /* it is there */
    close(gone->fd);
    *at = gone->next;
    free(gone);
}

/* Takes the socket over; 0 when that fails, and then it is closed. */
static uint64_t watch(const struct emu_net_owner *owner, enum kind kind, int fd,
                      const struct dial_endpoint *from)
{
    struct conduit *conduit = calloc(1, sizeof(*conduit));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = net.last_number + 1};
    if (!conduit || epoll_ctl(net.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(conduit);
        close(fd);
        return 0;
    }
    conduit->number = ++net.last_number;
    conduit->kind = kind;
    conduit->fd = fd;
    conduit->owner = *owner;
    conduit->from = *from;
    conduit->next = net.all;
    net.all = conduit;
    return conduit->number;
}

/* ---- serving ---- */

static bool ask_owner(const struct conduit *conduit, const struct dial_endpoint *from,
                      const uint8_t *bytes, uint32_t len)
{
    struct emu_net_message message = {.host = conduit->owner.host,
                                      .service = conduit->owner.service,
                                      .is_udp = conduit->kind == KIND_DATAGRAMS,
                                      .socket = conduit->number,
                                      .from = *from,
                                      .bytes = bytes,
                                      .len = len};
    packet_clear(&net.reply);
    return conduit->owner.serve(&message, &net.reply);
}

/* The owner may close sockets while it serves, also this one: it is looked up again each time. */
static void serve_datagrams(uint64_t number)
{
    static uint8_t in[INPUT_MAX];
    struct conduit *conduit;
    while ((conduit = *find(number))) {
        struct dial_endpoint from = {.len = sizeof(from.at)};
        ssize_t got =
            recvfrom(conduit->fd, in, sizeof(in), 0, (struct sockaddr *)&from.at, &from.len);
        if (got < 0)
            return; /* nothing there, or an ICMP error that nobody wants */
        if (ask_owner(conduit, &from, in, (uint32_t)got))
            (void)emu_net_send(number, &from, &net.reply); /* lost as any datagram may be */
    }
}

static void accept_all(const struct conduit *listener)
{
    for (;;) {
        struct dial_endpoint from = {.len = sizeof(from.at)};
        int fd = accept4(listener->fd, (struct sockaddr *)&from.at, &from.len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        (void)watch(&listener->owner, KIND_CONNECTION, fd, &from);
    }
}

/* Takes one record out of the input. False: there is no whole one, or the input is hopeless. */
static bool take_record(struct conduit *conduit, uint8_t *record, uint32_t *ret_len,
                        bool *ret_is_hopeless)
{
    uint32_t mark = packet_xid(conduit->in, conduit->in_len), len = mark & ~MARK_LAST;
    *ret_is_hopeless = conduit->in_len >= 4 && ((mark & MARK_LAST) == 0 || len > INPUT_MAX - 4);
    if (conduit->in_len < 4 || *ret_is_hopeless || conduit->in_len - 4 < len)
        return false;
    memcpy(record, conduit->in + 4, len);
    memmove(conduit->in, conduit->in + 4 + len, conduit->in_len - 4 - len);
    conduit->in_len -= 4 + len;
    *ret_len = len;
    return true;
}

static void serve_connection(uint64_t number)
{
    static uint8_t record[INPUT_MAX];
    struct conduit *conduit = *find(number);
    bool is_hopeless = false;
    uint32_t len;
    ssize_t got =
        recv(conduit->fd, conduit->in + conduit->in_len, sizeof(conduit->in) - conduit->in_len, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        forget(find(number));
        return;
    }
    conduit->in_len += (uint32_t)got;
    while ((conduit = *find(number)) && take_record(conduit, record, &len, &is_hopeless))
        if (ask_owner(conduit, &conduit->from, record, len))
            (void)emu_net_send(number, NULL, &net.reply); /* the end of it is an event as well */
    if (is_hopeless)
        forget(find(number));
}

static void *serve(void *unused)
{
    struct epoll_event events[BATCH];
    bool is_over = false;
    while (!is_over) {
        int count = epoll_wait(net.epoll_fd, events, BATCH, WAKE_MS);
        emu_net_lock();
        for (int i = 0; i < count; i++) {
            struct conduit *conduit = *find(events[i].data.u64);
            if (!conduit)
                continue;
            if (conduit->kind == KIND_DATAGRAMS)
                serve_datagrams(conduit->number);
            else if (conduit->kind == KIND_LISTENER)
                accept_all(conduit);
            else
                serve_connection(conduit->number);
        }
        if (count > 0)
            pthread_cond_broadcast(&net.changed);
        is_over = net.is_over;
        emu_net_unlock();
    }
    return unused;
}

/* ---- what the hosts and the tests do ---- */

bool emu_net_start(void)
{
    pthread_mutexattr_t nested;
    pthread_condattr_t monotonic;
    pthread_mutexattr_init(&nested);
    pthread_mutexattr_settype(&nested, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&net.lock, &nested);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&net.changed, &monotonic);
    net.is_over = false;
    net.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return net.epoll_fd >= 0 && pthread_create(&net.thread, NULL, serve, NULL) == 0;
}

void emu_net_stop(void)
{
    emu_net_lock();
    net.is_over = true;
    emu_net_unlock();
    pthread_join(net.thread, NULL);
    while (net.all)
        forget(&net.all);
    close(net.epoll_fd);
    pthread_cond_destroy(&net.changed);
    pthread_mutex_destroy(&net.lock);
}

bool emu_net_wait(emu_net_condition_fn is_so, void *context, uint32_t timeout_ms)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    emu_net_lock();
    bool is_met = is_so(context);
    while (!is_met && pthread_cond_timedwait(&net.changed, &net.lock, &deadline) == 0)
        is_met = is_so(context);
    is_met = is_met || is_so(context);
    emu_net_unlock();
    return is_met;
}

int emu_net_listen(const struct emu_net_owner *owner, const struct dial_endpoint *at, bool is_udp,
                   uint64_t *ret_socket)
{
    const struct dial_endpoint nobody = {0};
    struct dial_endpoint bound = {.len = sizeof(bound.at)};
    int on = 1;
    int fd = socket(at->at.ss_family,
                    (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (!is_udp)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at->at, at->len) < 0 ||
        (!is_udp && listen(fd, 64) < 0) ||
        getsockname(fd, (struct sockaddr *)&bound.at, &bound.len) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    emu_net_lock();
    uint64_t number = watch(owner, is_udp ? KIND_DATAGRAMS : KIND_LISTENER, fd, &nobody);
    emu_net_unlock();
    if (number == 0)
        return -ENOMEM;
    if (ret_socket)
        *ret_socket = number;
    return dial_endpoint_port(&bound);
}

uint64_t emu_net_adopt(const struct emu_net_owner *owner, int fd, bool is_udp)
{
    struct dial_endpoint from = {.len = sizeof(from.at)};
    if (getpeername(fd, (struct sockaddr *)&from.at, &from.len) < 0)
        from.len = 0;
    emu_net_lock();
    uint64_t number = watch(owner, is_udp ? KIND_DATAGRAMS : KIND_CONNECTION, fd, &from);
    emu_net_unlock();
    return number;
}

bool emu_net_send(uint64_t socket, const struct dial_endpoint *to, const struct packet *message)
{
    bool is_sent = false;
    emu_net_lock();
    const struct conduit *conduit = *find(socket);
    if (conduit && conduit->kind == KIND_CONNECTION)
        is_sent = dial_send_record(conduit->fd, message->bytes, message->len, SEND_MS) == 0;
    else if (conduit && conduit->from.len == 0 && to)
        is_sent = sendto(conduit->fd, message->bytes, message->len, MSG_NOSIGNAL,
                         (const struct sockaddr *)&to->at, to->len) >= 0;
    else if (conduit)
        is_sent = send(conduit->fd, message->bytes, message->len, MSG_NOSIGNAL) >= 0;
    emu_net_unlock();
    return is_sent;
}

bool emu_net_is_open(uint64_t socket)
{
    emu_net_lock();
    bool is_open = socket != 0 && *find(socket) != NULL;
    emu_net_unlock();
    return is_open;
}

void emu_net_close(uint64_t socket)
{
    emu_net_lock();
    struct conduit **at = find(socket);
    if (*at)
        forget(at);
    emu_net_unlock();
}

void emu_net_close_host(const void *host)
{
    emu_net_lock();
    struct conduit **at = &net.all;
    while (*at) {
        if ((*at)->owner.host == host)
            forget(at);
        else
            at = &(*at)->next;
    }
    emu_net_unlock();
}
