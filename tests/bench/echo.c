/*
 * echo.c -- the floor under every server: raw epoll that answers records without looking at them.
 *
 * It reads what is there, finds the records by their marks, and answers each with the same 28 bytes
 * (mark, xid of the call, accepted, SUCCESS, no result), all answers of one read in one write. A
 * server that decodes, dispatches and gates its answers cannot be cheaper on this machine; how near
 * it comes is what `make bench` prints. Listens on loopback only and ends when it is told to.
 *
 * A client that does not take its answers is cut off: there is no queue, so that there is no cost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX  65536
#define CALL_MIN   40 /* the shortest RPC call, without its mark */
#define REPLY_LEN  28
#define OUTPUT_MAX (INPUT_MAX / CALL_MIN * REPLY_LEN)
#define EVENTS_MAX 256
#define MARK_LAST  UINT32_C(0x80000000)

struct connection {
    int fd;
    uint32_t in_len;
    uint8_t in[INPUT_MAX];
};

static uint8_t output[OUTPUT_MAX];

static int fail(const char *what)
{
    fprintf(stderr, "echo: %s: %s\n", what, strerror(errno));
    return 1;
}

static int open_listener(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return -1;
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void accept_all(int epoll_fd, int listener)
{
    int on = 1;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        struct connection *connection = malloc(sizeof(*connection));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (!connection || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
            free(connection);
            close(fd);
            return;
        }
        connection->fd = fd;
        connection->in_len = 0;
    }
}

/* The answers to the whole records at the front of the input; their length, or -1 for garbage. */
static int answer_records(struct connection *connection)
{
    static const uint8_t reply[REPLY_LEN] = {0x80, 0, 0, REPLY_LEN - 4, 0, 0, 0, 0, 0, 0, 0, 1};
    uint32_t at = 0, out_len = 0;
    while (connection->in_len - at >= 4) {
        uint32_t mark;
        memcpy(&mark, connection->in + at, sizeof(mark));
        uint32_t len = ntohl(mark) & ~MARK_LAST;
        if (len < CALL_MIN || len > INPUT_MAX - 4)
            return -1;
        if (connection->in_len - at - 4 < len)
            break;
        memcpy(output + out_len, reply, REPLY_LEN);
        memcpy(output + out_len + 4, connection->in + at + 4, 4);
        out_len += REPLY_LEN;
        at += 4 + len;
    }
    memmove(connection->in, connection->in + at, connection->in_len - at);
    connection->in_len -= at;
    return (int)out_len;
}

/* False: the connection is over. */
static bool serve(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->in + connection->in_len,
                       INPUT_MAX - connection->in_len, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0)
        return false;
    connection->in_len += (uint32_t)got;
    int len = answer_records(connection);
    return len >= 0 &&
           (len == 0 || send(connection->fd, output, (size_t)len, MSG_NOSIGNAL) == (ssize_t)len);
}

int main(void)
{
    struct epoll_event events[EVENTS_MAX], event = {.events = EPOLLIN, .data.ptr = NULL};
    uint16_t port;
    int listener = open_listener(&port);
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (listener < 0 || epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) < 0)
        return fail("cannot listen on loopback");
    printf("echo: ready on port %u\n", port);
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
        if (count < 0 && errno != EINTR)
            return fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection) {
                accept_all(epoll_fd, listener);
            } else if (!serve(connection)) {
                close(connection->fd);
                free(connection);
            }
        }
    }
}
