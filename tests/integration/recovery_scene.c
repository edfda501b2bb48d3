/*
 * recovery_scene.c -- one server and fake hosts; see recovery_scene.h.
 */
#include "recovery_scene.h"

#include "peer/emu_net.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PAUSE_NS       2000000
#define NOBODYS_FILE   UINT32_C(0xfffffff0)
#define BYSTANDER_NAME "bystander"

static struct {
    struct harness_server server;
    uint64_t ready_ns;
} scene;

bool recovery_scene_open(const char *name, uint32_t hosts_max)
{
    struct rlimit files;
    if (!emu_net_enter()) {
        printf("%s: skipped: no network namespace of its own (%s); it takes root\n", name,
               strerror(errno));
        return false;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* what fails shows as a host without a socket */
    }
    harness_init(name);
    recovery_scene_store("store");
    if (!recovery_hosts_start(hosts_max)) {
        fprintf(stderr, "%s: no memory or thread for the hosts\n", name);
        exit(1);
    }
    return true;
}

int recovery_scene_close(void)
{
    (void)harness_stop(&scene.server, SIGKILL); /* there may be none */
    recovery_hosts_stop();
    return harness_finish();
}

struct harness_server *recovery_scene_server(void)
{
    return &scene.server;
}

void recovery_scene_options(const char *const *options)
{
    uint32_t count = 0;
    while (options[count] && count < HARNESS_EXTRA_MAX - 1) {
        scene.server.extra[count] = options[count];
        count++;
    }
    scene.server.extra[count] = NULL;
}

void recovery_scene_store(const char *name)
{
    scene.server.store = harness_path(name);
}

bool recovery_scene_start(void)
{
    bool is_ready = harness_start(&scene.server);
    scene.ready_ns = dial_now_ns();
    return is_ready;
}

bool recovery_scene_restart(int signal)
{
    int expected = signal == SIGTERM ? 0 : 128 + signal;
    int code = harness_stop(&scene.server, signal);
    HARNESS_EXPECT(code == expected, "signal %d: the server ended with %d", signal, code);
    return recovery_scene_start();
}

uint64_t recovery_scene_ready_ns(void)
{
    return scene.ready_ns;
}

uint64_t recovery_scene_since_ready_ms(void)
{
    return (dial_now_ns() - scene.ready_ns) / RECOVERY_SCENE_MS;
}

uint64_t recovery_scene_slack_ms(void)
{
    return scene.server.start_ns / RECOVERY_SCENE_MS + 1;
}

uint32_t recovery_scene_host(uint32_t address, const char *name)
{
    return recovery_hosts_add(address, name, false);
}

struct lock_call recovery_scene_lock(const char *name, uint32_t svid, uint32_t file,
                                     uint64_t offset, uint64_t len)
{
    return (struct lock_call){.procedure = PEER_NLM_LOCK,
                              .name = name,
                              .svid = svid,
                              .file = file,
                              .offset = offset,
                              .len = len,
                              .exclusive = true,
                              .state = 3};
}

struct lock_call recovery_scene_reclaim(struct lock_call call)
{
    call.reclaim = true;
    call.block = false;
    call.state = 0;
    return call;
}

bool recovery_scene_demand(uint32_t source, struct lock_call call, int expected, const char *what)
{
    int status = lock_call_once(&scene.server, source, false, &call, NULL);
    return HARNESS_EXPECT(status == expected, "%s: %s and not %s", what, lock_call_text(status),
                          lock_call_text(expected));
}

static void pause_briefly(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static uint64_t patience_ns(void)
{
    return dial_now_ns() + RECOVERY_SCENE_PATIENCE_MS * RECOVERY_SCENE_MS;
}

bool recovery_scene_await(uint32_t source, struct lock_call call, int expected, const char *what)
{
    uint64_t deadline_ns = patience_ns();
    int status;
    while ((status = lock_call_once(&scene.server, source, false, &call, NULL)) != expected &&
           status >= 0 && dial_now_ns() < deadline_ns)
        pause_briefly();
    return HARNESS_EXPECT(status == expected, "%s: %s to the end and never %s", what,
                          lock_call_text(status), lock_call_text(expected));
}

bool recovery_scene_is_in_grace(void)
{
    struct lock_call test = recovery_scene_lock(BYSTANDER_NAME, 1, NOBODYS_FILE, 0, 1);
    test.procedure = PEER_NLM_TEST;
    int status = lock_call_once(&scene.server, RECOVERY_SCENE_BYSTANDER, false, &test, NULL);
    if (status != PEER_NLM_IS_GRACE && status != PEER_NLM_IS_GRANTED)
        HARNESS_EXPECT(false, "TEST of nobody's file: %s", lock_call_text(status));
    return status == PEER_NLM_IS_GRACE;
}

uint64_t recovery_scene_await_end(void)
{
    uint64_t deadline_ns = patience_ns() + scene.server.grace_s * 1000 * RECOVERY_SCENE_MS;
    bool is_on;
    while ((is_on = recovery_scene_is_in_grace()) && dial_now_ns() < deadline_ns)
        pause_briefly();
    uint64_t since_ms = recovery_scene_since_ready_ms();
    HARNESS_EXPECT(!is_on, "grace never ends");
    return since_ms;
}

uint32_t recovery_scene_log_count(const char *text)
{
    FILE *file = fopen(scene.server.log, "re");
    char *line = NULL;
    size_t size = 0;
    uint32_t count = 0;
    while (file && getline(&line, &size, file) > 0)
        count += strstr(line, text) != NULL;
    free(line);
    if (file)
        fclose(file);
    return count;
}

bool recovery_scene_await_lines(const char *text, uint32_t count)
{
    uint64_t deadline_ns = patience_ns();
    uint32_t seen;
    while ((seen = recovery_scene_log_count(text)) < count && dial_now_ns() < deadline_ns)
        pause_briefly();
    return HARNESS_EXPECT(seen >= count, "the log says %u times and not %u: %s", seen, count, text);
}

bool recovery_scene_await_log(const char *text)
{
    return recovery_scene_await_lines(text, 1);
}

bool recovery_scene_await_told(uint32_t host)
{
    uint64_t deadline_ns = patience_ns();
    struct recovery_host seen;
    while ((seen = recovery_hosts_look(host)).told_state != scene.server.state &&
           dial_now_ns() < deadline_ns)
        pause_briefly();
    return HARNESS_EXPECT(seen.told_state == scene.server.state,
                          "%s has heard of state %u and not of %u", seen.name, seen.told_state,
                          scene.server.state);
}

bool recovery_scene_await_grants(uint32_t host, uint32_t count)
{
    uint64_t deadline_ns = patience_ns();
    struct recovery_host seen;
    while ((seen = recovery_hosts_look(host)).grants < count && dial_now_ns() < deadline_ns)
        pause_briefly();
    return HARNESS_EXPECT(seen.grants >= count, "%s has heard %u GRANTED and not %u", seen.name,
                          seen.grants, count);
}
