/*
 * tape.c -- reads a tape into an array of events; see tape.h.
 */
#include "tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *read_file(const char *path, uint8_t **ret, size_t *ret_len)
{
    struct stat status;
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        if (fd >= 0)
            close(fd);
        return "cannot be opened";
    }
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    while (bytes && len < (size_t)status.st_size) {
        ssize_t n = read(fd, bytes + len, (size_t)status.st_size - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    if (!bytes || len != (size_t)status.st_size) {
        free(bytes);
        return "cannot be read";
    }
    *ret = bytes;
    *ret_len = len;
    return NULL;
}

/*
 * Takes the record at *at. The name is copied, to end it with a zero byte: the header's bytes in
 * front of it have been read by then, so there is room.
 */
static bool take(uint8_t *bytes, size_t len, size_t *at, struct tape_event *ret)
{
    struct tape_event event = {0};
    if (len - *at < sizeof(event.head))
        return false;
    memcpy(&event.head, bytes + *at, sizeof(event.head));
    const size_t name_len = event.head.name_len, data_len = event.head.data_len;
    size_t body = *at + sizeof(event.head);
    if (event.head.magic != TAPE_MAGIC || event.head.type == 0 ||
        event.head.type >= TAPE_TYPE_END || name_len > len - body ||
        data_len > len - body - name_len)
        return false;
    memmove(bytes + body - 1, bytes + body, name_len);
    bytes[body - 1 + name_len] = '\0';
    event.name = (const char *)bytes + body - 1;
    event.data = data_len > 0 ? bytes + body + name_len : NULL;
    *at = body + name_len + data_len;
    *ret = event;
    return true;
}

const char *tape_load(const char *path, struct tape *ret)
{
    struct tape tape = {0};
    uint8_t *bytes = NULL;
    size_t len = 0, at = 0, max = 0;
    const char *why = read_file(path, &bytes, &len);
    if (why)
        return why;
    tape.memory = bytes;
    while (at < len) {
        if (tape.count == max) {
            max = max * 2 + 1024;
            struct tape_event *grown = realloc(tape.events, max * sizeof(*grown));
            if (!grown)
                abort();
            tape.events = grown;
        }
        if (!take(bytes, len, &at, &tape.events[tape.count])) {
            tape_free(&tape);
            return "holds something that is no record";
        }
        tape.count++;
    }
    *ret = tape;
    return NULL;
}

void tape_free(struct tape *tape)
{
    free(tape->events);
    free(tape->memory);
    *tape = (struct tape){0};
}

int tape_append(int fd, enum tape_type type, const void *data, uint32_t len)
{
    struct tape_head head = {
        .magic = TAPE_MAGIC, .type = type, .pid = (uint32_t)getpid(), .data_len = len};
    struct iovec parts[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)data, len}};
    ssize_t written = writev(fd, parts, len > 0 ? 2 : 1);
    if (written < 0)
        return -errno;
    return (size_t)written == sizeof(head) + len ? 0 : -ENOSPC;
}

const char *tape_event_text(const struct tape_event *event)
{
    static const char *const names[TAPE_TYPE_END] = {[TAPE_MKDIR] = "mkdir",
                                                     [TAPE_CREATE] = "create",
                                                     [TAPE_RENAME] = "rename",
                                                     [TAPE_UNLINK] = "unlink",
                                                     [TAPE_WRITE] = "write",
                                                     [TAPE_WRITE_SYNCED] = "synced write returned",
                                                     [TAPE_RESIZE] = "resize",
                                                     [TAPE_SYNC_BEGIN] = "sync begins",
                                                     [TAPE_SYNC_END] = "sync returned",
                                                     [TAPE_SYNC_RANGE] = "sync_file_range",
                                                     [TAPE_SEND] = "send",
                                                     [TAPE_POST] = "client posts",
                                                     [TAPE_START] = "server starts",
                                                     [TAPE_KILL] = "server killed"};
    static char text[128];
    snprintf(text, sizeof(text), "%s %s file %llu at %llu len %llu%s", names[event->head.type],
             event->name, (unsigned long long)event->head.file,
             (unsigned long long)event->head.offset, (unsigned long long)event->head.len,
             event->head.type == TAPE_WRITE && !event->data ? " (zeros)" : "");
    return text;
}
