/*
 * link.c -- see link.h.
 *
 * Just enough of HTTP for one server, whose responses to these requests are short. They have a
 * Content-Length, or end with the connection: lists do, for requests of HTTP/1.0. A connection
 * is used again; the server closes one that says nothing for a few seconds, which looks like a
 * lost response, and the request is repeated on another one.
 */
#include "holdfast/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

uint64_t holdfast_link_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void holdfast_link_close(struct holdfast_link *link)
{
    if (link->fd >= 0)
        (void)close(link->fd);
    link->fd = -1;
}

static bool fail(struct holdfast_link *link, int error)
{
    holdfast_link_close(link);
    link->error = error;
    return false;
}

/* Until the connection is ready for these events. */
static bool wait_for(struct holdfast_link *link, short events, uint64_t until_ms)
{
    for (;;) {
        uint64_t now_ms = holdfast_link_now_ms();
        struct pollfd poll_fd = {.fd = link->fd, .events = events};
        int wait_ms = now_ms >= until_ms ? 0 : (int)(until_ms - now_ms);
        int count = poll(&poll_fd, 1, wait_ms);
        if (count > 0)
            return true;
        if (count == 0)
            return fail(link, ETIMEDOUT);
        if (errno != EINTR)
            return fail(link, errno);
    }
}

/* A path may be longer than the name of a socket: then it is named through its directory. */
static int connect_to(int fd, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *slash = strrchr(path, '/');
    if (strlen(path) < sizeof name.sun_path) {
        memcpy(name.sun_path, path, strlen(path));
        return connect(fd, (const struct sockaddr *)&name, sizeof name);
    }
    char *directory = slash == NULL ? NULL : strndup(path, (size_t)(slash - path) + 1);
    int at = directory == NULL ? -1 : open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (at < 0)
        return -1;
    int len = snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d/%s", at, slash + 1);
    int result = -1;
    errno = ENAMETOOLONG;
    if (len > 0 && (size_t)len < sizeof name.sun_path)
        result = connect(fd, (const struct sockaddr *)&name, sizeof name);
    int error = errno;
    (void)close(at);
    errno = error;
    return result;
}

/* A connection to a unix socket is made at once, or not: EAGAIN means that too many wait. */
static bool open_link(struct holdfast_link *link)
{
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0 || connect_to(link->fd, link->path) != 0)
        return fail(link, errno);
    return true;
}

static bool send_all(struct holdfast_link *link, const char *at, size_t len, uint64_t until_ms)
{
    while (len > 0) {
        ssize_t sent = send(link->fd, at, len, MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            len -= (size_t)sent;
        } else if (errno == EAGAIN) {
            if (!wait_for(link, POLLOUT, until_ms))
                return false;
        } else if (errno != EINTR) {
            return fail(link, errno);
        }
    }
    return true;
}

/* The value of a header, between the status line and the body; NULL: it has none. */
static const char *header_of(const char *head, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + strspn(line + len + 1, " ");
    }
    return NULL;
}

/* Has all of it arrived? `is_over`: nothing comes any more. */
static bool is_complete(struct holdfast_link *link, size_t len, bool is_over, bool *ret_is_bad)
{
    char *end = strstr(link->reply, "\r\n\r\n");
    *ret_is_bad = false;
    if (end == NULL)
        return false;
    end[2] = '\0';
    const char *length = header_of(link->reply, "Content-Length");
    const char *connection = header_of(link->reply, "Connection");
    link->is_last = connection != NULL && strncasecmp(connection, "close", 5) == 0;
    *ret_is_bad = sscanf(link->reply, "HTTP/1.%*1[01] %3u", &link->status) != 1;
    link->body = end + 4;
    size_t came = len - (size_t)(link->body - link->reply);
    link->body_len = length != NULL ? (size_t)strtoul(length, NULL, 10) : came;
    *ret_is_bad = *ret_is_bad || link->body_len > HOLDFAST_REPLY_MAX;
    bool is_open_ended = length == NULL && link->status != 204;
    end[2] = '\r';
    if (is_open_ended)
        return is_over;
    return (size_t)(link->body - link->reply) + link->body_len <= len;
}

static bool receive(struct holdfast_link *link, uint64_t until_ms)
{
    bool is_bad = false;
    for (size_t len = 0; len < HOLDFAST_REPLY_MAX;) {
        if (!wait_for(link, POLLIN, until_ms))
            return false;
        ssize_t count = recv(link->fd, link->reply + len, HOLDFAST_REPLY_MAX - len, 0);
        if (count == 0 && !is_complete(link, len, true, &is_bad))
            return fail(link, 0);
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            return fail(link, errno);
        len += count < 0 ? 0 : (size_t)count;
        link->reply[len] = '\0';
        if (is_complete(link, len, count == 0, &is_bad) && !is_bad) {
            link->body[link->body_len] = '\0';
            return true;
        }
        if (is_bad)
            break;
    }
    return fail(link, EPROTO);
}

bool holdfast_link_ask(struct holdfast_link *link, const char *request, size_t len,
                       uint64_t until_ms)
{
    if (link->fd < 0 && !open_link(link))
        return false;
    if (!send_all(link, request, len, until_ms) || !receive(link, until_ms))
        return false;
    if (link->is_last)
        holdfast_link_close(link);
    return true;
}
