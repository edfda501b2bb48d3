/*
 * trial.c -- a server on a disk image, and what it found; see trial.h.
 *
 * The server is killed as soon as it is ready. What it loaded is then read with store_dump: the
 * first batch of a start writes the new state, and removes records that could not be read, so what
 * is there now is what the server knew when it began to answer.
 */
#include "trial.h"

#include "runner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 16 };

struct trials {
    char store[256], log[256];
    const char *sync;
    uint32_t count;
    struct result {
        uint64_t digest;
        struct history_found *found; /* owned; NULL: the slot is free */
    } results[SLOTS];
};

struct trials *trial_new(const char *directory, const char *sync)
{
    struct trials *trials = calloc(1, sizeof(*trials));
    if (!trials)
        abort();
    snprintf(trials->store, sizeof(trials->store), "%s/store", directory);
    snprintf(trials->log, sizeof(trials->log), "%s/log", directory);
    trials->sync = sync;
    return trials;
}

void trial_free(struct trials *trials)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        free(trials->results[i].found);
    free(trials);
}

uint32_t trial_count(const struct trials *trials)
{
    return trials->count;
}

const char *trial_log(const struct trials *trials)
{
    return trials->log;
}

const char *trial_store(const struct trials *trials)
{
    return trials->store;
}

__attribute__((format(printf, 2, 3))) static void complain(struct history_found *found,
                                                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (found->problem[0] == '\0')
        vsnprintf(found->problem, sizeof(found->problem), format, arguments);
    va_end(arguments);
}

static void address_of(const struct history_name *name, char ret[static 64])
{
    snprintf(ret, 64, "%u.%u.%u.%u", name->address >> 24, name->address >> 16 & 255,
             name->address >> 8 & 255, name->address & 255);
}

static void hex_of(const struct peer_nlm_bytes *bytes, char ret[static 129])
{
    for (uint32_t i = 0; i < bytes->len && i < 64; i++)
        snprintf(ret + (size_t)2 * i, 3, "%02x", bytes->at[i]);
}

/* A registrant must be, in every field, one that this test registers. */
static void take_registrant(struct history_found *found, const char *line)
{
    struct history_post post = {.owner = HISTORY_OWNERS};
    struct history_name name;
    char address[64], priv[33], mon_name[HISTORY_NAME_MAX], my_name[HISTORY_NAME_MAX];
    char expected_address[64], expected_priv[33];
    uint8_t priv_bytes[PEER_NSM_PRIV_LEN];
    if (sscanf(line,
               "registrant slot=%*u id=%*u registered_ns=%*u server_epoch=%*u address=%63s "
               "local=%*s port=%*u transport=%*u my_prog=%*u my_vers=%*u my_proc=%*u "
               "told_state=%*u relayed_state=%*u priv=%32s mon_name=%1024s my_name=%1024s",
               address, priv, mon_name, my_name) != 4 ||
        sscanf(my_name, "owner%u", &post.owner) != 1 || post.owner >= HISTORY_OWNERS ||
        sscanf(mon_name, "host%u", &post.key) != 1 || post.key >= HISTORY_KEYS ||
        sscanf(priv + 16, "%8x", &post.version) != 1 || post.version == 0) {
        complain(found, "a registrant that nobody registered: %.200s", line);
        return;
    }
    history_name(post.owner, post.key, &name);
    history_priv(&post, priv_bytes);
    for (uint32_t i = 0; i < PEER_NSM_PRIV_LEN; i++)
        snprintf(expected_priv + (size_t)2 * i, 3, "%02x", priv_bytes[i]);
    address_of(&name, expected_address);
    if (strcmp(address, expected_address) != 0 || strcmp(priv, expected_priv) != 0 ||
        strcmp(mon_name, name.mon_name) != 0 || strcmp(my_name, name.my_name) != 0)
        complain(found, "owner%u host%u is stored with wrong fields: %.200s", post.owner, post.key,
                 line);
    uint32_t *version = &found->owners[post.owner].version[post.key];
    if (*version != 0)
        complain(found, "owner%u host%u is stored twice", post.owner, post.key);
    *version = post.version;
}

