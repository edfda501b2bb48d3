/*
 * process.c -- tells stories to a real holdfastd, over real sockets, killed for real.
 *
 * Each story has a server, a store and a network namespace of its own. Its clients are emulated
 * hosts (tests/peer) that are called back; what the server counts is read over HTTP. Time passes
 * really: stories that need much of it are for the others.
 */
#include "integration/harness.h"
#include "integration/http_get.h"
#include "peer/emu_boot.h"
#include "peer/emu_client.h"
#include "peer/emu_portmap.h"
#include "peer/emu_table.h"
#include "stories/script.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_ADDRESS UINT32_C(0x7f050001) /* 127.5.0.1 */
#define SERVER_AT     UINT32_C(0x7f000001)
#define PATIENCE_MS   10000
#define NEVER_MS      600000
#define OPTION_LENGTH 16

enum { WAITS_MAX = 8 };

/* What a process of a host waits for. */
struct wait {
    bool is_open;
    uint32_t process, file, number; /* of the host's waits */
    struct script_range range;
};

struct actor {
    struct emu_host *host;
    struct emu_kind kind;
    struct wait waits[WAITS_MAX];
    uint32_t called;  /* callbacks that the story knows of */
    uint32_t notices; /* that it had taken when the server started last */
};

static struct harness_server server;
static struct http_place place;
static struct actor actors[SCRIPT_CLIENTS];
static char numbers[HARNESS_EXTRA_MAX][OPTION_LENGTH];

static const char *cannot(const struct script *script, const struct script_step *step)
{
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        if (script->clients[i].behind != i)
            return "two hosts cannot have one address there";
    if (step->has_state)
        return "the kernel and the status monitor of a host have one number there";
    if (step->verb == SCRIPT_IS_NOTIFIED && step->value == 0)
        return "its status monitor is always there";
    if (step->verb == SCRIPT_THERE_ARE && step->noun > SCRIPT_SHARES)
        return "its status does not count that";
    if (step->verb == SCRIPT_ANSWERS && step->has_status && step->value != SCRIPT_GRANTED)
        return "a host decides by itself there";
    return NULL;
}

static void stop(void)
{
    (void)harness_stop(&server, SIGKILL);
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        emu_host_free(actors[i].host);
    emu_net_stop();
}

static void fail(const char *message)
{
    char line[512];
    FILE *log = fopen(server.log, "re");
    fprintf(stderr, "%s\n", message);
    while (log != NULL && fgets(line, sizeof(line), log) != NULL)
        fprintf(stderr, "    log: %s", line);
    if (log != NULL)
        fclose(log);
    stop();
    (void)harness_finish();
    exit(1);
}

