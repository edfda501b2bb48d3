/*
 * handles.c -- asks an NFSv3 server for the handles of files, as a client that mounts it does.
 *
 * usage: handles MOUNT-SERVER NFS-SERVER DIRECTORY COUNT FILE
 *
 * A server is a port on this machine, or ADDRESS:PORT.
 *
 * MNT gives the handle of the exported directory (RFC 1813, program 100005), LOOKUP those of f0,
 * f1 and so on in it (program 100003). They are written into FILE, in hex, one on each line. Exit 1
 * when one is not there.
 */
#include "peer/dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLE_MAX 64 /* NFS3_FHSIZE */
#define CALL_MS    5000

struct handle {
    uint32_t len;
    uint8_t bytes[HANDLE_MAX];
};

/* Both procedures answer with a status, 0 if all is well, and a handle. */
static bool get_handle(const struct packet_reply *reply, struct handle *ret)
{
    struct packet_reader reader = {reply->body, reply->body_len, false};
    uint32_t status = packet_get_u32(&reader), len;
    const uint8_t *at = packet_get_opaque(&reader, HANDLE_MAX, &len);
    if (!reply->accepted || reply->status != PACKET_SUCCESS || reader.failed || status != 0) {
        fprintf(stderr, "handles: %s, status %u\n", packet_reply_text(reply), status);
        return false;
    }
    ret->len = len;
    memcpy(ret->bytes, at, len);
    return true;
}

static int open_server(const char *text)
{
    struct dial_route route = {0};
    int fd = dial_endpoint_read(text, &route.server) ? dial_open(&route, CALL_MS) : -EINVAL;
    if (fd < 0)
        fprintf(stderr, "handles: cannot connect to %s: %s\n", text, strerror(-fd));
    return fd;
}

static bool ask(int fd, const struct packet *call, struct handle *ret)
{
    static struct packet answer;
    struct packet_reply reply;
    int result = dial_exchange(fd, false, call, CALL_MS, &answer, &reply);
    if (result != 0)
        fprintf(stderr, "handles: no answer: %s\n", strerror(-result));
    return result == 0 && get_handle(&reply, ret);
}

static bool mount(int fd, const char *directory, struct handle *ret)
{
    static struct packet call;
    const struct packet_call header = {1, 100005, 3, 1, PACKET_AUTH_SYS};
    packet_clear(&call);
    packet_put_call(&call, &header);
    packet_put_text(&call, directory);
    return ask(fd, &call, ret);
}

static bool look_up(int fd, const struct handle *directory, uint32_t number, struct handle *ret)
{
    static struct packet call;
    const struct packet_call header = {2 + number, 100003, 3, 3, PACKET_AUTH_SYS};
    char name[16];
    snprintf(name, sizeof(name), "f%u", number);
    packet_clear(&call);
    packet_put_call(&call, &header);
    packet_put_opaque(&call, directory->bytes, directory->len);
    packet_put_text(&call, name);
    return ask(fd, &call, ret);
}

int main(int count, char **arguments)
{
    struct handle directory, handle;
    if (count != 6) {
        fprintf(stderr, "usage: handles MOUNT-SERVER NFS-SERVER DIRECTORY COUNT FILE\n");
        return 2;
    }
    int mount_fd = open_server(arguments[1]), nfs_fd = open_server(arguments[2]);
    if (mount_fd < 0 || nfs_fd < 0 || !mount(mount_fd, arguments[3], &directory))
        return 1;
    uint32_t files = (uint32_t)strtoul(arguments[4], NULL, 10);
    FILE *out = fopen(arguments[5], "we");
    bool is_written = out != NULL;
    for (uint32_t i = 0; is_written && i < files; i++) {
        if (!look_up(nfs_fd, &directory, i, &handle))
            return 1;
        for (uint32_t at = 0; at < handle.len; at++)
            fprintf(out, "%02x", handle.bytes[at]);
        is_written = fprintf(out, "\n") == 1;
    }
    if (!is_written || fclose(out) != 0) {
        fprintf(stderr, "handles: cannot write %s: %s\n", arguments[5], strerror(errno));
        return 1;
    }
    return 0;
}
