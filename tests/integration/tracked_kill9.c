/*
 * tracked_kill9.c -- kill -9 of the server while another process, with libholdfast, registers,
 * disconnects, reconnects, changes and removes clients, and cleans up after those that expire.
 *
 * Passing proves, for the real process on the real store (P1; not for power loss):
 *  (1) what was answered is so after every kill: a registered client is found with its id and its
 *      last bytes, a disconnected one can come back, a removed one is unknown;
 *  (2) no client comes back that was removed, or whose time was answered to be over;
 *  (3) an id belongs to one life of one client: it is never given out again, and a repeat after a
 *      lost answer makes no second client; the number of its connection only grows;
 *  (4) whose time is over is handed out until it is removed, also when the first one who took it
 *      did nothing; nobody else is ever handed out; in the end every life is over, once, and
 *      nothing is left in the server.
 *
 * HOLDFAST_TRACKED_CLIENTS (600) clients in WORKERS threads, each with a connection of its own, and
 * CLEANERS; HOLDFAST_TRACKED_KILLS (6) kills, each after some more answers, with as many requests
 * in flight as there are threads. A client that is to stay may be away for minutes; one that is to
 * expire for a second.
 */
#include "harness.h"
#include "holdfast/tracker.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROTOCOL "smb"

enum {
    WORKERS = 24,
    CLEANERS = 4, /* so that they share commits, where these are slow */
    ROUNDS = 5,   /* steps of each client, on average */
    PATIENCE_MS = 180000,
    STALL_MS = 60000, /* nothing happens for so long: nothing will */
    LONG_S = 3600,
    LIVES_PER_CLIENT_MAX = 64, /* ids that there may be, per client; others take ids, too */
};

enum phase { ABSENT, CONNECTED, AWAY, DOOMED };

/* One key. Only its worker touches it. */
struct client {
    enum phase phase;
    struct holdfast_client known; /* as the last answer said */
    uint32_t changes;
};

/* One id. */
struct life {
    _Atomic uint32_t owner; /* 1 + the number of its client; 0: nobody's yet */
    atomic_bool may_expire, was_taken, is_over;
};

struct worker {
    pthread_t thread;
    struct holdfast *server;
    uint32_t first, end; /* its clients */
    uint64_t seed;
    uint64_t steps;
};

static uint32_t client_count;
static struct client *clients;
static uint32_t life_max;
static struct life *lives;
static atomic_ullong answers, takes, lives_begun, lives_removed, lives_expired, not_cleaned;
static atomic_bool is_finishing, is_drained;
static pthread_mutex_t reports = PTHREAD_MUTEX_INITIALIZER;
static const char *control;

__attribute__((format(printf, 2, 3))) static void require(bool is_true, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    if (is_true)
        return;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    (void)pthread_mutex_lock(&reports);
    HARNESS_EXPECT(false, "%s", sentence);
    (void)pthread_mutex_unlock(&reports);
}

static struct life *life_of(uint64_t id)
{
    if (id == 0 || id >= life_max) {
        require(false, "id c%" PRIu64 " is none of %u", id, life_max);
        exit(harness_finish());
    }
    return &lives[id];
}

static void answered(struct worker *worker, enum holdfast_result result, const char *what)
{
    atomic_fetch_add(&answers, 1);
    if (result == HOLDFAST_UNREACHABLE || result == HOLDFAST_REFUSED || result == HOLDFAST_FULL)
        require(false, "%s: %s", what, holdfast_error(worker->server));
}

/* ---- steps of a client ---- */

static void put_changes(struct client *client)
{
    (void)snprintf((char *)client->known.bytes, sizeof client->known.bytes, "change %u",
                   ++client->changes);
    client->known.bytes_len = strlen((const char *)client->known.bytes);
}