static void pause_ms(uint64_t ms)
{
    struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* ---- calls ---- */

static struct emu_request request_of(const struct script_step *step)
{
    return (struct emu_request){.file = step->file + 1,
                                .svid = step->process + 1,
                                .exclusive = step->range.exclusive,
                                .offset = step->range.offset,
                                .len = step->range.len,
                                .reclaim = step->reclaim};
}

/* Its wait for this range, in whichever mode. */
static struct wait *wait_of(const struct script_step *step)
{
    struct actor *actor = &actors[step->client];
    for (uint32_t i = 0; i < WAITS_MAX; i++) {
        struct wait *wait = &actor->waits[i];
        if (wait->is_open && wait->process == step->process && wait->file == step->file &&
            wait->range.offset == step->range.offset && wait->range.len == step->range.len)
            return wait;
    }
    return NULL;
}

static void close_wait(struct actor *actor, struct wait *wait)
{
    emu_net_lock();
    actor->host->waits[wait->number].state = EMU_WAIT_FREE;
    emu_net_unlock();
    wait->is_open = false;
}

static int block(const struct script_step *step)
{
    struct actor *actor = &actors[step->client];
    struct emu_request request = request_of(step);
    struct wait *wait = wait_of(step);
    if (wait != NULL && wait->range.exclusive == step->range.exclusive) {
        int status = emu_client_poll(actor->host, wait->number);
        if (status != PEER_NLM_IS_BLOCKED && status != PEER_NLM_IS_GRACE)
            close_wait(actor, wait);
        return status;
    }
    if (wait != NULL)
        close_wait(actor, wait); /* the other mode takes its place */
    for (wait = actor->waits; wait < actor->waits + WAITS_MAX - 1 && wait->is_open; wait++)
        continue;
    *wait = (struct wait){true, step->process, step->file, 0, step->range};
    int status = emu_client_block(actor->host, &request, &wait->number);
    if (status != PEER_NLM_IS_BLOCKED)
        close_wait(actor, wait);
    return status;
}

static int cancel(const struct script_step *step)
{
    struct actor *actor = &actors[step->client];
    struct emu_request request = request_of(step);
    struct wait *wait = wait_of(step);
    bool is_owned;
    if (wait == NULL || wait->range.exclusive != step->range.exclusive)
        return emu_client_cancel(actor->host, &request);
    wait->is_open = false;
    return emu_client_give_up(actor->host, wait->number, &is_owned);
}

static int call(const struct script_step *step, struct script_seen *ret)
{
    struct emu_host *host = actors[step->client].host;
    struct emu_request request = request_of(step);
    struct peer_nlm_res res = {0};
    if (step->verb == SCRIPT_LOCK)
        return step->wait ? block(step) : emu_client_lock(host, &request);
    if (step->verb == SCRIPT_UNLOCK)
        return emu_client_unlock(host, &request);
    if (step->verb == SCRIPT_CANCEL)
        return cancel(step);
    if (step->verb == SCRIPT_SHARE)
        return emu_client_share(host, &request, step->mode, step->access);
    if (step->verb == SCRIPT_UNSHARE)
        return emu_client_unshare(host, &request);
    int status = emu_client_test(host, &request, &res);
    ret->has_holder = status == PEER_NLM_IS_DENIED;
    ret->svid = res.svid;
    ret->held = (struct script_range){res.offset, res.len, res.exclusive};
    return status;
}

static void ask(const struct script_step *step, struct script_seen *ret)
{
    int status = call(step, ret);
    if (status < 0)
        snprintf(ret->why, sizeof(ret->why), "no answer: %s", strerror(-status));
    else
        ret->value = (uint32_t)status;
}

static void expect_void(int result, const char *what, struct script_seen *ret)
{
    if (result < 0)
        snprintf(ret->why, sizeof(ret->why), "%s: %s", what, strerror(-result));
}

static void free_everything(const struct script_step *step, struct script_seen *ret)
{
    struct emu_host *host = actors[step->client].host;
    memset(actors[step->client].waits, 0, sizeof(actors[0].waits));
    emu_net_lock();
    memset(host->waits, 0, sizeof(host->waits));
    emu_net_unlock();
    expect_void(emu_client_free_all(host, host->name), "FREE_ALL", ret);
}

static void reboot(const struct script_step *step, struct script_seen *ret)
{
    struct emu_host *host = actors[step->client].host;
    memset(actors[step->client].waits, 0, sizeof(actors[0].waits));
    if (step->has_state)
        EMU_NET_LOCKED(host->state = step->state - 2); /* two are added */
    if (step->value) {
        expect_void(emu_boot_restart(host), "SM_NOTIFY", ret);
        return;
    }
    emu_host_restart_lockd(host);
    EMU_NET_LOCKED(host->state += 2);
}

static void send_notice(const struct script_step *step, struct script_seen *ret)
{
    struct emu_host *host = actors[step->client].host;
    const char *name = step->word[0] != '\0' ? step->word : host->name;
    expect_void(emu_boot_notify(host, name, step->state), "SM_NOTIFY", ret);
}

/* ---- being called ---- */

static void be(const struct script_step *step, struct script_seen *ret)
{
    static const enum emu_answer answers[] = {[SCRIPT_WELL] = EMU_ANSWER_HONEST,
                                              [SCRIPT_SILENT] = EMU_ANSWER_NEVER,
                                              [SCRIPT_UNREACHABLE] = EMU_ANSWER_HONEST,
                                              [SCRIPT_MUTE] = EMU_ANSWER_LATE, /* for ever */
                                              [SCRIPT_SLOW] = EMU_ANSWER_LATE};
    struct emu_host *host = actors[step->client].host;
    (void)ret;
    emu_net_lock();
    host->answer = answers[step->mood];
    host->portmap_mode = step->mood == SCRIPT_UNREACHABLE ? EMU_PORTMAP_EMPTY : EMU_PORTMAP_ANSWERS;
    emu_net_unlock();
}

static void stop_waiting(const struct script_step *step, struct script_seen *ret)
{
    struct actor *actor = &actors[step->client];
    (void)ret;
    for (uint32_t i = 0; i < WAITS_MAX; i++)
        if (actor->waits[i].is_open)
            close_wait(actor, &actor->waits[i]);
}

static uint32_t callbacks(const struct emu_host *host)
{
    uint32_t count;
    EMU_NET_LOCKED(count = emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED) +
                           emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED_MSG));
    return count;
}

