/*
 * tracker.h -- libholdfast: clients of your protocol, tracked durably by a holdfast server.
 *
 * For a server whose clients may lose their connection and come back for what they had: SMB with
 * durable handles, for instance. holdfast keeps one record per client and answers three questions:
 * is it there, may it still come back, and has its time run out. docs/embedding.md shows how to use
 * it, examples/smb_durable.c is a program that does.
 *
 *               register                     disconnect, or a restart of holdfast
 *   (nothing) ------------> CONNECTED ---------------------------------------> DISCONNECTED
 *       ^                       ^                                                |      |
 *       |                       +------------------------------------------------+      | its time
 *       |                             register, reconnect                               | is over
 *       |                                                                               v
 *       +---- remove: you have cleaned up after it ----------------------------------- EXPIRED
 *
 * Every call waits for its answer, and an answer, but that of holdfast_next, says what is on disk:
 * HOLDFAST_DONE survives kill -9 of both sides. A call whose answer is lost, because holdfast is
 * restarted meanwhile, is repeated until it is answered or your patience is over; each of them may
 * be repeated without harm.
 *
 * A struct holdfast is one connection, for one thread at a time. Link with -lholdfast -ljansson, or
 * ask pkg-config for libholdfast.
 */
#ifndef HOLDFAST_TRACKER_H
#define HOLDFAST_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLDFAST_PROTOCOL_MAX 16 /* of a-z, 0-9 and - */
#define HOLDFAST_KEY_MAX      64
#define HOLDFAST_NAME_MAX     255
#define HOLDFAST_ADDRESS_MAX  63
#define HOLDFAST_BYTES_MAX    1024

struct holdfast;

enum holdfast_state { HOLDFAST_CONNECTED = 1, HOLDFAST_DISCONNECTED, HOLDFAST_EXPIRED };

enum holdfast_result {
    HOLDFAST_DONE,
    HOLDFAST_NONE,        /* holdfast_take_expired, holdfast_next: there is none */
    HOLDFAST_UNKNOWN,     /* no such client: it was removed, or never registered */
    HOLDFAST_GONE,        /* its time has run out: clean up after it, then holdfast_remove */
    HOLDFAST_REPLACED,    /* it has a newer connection; nothing has changed */
    HOLDFAST_FULL,        /* a limit of the server; holdfast_error names it */
    HOLDFAST_REFUSED,     /* something is wrong with the call, or you may not: holdfast_error */
    HOLDFAST_UNREACHABLE, /* no answer within your patience: it may or may not have happened */
};

/* One client. All zero but protocol and key is a good one to register. */
struct holdfast_client {
    /* You say: */
    char protocol[HOLDFAST_PROTOCOL_MAX + 1];
    uint8_t key[HOLDFAST_KEY_MAX];          /* by which your protocol knows it; any bytes */
    size_t key_len;                         /* at least 1 */
    char name[HOLDFAST_NAME_MAX + 1];       /* for people, UTF-8; empty: the key */
    char address[HOLDFAST_ADDRESS_MAX + 1]; /* where it is, "192.0.2.4"; empty: not said */
    uint8_t bytes[HOLDFAST_BYTES_MAX];      /* whatever you want to find again */
    size_t bytes_len;
    uint32_t window_s; /* how long it may stay away; 0: as the server is set up */
    /* The server says: */
    uint64_t id;         /* never given to another client; "c17" in its lists */
    uint32_t connection; /* the number of its last register or reconnect */
    enum holdfast_state state;
    uint32_t window_in_force_s;
    int64_t deadline_ms; /* since 1970: it may come back until then; 0: not known: it is connected,
                          * or holdfast is starting */
};

/*
 * Does not connect yet; the first call does. `control` is the path of the control socket. A call
 * that is not answered is repeated for so many milliseconds; 0: never, but where the server has
 * closed a connection that was idle. NULL: no memory.
 */
struct holdfast *holdfast_open(const char *control, uint32_t patience_ms);
/* NULL is legal. */
void holdfast_close(struct holdfast *holdfast);
/* What was wrong with the last call: a sentence, and what to do. Valid until the next call. */
const char *holdfast_error(const struct holdfast *holdfast);

/* A client with this protocol and key, all else zero. False: one of them is empty or too long. */
bool holdfast_client_init(struct holdfast_client *client, const char *protocol, const void *key,
                          size_t key_len);

/* A client connects and says what it is: DONE, with its id, old or new. GONE: its time had run out,
 * and nobody has cleaned up after it yet. */
enum holdfast_result holdfast_register(struct holdfast *holdfast, struct holdfast_client *client);
/* A client connects and wants what it had: DONE with name, bytes and id as they were; UNKNOWN,
 * GONE. Of *client protocol, key and address are used. */
enum holdfast_result holdfast_reconnect(struct holdfast *holdfast, struct holdfast_client *client);
/* Its connection broke: it may come back for so many seconds from now; 0: its window. REPLACED: it
 * has another connection already. A repeat starts the time again. */
enum holdfast_result holdfast_disconnect(struct holdfast *holdfast, struct holdfast_client *client,
                                         uint32_t timeout_s);
/* Keeps client->bytes. */
enum holdfast_result holdfast_update(struct holdfast *holdfast, struct holdfast_client *client);
/* It logged off, or you have cleaned up after it. With client->id that client, 0: whichever has the
 * key. UNKNOWN: there is none. */
enum holdfast_result holdfast_remove(struct holdfast *holdfast,
                                     const struct holdfast_client *client);
/* As it is now. */
enum holdfast_result holdfast_find(struct holdfast *holdfast, struct holdfast_client *client);
/*
 * The next client of this protocol whose time has run out. Clean up after it, then holdfast_remove.
 * One that is not removed is given again, after 30 s or a restart of the server: the cleanup must
 * be repeatable.
 */
enum holdfast_result holdfast_take_expired(struct holdfast *holdfast, const char *protocol,
                                           struct holdfast_client *ret);

/*
 * All clients of this protocol, one after another: for a server that was restarted itself, and must
 * find out whose connections broke with it. *cursor is 0 at first. A client that exists all the
 * time is seen exactly once. Unlike the others this does not wait for the disk.
 */
enum holdfast_result holdfast_next(struct holdfast *holdfast, const char *protocol,
                                   uint64_t *cursor, struct holdfast_client *ret);

#endif
