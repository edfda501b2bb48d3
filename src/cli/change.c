/*
 * change.c -- the commands that change something: release, move, end-grace, restart-notice.
 *
 * Each breaks a promise to clients (P2 (4), P3), so it says what is at risk and asks first. The
 * server replies when the change is made, however long that takes, and durable.
 */
#include "base/address.h"
#include "cli/find.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_MAX_LEN = 512 };

/* Asks for a change; the reply comes when it is made and durable. Returns an exit code. */
static int order(struct http_client *http, const char *method, const char *path)
{
    struct http_client_reply reply = {0};
    int exit_code = http_client_ask(http, method, path, &reply);
    if (exit_code == EXIT_OK && reply.status != 200)
        exit_code = http_client_print_error(http, &reply);
    http_client_reply_done(&reply);
    return exit_code;
}

/* ---- asking ---- */

#define TWO_WRITERS                                                                                \
    "Other clients can then lock the same bytes, so two clients may write at once. holdfast "      \
    "otherwise guarantees that this never happens."

/* EXIT_OK: confirmed, or --yes was given. Takes `said` over. */
static int confirm(const struct arguments *arguments, char *said)
{
    char answer[16];
    int exit_code = EXIT_NO;
    if (arguments_has(arguments, "yes")) {
        exit_code = EXIT_OK;
    } else if (!isatty(STDIN_FILENO)) {
        (void)fprintf(stderr,
                      "holdfast %s: needs confirmation, but standard input is not a terminal; use "
                      "--yes to skip the question\n",
                      arguments->command->name);
        exit_code = EXIT_USAGE;
    } else if (said != NULL) {
        print_wrapped(stdout, said);
        (void)fputs("Continue? [y/N] ", stdout);
        (void)fflush(stdout);
        bool is_answered = fgets(answer, sizeof answer, stdin) != NULL;
        if (is_answered && (answer[0] == 'y' || answer[0] == 'Y'))
            exit_code = EXIT_OK;
        else
            (void)puts(is_answered ? "Nothing was changed." : "\nNothing was changed.");
    }
    free(said);
    return exit_code;
}

/* c17 web3 at 10.0.0.5 */
static void say_who(FILE *out, const json_t *client)
{
    (void)fprintf(out, "%s ", print_string(client, "id"));
    print_safe(out, print_string(client, "name"));
    (void)fprintf(out, " at %s", print_string(client, "address"));
}

/* 3 locks and 1 share reservation */
static void say_what(FILE *out, const json_t *client)
{
    long long shares = print_integer(client, "share_reservations");
    print_plural(out, print_integer(client, "locks"), "lock");
    if (shares > 0) {
        (void)fputs(" and ", out);
        print_plural(out, shares, "share reservation");
    }
}

/* ---- end-grace ---- */

/* What a recovery is still waiting for. */
struct tally {
    long long locks, clients, largest;
    json_t *who; /* holds the most of them; owned */
};

static bool add_to_tally(void *context, const json_t *row)
{
    struct tally *tally = context;
    long long left = print_integer(row, "unsettled_locks");
    tally->locks += left;
    tally->clients += left > 0;
    if (left > tally->largest) {
        tally->largest = left;
        json_decref(tally->who);
        tally->who = json_incref((json_t *)(uintptr_t)row);
    }
    return true;
}

static char *describe_end(const struct tally *tally, long long left_s)
{
    char *said = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&said, &len);
    if (out == NULL)
        return NULL;
    (void)fputs("This ends the recovery ", out);
    print_duration(out, left_s);
    (void)fputs(" early. ", out);
    if (tally->who == NULL) {
        (void)fputs("No stored lock is waiting to be reclaimed, but the store may have lost locks "
                    "that clients could still reclaim.",
                    out);
    } else {
        (void)fputs("It releases ", out);
        print_plural(out, tally->locks, "lock");
        (void)fputs(" of ", out);
        if (tally->clients > 1) {
            print_plural(out, tally->clients, "client");
            (void)fputs("; ", out);
        }
        say_who(out, tally->who);
        if (tally->clients > 1) {
            (void)fputs(" holds the most, ", out);
            print_count(out, tally->largest);
        }
        (void)fprintf(out, ". %s may still rely on them. ", tally->clients == 1 ? "It" : "They");
        (void)fputs(TWO_WRITERS, out);
    }
    return fclose(out) == 0 ? said : NULL;
}

