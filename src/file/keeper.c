/*
 * keeper.c -- see keeper.h.
 */
#include "file/keeper.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000, FIRST_PATIENCE_MS = 5000 };

struct held {
    uint64_t hash;
    struct keeper_message message;
    int fd; /* -1: somebody took it */
};

struct keeper {
    int socket;
    atomic_bool is_lost; /* nothing is sent any more */
    atomic_ullong next_id;
    pthread_mutex_t mutex; /* guards what follows */
    struct held *held;     /* of an earlier server, by hash */
    uint32_t held_count, held_room;
};

/* ---- packets ---- */

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static bool wait_for(int socket, short events, int patience_ms)
{
    struct pollfd poller = {.fd = socket, .events = events};
    return poll(&poller, 1, patience_ms) == 1;
}

bool keeper_send(int socket, const struct keeper_message *message, int fd)
{
    struct keeper_message copy = *message;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof copy};
    union control control = {.bytes = {0}};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    for (;;) {
        ssize_t len = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (len >= 0)
            return true;
        if (errno != EINTR && (errno != EAGAIN || !wait_for(socket, POLLOUT, PATIENCE_MS)))
            return false;
    }
}

bool keeper_receive(int socket, struct keeper_message *ret, int *ret_fd)
{
    struct iovec part = {.iov_base = ret, .iov_len = sizeof *ret};
    union control control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    ssize_t len;
    do
        len = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    *ret_fd = -1;
    if (len != (ssize_t)sizeof *ret)
        return false;
    const struct cmsghdr *found = CMSG_FIRSTHDR(&header);
    if (found != NULL && found->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(found), sizeof *ret_fd);
    return true;
}

/* ---- what an earlier server left ---- */

static uint64_t hash_of(uint32_t export_id, const struct handle_object *object)
{
    return hash_bytes(export_id, (struct bytes){object->bytes, object->len});
}

static bool add_held(struct keeper *keeper, const struct keeper_message *message, int fd)
{
    if (keeper->held_count == keeper->held_room) {
        uint32_t room = keeper->held_room == 0 ? 64 : 2 * keeper->held_room;
        struct held *held = realloc(keeper->held, room * sizeof *held);
        if (held == NULL)
            return false;
        keeper->held = held;
        keeper->held_room = room;
    }
    keeper->held[keeper->held_count++] =
        (struct held){hash_of(message->export_id, &message->object), *message, fd};
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

/* False: the keeper does not answer. */
static bool ask(struct keeper *keeper)
{
    struct keeper_message message = {.kind = KEEPER_ASK};
    uint64_t last_id = 0;
    int fd;
    if (!keeper_send(keeper->socket, &message, -1))
        return false;
    while (wait_for(keeper->socket, POLLIN, FIRST_PATIENCE_MS) &&
           keeper_receive(keeper->socket, &message, &fd)) {
        if (message.kind == KEEPER_END) {
            atomic_store(&keeper->next_id, last_id + 1);
            if (keeper->held_count > 0)
                qsort(keeper->held, keeper->held_count, sizeof *keeper->held, compare);
            return true;
        }
        last_id = message.id > last_id ? message.id : last_id;
        if (fd >= 0 && !add_held(keeper, &message, fd))
            (void)close(fd);
    }
    return false;
}

struct keeper *keeper_new(int socket)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (keeper == NULL)
        return NULL;
    keeper->socket = socket;
    CHECK(pthread_mutex_init(&keeper->mutex, NULL) == 0);
    atomic_init(&keeper->next_id, 1);
    atomic_init(&keeper->is_lost, !ask(keeper));
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    if (keeper == NULL)
        return;
    for (uint32_t i = 0; i < keeper->held_count; i++)
        if (keeper->held[i].fd >= 0)
            (void)close(keeper->held[i].fd);
    free(keeper->held);
    CHECK(pthread_mutex_destroy(&keeper->mutex) == 0);
    (void)close(keeper->socket);
    free(keeper);
}

bool keeper_is_lost(const struct keeper *keeper)
{
    return atomic_load(&keeper->is_lost);
}

static bool is_of(const struct keeper_message *message, uint32_t export_id,
                  const struct handle_object *object)
{
    return message->export_id == export_id && message->object.type == object->type &&
           message->object.len == object->len &&
           memcmp(message->object.bytes, object->bytes, object->len) == 0;
}

static int take(struct keeper *keeper, uint32_t export_id, const struct handle_object *object,
                uint64_t *ret_id)
{
    uint64_t hash = hash_of(export_id, object);
    uint32_t low = 0, high = keeper->held_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (keeper->held[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < keeper->held_count && keeper->held[low].hash == hash; low++) {
        struct held *held = &keeper->held[low];
        int fd = held->fd;
        if (fd < 0 || !is_of(&held->message, export_id, object))
            continue;
        held->fd = -1;
        *ret_id = held->message.id;
        return fd;
    }
    return -1;
}

int keeper_take(struct keeper *keeper, uint32_t export_id, const struct handle_object *object,
                uint64_t *ret_id)
{
    if (keeper == NULL)
        return -1;
    CHECK(pthread_mutex_lock(&keeper->mutex) == 0);
    int fd = take(keeper, export_id, object, ret_id);
    CHECK(pthread_mutex_unlock(&keeper->mutex) == 0);
    return fd;
}

void keeper_drop_rest(struct keeper *keeper, keeper_wants_fn wants, const void *context)
{
    if (keeper == NULL)
        return;
    CHECK(pthread_mutex_lock(&keeper->mutex) == 0);
    for (uint32_t i = 0; i < keeper->held_count; i++) {
        struct held *held = &keeper->held[i];
        if (held->fd < 0 || wants(context, held->message.export_id))
            continue;
        (void)close(held->fd);
        held->fd = -1;
        keeper_drop(keeper, held->message.id);
    }
    CHECK(pthread_mutex_unlock(&keeper->mutex) == 0);
}

/* ---- from now on ---- */

static bool tell(struct keeper *keeper, const struct keeper_message *message, int fd)
{
    if (atomic_load(&keeper->is_lost))
        return false;
    if (keeper_send(keeper->socket, message, fd))
        return true;
    atomic_store(&keeper->is_lost, true);
    return false;
}

uint64_t keeper_keep(struct keeper *keeper, int fd, uint32_t export_id,
                     const struct handle_object *object)
{
    if (keeper == NULL)
        return 0;
    struct keeper_message message = {.kind = KEEPER_KEEP,
                                     .export_id = export_id,
                                     .id = atomic_fetch_add(&keeper->next_id, 1),
                                     .object = *object};
    return tell(keeper, &message, fd) ? message.id : 0;
}

void keeper_drop(struct keeper *keeper, uint64_t id)
{
    const struct keeper_message message = {.kind = KEEPER_DROP, .id = id};
    if (keeper != NULL && id != 0)
        (void)tell(keeper, &message, -1);
}

void keeper_leave(struct keeper *keeper)
{
    if (keeper != NULL)
        atomic_store(&keeper->is_lost, true);
}
