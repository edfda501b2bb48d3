/*
 * probe.c -- `holdfast check-client ADDRESS` and `holdfast drill`.
 *
 * The drill probes all clients at once from THREADS threads, because most of a probe is waiting. It
 * finds what a notification from this machine would find now: the status monitor of a lock client,
 * the callback service of an SM_MON registrant; of a
 * status monitor, the status monitors of the hosts that it watches.
 */
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/host.h"
#include "cli/print.h"
#include "cli/probe_call.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 128,
    STACK_BYTES = 256 * 1024,
    TIMEOUT_S = 2,
    TIMEOUT_MAX_S = 60,
    REGISTRANT_PORT = 12049,
};

/* Milliseconds; 0: invalid, and that was printed. */
static int read_timeout(const struct arguments *arguments)
{
    const char *text = arguments_value(arguments, "timeout");
    if (text == NULL)
        return TIMEOUT_S * 1000;
    char *end;
    long seconds = strtol(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && seconds >= 1 && seconds <= TIMEOUT_MAX_S)
        return (int)seconds * 1000;
    (void)fprintf(stderr, "holdfast %s: --timeout %s: not a number of seconds from 1 to %d\n",
                  arguments->command->name, text, TIMEOUT_MAX_S);
    return 0;
}

static json_t *service_value(const struct probe_service *service)
{
    return json_pack("{s:i, s:i, s:b}", "tcp_port", service->tcp_port, "udp_port",
                     service->udp_port, "answers", service->is_answering);
}

static json_t *report_value(const struct probe_report *report)
{
    return json_pack("{s:b, s:o, s:o, s:o, s:b, s:s}", "portmapper", report->has_portmapper,
                     "lock_manager", service_value(&report->locks), "status_monitor",
                     service_value(&report->status), "state",
                     report->has_state ? json_integer(report->state) : json_null(), "can_be_told",
                     probe_can_be_told(report), "verdict", probe_sentence(report));
}

/* ---- one ---- */

static void print_service(const char *name, const struct probe_service *service)
{
    (void)printf("%-16s", name);
    if (service->tcp_port == 0 && service->udp_port == 0) {
        (void)puts("not registered");
        return;
    }
    if (service->tcp_port != 0)
        (void)printf("TCP port %u  ", service->tcp_port);
    if (service->udp_port != 0)
        (void)printf("UDP port %u  ", service->udp_port);
    (void)puts(service->is_answering ? "answers" : "does not answer");
}

/* Finds the interface of a link-local address by name or number. False: no such interface. */
static bool find_interface(struct address *address)
{
    char zone[IF_NAMESIZE], *end;
    if (address->zone[0] == '\0' || if_nametoindex(address->zone) != 0)
        return true;
    unsigned long number = strtoul(address->zone, &end, 10);
    if (*end != '\0' || number > UINT32_MAX || if_indextoname((unsigned)number, zone) == NULL)
        return false;
    *address = address_v6(address->bytes, zone);
    return true;
}

/* An IP address, or a name to resolve. */
static bool resolve(const char *text, struct address *ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char zone[IF_NAMESIZE];
    if (address_parse(bytes_of_text(text), ret))
        return true;
    if (getaddrinfo(text, NULL, &hints, &list) != 0)
        return false;
    bool is_found = true;
    if (list->ai_family == AF_INET)
        *ret = address_v4((const uint8_t *)&((struct sockaddr_in *)list->ai_addr)->sin_addr);
    else if (list->ai_family == AF_INET6)
        *ret =
            address_v6((const uint8_t *)&((struct sockaddr_in6 *)list->ai_addr)->sin6_addr,
                       if_indextoname(((struct sockaddr_in6 *)list->ai_addr)->sin6_scope_id, zone));
    else
        is_found = false;
    freeaddrinfo(list);
    return is_found;
}

