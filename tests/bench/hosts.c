/*
 * hosts.c -- one process that plays thousands of hosts, each with a portmapper and one service.
 *
 * usage: hosts FIRST COUNT SECONDS
 *
 * The hosts are COUNT addresses from FIRST on; all of 127/8 is local, so sockets on 0.0.0.0 hear
 * them all and the kernel says which one was meant (IP_PKTINFO, getsockname). Port 111 answers
 * PMAP v2 (NULL, GETPORT) over UDP and TCP and names SERVICE_PORT for every program. That port
 * answers every call with SUCCESS and no result, and remembers: which host was called, with which
 * state (`status` of a callback and `stat_chge` of SM_NOTIFY both begin with a name and a state),
 * and when. Answers leave from the address that was asked.
 *
 * It belongs into a network namespace of its own: it takes port 111 of every address there is. It
 * prints a line of numbers whenever they changed, and ends after SECONDS.
 */
#include "peer/dial.h"
#include "peer/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define PORTMAP_PORT    111
#define SERVICE_PORT    7024
#define PORTMAP_PROGRAM 100000
#define PORTMAP_VERSION 2
#define PORTMAP_GETPORT 3
#define NAME_MAX_LEN    1024
#define INPUT_MAX       4096
#define BATCH           64
#define REPLY_MAX       64
#define RECEIVE_BYTES   (16 << 20)
#define REPORT_NS       UINT64_C(20000000)
#define MARK_LAST       UINT32_C(0x80000000)

enum source_kind { SOURCE_UDP, SOURCE_LISTENER, SOURCE_CONNECTION };

struct source {
    enum source_kind kind;
    int fd;
    uint32_t asked; /* connection: the host that was meant */
    uint32_t in_len;
    uint8_t in[INPUT_MAX];
};

static struct {
    uint32_t first, count;
    bool *is_called; /* by host */
    uint32_t called, asked, calls, foreign, unreadable;
    uint32_t state_low, state_high;
    uint64_t first_ns, last_ns; /* of calls to hosts that had not been called before */
    uint64_t now_ns;
    int epoll_fd;
    struct packet reply;
} hosts = {.state_low = UINT32_MAX};

static void remember_call(uint32_t host, struct packet_reader *arguments)
{
    uint32_t name_len, index = host - hosts.first;
    packet_get_opaque(arguments, NAME_MAX_LEN, &name_len);
    uint32_t state = packet_get_u32(arguments);
    hosts.calls++;
    if (arguments->failed) {
        hosts.unreadable++;
        return;
    }
    if (index >= hosts.count) {
        hosts.foreign++;
        return;
    }
    if (state < hosts.state_low)
        hosts.state_low = state;
    if (state > hosts.state_high)
        hosts.state_high = state;
    if (hosts.is_called[index])
        return;
    hosts.is_called[index] = true;
    if (hosts.called++ == 0)
        hosts.first_ns = hosts.now_ns;
    hosts.last_ns = hosts.now_ns;
}

static void put_accepted(uint32_t xid, enum packet_accept status)
{
    packet_clear(&hosts.reply);
    packet_put_u32(&hosts.reply, xid);
    packet_put_u32(&hosts.reply, 1); /* REPLY */
    packet_put_u32(&hosts.reply, 0); /* accepted, with an empty verifier */
    packet_put_u32(&hosts.reply, PACKET_AUTH_NONE);
    packet_put_u32(&hosts.reply, 0);
    packet_put_u32(&hosts.reply, status);
}

static void answer_portmap(uint32_t xid, uint32_t vers, uint32_t proc)
{
    if (vers != PORTMAP_VERSION) {
        put_accepted(xid, PACKET_PROG_MISMATCH);
        packet_put_u32(&hosts.reply, PORTMAP_VERSION);
        packet_put_u32(&hosts.reply, PORTMAP_VERSION);
    } else if (proc == PORTMAP_GETPORT) {
        hosts.asked++;
        put_accepted(xid, PACKET_SUCCESS);
        packet_put_u32(&hosts.reply, SERVICE_PORT);
    } else {
        put_accepted(xid, proc == 0 ? PACKET_SUCCESS : PACKET_PROC_UNAVAIL);
    }
}