/* What an answer says of a client whose life goes on. */
static void check_same(const struct client *client, const struct holdfast_client *said,
                       const char *what)
{
    require(said->id == client->known.id, "%s: is c%" PRIu64 ", was c%" PRIu64, what, said->id,
            client->known.id);
    require(said->bytes_len == client->known.bytes_len &&
                memcmp(said->bytes, client->known.bytes, said->bytes_len) == 0,
            "%s of c%" PRIu64 ": its bytes are %.*s, not %.*s", what, said->id,
            (int)said->bytes_len, (const char *)said->bytes, (int)client->known.bytes_len,
            (const char *)client->known.bytes);
    require(said->connection >= client->known.connection,
            "%s of c%" PRIu64 ": connection %u after %u", what, said->id, said->connection,
            client->known.connection);
}

static void begin_life(struct worker *worker, uint32_t number)
{
    struct client *client = &clients[number];
    uint64_t last_id = client->known.id;
    uint32_t nobody = 0;
    client->known.window_s = LONG_S;
    put_changes(client);
    enum holdfast_result result = holdfast_register(worker->server, &client->known);
    answered(worker, result, "register");
    if (result == HOLDFAST_GONE) /* of its last life: nobody has cleaned up yet */
        return;
    require(result == HOLDFAST_DONE, "register: %s", holdfast_error(worker->server));
    struct life *life = life_of(client->known.id);
    require(client->known.id > last_id, "c%" PRIu64 " after c%" PRIu64, client->known.id, last_id);
    bool is_new = atomic_compare_exchange_strong(&life->owner, &nobody, number + 1);
    require(is_new, "c%" PRIu64 " is given to client %u, and was client %u's", client->known.id,
            number, nobody - 1);
    client->phase = CONNECTED;
    atomic_fetch_add(&lives_begun, 1);
}

static void register_again(struct worker *worker, struct client *client)
{
    struct holdfast_client said = client->known;
    put_changes(client);
    memcpy(said.bytes, client->known.bytes, sizeof said.bytes);
    said.bytes_len = client->known.bytes_len;
    said.window_s = LONG_S;
    enum holdfast_result result = holdfast_register(worker->server, &said);
    answered(worker, result, "register again");
    require(result == HOLDFAST_DONE, "register again c%" PRIu64 ": result %d", client->known.id,
            (int)result);
    check_same(client, &said, "register again");
    client->known = said;
    client->phase = CONNECTED;
}

static void reconnect(struct worker *worker, struct client *client)
{
    struct holdfast_client said = client->known;
    said.bytes_len = 0;
    enum holdfast_result result = holdfast_reconnect(worker->server, &said);
    answered(worker, result, "reconnect");
    require(result == HOLDFAST_DONE, "reconnect c%" PRIu64 ": result %d", client->known.id,
            (int)result);
    check_same(client, &said, "reconnect");
    require(said.connection > client->known.connection, "reconnect: the connection is the same");
    client->known = said;
    client->phase = CONNECTED;
}

static void update(struct worker *worker, struct client *client)
{
    put_changes(client);
    enum holdfast_result result = holdfast_update(worker->server, &client->known);
    answered(worker, result, "update");
    require(result == HOLDFAST_DONE, "update c%" PRIu64 ": result %d", client->known.id,
            (int)result);
}

static void disconnect(struct worker *worker, struct client *client)
{
    struct holdfast_client said = client->known;
    enum holdfast_result result = holdfast_disconnect(worker->server, &said, LONG_S);
    answered(worker, result, "disconnect");
    require(result == HOLDFAST_DONE && said.state == HOLDFAST_DISCONNECTED,
            "disconnect c%" PRIu64 ": result %d", client->known.id, (int)result);
    check_same(client, &said, "disconnect");
    client->known = said;
    client->phase = AWAY;
}

static void look(struct worker *worker, struct client *client)
{
    struct holdfast_client said = client->known;
    said.bytes_len = 0;
    enum holdfast_result result = holdfast_find(worker->server, &said);
    answered(worker, result, "find");
    require(result == HOLDFAST_DONE, "c%" PRIu64 " was answered, and is not found: result %d",
            client->known.id, (int)result);
    check_same(client, &said, "find");
    require(said.state == HOLDFAST_DISCONNECTED ||
                (client->phase == CONNECTED && said.state == HOLDFAST_CONNECTED),
            "c%" PRIu64 " is in state %d", client->known.id, (int)said.state);
}

