/*
 * registrar.c -- decides who tells clients our port, and keeps it told; see registrar.h.
 *
 *             rpcbind answers                    verified
 *   PREPARED ------------------> CLAIMING -----------------------> HELD <--------+
 *    | |  |                         |                               |            | registered
 *    | |  | nobody does,            | auto, and it answers no more  v            | or restored
 *    | |  | port 111 is ours        +----------------------------> LOST ---------+
 *    | |  v                                                         ^ (also: taken by others)
 *    | | EMBEDDED            auto, nobody does, nor is port 111 ours |
 *    | +------------------------------------------------------------+
 *    v
 *   OFF                             SIGTERM in any state: STOPPING --> STOPPED
 *
 * While HELD a pass is made every VERIFY_MS; while LOST every RETRY_MS when rpcbind is gone, and
 * every VERIFY_MS when it is there and somebody else is registered. Log lines tell changes only: a
 * message that would say the same again is not repeated.
 *
 * The look for foreign registrations comes before the store is opened, so that a start that cannot
 * succeed costs no state number. The connection for it is closed again: rpcbind notes as owner who
 * we are when we connect, and --user changes that.
 */
#include "daemon/registrar.h"

#include "base/check.h"
#include "base/units.h"
#include "daemon/portmapper.h"
#include "wire/rpcbind.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    START_AUTO_MS = 1500, /* a slower rpcbind does not delay the start */
    START_SYSTEM_MS = 5000,
    PASS_MS = 5000,
    DROP_MS = 400, /* within the driver's patience with a stop */
    VERIFY_MS = 30000,
    RETRY_MS = 1000,
    MONITOR_VERIFY_MS = 1000, /* the kernel does not wait for a status monitor that is not found */
    MONITOR_RETRY_MS = 100,
    WATCH_MS = 25, /* while the NFS server is waited for */
    REMIND_S = 60, /* between two log lines about waiting for an rpcbind */
    SENTENCE_MAX = 1024,
};

enum state {
    STATE_PREPARED,
    STATE_OFF,
    STATE_CLAIMING,
    STATE_HELD,
    STATE_LOST,
    STATE_EMBEDDED,
    STATE_STOPPING,
    STATE_STOPPED,
};

struct registrar {
    struct registrar_parts parts;
    enum state state;
    bool is_settled;
    bool was_held;             /* at some time */
    bool is_watched;           /* registrar_watch */
    char reason[SENTENCE_MAX]; /* LOST: why; also the last thing that was logged about it */
    uint64_t said_ns;          /* when that was logged */

    struct registration registration;
    struct rpcbind *rpcbind;
    uv_timer_t again;
    bool is_looking;            /* in registrar_prepare */
    enum rpcbind_result looked; /* what came of it */

    struct portmapper portmapper;
};

static void on_end(void *context, enum registration_goal goal, enum rpcbind_result result);
static void lose(struct registrar *registrar, enum rpcbind_result result);
static void on_lost(void *context);

struct registrar *registrar_new(const struct registrar_parts *parts)
{
    struct registrar *registrar = calloc(1, sizeof *registrar);
    if (registrar == NULL)
        return NULL;
    registrar->parts = *parts;
    uint32_t first_xid = 0;
    CHECK(getrandom(&first_xid, sizeof first_xid, 0) == sizeof first_xid);
    registration_init(&registrar->registration, parts->config->force, first_xid);
    struct rpcbind_hooks hooks = {.context = registrar, .on_end = on_end, .on_lost = on_lost};
    registrar->rpcbind = rpcbind_new(parts->loop, &registrar->registration, &hooks);
    if (registrar->rpcbind == NULL) {
        free(registrar);
        return NULL;
    }
    CHECK(uv_timer_init(parts->loop, &registrar->again) == 0);
    registrar->again.data = registrar;
    return registrar;
}

void registrar_add(struct registrar *registrar, const struct program *program,
                   const struct listen_set *sockets)
{
    struct portmap_service services[REGISTRATION_MAX];
    uint32_t count = portmapper_services(program, sockets, services, REGISTRATION_MAX);
    for (uint32_t i = 0; i < count; i++)
        registration_add(&registrar->registration, &services[i]);
}

static void say(struct registrar *registrar, enum log_level level, const char *sentence)
{
    log_say(registrar->parts.log, level, clock_wall_ns(registrar->parts.clock),
            LOG_MESSAGE(sentence));
}

static bool is_monitor(const struct registrar *registrar)
{
    return registrar->parts.config->role == CONFIG_MONITOR;
}