static int confirm_end(struct http_client *http, const struct arguments *arguments)
{
    struct tally tally = {0};
    int exit_code;
    json_t *status = http_client_get(http, "/api/v1/status", &exit_code);
    if (status == NULL)
        return exit_code;
    const json_t *grace = json_object_get(status, "grace");
    long long left_s = print_integer(grace, "remaining_seconds");
    bool is_over = !json_is_true(json_object_get(grace, "active")) &&
                   print_integer(grace, "unsettled_locks") == 0;
    json_decref(status);
    if (is_over) /* the server reports that; nothing to confirm */
        return EXIT_OK;
    if (!arguments_has(arguments, "yes"))
        exit_code =
            find_rows(http, "/api/v1/clients?protocol=nlm", "clients", add_to_tally, NULL, &tally);
    if (exit_code == EXIT_OK)
        exit_code = confirm(arguments, describe_end(&tally, left_s));
    json_decref(tally.who);
    return exit_code;
}

int change_end_grace(struct http_client *http, const struct arguments *arguments)
{
    int exit_code = confirm_end(http, arguments);
    if (exit_code == EXIT_OK)
        exit_code = order(http, "DELETE", "/api/v1/grace");
    if (exit_code == EXIT_OK)
        (void)puts("Grace period ended. Locks that were not reclaimed are released; their clients "
                   "may still rely on them.");
    return exit_code;
}

/* ---- restart-notice ---- */

int change_restart_notice(struct http_client *http, const struct arguments *arguments)
{
    int exit_code = confirm(
        arguments, strdup("This notifies every watched host that the locks it holds here are "
                          "lost. Each reclaims them; what is refused, because the NFS server "
                          "is not in its grace period, is lost."));
    if (exit_code == EXIT_OK)
        exit_code = order(http, "POST", "/api/v1/restart-notice");
    if (exit_code == EXIT_OK)
        (void)puts("Notifying every watched host; holdfast hosts shows who is still owed it.");
    return exit_code;
}

/* ---- release ---- */

static bool is_locker(const json_t *client)
{
    return strcmp(print_string(client, "protocol"), "nlm") == 0;
}

static bool is_registration(const json_t *client)
{
    return strcmp(print_string(client, "protocol"), "nsm") == 0;
}

static bool holds_nothing(const json_t *client)
{
    return print_integer(client, "locks") == 0 && print_integer(client, "waiters") == 0 &&
           print_integer(client, "share_reservations") == 0;
}

static char *describe_release(const json_t *client, const char *file)
{
    char *said = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&said, &len);
    if (out == NULL)
        return NULL;
    if (json_object_get(client, "host") != NULL) {
        (void)fputs("This forgets ", out);
        say_who(out, client);
        (void)fputs(", which the lock manager of this machine watches. If it reboots, its locks "
                    "stay held; if this machine reboots, it is not notified and loses its "
                    "locks. Only for a host that is gone for good.",
                    out);
    } else if (!is_locker(client)) {
        (void)fputs("This forgets ", out);
        say_who(out, client);
        (void)fputs(", which registered to be notified when ", out);
        print_safe(out, print_string(client, "mon_name"));
        (void)fputs(" reboots. It holds no locks. Until it registers again it is not notified when "
                    "that host reboots or this server restarts.",
                    out);
    } else if (holds_nothing(client) && file == NULL) {
        (void)fputs("This forgets ", out);
        say_who(out, client);
        (void)fputs(", which holds nothing. If it has not been notified of the last restart yet, "
                    "it never will be. Its next lock makes it known again.",
                    out);
    } else {
        (void)fprintf(out, "This releases %s%s of ",
                      file != NULL ? "all locks on file " : "everything", file != NULL ? file : "");
        say_who(out, client);
        (void)fputs(", which holds ", out);
        say_what(out, client);
        (void)fputs(". It may still rely on them. " TWO_WRITERS, out);
    }
    return fclose(out) == 0 ? said : NULL;
}

/* c17: released 2 locks; notifying the client */
static void say_released(const json_t *client, const char *file)
{
    (void)printf("%s: ", print_string(client, "id"));
    if (!is_locker(client) || (holds_nothing(client) && file == NULL)) {
        (void)puts("forgotten");
        return;
    }
    (void)fputs("released ", stdout);
    if (file != NULL)
        (void)fputs("its locks on that file", stdout);
    else
        say_what(stdout, client);
    (void)puts(json_is_true(json_object_get(client, "monitored"))
                   ? "; notifying the client"
                   : "; the client has no status monitor, so it is not notified");
}

