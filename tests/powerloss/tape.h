/*
 * tape.h -- the tape: everything that matters to a power cut, in one total order.
 *
 * The recorder (in the server) and the workload (the client) append to one file. A record is a
 * fixed header, then a name, then data. Names are relative to the store directory; "" is that
 * directory, ".." the one above it. Files are known by their inode number: a name may change.
 *
 * What the place of a record on the tape means is said at the top of recorder.c.
 */
#ifndef POWERLOSS_TAPE_H
#define POWERLOSS_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAPE_MAGIC UINT32_C(0x45504154)

enum tape_type {
    TAPE_MKDIR = 1,    /* the store directory itself */
    TAPE_CREATE,       /* name, file */
    TAPE_RENAME,       /* name: from, a zero byte, to */
    TAPE_UNLINK,       /* name */
    TAPE_WRITE,        /* file, offset, len, data (none: zeros) */
    TAPE_WRITE_SYNCED, /* the write before it came through O_DSYNC or O_SYNC and has returned */
    TAPE_RESIZE,       /* file, len: its new length */
    TAPE_SYNC_BEGIN,   /* file or directory (name); offset: which sync this is */
    TAPE_SYNC_END,     /* the same; it returned without an error */
    TAPE_SYNC_RANGE,   /* sync_file_range: promises nothing that survives a power cut */
    TAPE_SEND,         /* data: bytes about to leave through a socket */
    TAPE_POST,         /* data: struct history_post; the client is about to send a call */
    TAPE_START,        /* a server is about to be started */
    TAPE_KILL,         /* it was killed */
    TAPE_TYPE_END,
};

enum tape_flag {
    TAPE_IS_DIRECTORY = 1, /* syncs */
    TAPE_IS_STREAM = 2,    /* sends: TCP */
};

struct tape_head {
    uint32_t magic, type, pid, flags;
    uint64_t file, offset, len;
    uint32_t name_len, data_len;
};

struct tape_event {
    struct tape_head head;
    const char *name;    /* ends with a zero byte */
    const uint8_t *data; /* NULL when data_len is 0 */
};

struct tape {
    struct tape_event *events; /* owned */
    size_t count;
    void *memory; /* owned; what the events point into; NULL in a mutant */
};

/* NULL, or what is wrong with it. */
const char *tape_load(const char *path, struct tape *ret);
void tape_free(struct tape *tape);

/* Appends one record to a file that was opened with O_APPEND. 0 or negative errno. */
int tape_append(int fd, enum tape_type type, const void *data, uint32_t len);

/* "write data 40960+4096": for people. Valid until the next call. */
const char *tape_event_text(const struct tape_event *event);

#endif