static uint64_t verify_ms(const struct registrar *registrar)
{
    if (!is_monitor(registrar))
        return VERIFY_MS;
    return registrar->is_watched ? WATCH_MS : MONITOR_VERIFY_MS;
}

static bool is_auto(const struct registrar *registrar)
{
    return registrar->parts.config->rpcbind == CONFIG_RPCBIND_AUTO;
}

/* What a failed pass means to an operator. */
static void explain(const struct registrar *registrar, enum rpcbind_result result,
                    struct text *text)
{
    switch (result) {
    case RPCBIND_DONE:
        return;
    case RPCBIND_FOREIGN:
    case RPCBIND_REFUSED:
        registration_explain(&registrar->registration, text);
        return;
    case RPCBIND_GARBLED:
        text_add(text, "the service at ");
        text_add(text, rpcbind_place(registrar->rpcbind));
        text_add(text, " does not speak rpcbind's protocol");
        return;
    case RPCBIND_ABSENT:
        text_add(text, "no rpcbind is running (/run/rpcbind.sock, 127.0.0.1 port 111)");
        return;
    case RPCBIND_SILENT:
        text_add(text, "rpcbind does not answer");
        return;
    }
}

/* The final message of a failed start. */
static int refuse(struct registrar *registrar, enum rpcbind_result result)
{
    char sentence[SENTENCE_MAX];
    struct text text;
    text_init(&text, sentence, sizeof sentence);
    if (result != RPCBIND_FOREIGN) {
        text_add(&text, "cannot register: ");
        explain(registrar, result, &text);
        text_add(&text, "; start rpcbind, or use --rpcbind embedded, or --no-rpcbind");
        say(registrar, LOG_LEVEL_ERROR, sentence);
        return REGISTRAR_EXIT_UNAVAILABLE;
    }
    text_add(&text, "another server is registered: ");
    explain(registrar, result, &text);
    text_add(&text, registrar->parts.config->force
                        ? "; rpcbind does not let us remove it: run as that owner or as root"
                        : "; stop that server, or replace its registration with --force (also if "
                          "it crashed and left this behind)");
    say(registrar, LOG_LEVEL_ERROR, sentence);
    return REGISTRAR_EXIT_FOREIGN;
}

static int prepare_embedded(struct registrar *registrar)
{
    struct listen_failure failure;
    if (portmapper_bind(&registrar->portmapper, &registrar->parts.config->listen, &failure) == 0) {
        registrar->state = STATE_EMBEDDED;
        return 0;
    }
    char sentence[SENTENCE_MAX];
    struct text text;
    text_init(&text, sentence, sizeof sentence);
    text_add(&text, "cannot serve port 111: ");
    text_add(&text, strerror(failure.error));
    text_add(&text,
             failure.error == EADDRINUSE
                 ? "; stop the rpcbind that uses it, or register with that one: --rpcbind system"
                 : "; ports below 1024 need root, or use --no-rpcbind");
    say(registrar, LOG_LEVEL_ERROR, sentence);
    return REGISTRAR_EXIT_UNAVAILABLE;
}

static enum rpcbind_result look(struct registrar *registrar)
{
    registrar->is_looking = true;
    rpcbind_begin(registrar->rpcbind, REGISTRATION_LOOK,
                  is_auto(registrar) ? START_AUTO_MS : START_SYSTEM_MS);
    while (registrar->is_looking)
        (void)uv_run(registrar->parts.loop, UV_RUN_ONCE);
    rpcbind_disconnect(registrar->rpcbind);
    clock_turn_over(registrar->parts.clock);
    return registrar->looked;
}

int registrar_prepare(struct registrar *registrar)
{
    enum config_rpcbind mode = registrar->parts.config->rpcbind;
    if (mode == CONFIG_RPCBIND_OFF) {
        registrar->state = STATE_OFF;
        return 0;
    }
    if (mode == CONFIG_RPCBIND_EMBEDDED)
        return prepare_embedded(registrar);
    enum rpcbind_result result = look(registrar);
    if (result == RPCBIND_DONE)
        return 0;
    if (result == RPCBIND_FOREIGN || mode == CONFIG_RPCBIND_SYSTEM)
        return refuse(registrar, result);
    struct listen_failure failure;
    if (is_monitor(registrar))
        return 0; /* the system's will come; ours would go with us */
    if (portmapper_bind(&registrar->portmapper, &registrar->parts.config->listen, &failure) == 0)
        registrar->state = STATE_EMBEDDED;
    else
        log_say(registrar->parts.log, LOG_LEVEL_INFO, clock_wall_ns(registrar->parts.clock),
                LOG_MESSAGE("no rpcbind answers, and port 111 cannot be served instead"),
                LOG_TEXT("cause", strerror(failure.error)));
    return 0;
}