/* Puts the answer of a host into hosts.reply. False: that was no call. */
static bool answer(uint32_t host, const uint8_t *bytes, uint32_t len)
{
    struct packet_reader reader = {bytes, len, false};
    uint32_t xid = packet_get_u32(&reader), type = packet_get_u32(&reader), ignored;
    uint32_t rpc_vers = packet_get_u32(&reader);
    uint32_t prog = packet_get_u32(&reader), vers = packet_get_u32(&reader);
    uint32_t proc = packet_get_u32(&reader);
    for (int i = 0; i < 2; i++) { /* credential and verifier */
        packet_get_u32(&reader);
        packet_get_opaque(&reader, 400, &ignored);
    }
    if (reader.failed || type != 0 || rpc_vers != 2) {
        hosts.unreadable++;
        return false;
    }
    if (prog == PORTMAP_PROGRAM) {
        answer_portmap(xid, vers, proc);
        return true;
    }
    if (proc != 0)
        remember_call(host, &reader);
    put_accepted(xid, PACKET_SUCCESS);
    return true;
}

/* The address a datagram was sent to; the same control message makes the answer leave from it. */
static uint32_t asked_address(struct msghdr *header)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    struct in_pktinfo info;
    if (!control || control->cmsg_level != IPPROTO_IP || control->cmsg_type != IP_PKTINFO)
        return 0;
    memcpy(&info, CMSG_DATA(control), sizeof(info));
    uint32_t address = ntohl(info.ipi_addr.s_addr);
    info.ipi_spec_dst = info.ipi_addr;
    info.ipi_ifindex = 0;
    memcpy(CMSG_DATA(control), &info, sizeof(info));
    return address;
}

static void serve_datagrams(int fd)
{
    static struct mmsghdr messages[BATCH];
    static struct sockaddr_in from[BATCH];
    static struct iovec parts[BATCH];
    static uint8_t in[BATCH][INPUT_MAX], out[BATCH][REPLY_MAX];
    static _Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(sizeof(struct in_pktinfo))];
    uint32_t out_count = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){in[i], INPUT_MAX};
        messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                              .msg_namelen = sizeof(from[i]),
                                              .msg_iov = &parts[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i],
                                              .msg_controllen = sizeof(control[i])};
    }
    int count = recvmmsg(fd, messages, BATCH, 0, NULL);
    for (int i = 0; i < count; i++) {
        if (!answer(asked_address(&messages[i].msg_hdr), in[i], messages[i].msg_len))
            continue;
        memcpy(out[i], hosts.reply.bytes, hosts.reply.len);
        parts[i] = (struct iovec){out[i], hosts.reply.len};
        messages[out_count++].msg_hdr = messages[i].msg_hdr;
    }
    for (uint32_t sent = 0; sent < out_count;) {
        int result = sendmmsg(fd, messages + sent, out_count - sent, 0);
        sent += result > 0 ? (uint32_t)result : 1; /* one that cannot be answered is skipped */
    }
}

