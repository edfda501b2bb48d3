/*
 * stage.c -- a server and emulated clients around it; see stage.h.
 */
#include "stage.h"

#include "peer/emu_portmap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_ADDRESS UINT32_C(0x7f040001) /* 127.4.0.1 */
#define SERVER_AT     UINT32_C(0x7f000001)
#define HOSTS_MAX     16
#define NEVER_MS      600000

static struct {
    struct harness_server server;
    const char *name;
    uint32_t hosts_made, file;
    struct emu_host *hosts[HOSTS_MAX];
    uint32_t host_count;
} stage;

bool stage_open(const char *const *options)
{
    stage.server.store = harness_path("store");
    for (uint32_t i = 0; options[i] && i < HARNESS_EXTRA_MAX - 1; i++)
        stage.server.extra[i] = options[i];
    return emu_net_start() && harness_start(&stage.server);
}

static void free_hosts(void)
{
    while (stage.host_count > 0)
        emu_host_free(stage.hosts[--stage.host_count]);
}

void stage_close(void)
{
    free_hosts();
    int code = harness_stop(&stage.server, SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    emu_net_stop();
}

const struct harness_server *stage_server(void)
{
    return &stage.server;
}

/* Every case after this would fail for the same reason: the log says it better. */
static void end_with_the_log(void)
{
    char line[512];
    FILE *log = fopen(stage.server.log, "re");
    HARNESS_EXPECT(false, "%s: the server ended; its log:", stage.name);
    while (log && fgets(line, sizeof(line), log))
        printf("    log: %s", line);
    if (log)
        fclose(log);
    exit(harness_finish());
}

void stage_case(const char *name)
{
    free_hosts();
    if (!harness_is_alive(&stage.server))
        end_with_the_log();
    stage.name = name;
    stage.file++;
    printf("case %u: %s\n", stage.file, name);
}

static struct emu_host *keep(struct emu_host *host)
{
    if (!host || stage.host_count == HOSTS_MAX) {
        fprintf(stderr, "%s: no sockets for a client: %s\n", stage.name, strerror(errno));
        exit(1);
    }
    host->poll_ms = NEVER_MS;
    stage.hosts[stage.host_count++] = host;
    return host;
}

static struct emu_host_config config_of(const char *name)
{
    uint32_t number = stage.hosts_made;
    stage.hosts_made += EMU_TABLE_HOSTS_MAX;
    return (struct emu_host_config){
        .address = FIRST_ADDRESS + number,
        .name = name,
        .server = dial_endpoint_v4(SERVER_AT + number / 2 % 2, stage.server.port),
        .portmap_port = EMU_PORTMAP_PORT};
}

struct emu_host *stage_host_of(const struct emu_kind *kind, const char *name)
{
    struct emu_host_config config = config_of(name);
    return keep(emu_host_new(kind, &config));
}

struct emu_host *stage_host(const char *kind, const char *name)
{
    return stage_host_of(&emu_table_get(kind)->kind, name);
}

void stage_pair(const char *row, struct emu_host *ret_pair[static EMU_TABLE_HOSTS_MAX])
{
    struct emu_host_config config = config_of(row);
    uint32_t count = emu_table_make(emu_table_get(row), &config, ret_pair);
    for (uint32_t i = 0; i < EMU_TABLE_HOSTS_MAX; i++)
        keep(i < count ? ret_pair[i] : NULL);
}

struct emu_request stage_request(uint32_t svid, uint64_t offset, uint64_t len)
{
    return (struct emu_request){
        .file = stage.file, .svid = svid, .exclusive = true, .offset = offset, .len = len};
}

static const char *status_text(int status)
{
    return status < 0 ? strerror(-status) : peer_nlm_status_text((uint32_t)status);
}

bool stage_demand(int got, int expected, const char *what)
{
    return HARNESS_EXPECT(got == expected, "%s: %s: %s and not %s", stage.name, what,
                          status_text(got), status_text(expected));
}

bool stage_demand_held(struct emu_host *judge, const struct emu_request *request,
                       const struct emu_host *holder, uint32_t svid)
{
    struct peer_nlm_res res = {0};
    struct emu_request asked = *request;
    asked.svid = 4711; /* nobody's */
    struct peer_nlm_bytes oh = emu_client_oh(holder, svid);
    int status = emu_client_test(judge, &asked, &res);
    return stage_demand(status, PEER_NLM_IS_DENIED, "TEST of what is held") &&
           HARNESS_EXPECT(res.svid == svid && peer_nlm_bytes_equal(&res.oh, &oh),
                          "%s: held by svid %u with an oh of %u bytes, and not by svid %u of %s",
                          stage.name, res.svid, res.oh.len, svid, holder->name);
}

bool stage_demand_free(struct emu_host *judge, const struct emu_request *request)
{
    struct peer_nlm_res res = {0};
    struct emu_request asked = *request;
    asked.svid = 4711;
    int status = emu_client_test(judge, &asked, &res);
    return HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED,
                          "%s: TEST of what should be free: %s, held by svid %u", stage.name,
                          status_text(status), res.svid);
}