static int release(struct http_client *http, const struct arguments *arguments,
                   const json_t *client)
{
    const char *file = arguments_value(arguments, "file"), *id = print_string(client, "id");
    char path[PATH_MAX_LEN];
    (void)snprintf(path, sizeof path, "/api/v1/clients/%s", id);
    if (!find_add_parameter(path, sizeof path, "file", file))
        return EXIT_USAGE;
    int exit_code = confirm(arguments, describe_release(client, file));
    if (exit_code == EXIT_OK)
        exit_code = order(http, "DELETE", path);
    if (exit_code == EXIT_OK)
        say_released(client, file);
    return exit_code;
}

int change_check_release(const struct arguments *arguments)
{
    const char *file = arguments_value(arguments, "file");
    if (file != NULL && !arguments_is_handle(file)) {
        (void)fprintf(stderr,
                      "holdfast release: --file %s: not a file handle; pairs of hex "
                      "digits, 64 at most\n",
                      file);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int change_release(struct http_client *http, const struct arguments *arguments)
{
    const char *file = arguments_value(arguments, "file");
    json_t *client = NULL;
    int exit_code = find_locker(http, arguments->words[0], &client);
    if (exit_code == EXIT_OK && !is_locker(client) && !is_registration(client)) {
        (void)fprintf(stderr,
                      "holdfast release: %s is a client of %s; only that protocol can remove it\n",
                      print_string(client, "id"), print_string(client, "protocol"));
        exit_code = EXIT_NO;
    }
    if (exit_code == EXIT_OK && file != NULL && !is_locker(client)) {
        (void)fprintf(stderr,
                      "holdfast release: %s is an SM_MON registration and holds no locks; to "
                      "remove it, leave out --file\n",
                      print_string(client, "id"));
        exit_code = EXIT_NO;
    }
    if (exit_code == EXIT_OK)
        exit_code = release(http, arguments, client);
    json_decref(client);
    return exit_code;
}

/* ---- move ---- */

static char *describe_move(const json_t *client, const char *to)
{
    char *said = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&said, &len);
    char ago[32];
    const char *from = print_string(client, "address");
    if (out == NULL)
        return NULL;
    print_ago(ago, sizeof ago, print_string(client, "last_seen"));
    (void)fputs("This moves ", out);
    say_who(out, client);
    (void)fprintf(out, ", last heard from %s, to %s, with ", ago, to);
    say_what(out, client);
    (void)fprintf(out,
                  ". If the host at %s is alive, it still relies on them, and so does the one at "
                  "%s, so two clients may write at once. holdfast otherwise guarantees that this "
                  "never happens. Only you can know that both are the same host; holdfast "
                  "check-client %s shows whether anything answers there.",
                  from, to, from);
    return fclose(out) == 0 ? said : NULL;
}

static int move(struct http_client *http, const struct arguments *arguments, const json_t *client,
                const char *to)
{
    char path[PATH_MAX_LEN];
    const char *id = print_string(client, "id");
    (void)snprintf(path, sizeof path, "/api/v1/clients/%s/move", id);
    if (!find_add_parameter(path, sizeof path, "address", to))
        return EXIT_USAGE;
    int exit_code = confirm(arguments, describe_move(client, to));
    if (exit_code == EXIT_OK)
        exit_code = order(http, "POST", path);
    if (exit_code == EXIT_OK) {
        (void)printf("%s: now at %s, with ", id, to);
        say_what(stdout, client);
        (void)fputs(json_is_true(json_object_get(client, "monitored"))
                        ? "; notifying it there so that it reclaims them\n"
                        : ".\n",
                    stdout);
    }
    return exit_code;
}

int change_check_move(const struct arguments *arguments)
{
    struct address address;
    if (!address_parse(bytes_of_text(arguments->words[1]), &address)) {
        (void)fputs("holdfast move: \"", stderr);
        print_safe(stderr, arguments->words[1]);
        (void)fputs("\" is not an IP address; give the one the client calls from now (names are "
                    "not resolved here)\n",
                    stderr);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int change_move(struct http_client *http, const struct arguments *arguments)
{
    json_t *client = NULL;
    int exit_code = find_locker(http, arguments->words[0], &client);
    if (exit_code == EXIT_OK && !is_locker(client)) {
        (void)fprintf(stderr,
                      "holdfast move: %s is not a lock client; its host registers again from its "
                      "new address\n",
                      print_string(client, "id"));
        exit_code = EXIT_NO;
    }
    struct address address;
    if (exit_code == EXIT_OK && address_parse(bytes_of_text(arguments->words[1]), &address)) {
        char to[ADDRESS_TEXT_MAX]; /* as the server writes it */
        address_text(&address, to);
        exit_code = move(http, arguments, client, to);
    }
    json_decref(client);
    return exit_code;
}