static void end_life(struct worker *worker, struct client *client)
{
    struct life *life = life_of(client->known.id);
    struct holdfast_client said = client->known;
    enum holdfast_result result = holdfast_remove(worker->server, &client->known);
    answered(worker, result, "remove");
    require(result == HOLDFAST_DONE, "remove c%" PRIu64 ": result %d", client->known.id,
            (int)result);
    require(!atomic_exchange(&life->is_over, true), "c%" PRIu64 " ends twice", client->known.id);
    atomic_fetch_add(&lives_removed, 1);
    client->phase = ABSENT;
    result = holdfast_find(worker->server, &said);
    answered(worker, result, "find");
    require(result == HOLDFAST_UNKNOWN, "c%" PRIu64 " was removed, and is found", client->known.id);
}

/* Its window becomes a second, and it goes away: from here on the cleaner ends its life. */
static void doom(struct worker *worker, struct client *client)
{
    struct holdfast_client said = client->known;
    atomic_store(&life_of(client->known.id)->may_expire, true);
    said.window_s = 1;
    enum holdfast_result result = holdfast_register(worker->server, &said);
    answered(worker, result, "register to expire");
    require(result == HOLDFAST_DONE && said.id == client->known.id,
            "register to expire c%" PRIu64 ": result %d", client->known.id, (int)result);
    /* A restart may have disconnected it already, for a second. */
    result = holdfast_disconnect(worker->server, &said, 1);
    answered(worker, result, "disconnect to expire");
    require(result == HOLDFAST_DONE || result == HOLDFAST_GONE || result == HOLDFAST_UNKNOWN,
            "disconnect to expire c%" PRIu64 ": result %d", client->known.id, (int)result);
    client->known.connection = said.connection;
    client->phase = DOOMED;
}

/* Once it is said to be over it stays so, until it is unknown, and then another one. */
static void look_for_doomed(struct worker *worker, struct client *client)
{
    struct holdfast_client said = client->known;
    bool was_over = atomic_load(&life_of(client->known.id)->was_taken);
    bool was_ended = atomic_load(&life_of(client->known.id)->is_over);
    enum holdfast_result result = holdfast_find(worker->server, &said);
    answered(worker, result, "find doomed");
    if (result == HOLDFAST_UNKNOWN) {
        client->phase = ABSENT;
        return;
    }
    require(result == HOLDFAST_DONE && said.id == client->known.id && !was_ended,
            "c%" PRIu64 " was ended, and is found: result %d", client->known.id, (int)result);
    require(!was_over || said.state == HOLDFAST_EXPIRED,
            "the time of c%" PRIu64 " was over, and it is in state %d", client->known.id,
            (int)said.state);
}

static void step(struct worker *worker, uint32_t number)
{
    struct client *client = &clients[number];
    uint64_t dice = harness_random(&worker->seed) % 100;
    switch (client->phase) {
    case ABSENT:
        begin_life(worker, number);
        return;
    case CONNECTED:
        if (dice < 30)
            disconnect(worker, client);
        else if (dice < 50)
            update(worker, client);
        else if (dice < 65)
            look(worker, client);
        else if (dice < 75)
            register_again(worker, client);
        else if (dice < 85)
            end_life(worker, client);
        else
            doom(worker, client);
        return;
    case AWAY:
        if (dice < 60)
            reconnect(worker, client);
        else if (dice < 80)
            register_again(worker, client);
        else
            look(worker, client);
        return;
    case DOOMED:
        look_for_doomed(worker, client);
        return;
    }
}

