/*
 * client_text.c -- see client_text.h.
 *
 * What does not concern this kind of client is left out, group by group.
 */
#include "cli/client_text.h"

#include "cli/host.h"
#include "cli/print.h"

#include <stdbool.h>
#include <string.h>

enum { LABEL = 14, AGO_MAX = 32 };

static void begin(const char *label)
{
    (void)printf("  %-*s ", LABEL, label);
}

static void print_text(const char *label, const char *text)
{
    begin(label);
    print_safe(stdout, text);
    (void)puts("");
}

static bool is_set(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL && !json_is_null(value);
}

static void print_when(const char *label, const json_t *object, const char *key)
{
    char ago[AGO_MAX];
    if (!is_set(object, key))
        return;
    print_ago(ago, sizeof ago, print_string(object, key));
    begin(label);
    (void)printf("%s (%s)\n", ago, print_string(object, key));
}

static void print_identity(const json_t *client)
{
    print_text("id", print_string(client, "id"));
    print_text("name", print_string(client, "name"));
    print_text("protocol", print_string(client, "protocol"));
    print_text("address", print_string(client, "address"));
    if (is_set(client, "local_address"))
        print_text("calls", print_string(client, "local_address"));
    print_text("state", print_string(client, "state"));
    print_when("last seen", client, "last_seen");
    print_when("first seen", client, "registered_at");
    if (json_is_true(json_object_get(client, "moved")))
        print_text("moved", "an operator moved it to this address");
}

static void print_holdings(const json_t *client)
{
    long long left = print_integer(client, "unsettled_locks");
    long long reclaimed = print_integer(client, "reclaimed");
    if (strcmp(print_string(client, "protocol"), "nlm") != 0)
        return;
    (void)puts("\nHolds");
    begin("locks");
    print_count(stdout, print_integer(client, "locks"));
    (void)puts("");
    begin("shares");
    print_plural(stdout, print_integer(client, "share_reservations"), "reservation");
    (void)puts("");
    begin("waits for");
    print_plural(stdout, print_integer(client, "waiters"), "lock");
    (void)puts("");
    if (left + reclaimed == 0)
        return;
    begin("reclaimed");
    (void)printf("%lld of %lld since the restart of the server\n", reclaimed, left + reclaimed);
}

static const char *sentence_of(const char *news)
{
    static const char *const words[][2] = {
        {"none", "no need: it came after the last restart, or holds nothing"},
        {"told", "yes"},
        {"waiting", "not yet; it is tried again"},
        {"calling", "being called now"},
        {"given_up", "no, and given up; the next start tries again"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(news, words[i][0]) == 0)
            return words[i][1];
    return news;
}

static void print_restarts(const json_t *client)
{
    const json_t *notification = json_object_get(client, "notification");
    long long attempts = print_integer(notification, "attempts");
    bool is_monitored = json_is_true(json_object_get(client, "monitored"));
    if (is_set(client, "tracked"))
        return;
    (void)puts("\nRestarts");
    if (strcmp(print_string(client, "protocol"), "nlm") == 0)
        print_text("monitored", is_monitored ? "yes: it is notified when the server restarts"
                                             : "no: it is not notified of a restart");
    begin("notified");
    (void)fputs(sentence_of(print_string(notification, "state")), stdout);
    if (attempts > 0) {
        (void)fputs(", ", stdout);
        print_plural(stdout, attempts, "attempt");
    }
    if (is_set(notification, "next_try_seconds"))
        (void)printf(", next in %lld s", print_integer(notification, "next_try_seconds"));
    (void)puts("");
    if (json_is_true(json_object_get(client, "crashed")))
        print_text("unreachable", "yes: its locks are released when grace ends unless it returns");
    if (is_set(client, "nsm_state")) {
        begin("its state");
        (void)printf("%lld\n", print_integer(client, "nsm_state"));
    }
    print_when("rebooted", client, "rebooted_at");
}

static void print_registration(const json_t *client)
{
    if (!is_set(client, "mon_name"))
        return;
    (void)puts("\nRegistration (SM_MON)");
    print_text("monitors", print_string(client, "mon_name"));
    print_text("calls back", print_string(client, "callback_host"));
    begin("procedure");
    (void)printf("program %lld, version %lld, procedure %lld\n",
                 print_integer(client, "callback_prog"), print_integer(client, "callback_vers"),
                 print_integer(client, "callback_proc"));
    print_text("private", print_string(client, "priv"));
}

static void print_host(const json_t *client)
{
    const json_t *host = json_object_get(client, "host");
    bool is_resolved = json_is_true(json_object_get(host, "resolved"));
    if (!json_is_object(host))
        return;
    (void)puts("\nWatched host");
    print_text("owed", host_owed_words(host));
    print_text("resolved", is_resolved ? "yes" : "no: it can be neither notified nor believed");
    print_text("this boot", json_is_true(json_object_get(host, "registered_in_this_boot"))
                                ? "registered in it"
                                : "no: it is kept only until it has been notified");
}

static void print_tracked(const json_t *client)
{
    const json_t *tracked = json_object_get(client, "tracked");
    char left[AGO_MAX];
    if (!json_is_object(tracked))
        return;
    (void)puts("\nTracked");
    begin("window");
    (void)printf("%lld s\n", print_integer(tracked, "window_s"));
    print_until(left, sizeof left, print_string(tracked, "deadline"));
    print_text("may come back", is_set(tracked, "deadline") ? left : "no time is set");
}

void client_text_print(const json_t *client)
{
    (void)puts("Client");
    print_identity(client);
    print_holdings(client);
    print_restarts(client);
    print_registration(client);
    print_host(client);
    print_tracked(client);
}
