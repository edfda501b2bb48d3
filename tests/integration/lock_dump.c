/*
 * lock_dump.c -- the locks of a store; see lock_dump.h.
 *
 * Clients come before locks, and locks before waiters, because the server loads them in that order
 * too. Which offers have a waiter is known at the end: they are visited last.
 */
#include "lock_dump.h"

#include "lock_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS_MAX 20000

struct client {
    unsigned long long id;
    char address[64], name[128];
};

struct kept {
    struct lock_dump_lock lock;
    unsigned slot;
};

struct reading {
    lock_dump_fn visit;
    lock_dump_waiter_fn visit_waiter;
    void *context;
    struct kept *kept; /* offers, until it is known which of them have a waiter */
    uint32_t kept_count;
    struct lock_dump dump;
    struct client *clients;
    bool is_good;
};

/* Hexadecimal text to bytes; the length, or 0 for what is none. */
static uint32_t bytes_of_hex(const char *hex, uint8_t *ret, uint32_t len_max)
{
    uint32_t len = (uint32_t)strlen(hex) / 2;
    for (uint32_t i = 0; i < len && i < len_max; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * (size_t)i, "%2x", &byte) != 1)
            return 0;
        ret[i] = (uint8_t)byte;
    }
    return len <= len_max ? len : 0;
}

static void take_client(struct reading *reading, const char *line)
{
    struct client *client = &reading->clients[reading->dump.clients];
    bool is_read = reading->dump.clients < CLIENTS_MAX &&
                   sscanf(line,
                          "client slot=%*u id=%llu registered_ns=%*u seen_ns=%*u rebooted_ns=%*u "
                          "untold_ns=%*u server_epoch=%*u address=%63s",
                          &client->id, client->address) == 2 &&
                   sscanf(strrchr(line, '='), "=%127s", client->name) == 1; /* caller_name */
    if (HARNESS_EXPECT(is_read, "a client that cannot be read: %s", line))
        reading->dump.clients++;
    else
        reading->is_good = false;
}

/* Ids grow with time and not with slots: a search. Runs of one client are common. */
static const struct client *find_client(const struct reading *reading, unsigned long long id)
{
    static uint32_t last;
    if (last < reading->dump.clients && reading->clients[last].id == id)
        return &reading->clients[last];
    for (uint32_t i = 0; i < reading->dump.clients; i++)
        if (reading->clients[i].id == id) {
            last = i;
            return &reading->clients[i];
        }
    return NULL;
}

static void keep_offer(struct reading *reading, const struct lock_dump_lock *lock, unsigned slot)
{
    size_t size = sizeof(*reading->kept) * ((size_t)reading->kept_count + 1);
    struct kept *kept = realloc(reading->kept, size);
    if (!HARNESS_EXPECT(kept, "out of memory")) {
        reading->is_good = false;
        return;
    }
    reading->kept = kept;
    reading->kept[reading->kept_count++] = (struct kept){*lock, slot};
}

static void take_lock(struct reading *reading, const char *line)
{
    struct lock_dump_lock lock = {0};
    unsigned long long id, start, end;
    unsigned flags, slot;
    char fh[LOCK_CALL_HEX_MAX];
    uint8_t handle[LOCK_CALL_FH_LEN];
    bool is_read =
        sscanf(line,
               "lock slot=%u of.client_id=%llu of.client=%*u of.incarnation=%*u of.state=%u "
               "granted_ns=%*u start=%llu end=%llu len=%*u svid=%u flags=%u fh=%255s oh=%255s",
               &slot, &id, &lock.state, &start, &end, &lock.svid, &flags, fh, lock.oh) == 9;
    const struct client *client = is_read ? find_client(reading, id) : NULL;
    lock.file = is_read ? lock_call_file(handle, bytes_of_hex(fh, handle, sizeof(handle))) : 0;
    if (!HARNESS_EXPECT(is_read && client && lock.file != UINT32_MAX,
                        "a lock of nobody, or on no file of ours: %s", line)) {
        reading->is_good = false;
        return;
    }
    memcpy(lock.address, client->address, sizeof(lock.address));
    memcpy(lock.name, client->name, sizeof(lock.name));
    lock.start = start;
    lock.end = end;
    lock.exclusive = (flags & 1) != 0;
    lock.is_offer = (flags & 2) != 0;
    lock.is_unmonitored = (flags & 4) != 0;
    lock.is_echo = (flags & 8) != 0;
    lock.is_alone = lock.is_offer && !lock.is_echo;
    reading->dump.locks++;
    reading->dump.offers += lock.is_offer;
    reading->dump.echoes += lock.is_echo;
    if (lock.is_alone)
        keep_offer(reading, &lock, slot);
    else if (reading->visit)
        reading->visit(reading->context, &lock);
}

static void take_waiter(struct reading *reading, const char *line)
{
    struct lock_dump_waiter waiter = {0};
    char fh[LOCK_CALL_HEX_MAX];
    unsigned offer;
    uint8_t handle[LOCK_CALL_FH_LEN];
    bool is_read =
        sscanf(line,
               "waiter slot=%*u of.client_id=%*u of.client=%*u of.incarnation=%*u of.state=%*u "
               "queued_ns=%*u order=%*u cookie=%*u offset=%*u len=%*u local=%*s offer=%u svid=%u "
               "version=%*u transport=%*u flags=%*u caller_name=%*s fh=%255s",
               &offer, &waiter.svid, fh) == 3;
    reading->dump.waiters++;
    if (!HARNESS_EXPECT(is_read, "a waiter that cannot be read: %s", line)) {
        reading->is_good = false;
        return;
    }
    waiter.file = lock_call_file(handle, bytes_of_hex(fh, handle, sizeof(handle)));
    waiter.is_offered = offer != UINT32_MAX;
    for (uint32_t i = 0; waiter.is_offered && i < reading->kept_count; i++)
        if (reading->kept[i].slot == offer)
            reading->kept[i].lock.is_alone = false;
    if (reading->visit_waiter)
        reading->visit_waiter(reading->context, &waiter);
}

static void take_line(void *context, const char *line)
{
    struct reading *reading = context;
    unsigned long long epoch;
    if (strncmp(line, "client ", 7) == 0)
        take_client(reading, line);
    else if (strncmp(line, "lock ", 5) == 0)
        take_lock(reading, line);
    else if (strncmp(line, "waiter ", 7) == 0)
        take_waiter(reading, line);
    else if (sscanf(line, "server slot=0 txn=%*u epoch=%llu next_id=%*u state=%u", &epoch,
                    &reading->dump.state) == 2)
        reading->dump.epoch = epoch;
    reading->dump.shares += strncmp(line, "share ", 6) == 0;
}

bool lock_dump_read(const char *store, lock_dump_fn visit, void *context, struct lock_dump *ret)
{
    return lock_dump_read_all(store, visit, NULL, context, ret);
}

bool lock_dump_read_all(const char *store, lock_dump_fn visit, lock_dump_waiter_fn visit_waiter,
                        void *context, struct lock_dump *ret)
{
    struct reading reading = {
        .visit = visit, .visit_waiter = visit_waiter, .context = context, .is_good = true};
    reading.clients = calloc(CLIENTS_MAX, sizeof(*reading.clients));
    if (!reading.clients)
        return false;
    bool is_read = harness_dump_lines(store, take_line, &reading);
    for (uint32_t i = 0; i < reading.kept_count && visit; i++)
        visit(context, &reading.kept[i].lock);
    free(reading.kept);
    free(reading.clients);
    *ret = reading.dump;
    return is_read && reading.is_good;
}