int probe_check_client(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct address address;
    struct probe_report report;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    int timeout_ms = read_timeout(&arguments);
    if (timeout_ms == 0)
        return EXIT_USAGE;
    if (!resolve(arguments.words[0], &address)) {
        (void)fprintf(stderr,
                      "holdfast check-client: \"%s\" is not an IP address and does not resolve\n",
                      arguments.words[0]);
        return EXIT_USAGE;
    }
    if (!find_interface(&address)) {
        (void)fprintf(stderr, "holdfast check-client: this machine has no interface %s\n",
                      address.zone);
        return EXIT_USAGE;
    }
    probe_host(&address, timeout_ms, &report);
    if (arguments_has(&arguments, "json")) {
        json_t *value = report_value(&report);
        print_json(value);
        json_decref(value);
    } else {
        (void)printf("%-16s%s\n", "portmapper", report.has_portmapper ? "answers" : "no answer");
        if (report.has_portmapper) {
            print_service("status monitor", &report.status);
            print_service("lock manager", &report.locks);
        }
        if (report.has_state)
            (void)printf("%-16s%u\n", "its state", report.state);
        (void)printf("%s: %s.\n", arguments.words[0], probe_sentence(&report));
    }
    exit_code = arguments_finish();
    return exit_code != EXIT_OK || probe_can_be_told(&report) ? exit_code : EXIT_NO;
}

/* ---- all ---- */

struct target {
    json_t *client;
    size_t order; /* in the server's list */
    struct address address;
    bool is_registrant;            /* of SM_MON; otherwise a lock client or a watched host */
    bool is_unresolved;            /* a watched host whose name has no address */
    struct probe_report report;    /* of a lock client or a watched host */
    struct probe_service callback; /* of a registrant */
};

struct drill {
    struct target *targets;
    size_t count, max;
    bool is_short;   /* of memory */
    bool is_monitor; /* the hosts that a status monitor watches */
    bool shows_all;  /* also who could be notified */
    int timeout_ms;
    atomic_size_t next;
};

static bool add_target(void *context, const json_t *row)
{
    struct drill *drill = context;
    struct address address = {0};
    bool is_host = drill->is_monitor;
    bool is_registrant = !is_host && strcmp(print_string(row, "protocol"), "nsm") == 0;
    bool is_locker = !is_host && strcmp(print_string(row, "protocol"), "nlm") == 0;
    bool has_address = address_parse(bytes_of_text(print_string(row, "address")), &address);
    if ((!is_host && !is_registrant && !is_locker) || (!is_host && !has_address))
        return true;
    if (drill->count == drill->max) {
        size_t max = drill->max == 0 ? 64 : drill->max * 2;
        struct target *targets = realloc(drill->targets, max * sizeof *targets);
        drill->is_short = targets == NULL;
        if (targets == NULL)
            return false;
        drill->targets = targets;
        drill->max = max;
    }
    drill->targets[drill->count] = (struct target){.client = json_deep_copy(row),
                                                   .order = drill->count,
                                                   .address = address,
                                                   .is_registrant = is_registrant,
                                                   .is_unresolved = is_host && !has_address};
    drill->count++;
    return true;
}

/* D3: the port in a name of the form name:port, else the registrants' default port. */
static uint16_t port_of(const char *name)
{
    const char *colon = strrchr(name, ':');
    char *end;
    unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);
    bool is_port = port > 0 && port <= UINT16_MAX && colon > name && *end == '\0' &&
                   strspn(colon + 1, "0123456789") == strlen(colon + 1);
    return is_port ? (uint16_t)port : REGISTRANT_PORT;
}

static void ask_one(struct target *target, int timeout_ms)
{
    const json_t *client = target->client;
    if (target->is_unresolved)
        return;
    if (target->is_registrant)
        probe_callback(&target->address, (uint32_t)print_integer(client, "callback_prog"),
                       (uint32_t)print_integer(client, "callback_vers"),
                       port_of(print_string(client, "name")), timeout_ms, &target->callback);
    else
        probe_host(&target->address, timeout_ms, &target->report);
}