bool stage_wait_free(struct emu_host *judge, const struct emu_request *request)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    uint64_t deadline_ns = dial_now_ns() + STAGE_PATIENCE_MS * UINT64_C(1000000);
    struct emu_request asked = *request;
    int status;
    asked.svid = 4711;
    while ((status = emu_client_test(judge, &asked, NULL)) == PEER_NLM_IS_DENIED &&
           dial_now_ns() < deadline_ns)
        nanosleep(&pause, NULL);
    return stage_demand(status, PEER_NLM_IS_GRANTED, "TEST of what must become free");
}

bool stage_demand_granted(struct emu_host *host, uint32_t wait, const char *what)
{
    return stage_demand(emu_client_wait(host, wait, STAGE_PATIENCE_MS), PEER_NLM_IS_GRANTED, what);
}

uint32_t stage_callbacks(const struct emu_host *host)
{
    uint32_t count;
    EMU_NET_LOCKED(count = emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED) +
                           emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED_MSG));
    return count;
}

struct wanted {
    const struct emu_host *host;
    uint32_t count;
};

static bool has_callbacks(void *context)
{
    const struct wanted *wanted = context;
    return stage_callbacks(wanted->host) >= wanted->count;
}

bool stage_wait_callbacks(struct emu_host *host, uint32_t count)
{
    struct wanted wanted = {host, count};
    return HARNESS_EXPECT(emu_net_wait(has_callbacks, &wanted, STAGE_PATIENCE_MS),
                          "%s: %s got %u callbacks and not %u", stage.name, host->name,
                          stage_callbacks(host), count);
}

void stage_print_callbacks(const struct emu_host *host)
{
    emu_net_lock();
    for (uint32_t i = 0; i < host->record_count; i++) {
        const struct emu_record *record = &host->records[i];
        if (record->call.prog == PEER_NLM_PROGRAM)
            printf("    %s: %s over %s, %llu ms, %s\n", host->name,
                   peer_nlm_procedure_text(record->call.proc), record->is_udp ? "UDP" : "TCP",
                   (unsigned long long)((record->at_ns - host->records[0].at_ns) / 1000000),
                   record->is_answered ? peer_nlm_status_text(record->status) : "-");
    }
    emu_net_unlock();
}

const struct emu_record *stage_last_callback(const struct emu_host *host)
{
    const struct emu_record *found = NULL;
    emu_net_lock();
    for (uint32_t i = 0; i < host->record_count; i++)
        if (host->records[i].call.prog == PEER_NLM_PROGRAM &&
            (host->records[i].call.proc == PEER_NLM_GRANTED ||
             host->records[i].call.proc == PEER_NLM_GRANTED_MSG))
            found = &host->records[i];
    emu_net_unlock();
    return found;
}