static void *work(void *context)
{
    struct worker *worker = context;
    uint32_t count = worker->end - worker->first;
    for (uint32_t i = worker->first; i < worker->end; i++) /* all of them, at the same time */
        begin_life(worker, i);
    for (uint64_t i = 0; i < worker->steps; i++)
        step(worker, worker->first + (uint32_t)(harness_random(&worker->seed) % count));
    for (uint32_t i = worker->first; i < worker->end; i++) {
        if (clients[i].phase == CONNECTED || clients[i].phase == AWAY) {
            look(worker, &clients[i]); /* nobody who was answered is lost */
            doom(worker, &clients[i]);
        }
    }
    return NULL;
}

/* ---- those whose time is over ---- */

/* Some are taken by somebody who then does nothing: they must come again. */
static void *clean(void *context)
{
    struct worker *worker = context;
    struct holdfast_client taken;
    const struct timespec pause = {.tv_nsec = 20000000};
    while (!atomic_load(&is_drained)) {
        enum holdfast_result result = holdfast_take_expired(worker->server, PROTOCOL, &taken);
        answered(worker, result, "take");
        if (result != HOLDFAST_DONE) {
            (void)nanosleep(&pause, NULL);
            continue;
        }
        atomic_fetch_add(&takes, 1);
        struct life *life = life_of(taken.id);
        require(atomic_load(&life->may_expire), "c%" PRIu64 " expired too early", taken.id);
        require(!atomic_load(&life->is_over), "c%" PRIu64 " is over, and taken", taken.id);
        require(taken.state == HOLDFAST_EXPIRED, "taken, and in state %d", (int)taken.state);
        atomic_store(&life->was_taken, true);
        if (!atomic_load(&is_finishing) && harness_random(&worker->seed) % 100 < 20) {
            atomic_fetch_add(&not_cleaned, 1);
            continue;
        }
        atomic_store(&life->is_over, true); /* before it is: who finds it then fails */
        result = holdfast_remove(worker->server, &taken);
        answered(worker, result, "remove expired");
        require(result == HOLDFAST_DONE, "remove expired c%" PRIu64 ": result %d", taken.id,
                (int)result);
        atomic_fetch_add(&lives_expired, 1);
    }
    return NULL;
}

/* ---- the test ---- */

static void begin_worker(struct worker *worker, void *(*body)(void *), uint64_t seed)
{
    worker->seed = seed;
    worker->server = holdfast_open(control, PATIENCE_MS);
    if (worker->server == NULL || pthread_create(&worker->thread, NULL, body, worker) != 0)
        abort();
}

static void kill_and_restart(struct harness_server *server)
{
    HARNESS_EXPECT(harness_stop(server, SIGKILL) == 128 + SIGKILL, "killed");
    if (!harness_start(server))
        exit(harness_finish());
}

/* Kills, each after so many more answers; the workers are not done before. */
static void kill_often(struct harness_server *server, uint32_t kills, uint64_t total,
                       uint64_t *seed)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (uint32_t i = 0; i < kills; i++) {
        uint64_t until = atomic_load(&answers) + 1 + harness_random(seed) % (total / (kills + 1));
        for (uint32_t waited = 0; atomic_load(&answers) < until && waited < 60000; waited++)
            (void)nanosleep(&pause, NULL);
        kill_and_restart(server);
    }
}

static bool is_empty(struct holdfast *server)
{
    struct holdfast_client left;
    return holdfast_next(server, PROTOCOL, &(uint64_t){0}, &left) == HOLDFAST_NONE;
}

static void reserve(void)
{
    client_count = harness_number("HOLDFAST_TRACKED_CLIENTS", 600);
    life_max = client_count * LIVES_PER_CLIENT_MAX;
    clients = calloc(client_count, sizeof *clients);
    lives = calloc(life_max, sizeof *lives);
    if (clients == NULL || lives == NULL)
        abort();
    for (uint32_t i = 0; i < client_count; i++) {
        char key[32];
        int len = snprintf(key, sizeof key, "client/%u%c", i, 0x80 + (int)(i % 16));
        if (!holdfast_client_init(&clients[i].known, PROTOCOL, key, (size_t)len))
            abort();
    }
}