static bool is_told(const struct target *target)
{
    if (target->is_unresolved)
        return false;
    return target->is_registrant ? target->callback.is_answering
                                 : json_is_true(json_object_get(target->client, "monitored")) &&
                                       probe_can_be_told(&target->report);
}

static const char *sentence_of(const struct target *target)
{
    if (target->is_unresolved)
        return "its name does not resolve: it can be neither notified nor believed";
    if (target->is_registrant)
        return target->callback.is_answering ? "OK: the service it registered answers"
                                             : "the service it registered does not answer: it is "
                                               "down, or a firewall drops our packets";
    bool is_watched = json_is_object(json_object_get(target->client, "host"));
    if (is_watched && probe_can_be_told(&target->report))
        return "OK: notifications work"; /* its locks are the lock manager's to call about */
    return json_is_true(json_object_get(target->client, "monitored"))
               ? probe_sentence(&target->report)
               : "its locks are not monitored: it is never notified";
}

static void *ask_some(void *context)
{
    struct drill *drill = context;
    size_t at;
    while ((at = atomic_fetch_add(&drill->next, 1)) < drill->count)
        ask_one(&drill->targets[at], drill->timeout_ms);
    return NULL;
}

static void ask_all(struct drill *drill)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    size_t started = 0, wanted = drill->count < THREADS ? drill->count : THREADS;
    if (pthread_attr_init(&attributes) == 0) {
        (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
        while (started < wanted &&
               pthread_create(&threads[started], &attributes, ask_some, drill) == 0)
            started++;
        (void)pthread_attr_destroy(&attributes);
    }
    if (started == 0)
        (void)ask_some(drill);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

static const struct grid_column drill_columns[] = {
    {.title = "ID"},
    {.title = "NAME", .cut_min = 8},
    {.title = "ADDRESS", .cut_min = 15, .rank = 1},
    {.title = "LOCKS", .is_number = true, .rank = 2},
    {.title = "REACHABLE"},
    {.title = "DIAGNOSIS", .cut_min = 40},
};

/* Of a status monitor: which locks its hosts have only the lock manager knows. */
static const struct grid_column host_columns[] = {
    {.title = "ID"},
    {.title = "HOST", .cut_min = 8},
    {.title = "ADDRESS", .cut_min = 15, .rank = 1},
    {.title = "REACHABLE"},
    {.title = "DIAGNOSIS", .cut_min = 40},
};

/* After a crash now 3 of 4 clients would be notified; 2 locks of the others at risk. */
static void print_summary(const struct drill *drill, bool is_below, size_t missed, long long locks)
{
    (void)printf("%sAfter a %s now ", is_below ? "\n" : "",
                 drill->is_monitor ? "reboot of this machine" : "crash");
    print_count(stdout, (long long)(drill->count - missed));
    (void)fputs(" of ", stdout);
    print_plural(stdout, (long long)drill->count, drill->is_monitor ? "host" : "client");
    (void)fputs(" would be notified", stdout);
    if (missed > 0 && drill->is_monitor) {
        (void)fputs("; the locks of the others are at risk", stdout);
    } else if (missed > 0) {
        (void)fputs("; ", stdout);
        print_plural(stdout, locks, "lock");
        (void)fputs(" of the others at risk", stdout);
    }
    (void)puts(".");
}

/* Who could not be notified comes first, and among these who has most to lose. */
static int compare_targets(const void *left, const void *right)
{
    const struct target *a = left, *b = right;
    bool a_told = is_told(a), b_told = is_told(b);
    long long a_locks = print_integer(a->client, "locks");
    long long b_locks = print_integer(b->client, "locks");
    if (a_told != b_told)
        return a_told ? 1 : -1;
    if (!a_told && a_locks != b_locks)
        return a_locks < b_locks ? 1 : -1;
    return a->order < b->order ? -1 : 1;
}

/* True: everyone who must be notified could be. */
static bool print_drill(struct drill *drill)
{
    struct grid *grid =
        drill->is_monitor ? grid_new(host_columns, sizeof host_columns / sizeof host_columns[0])
                          : grid_new(drill_columns, sizeof drill_columns / sizeof drill_columns[0]);
    size_t missed = 0;
    long long locks = 0;
    if (grid == NULL)
        return grid_finish(NULL) == EXIT_OK;
    for (size_t i = 0; i < drill->count; i++) {
        const struct target *target = &drill->targets[i];
        bool is_reached = is_told(target);
        if (is_reached && !drill->shows_all)
            break;
        grid_add(grid, print_string(target->client, "id"));
        grid_add(grid, print_string(target->client, "name"));
        grid_add(grid, print_string(target->client, "address"));
        if (!drill->is_monitor)
            grid_add_number(grid, print_integer(target->client, "locks"));
        grid_add(grid, is_reached ? "yes" : "no");
        grid_add(grid, sentence_of(target));
        grid_colour(grid, is_reached ? NULL : "31");
        missed += !is_reached;
        locks += is_reached ? 0 : print_integer(target->client, "locks");
    }
    bool has_rows = missed > 0 || (drill->shows_all && drill->count > 0);
    if (has_rows)
        grid_print(grid);
    bool is_whole = grid_finish(grid) == EXIT_OK;
    print_summary(drill, has_rows, missed, locks);
    return missed == 0 && is_whole;
}

static bool print_drill_json(struct drill *drill)
{
    json_t *rows = json_array();
    bool is_complete = true;
    for (size_t i = 0; i < drill->count; i++) {
        const struct target *target = &drill->targets[i];
        json_t *row = target->is_registrant
                          ? json_pack("{s:o}", "callback", service_value(&target->callback))
                          : report_value(&target->report);
        (void)json_object_set(row, "client", json_object_get(target->client, "id"));
        (void)json_object_set(row, "protocol", json_object_get(target->client, "protocol"));
        (void)json_object_set(row, "name", json_object_get(target->client, "name"));
        (void)json_object_set(row, "address", json_object_get(target->client, "address"));
        (void)json_object_set(row, "locks", json_object_get(target->client, "locks"));
        (void)json_object_set(row, "monitored", json_object_get(target->client, "monitored"));
        (void)json_object_set_new(row, "can_be_told", json_boolean(is_told(target)));
        (void)json_object_set_new(row, "verdict", json_string(sentence_of(target)));
        (void)json_array_append_new(rows, row);
        is_complete &= is_told(target);
    }
    json_t *all = json_pack("{s:o}", "clients", rows);
    print_json(all);
    json_decref(all);
    return is_complete;
}

int probe_drill(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct drill drill = {0};
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    drill.timeout_ms = read_timeout(&arguments);
    if (drill.timeout_ms == 0)
        return EXIT_USAGE;
    drill.shows_all = arguments_has(&arguments, "all");
    struct http_client *http = http_client_find(&arguments);
    if (http == NULL)
        return EXIT_UNREACHABLE;
    exit_code = host_ask_role(http, &drill.is_monitor);
    if (exit_code == EXIT_OK)
        exit_code = find_rows(http, "/api/v1/clients", "clients", add_target, NULL, &drill);
    http_client_free(http);
    if (drill.is_short) {
        (void)fputs("holdfast drill: out of memory\n", stderr);
        exit_code = EXIT_NO;
    }
    if (exit_code == EXIT_OK) {
        ask_all(&drill);
        if (drill.count > 0)
            qsort(drill.targets, drill.count, sizeof drill.targets[0], compare_targets);
        bool is_complete =
            arguments_has(&arguments, "json") ? print_drill_json(&drill) : print_drill(&drill);
        exit_code = arguments_finish();
        if (exit_code == EXIT_OK && !is_complete)
            exit_code = EXIT_NO;
    }
    for (size_t i = 0; i < drill.count; i++)
        json_decref(drill.targets[i].client);
    free(drill.targets);
    return exit_code;
}
