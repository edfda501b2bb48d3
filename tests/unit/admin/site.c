/*
 * site.c -- see site.h.
 */
#include "site.h"

#include "../core/fixture.h"
#include "admin/http.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

void site_init(struct site *site)
{
    assert_int_equal(uv_loop_init(&site->loop), 0);
    site->admin.core = fixture_new(&fixture_limits);
}

void site_serve(struct site *site)
{
    struct address local = fixture_address("127.0.0.1");
    char buffer[256];
    struct text why;
    int code;
    text_init(&why, buffer, sizeof buffer);
    site->http = http_new(&site->loop, &local, 0, &site->admin, &code, &why);
    if (site->http == NULL)
        fail_msg("%s", buffer);
}

void site_stop(struct site *site)
{
    http_free(site->http);
}

void site_done(struct site *site)
{
    (void)uv_run(&site->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&site->loop), 0);
    core_free(site->admin.core);
}

int site_ask(const struct site *site, const char *path, const char *headers)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_port(site->http)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[512];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                       path, headers);
    assert_in_range(len, 1, sizeof request - 1);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    return fd;
}

bool site_read(struct site *site, int fd, char *text, size_t size, size_t *len)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    (void)uv_run(&site->loop, UV_RUN_NOWAIT);
    (void)poll(&ready, 1, 1);
    ssize_t got = recv(fd, text + *len, size - 1 - *len, MSG_DONTWAIT);
    assert_true(got >= 0 || errno == EAGAIN);
    *len += got > 0 ? (size_t)got : 0;
    text[*len] = '\0';
    assert_true(*len < size - 1);
    return got != 0;
}
