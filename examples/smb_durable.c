/*
 * smb_durable.c -- how an SMB server with durable handles uses libholdfast: a toy without SMB,
 * which reads what its clients do from standard input and prints what it would answer them.
 *
 * Two protocols. A session is a client of "smb", known by the GUID of the SMB client. A handle is
 * one of "smb-open", known by GUID and number; its id is the persistent file id, its bytes are the
 * path.
 *
 *   setup GUID            SESSION_SETUP                  register the session
 *   create GUID N PATH    CREATE, durable                register the handle
 *   close GUID N          CLOSE                          remove the handle
 *   lost GUID SECONDS     the TCP connection broke       disconnect handles, then the session
 *   again GUID N          DURABLE_HANDLE_RECONNECT       reconnect session and handle
 *   logoff GUID           LOGOFF                         remove handles, then the session
 *   clean                 in its loop, now and then      those whose time has run out
 *
 * The rule to keep is: no handle without its session. Each call is durable by itself, so their order
 * keeps the rule at every moment, whoever is killed: a session comes before its handles and goes
 * after them.
 *
 * At its start the program finds what it had before it was killed: those connections broke with it.
 *
 * usage: smb_durable CONTROL-SOCKET
 */
#include "holdfast/tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION "smb"
#define HANDLE  "smb-open"

enum { PATIENCE_MS = 60000, LINE_LEN = 2048, GUID_MAX = 40 };

static struct holdfast *server;

static const char *word_of(enum holdfast_result result)
{
    static const char *const words[] = {
        [HOLDFAST_DONE] = "done",         [HOLDFAST_NONE] = "none",
        [HOLDFAST_UNKNOWN] = "unknown",   [HOLDFAST_GONE] = "gone",
        [HOLDFAST_REPLACED] = "replaced", [HOLDFAST_FULL] = "full",
        [HOLDFAST_REFUSED] = "refused",   [HOLDFAST_UNREACHABLE] = "unreachable",
    };
    return words[result];
}

static bool is_done(enum holdfast_result result)
{
    if (result != HOLDFAST_DONE && holdfast_error(server)[0] != '\0')
        (void)fprintf(stderr, "smb_durable: %s\n", holdfast_error(server));
    return result == HOLDFAST_DONE;
}

static struct holdfast_client session_of(const char *guid)
{
    struct holdfast_client session;
    (void)holdfast_client_init(&session, SESSION, guid, strlen(guid));
    return session;
}

static struct holdfast_client handle_of(const char *guid, const char *number)
{
    char key[HOLDFAST_KEY_MAX + 1];
    struct holdfast_client handle;
    int len = snprintf(key, sizeof key, "%s:%s", guid, number);
    (void)holdfast_client_init(&handle, HANDLE, key, (size_t)len);
    return handle;
}

static bool is_of(const struct holdfast_client *handle, const char *guid)
{
    size_t len = strlen(guid);
    return handle->key_len > len && handle->key[len] == ':' && memcmp(handle->key, guid, len) == 0;
}

/* Calls `act` with each handle of this session. A server keeps a table of them in memory; this one
 * asks. */
static bool each_handle(const char *guid, bool (*act)(struct holdfast_client *handle, uint32_t),
                        uint32_t argument)
{
    struct holdfast_client handle;
    uint64_t cursor = 0;
    enum holdfast_result result;
    while ((result = holdfast_next(server, HANDLE, &cursor, &handle)) == HOLDFAST_DONE)
        if (is_of(&handle, guid) && !act(&handle, argument))
            return false;
    return result == HOLDFAST_NONE;
}

static bool remove_one(struct holdfast_client *client, uint32_t unused)
{
    (void)unused;
    enum holdfast_result result = holdfast_remove(server, client);
    return result == HOLDFAST_UNKNOWN || is_done(result); /* it is gone either way */
}

/* One that has expired meanwhile stays so: clean() finds it. */
static bool disconnect_one(struct holdfast_client *client, uint32_t timeout_s)
{
    enum holdfast_result result = holdfast_disconnect(server, client, timeout_s);
    return result == HOLDFAST_GONE || is_done(result);
}

/* ---- what clients do ---- */

static void setup(const char *guid)
{
    struct holdfast_client session = session_of(guid);
    enum holdfast_result result = holdfast_register(server, &session);
    (void)is_done(result);
    (void)printf("setup %s %s c%llu\n", guid, word_of(result), (unsigned long long)session.id);
}

static void create(const char *guid, const char *number, const char *path)
{
    struct holdfast_client session = session_of(guid), handle = handle_of(guid, number);
    enum holdfast_result result = holdfast_find(server, &session);
    if (result == HOLDFAST_DONE && session.state == HOLDFAST_CONNECTED) {
        handle.bytes_len = strnlen(path, sizeof handle.bytes);
        memcpy(handle.bytes, path, handle.bytes_len);
        result = holdfast_register(server, &handle);
    }
    (void)is_done(result);
    (void)printf("create %s %s %s c%llu\n", guid, number, word_of(result),
                 (unsigned long long)handle.id);
}