static bool watch(enum source_kind kind, int fd, uint32_t asked)
{
    struct source *source = malloc(sizeof(*source));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (!source || epoll_ctl(hosts.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        free(source);
        close(fd);
        return false;
    }
    source->kind = kind;
    source->fd = fd;
    source->asked = asked;
    source->in_len = 0;
    return true;
}

static void accept_all(int listener)
{
    for (;;) {
        struct sockaddr_in at;
        socklen_t len = sizeof(at);
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
            close(fd);
        else
            (void)watch(SOURCE_CONNECTION, fd, ntohl(at.sin_addr.s_addr)); /* closed if it failed */
    }
}

/* False: the connection is over. */
static bool serve_connection(struct source *source)
{
    uint32_t at = 0;
    ssize_t got =
        recv(source->fd, source->in + source->in_len, sizeof(source->in) - source->in_len, 0);
    if (got < 0 && errno == EAGAIN)
        return true;
    if (got <= 0)
        return false;
    source->in_len += (uint32_t)got;
    while (source->in_len - at >= 4) {
        uint32_t mark = packet_xid(source->in + at, 4), len = mark & ~MARK_LAST;
        if ((mark & MARK_LAST) == 0 || len > INPUT_MAX - 4)
            return false;
        if (source->in_len - at - 4 < len)
            break;
        if (!answer(source->asked, source->in + at + 4, len) ||
            dial_send_record(source->fd, hosts.reply.bytes, hosts.reply.len, 100) < 0)
            return false;
        at += 4 + len;
    }
    memmove(source->in, source->in + at, source->in_len - at);
    source->in_len -= at;
    return true;
}

static bool listen_on(uint16_t port, int type)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1, bytes = RECEIVE_BYTES;
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
    if (type == SOCK_DGRAM)
        setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
        (type == SOCK_STREAM && listen(fd, 4096) < 0)) {
        fprintf(stderr, "hosts: cannot take port %u: %s\n", port, strerror(errno));
        return false;
    }
    return watch(type == SOCK_DGRAM ? SOURCE_UDP : SOURCE_LISTENER, fd, 0);
}

static void report(void)
{
    printf("hosts called=%u asked=%u calls=%u foreign=%u unreadable=%u first_ns=%" PRIu64
           " last_ns=%" PRIu64 " state_low=%u state_high=%u\n",
           hosts.called, hosts.asked, hosts.calls, hosts.foreign, hosts.unreadable, hosts.first_ns,
           hosts.last_ns, hosts.calls > 0 ? hosts.state_low : 0, hosts.state_high);
    fflush(stdout);
}

static void serve(const struct epoll_event *event)
{
    struct source *source = event->data.ptr;
    switch (source->kind) {
    case SOURCE_UDP:
        serve_datagrams(source->fd);
        break;
    case SOURCE_LISTENER:
        accept_all(source->fd);
        break;
    case SOURCE_CONNECTION:
        if (!serve_connection(source)) {
            close(source->fd);
            free(source);
        }
        break;
    }
}

static void run(uint64_t seconds)
{
    struct epoll_event events[BATCH];
    uint64_t end_ns = dial_now_ns() + seconds * 1000000000, report_ns = 0;
    uint32_t reported = UINT32_MAX;
    while ((hosts.now_ns = dial_now_ns()) < end_ns) {
        uint32_t sum = hosts.asked + hosts.calls + hosts.unreadable;
        if (sum != reported && hosts.now_ns >= report_ns) {
            report();
            reported = sum;
            report_ns = hosts.now_ns + REPORT_NS;
        }
        int count = epoll_wait(hosts.epoll_fd, events, BATCH, 20);
        hosts.now_ns = dial_now_ns();
        for (int i = 0; i < count; i++)
            serve(&events[i]);
    }
    report();
}

int main(int count, char **arguments)
{
    struct in_addr first;
    struct rlimit files;
    if (count != 4 || inet_pton(AF_INET, arguments[1], &first) != 1) {
        fprintf(stderr, "usage: hosts FIRST-ADDRESS COUNT SECONDS\n");
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* what fails shows as hosts that were not called */
    hosts.first = ntohl(first.s_addr);
    hosts.count = (uint32_t)strtoul(arguments[2], NULL, 10);
    hosts.is_called = calloc(hosts.count + 1, sizeof(*hosts.is_called));
    hosts.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!hosts.is_called || hosts.epoll_fd < 0)
        return 1;
    const int types[] = {SOCK_DGRAM, SOCK_STREAM};
    for (int i = 0; i < 2; i++)
        if (!listen_on(PORTMAP_PORT, types[i]) || !listen_on(SERVICE_PORT, types[i]))
            return 1;
    printf("hosts: ready\n");
    run(strtoull(arguments[3], NULL, 10));
    return 0;
}