static int serve_portmapper(struct registrar *registrar, struct core *core)
{
    const struct registrar_parts *parts = &registrar->parts;
    const char *error = portmapper_serve(&registrar->portmapper, &registrar->registration, core,
                                         parts->loop, parts->clock);
    say(registrar, error != NULL ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO,
        error != NULL ? error : "no rpcbind is running: serving port 111 ourselves");
    return error != NULL ? REGISTRAR_EXIT_UNAVAILABLE : 0;
}

static void settle(struct registrar *registrar, int exit_code)
{
    if (registrar->is_settled)
        return;
    registrar->is_settled = true;
    registrar->parts.on_registered(registrar->parts.context, exit_code);
}

int registrar_start(struct registrar *registrar, struct core *core)
{
    if (registrar->state == STATE_EMBEDDED) {
        int exit_code = serve_portmapper(registrar, core);
        if (exit_code != 0)
            return exit_code;
        settle(registrar, 0);
    } else if (registrar->state == STATE_OFF) {
        settle(registrar, 0);
    } else if (registrar->looked != RPCBIND_DONE) {
        lose(registrar, registrar->looked); /* auto: retried until one appears */
    } else {
        registrar->state = STATE_CLAIMING;
        rpcbind_begin(registrar->rpcbind, REGISTRATION_CLAIM,
                      is_auto(registrar) ? START_AUTO_MS : START_SYSTEM_MS);
    }
    return 0;
}

static void on_again(uv_timer_t *timer)
{
    struct registrar *registrar = timer->data;
    rpcbind_begin(registrar->rpcbind, registrar->was_held ? REGISTRATION_KEEP : REGISTRATION_CLAIM,
                  PASS_MS);
}

static void again_after(struct registrar *registrar, uint64_t wait_ms)
{
    CHECK(uv_timer_start(&registrar->again, on_again, wait_ms, 0) == 0);
}

/* The connection between two passes is gone: rpcbind restarted, ended, or found us idle. */
static void on_lost(void *context)
{
    struct registrar *registrar = context;
    if (registrar->state == STATE_HELD || registrar->state == STATE_LOST)
        again_after(registrar, 0);
}

static void hold(struct registrar *registrar)
{
    char sentence[SENTENCE_MAX];
    struct text text;
    text_init(&text, sentence, sizeof sentence);
    if (!registrar->was_held) {
        text_add(&text, "registered with rpcbind at ");
        text_add(&text, rpcbind_place(registrar->rpcbind));
        say(registrar, LOG_LEVEL_INFO, sentence);
    } else if (registrar->state == STATE_LOST ||
               registration_restored(&registrar->registration) > 0) {
        text_add(&text, registrar->state == STATE_LOST ? "registered with rpcbind again: "
                                                       : "registration lost, restored: ");
        text_add_u64(&text, registration_restored(&registrar->registration));
        text_add(&text, " entries");
        say(registrar, LOG_LEVEL_WARNING, sentence);
    }
    registrar->state = STATE_HELD;
    registrar->was_held = true;
    registrar->reason[0] = '\0';
    again_after(registrar, verify_ms(registrar));
}

/* Clients cannot find us, or find another server. Logs it once per reason. */
static void lose(struct registrar *registrar, enum rpcbind_result result)
{
    char sentence[SENTENCE_MAX];
    struct text text;
    text_init(&text, sentence, sizeof sentence);
    if (result == RPCBIND_FOREIGN && registrar->was_held)
        text_add(&text, "another server took over our registration: ");
    else
        text_add(&text, registrar->was_held ? "registration lost: " : "not registered: ");
    explain(registrar, result, &text);
    if (!registrar->was_held && result != RPCBIND_FOREIGN)
        text_add(&text,
                 is_monitor(registrar)
                     ? "; until then the lock manager of this machine cannot find its monitor: the "
                       "kernel has every first lock of a host wait, for a minute, and grants it "
                       "unwatched; start rpcbind"
                     : "; until then clients cannot find this server, and the grace period and "
                       "notifications do not start; use --no-rpcbind if clients know the port");
    uint64_t now_ns = clock_raw_ns(registrar->parts.clock);
    bool is_due = !registrar->is_settled && now_ns - registrar->said_ns >= REMIND_S * SECOND_NS;
    if (strcmp(sentence, registrar->reason) != 0 || is_due) {
        say(registrar, LOG_LEVEL_WARNING, sentence);
        registrar->said_ns = now_ns;
        memcpy(registrar->reason, sentence, sizeof sentence);
    }
    registrar->state = STATE_LOST;
    bool is_there = result == RPCBIND_FOREIGN || result == RPCBIND_REFUSED;
    uint64_t retry_ms = is_monitor(registrar) ? MONITOR_RETRY_MS : RETRY_MS;
    again_after(registrar, is_there ? verify_ms(registrar) : retry_ms);
}