static void again(const char *guid, const char *number)
{
    struct holdfast_client session = session_of(guid), handle = handle_of(guid, number);
    enum holdfast_result result = holdfast_reconnect(server, &session);
    if (result == HOLDFAST_DONE)
        result = holdfast_reconnect(server, &handle);
    (void)printf("again %s %s %s c%llu %.*s\n", guid, number, word_of(result),
                 (unsigned long long)handle.id, (int)handle.bytes_len, (const char *)handle.bytes);
}

static void close_handle(const char *guid, const char *number)
{
    struct holdfast_client handle = handle_of(guid, number);
    (void)printf("close %s %s %s\n", guid, number, word_of(holdfast_remove(server, &handle)));
}

static void lost(const char *guid, const char *seconds)
{
    uint32_t timeout_s = (uint32_t)strtoul(seconds, NULL, 10);
    struct holdfast_client session = session_of(guid);
    bool is_good =
        each_handle(guid, disconnect_one, timeout_s) && disconnect_one(&session, timeout_s);
    (void)printf("lost %s %s\n", guid, is_good ? "done" : "failed");
}

/* The handles, then the session: what is killed in between is found again. */
static bool end_session(struct holdfast_client *session, const char *guid)
{
    return each_handle(guid, remove_one, 0) && remove_one(session, 0);
}

static void logoff(const char *guid)
{
    struct holdfast_client session = session_of(guid);
    (void)printf("logoff %s %s\n", guid, end_session(&session, guid) ? "done" : "failed");
}

/* Whose time has run out. Everything here may be done twice. */
static void clean(void)
{
    struct holdfast_client client;
    char guid[HOLDFAST_KEY_MAX + 1];
    enum holdfast_result result;
    while ((result = holdfast_take_expired(server, SESSION, &client)) == HOLDFAST_DONE) {
        (void)snprintf(guid, sizeof guid, "%.*s", (int)client.key_len, (const char *)client.key);
        if (!end_session(&client, guid))
            return;
        (void)printf("expired session %s c%llu\n", guid, (unsigned long long)client.id);
    }
    while (result == HOLDFAST_NONE &&
           holdfast_take_expired(server, HANDLE, &client) == HOLDFAST_DONE) {
        if (!remove_one(&client, 0))
            return;
        (void)printf("expired handle %.*s c%llu\n", (int)client.key_len, (const char *)client.key,
                     (unsigned long long)client.id);
    }
    (void)printf("clean %s\n", word_of(result));
}

/* ---- the program ---- */

/* Who was connected to us was so before we were killed. */
static bool recover(const char *protocol)
{
    struct holdfast_client client;
    uint64_t cursor = 0;
    enum holdfast_result result;
    unsigned long count = 0;
    while ((result = holdfast_next(server, protocol, &cursor, &client)) == HOLDFAST_DONE) {
        if (client.state != HOLDFAST_CONNECTED)
            continue;
        if (!disconnect_one(&client, 0))
            return false;
        count++;
    }
    (void)printf("recovered %s %lu\n", protocol, count);
    return result == HOLDFAST_NONE;
}

/* False: nobody knows that word. */
static bool obey(const char *verb, const char *guid, const char *number, const char *path)
{
    if (strcmp(verb, "setup") == 0)
        setup(guid);
    else if (strcmp(verb, "create") == 0)
        create(guid, number, path);
    else if (strcmp(verb, "close") == 0)
        close_handle(guid, number);
    else if (strcmp(verb, "lost") == 0)
        lost(guid, number);
    else if (strcmp(verb, "again") == 0)
        again(guid, number);
    else if (strcmp(verb, "logoff") == 0)
        logoff(guid);
    else if (strcmp(verb, "clean") == 0)
        clean();
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    char line[LINE_LEN], verb[16], guid[GUID_MAX], number[16], path[1024];
    if (argc != 2 || (server = holdfast_open(argv[1], PATIENCE_MS)) == NULL) {
        (void)fputs("usage: smb_durable CONTROL-SOCKET\n", stderr);
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (!recover(HANDLE) || !recover(SESSION)) {
        (void)fprintf(stderr, "smb_durable: %s\n", holdfast_error(server));
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        verb[0] = guid[0] = number[0] = path[0] = '\0';
        (void)sscanf(line, "%15s %39s %15s %1023[^\n]", verb, guid, number, path);
        if (!obey(verb, guid, number, path))
            (void)fprintf(stderr, "smb_durable: unknown: %s", line);
    }
    holdfast_close(server);
    return 0;
}
