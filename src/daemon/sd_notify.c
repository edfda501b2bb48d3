/*
 * sd_notify.c -- sd_notify(3) without the library; see sd_notify.h.
 *
 * One datagram on a socket made for it: it is sent rarely. It never waits: a service manager that
 * does not read must not stop the server.
 */
#include "daemon/sd_notify.h"

#include "base/text.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_MAX = 512 };

/* 0 with the length of the address, or -EINVAL when the name is neither form or too long. */
static int address_of(const char *name, struct sockaddr_un *ret, socklen_t *ret_len)
{
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof ret->sun_path)
        return -EINVAL;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, name, len);
    /* An abstract name starts with a zero byte and is as long as it is; a path ends in one. */
    if (name[0] == '@')
        ret->sun_path[0] = '\0';
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '@' ? 0 : 1));
    return 0;
}

static int tell(const char *assignment, const char *status)
{
    const char *name = getenv("NOTIFY_SOCKET");
    if (name == NULL || name[0] == '\0')
        return 0;
    struct sockaddr_un address;
    socklen_t address_len;
    int result = address_of(name, &address, &address_len);
    if (result != 0)
        return result;

    char buffer[MESSAGE_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, assignment);
    if (status != NULL) {
        text_add(&text, "\nSTATUS=");
        /* A newline would begin another assignment. */
        for (; *status != '\0'; status++)
            text_add_char(&text, (char)(*status == '\n' ? ' ' : *status));
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (sendto(fd, buffer, text.len, MSG_NOSIGNAL, (struct sockaddr *)&address, address_len) < 0)
        result = -errno;
    (void)close(fd); /* nothing was written that close could lose */
    return result;
}

int sd_notify_started(const char *status)
{
    return tell("READY=1", status);
}

int sd_notify_alive(void)
{
    return tell("WATCHDOG=1", NULL);
}

int sd_notify_stopping(const char *status)
{
    return tell("STOPPING=1", status);
}
