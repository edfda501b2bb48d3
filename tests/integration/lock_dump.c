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
                   sscanf(line, "client id=%llu epoch=%*s address=%63s local=%*s caller_name=%127s",
                          &client->id, client->address, client->name) == 3;
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
    unsigned exclusive, offer, unmonitored, lingers, slot;
    char fh[LOCK_CALL_HEX_MAX], oh[2 * sizeof(lock.oh)];
    uint8_t handle[LOCK_CALL_FH_LEN];
    bool is_read =
        sscanf(line,
               "lock client=%llu client_slot=%*u incarnation=%*u state=%u svid=%u fh=%255s "
               "start=%llu end=%llu len=%*s exclusive=%u offer=%u unmonitored=%u oh=%511s "
               "lingers=%u slot=%u",
               &id, &lock.state, &lock.svid, fh, &start, &end, &exclusive, &offer, &unmonitored, oh,
               &lingers, &slot) == 12;
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
    lock.exclusive = exclusive == 1;
    lock.is_offer = offer == 1;
    lock.is_unmonitored = unmonitored == 1;
    lock.is_echo = lingers == 1;
    lock.is_alone = lock.is_offer && !lock.is_echo;
    bytes_of_hex(oh, (uint8_t *)lock.oh, sizeof(lock.oh) - 1);
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
    char fh[LOCK_CALL_HEX_MAX], offer[16];
    uint8_t handle[LOCK_CALL_FH_LEN];
    bool is_read =
        sscanf(line,
               "waiter client=%*s client_slot=%*u incarnation=%*u state=%*u svid=%u fh=%255s "
               "offset=%*s len=%*s exclusive=%*u message=%*u order=%*s cookie=%*s offer_slot=%15s",
               &waiter.svid, fh, offer) == 3;
    reading->dump.waiters++;
    if (!HARNESS_EXPECT(is_read, "a waiter that cannot be read: %s", line)) {
        reading->is_good = false;
        return;
    }
    waiter.file = lock_call_file(handle, bytes_of_hex(fh, handle, sizeof(handle)));
    waiter.is_offered = offer[0] != '-';
    for (uint32_t i = 0; waiter.is_offered && i < reading->kept_count; i++)
        if (reading->kept[i].slot == strtoul(offer, NULL, 10))
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
    else if (sscanf(line, "server epoch=%llu state=%u", &epoch, &reading->dump.state) == 2)
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