static void expect_call(const struct script_step *step, struct script_seen *ret)
{
    struct actor *actor = &actors[step->client];
    uint64_t until_ns = dial_now_ns() + PATIENCE_MS * UINT64_C(1000000);
    while (callbacks(actor->host) == actor->called && dial_now_ns() < until_ns)
        pause_ms(2);
    if (callbacks(actor->host) == actor->called)
        snprintf(ret->why, sizeof(ret->why), "it is not called");
    actor->called = callbacks(actor->host);
}

static uint32_t notices_of(const struct actor *actor)
{
    uint32_t count = 0;
    if (actor->host != NULL)
        EMU_NET_LOCKED(count = actor->host->restarts_seen);
    return count;
}

static void see_notified(const struct script_step *step, struct script_seen *ret)
{
    const struct actor *actor = &actors[step->client];
    uint64_t until_ns = dial_now_ns() + (PATIENCE_MS + step->ms) * UINT64_C(1000000);
    while (step->value == 1 && notices_of(actor) == actor->notices && dial_now_ns() < until_ns)
        pause_ms(2);
    ret->value = notices_of(actor) != actor->notices;
}

static void answer_late(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    emu_host_release_answers(actors[step->client].host);
}

/* A wait of this process that a callback has ended. */
static struct wait *granted_wait(const struct script_step *step)
{
    struct actor *actor = &actors[step->client];
    for (uint32_t i = 0; i < WAITS_MAX; i++)
        if (actor->waits[i].is_open && actor->waits[i].process == step->process &&
            emu_client_is_granted(actor->host, actor->waits[i].number))
            return &actor->waits[i];
    return NULL;
}

static void expect_grant(const struct script_step *step, struct script_seen *ret)
{
    uint64_t patience_ms = step->verb == SCRIPT_IS_NOT_GRANTED ? 0 : PATIENCE_MS + step->ms;
    uint64_t until_ns = dial_now_ns() + patience_ms * 1000000;
    struct wait *wait = granted_wait(step);
    for (; wait == NULL && dial_now_ns() < until_ns; wait = granted_wait(step))
        pause_ms(2);
    ret->value = wait != NULL;
    if (wait == NULL)
        return;
    if (step->has_range &&
        (wait->range.offset != step->range.offset || wait->range.len != step->range.len ||
         wait->range.exclusive != step->range.exclusive))
        snprintf(ret->why, sizeof(ret->why), "the callback is about another lock");
    close_wait(&actors[step->client], wait);
    actors[step->client].called = callbacks(actors[step->client].host);
}

/* ---- the server ---- */