static void on_end(void *context, enum registration_goal goal, enum rpcbind_result result)
{
    struct registrar *registrar = context;
    switch (goal) {
    case REGISTRATION_LOOK:
        registrar->is_looking = false;
        registrar->looked = result;
        return;
    case REGISTRATION_DROP:
        if (result == RPCBIND_REFUSED)
            say(registrar, LOG_LEVEL_WARNING,
                "our rpcbind registration stays: another user made it; the next start reuses it");
        if (result == RPCBIND_SILENT || result == RPCBIND_GARBLED)
            say(registrar, LOG_LEVEL_WARNING,
                "rpcbind does not answer: our registration stays; the next start reuses it");
        registrar->state = STATE_STOPPED;
        return;
    case REGISTRATION_CLAIM:
        if (!registrar->is_settled && registrar->state == STATE_CLAIMING &&
            result != RPCBIND_DONE && (result == RPCBIND_FOREIGN || !is_auto(registrar))) {
            settle(registrar, refuse(registrar, result));
            return;
        }
        break;
    case REGISTRATION_KEEP:
        break;
    }
    if (result != RPCBIND_DONE) {
        lose(registrar, result);
        return; /* nobody is told of us, and no time is counted, before clients can find us */
    }
    hold(registrar);
    settle(registrar, 0);
}

void registrar_turn(struct registrar *registrar)
{
    portmapper_turn(&registrar->portmapper, registrar->parts.clock, registrar->parts.log);
}

bool registrar_is_ready(const struct registrar *registrar, struct text *ret_reason)
{
    switch (registrar->state) {
    case STATE_OFF:
    case STATE_HELD:
    case STATE_EMBEDDED:
        return true;
    case STATE_PREPARED:
    case STATE_CLAIMING:
        text_add(ret_reason, "registering with rpcbind");
        return false;
    case STATE_LOST:
        text_add(ret_reason, registrar->reason);
        return false;
    case STATE_STOPPING:
    case STATE_STOPPED:
        text_add(ret_reason, "stopping");
        return false;
    }
    UNREACHABLE();
}

bool registrar_is_served(const struct registrar *registrar)
{
    return registrar->state == STATE_HELD && registration_is_served(&registrar->registration);
}

bool registrar_has_lock_manager(const struct registrar *registrar)
{
    return registrar->state == STATE_HELD &&
           registration_has_lock_manager(&registrar->registration);
}

void registrar_watch(struct registrar *registrar, bool is_watched)
{
    bool begins = is_watched && !registrar->is_watched;
    registrar->is_watched = is_watched;
    if (begins && registrar->state == STATE_HELD)
        again_after(registrar, WATCH_MS); /* and then, as verify_ms says, again and again */
}

void registrar_stop(struct registrar *registrar)
{
    (void)uv_timer_stop(&registrar->again);
    portmapper_quiesce(&registrar->portmapper);
    bool is_registered = registrar->state == STATE_HELD || registrar->state == STATE_LOST ||
                         registrar->state == STATE_CLAIMING;
    if (is_registered && !is_monitor(registrar)) {
        registrar->state = STATE_STOPPING;
        rpcbind_begin(registrar->rpcbind, REGISTRATION_DROP, DROP_MS);
    } else {
        registrar->state = STATE_STOPPED;
    }
}

bool registrar_is_stopped(const struct registrar *registrar)
{
    return registrar->state == STATE_STOPPED;
}

void registrar_close(struct registrar *registrar)
{
    if (registrar == NULL || uv_is_closing((uv_handle_t *)&registrar->again))
        return;
    rpcbind_close(registrar->rpcbind);
    uv_close((uv_handle_t *)&registrar->again, NULL);
    portmapper_close(&registrar->portmapper);
}

void registrar_free(struct registrar *registrar)
{
    if (registrar == NULL)
        return;
    rpcbind_free(registrar->rpcbind);
    portmapper_free(&registrar->portmapper);
    free(registrar);
}