/* Everybody is over, or was taken at least once. */
static bool is_taken_once(struct holdfast *looker)
{
    (void)looker;
    for (uint32_t id = 0; id < life_max; id++)
        if (atomic_load(&lives[id].owner) != 0 && !atomic_load(&lives[id].is_over) &&
            !atomic_load(&lives[id].was_taken))
            return false;
    return true;
}

/* True when it is so; false when nobody was taken for STALL_MS, however slow the disk is. */
static bool await(bool (*is_so)(struct holdfast *), struct holdfast *looker)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t seen = atomic_load(&takes);
    for (uint32_t stalled_ms = 0; !is_so(looker); stalled_ms += 50) {
        if (stalled_ms > STALL_MS)
            return false;
        (void)nanosleep(&pause, NULL);
        stalled_ms = atomic_load(&takes) == seen ? stalled_ms : 0;
        seen = atomic_load(&takes);
    }
    return true;
}

static void finish(struct harness_server *server, struct worker *cleaners)
{
    struct holdfast *looker = holdfast_open(control, PATIENCE_MS);
    if (looker == NULL)
        abort();
    HARNESS_EXPECT(await(is_taken_once, looker), "everybody is taken");
    atomic_store(&is_finishing, true);
    kill_and_restart(server); /* whoever was taken and not cleaned up comes again */
    HARNESS_EXPECT(await(is_empty, looker), "everybody is gone in the end");
    atomic_store(&is_drained, true);
    for (uint32_t i = 0; i < CLEANERS; i++) {
        (void)pthread_join(cleaners[i].thread, NULL);
        holdfast_close(cleaners[i].server);
    }
    holdfast_close(looker);
    uint64_t begun = atomic_load(&lives_begun), removed = atomic_load(&lives_removed);
    uint64_t expired = atomic_load(&lives_expired);
    HARNESS_EXPECT(begun == removed + expired, "%" PRIu64 " begun, %" PRIu64 " + %" PRIu64 " ended",
                   begun, removed, expired);
    HARNESS_EXPECT(expired > 0 && removed > 0 && atomic_load(&not_cleaned) > 0, "each kind of end");
    for (uint32_t id = 0; id < life_max; id++)
        if (atomic_load(&lives[id].owner) != 0)
            require(atomic_load(&lives[id].is_over), "c%u did not end", id);
    printf("%u clients: %" PRIu64 " lives, %" PRIu64 " removed, %" PRIu64
           " expired, %llu taken and left; %llu answers\n",
           client_count, begun, removed, expired, atomic_load(&not_cleaned), atomic_load(&answers));
}

int main(void)
{
    harness_init("tracked_kill9");
    static struct worker workers[WORKERS], cleaners[CLEANERS];
    uint64_t seed = harness_seed();
    uint32_t kills = harness_number("HOLDFAST_TRACKED_KILLS", 6);
    reserve();
    control = harness_path("control.sock");
    const char *kind = getenv("HOLDFAST_STORE");
    bool is_shared = kind != NULL && strcmp(kind, "postgres") == 0;
    struct harness_server server = {.listen = "127.0.0.1",
                                    .store = is_shared ? harness_postgres("tracked")
                                                       : harness_path("store"),
                                    .extra = {"--control", control, "--recovery-window", "3600"}};
    if (!harness_start(&server))
        return harness_finish();
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].first = client_count * i / WORKERS;
        workers[i].end = client_count * (i + 1) / WORKERS;
        workers[i].steps = (uint64_t)(workers[i].end - workers[i].first) * ROUNDS;
        begin_worker(&workers[i], work, harness_random(&seed));
    }
    for (uint32_t i = 0; i < CLEANERS; i++)
        begin_worker(&cleaners[i], clean, harness_random(&seed));
    kill_often(&server, kills, (uint64_t)client_count * (ROUNDS + 2), &seed);
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        holdfast_close(workers[i].server);
    }
    finish(&server, cleaners);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "a clean end");
    free(clients);
    free(lives);
    return harness_finish();
}