static void start_server(void)
{
    if (!harness_start(&server))
        fail("the server does not start");
    place.port = http_port(server.log);
}

/* It has another port now. */
static void find_server(struct emu_host *host)
{
    emu_net_lock();
    host->server = dial_endpoint_v4(SERVER_AT, server.port);
    emu_net_unlock();
    for (uint32_t i = 0; i < 2; i++) {
        if (host->fd[i] >= 0)
            close(host->fd[i]);
        host->fd[i] = -1;
    }
}

static void let_pass(const struct script_step *step, struct script_seen *ret)
{
    (void)ret;
    pause_ms(step->ms);
}

static void restart_server(const struct script_step *step, struct script_seen *ret)
{
    (void)step;
    (void)ret;
    (void)harness_stop(&server, SIGKILL);
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        actors[i].notices = notices_of(&actors[i]);
    start_server();
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        if (actors[i].host != NULL)
            find_server(actors[i].host);
}

static uint32_t number_of(const json_t *status, const struct script_step *step)
{
    static const char *const keys[] = {[SCRIPT_LOCKS] = "locks",
                                       [SCRIPT_WAITERS] = "waiters",
                                       [SCRIPT_OFFERS] = "offers",
                                       [SCRIPT_CLIENTS_KNOWN] = "clients",
                                       [SCRIPT_UNSETTLED] = "unsettled_locks",
                                       [SCRIPT_SHARES] = "share_reservations"};
    const json_t *grace = json_object_get(status, "grace");
    if (step->verb == SCRIPT_GRACE_IS)
        return json_is_true(json_object_get(grace, "active"));
    const json_t *object = step->noun == SCRIPT_UNSETTLED ? grace : status;
    return (uint32_t)json_integer_value(json_object_get(object, keys[step->noun]));
}

static uint32_t log_count(const char *text)
{
    char line[1024];
    uint32_t count = 0;
    FILE *log = fopen(server.log, "re");
    while (log != NULL && fgets(line, sizeof(line), log) != NULL)
        count += strstr(line, text) != NULL;
    if (log != NULL)
        fclose(log);
    return count;
}

/* A line may come a little later than what it is about. */
static void expect_log(const struct script_step *step, struct script_seen *ret)
{
    uint64_t until_ns = dial_now_ns() + PATIENCE_MS * UINT64_C(1000000);
    while (log_count(step->word) == 0 && dial_now_ns() < until_ns)
        pause_ms(5);
    uint32_t count = log_count(step->word);
    if (count == 0 || (step->value == 1 && count > 1))
        snprintf(ret->why, sizeof(ret->why), "the log has that %u times", count);
}

/* What is expected comes soon, if it comes: an answer may still be on its way. */
static void count(const struct script_step *step, struct script_seen *ret)
{
    uint64_t until_ns = dial_now_ns() + PATIENCE_MS * UINT64_C(1000000);
    do {
        struct http_reply reply = http_ask(&place, "GET", "/api/v1/status", NULL);
        if (reply.json == NULL)
            snprintf(ret->why, sizeof(ret->why), "no status: %ld", reply.status);
        ret->value = reply.json != NULL ? number_of(reply.json, step) : 0;
        http_reply_done(&reply);
        if (ret->value == step->value || ret->why[0] != '\0')
            return;
        pause_ms(5);
    } while (dial_now_ns() < until_ns);
}

static void settle(const struct script_step *step)
{
    (void)step;
}

/* ---- the beginning and the end ---- */