/* The same for the record of a lock client ... */
static void take_client(struct history_found *found, const char *line)
{
    unsigned long long id = 0;
    uint32_t owner = HISTORY_OWNERS;
    struct history_name name;
    char address[64], expected_address[64], caller_name[HISTORY_NAME_MAX];
    if (sscanf(line,
               "client slot=%*u id=%llu registered_ns=%*u seen_ns=%*u rebooted_ns=%*u "
               "untold_ns=%*u server_epoch=%*u address=%63s",
               &id, address) != 2 ||
        sscanf(strrchr(line, '='), "=%1024s", caller_name) != 1 ||
        sscanf(caller_name, "owner%u", &owner) != 1 || owner >= HISTORY_OWNERS ||
        !history_is_locker(owner)) {
        complain(found, "a client that never locked: %.200s", line);
        return;
    }
    history_name(owner, 0, &name);
    address_of(&name, expected_address);
    if (strcmp(address, expected_address) != 0 || strcmp(caller_name, name.my_name) != 0)
        complain(found, "client owner%u is stored with wrong fields: %.200s", owner, line);
    if (found->clients[owner] != 0)
        complain(found, "client owner%u is stored twice", owner);
    found->clients[owner] = id;
}

/* ... and its locks, which come behind it. */
static void take_lock(struct history_found *found, const char *line)
{
    unsigned long long client = 0, start = 0, end = 0;
    uint32_t owner = HISTORY_OWNERS;
    char fh[129], oh[129], expected[129];
    if (sscanf(line,
               "lock slot=%*u of.client_id=%llu of.client=%*u of.incarnation=%*u of.state=%*u "
               "granted_ns=%*u start=%llu end=%llu len=%*u svid=%u flags=1 fh=%128s oh=%128s",
               &client, &start, &end, &owner, fh, oh) != 6 ||
        owner >= HISTORY_OWNERS || !history_is_locker(owner)) {
        complain(found, "a lock that nobody took: %.200s", line);
        return;
    }
    uint32_t key = 0;
    while (key < HISTORY_KEYS && history_offset(key) != start)
        key++;
    struct history_post post = {.operation = HISTORY_ADD, .owner = owner, .key = key};
    struct peer_nlm_lock lock = history_lock(&post);
    hex_of(&lock.fh, expected);
    bool is_right =
        key < HISTORY_KEYS && client == found->clients[owner] && strcmp(fh, expected) == 0;
    if (!is_right || strlen(oh) != lock.oh.len || memcmp(oh, lock.oh.at, lock.oh.len) != 0) {
        complain(found, "a lock of owner%u is stored with wrong fields: %.200s", owner, line);
        return;
    }
    uint32_t *version = &found->owners[owner].version[key];
    if (*version != 0)
        complain(found, "key %u of owner%u is stored twice", key, owner);
    *version = (uint32_t)(end - start + 1);
}

static void take_line(struct history_found *found, const char *line)
{
    unsigned state = 0, flags = 0;
    if (sscanf(line, "server slot=0 txn=%*u epoch=%*u next_id=%*u state=%u flags=%u", &state,
               &flags) == 2) {
        found->flags = flags;
        if (state != found->state)
            complain(found, "state %u is stored, %u was announced", state, found->state);
    } else if (strncmp(line, "client ", 7) == 0) {
        take_client(found, line);
    } else if (strncmp(line, "lock ", 5) == 0) {
        take_lock(found, line);
    } else {
        take_registrant(found, line);
    }
}

static void read_store(const struct trials *trials, struct history_found *found)
{
    pid_t pid;
    char *line = NULL;
    size_t size = 0;
    FILE *output = runner_dump_begin(trials->store, &pid);
    while (getline(&line, &size, output) > 0)
        take_line(found, line);
    free(line);
    int code = runner_dump_end(output, pid);
    if (code != 0)
        complain(found, "store_dump ended with %d: a record or the store cannot be read", code);
}

static void try_image(const struct trials *trials, const struct image *image,
                      struct history_found *found)
{
    struct runner runner = {.store = trials->store, .log = trials->log, .sync = trials->sync};
    runner_remove(trials->store);
    int code = image_write(image, trials->store);
    if (code != 0) {
        fprintf(stderr, "cannot write an image to %s: %s\n", trials->store, strerror(-code));
        exit(1);
    }
    found->has_started = runner_start(&runner);
    if (!found->has_started) {
        const char *line = runner_last_line(trials->log), *said = strstr(line, " error ");
        complain(found, "%s", said ? said + strlen(" error ") : line);
        return;
    }
    found->state = runner.state;
    runner_kill(&runner);
    read_store(trials, found);
}

const struct history_found *trial_run(struct trials *trials, const struct image *image)
{
    const uint64_t digest = image_digest(image);
    uint32_t slot = (uint32_t)(digest % SLOTS);
    while (trials->results[slot].found && trials->results[slot].digest != digest)
        slot = (slot + 1) % SLOTS;
    struct result *result = &trials->results[slot];
    if (result->found)
        return result->found;
    if (++trials->count == SLOTS) {
        fprintf(stderr, "more than %d different images\n", SLOTS);
        exit(1);
    }
    result->digest = digest;
    result->found = calloc(1, sizeof(*result->found));
    if (!result->found)
        abort();
    try_image(trials, image, result->found);
    return result->found;
}