static void configure(const struct script *script)
{
    static const struct {
        const char *key, *option, *value; /* NULL: its number; "": it has none */
    } all[] = {{"grace", "--grace", NULL},
               {"hold", "--unreachable", "hold"},
               {"trust-reclaim", "--trust-reclaim", ""},
               {"resume", "--recovery", "resume"},
               {"verify-notify", "--verify-notify", "always"},
               {"distrust-state", "--trust-state", "off"},
               {"max-locks", "--max-locks", NULL},
               {"max-locks-per-client", "--max-locks-per-client", NULL},
               {"max-waiters", "--max-waiters", NULL},
               {"max-clients", "--max-clients", NULL},
               {"give-up", "--give-up", NULL},
               {"max-per-address", "--max-per-address", NULL}};
    uint32_t at = 0, numbered = 0;
    static const char *const always[] = {"--http", "127.0.0.1:0",      "--max-per-address",
                                         "100",    "--notify-timeout", "2"};
    for (; at < sizeof(always) / sizeof(always[0]); at++)
        server.extra[at] = always[at];
    for (uint32_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        uint32_t value = script_option(script, all[k].key, k == 0 ? 90 : UINT32_MAX);
        if (value == UINT32_MAX || (value == 0 && all[k].value != NULL) ||
            at + 2 >= HARNESS_EXTRA_MAX)
            continue;
        server.extra[at++] = all[k].option;
        snprintf(numbers[numbered], OPTION_LENGTH, "%u", value);
        if (all[k].value == NULL)
            server.extra[at++] = numbers[numbered++];
        else if (all[k].value[0] != '\0')
            server.extra[at++] = all[k].value;
    }
    server.extra[at] = NULL;
}

static void make_host(const struct script *script, const struct script_way *way, uint32_t index)
{
    const struct script_client *client = &script->clients[index];
    struct actor *actor = &actors[index];
    actor->kind = emu_table_get(client->sends_messages ? "macos" : "linux")->kind;
    actor->kind.vers = way->version;
    actor->kind.is_unmonitored = client->is_unmonitored;
    struct emu_host_config config = {.address = FIRST_ADDRESS + index,
                                     .name = client->name,
                                     .server = dial_endpoint_v4(SERVER_AT, server.port),
                                     .portmap_port = EMU_PORTMAP_PORT};
    actor->host = emu_host_new(&actor->kind, &config);
    if (actor->host == NULL)
        fail("a client has no sockets");
    actor->host->is_udp = way->is_udp;
    actor->host->poll_ms = NEVER_MS;
    actor->host->state = 3;
}

static void begin(const struct script *script, const struct script_way *way)
{
    if (!emu_net_enter()) {
        printf("no network namespace of its own (%s): it takes root\n", strerror(errno));
        exit(HARNESS_SKIPPED);
    }
    harness_init("story");
    server.store = harness_path("store");
    if (!emu_net_start())
        fail("no network");
    start_server();
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        if (script->clients[i].is_used)
            make_host(script, way, i);
}

static void end(void)
{
    int code = harness_stop(&server, SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    stop();
    if (harness_finish() != 0)
        exit(1);
}

static const struct script_driver driver = {
    .name = "process",
    .number = 2,
    .real_ms_max = 4000,
    .has_ways = true,
    .jobs = 4,
    .configure = configure,
    .cannot = cannot,
    .begin = begin,
    .act = {SCRIPT_CALLS(ask), [SCRIPT_FREE_ALL] = free_everything, [SCRIPT_REBOOTS] = reboot,
            [SCRIPT_NOTIFIES] = send_notice, [SCRIPT_IS] = be,
            [SCRIPT_STOPS_WAITING] = stop_waiting, [SCRIPT_IS_CALLED] = expect_call,
            [SCRIPT_ANSWERS] = answer_late, [SCRIPT_IS_GRANTED] = expect_grant,
            [SCRIPT_IS_NOT_GRANTED] = expect_grant, [SCRIPT_IS_NOTIFIED] = see_notified,
            [SCRIPT_PASS] = let_pass, [SCRIPT_RESTARTS] = restart_server, [SCRIPT_GRACE_IS] = count,
            [SCRIPT_THERE_ARE] = count, [SCRIPT_LOG_HAS] = expect_log},
    .settle = settle,
    .end = end,
    .fail = fail,
};

int main(int argument_count, char **values)
{
    return script_command(&driver, argument_count, values);
}
