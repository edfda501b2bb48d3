/*
 * tracker.c -- calls as requests, responses as results; see tracker.h.
 *
 * A request is made once and sent until it is answered. What makes that safe is the server's: each
 * request may come twice (docs/http.md). Two answers to a repeat mean what the lost one said: after
 * a lost answer "no such client" is what holdfast_remove wanted.
 */
#include "holdfast/tracker.h"

#include "holdfast/link.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ERROR_MAX = 1024,
    PATH_LEN_MAX = 512,
    ANSWER_MS = 10000, /* for one answer; a stalled disk takes longer than anything else */
    PAUSE_MIN_MS = 10,
    PAUSE_MAX_MS = 500,
    CUT_MAX = 8, /* lists that were cut off, one after the other */
};

struct holdfast {
    struct holdfast_link link;
    uint32_t patience_ms;
    bool is_repeat; /* the last call was sent more than once */
    char *control;  /* owned */
    char error[ERROR_MAX];
};

struct holdfast *holdfast_open(const char *control, uint32_t patience_ms)
{
    struct holdfast *holdfast = calloc(1, sizeof *holdfast);
    if (holdfast == NULL)
        return NULL;
    holdfast->control = strdup(control);
    if (holdfast->control == NULL) {
        free(holdfast);
        return NULL;
    }
    holdfast->link.path = holdfast->control;
    holdfast->link.fd = -1;
    holdfast->patience_ms = patience_ms;
    return holdfast;
}

void holdfast_close(struct holdfast *holdfast)
{
    if (holdfast == NULL)
        return;
    holdfast_link_close(&holdfast->link);
    free(holdfast->control);
    free(holdfast);
}

const char *holdfast_error(const struct holdfast *holdfast)
{
    return holdfast->error;
}

bool holdfast_client_init(struct holdfast_client *client, const char *protocol, const void *key,
                          size_t key_len)
{
    size_t len = strlen(protocol);
    *client = (struct holdfast_client){0};
    if (len == 0 || len > HOLDFAST_PROTOCOL_MAX || key_len == 0 || key_len > HOLDFAST_KEY_MAX)
        return false;
    memcpy(client->protocol, protocol, len);
    memcpy(client->key, key, key_len);
    client->key_len = key_len;
    return true;
}

/* ---- one request, until it is answered ---- */

static void sleep_ms(uint64_t ms)
{
    const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL); /* an early end does no harm */
}

static void say_unreachable(struct holdfast *holdfast)
{
    int error = holdfast->link.error;
    (void)snprintf(holdfast->error, sizeof holdfast->error,
                   "no answer from the server at %s: %s; is it running, and may this user open the "
                   "socket (--tracker-group)?",
                   holdfast->control,
                   error != 0 ? strerror(error) : "it closed the connection, or is starting");
}

/* 503: it starts, or waits to take over. */
static bool ask(struct holdfast *holdfast, const char *request, size_t len)
{
    uint64_t until_ms = holdfast_link_now_ms() + holdfast->patience_ms;
    holdfast->is_repeat = false;
    for (uint64_t pause_ms = PAUSE_MIN_MS;; pause_ms *= 2) {
        uint64_t now_ms = holdfast_link_now_ms();
        bool was_open = holdfast->link.fd >= 0;
        if (holdfast_link_ask(&holdfast->link, request, len, now_ms + ANSWER_MS)) {
            if (holdfast->link.status != 503)
                return true;
            holdfast->link.error = 0;
        } else {
            holdfast->is_repeat = true;
        }
        if (was_open && pause_ms == PAUSE_MIN_MS)
            continue; /* it may have been idle too long: another one, at once */
        now_ms = holdfast_link_now_ms();
        if (now_ms >= until_ms)
            break;
        if (pause_ms > PAUSE_MAX_MS)
            pause_ms = PAUSE_MAX_MS;
        sleep_ms(pause_ms < until_ms - now_ms ? pause_ms : until_ms - now_ms);
    }
    say_unreachable(holdfast);
    return false;
}

static enum holdfast_result result_of(struct holdfast *holdfast)
{
    json_t *body = json_loads(holdfast->link.body, JSON_ALLOW_NUL, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));
    const char *hint = json_string_value(json_object_get(body, "hint"));
    unsigned status = holdfast->link.status;
    if (status >= 300)
        (void)snprintf(holdfast->error, sizeof holdfast->error, "%s; %s",
                       error != NULL ? error : "the server refused without a reason",
                       hint != NULL ? hint : "is it holdfast that listens there?");
    json_decref(body);
    return status == 204   ? HOLDFAST_NONE
           : status < 300  ? HOLDFAST_DONE
           : status == 404 ? HOLDFAST_UNKNOWN
           : status == 409 ? HOLDFAST_REPLACED
           : status == 410 ? HOLDFAST_GONE
           : status == 507 ? HOLDFAST_FULL
                           : HOLDFAST_REFUSED;
}

static enum holdfast_result say_unmade(struct holdfast *holdfast)
{
    (void)snprintf(holdfast->error, sizeof holdfast->error,
                   "the request cannot be made: out of memory, a name that is not UTF-8, or a key "
                   "or bytes longer than they may be");
    return HOLDFAST_REFUSED;
}

/* Sends the request with this body, which it takes over; NULL: none. A list is asked for by
 * HTTP/1.0 (link.c). */
static enum holdfast_result call(struct holdfast *holdfast, const char *method, const char *path,
                                 json_t *body)
{
    const char *version = path[0] == '?' ? "1.0" : "1.1";
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : strdup("");
    char *request = NULL;
    json_decref(body);
    holdfast->error[0] = '\0';
    int len = text == NULL ? -1
                           : asprintf(&request,
                                      "%s /api/v1/tracked%s HTTP/%s\r\nHost: localhost\r\n"
                                      "Content-Length: %zu\r\n\r\n%s",
                                      method, path, version, strlen(text), text);
    free(text);
    if (len < 0)
        return say_unmade(holdfast);
    bool is_answered = ask(holdfast, request, (size_t)len);
    free(request);
    return is_answered ? result_of(holdfast) : HOLDFAST_UNREACHABLE;
}

/* ---- what is said, and what is answered ---- */

static void put_hex(char *at, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at = '\0';
}

static size_t get_hex(const char *text, uint8_t *ret, size_t max)
{
    size_t len = 0;
    for (unsigned byte; len < max && sscanf(text + 2 * len, "%2x", &byte) == 1; len++)
        ret[len] = (uint8_t)byte;
    return len;
}

/* Its fields are public, and may have been set to anything. */
static bool is_good(const struct holdfast_client *client)
{
    return client->key_len > 0 && client->key_len <= HOLDFAST_KEY_MAX &&
           client->bytes_len <= HOLDFAST_BYTES_MAX &&
           memchr(client->protocol, '\0', sizeof client->protocol) != NULL &&
           memchr(client->name, '\0', sizeof client->name) != NULL &&
           memchr(client->address, '\0', sizeof client->address) != NULL;
}

/* protocol/hex:KEY and what follows; the id and the connection that is meant, if it is known.
 * False: it is no client that there can be. */
static bool set_path(const struct holdfast_client *client, const char *verb, bool is_exact,
                     char ret[static PATH_LEN_MAX])
{
    char key[2 * HOLDFAST_KEY_MAX + 1], id[48] = "", connection[32] = "";
    if (!is_good(client))
        return false;
    put_hex(key, client->key, client->key_len);
    if (is_exact && client->id != 0)
        (void)snprintf(id, sizeof id, "?id=c%llu", (unsigned long long)client->id);
    if (is_exact && client->id != 0 && client->connection != 0)
        (void)snprintf(connection, sizeof connection, "&connection=%u", client->connection);
    (void)snprintf(ret, PATH_LEN_MAX, "/%s/hex:%s%s%s%s", client->protocol, key, verb, id,
                   connection);
    return true;
}

/* A member more; without memory, or if the value cannot be made, *body is NULL from then on: what
 * is left out would be taken for a change. */
static void put(json_t **body, const char *name, json_t *value)
{
    if (json_object_set_new(*body, name, value) == 0)
        return;
    json_decref(*body);
    *body = NULL;
}

static json_t *bytes_of(const struct holdfast_client *client)
{
    char hex[2 * HOLDFAST_BYTES_MAX + 1];
    put_hex(hex, client->bytes, client->bytes_len);
    return json_string(hex);
}

static void copy_text(char *ret, size_t size, const json_t *value)
{
    const char *text = json_string_value(value);
    (void)snprintf(ret, size, "%s", text != NULL ? text : "");
}

static int64_t milliseconds_of(const char *time)
{
    struct tm parts = {0};
    const char *rest = time == NULL ? NULL : strptime(time, "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == NULL)
        return 0;
    int64_t ms = rest[0] == '.' ? strtol(rest + 1, NULL, 10) : 0;
    return (int64_t)timegm(&parts) * 1000 + ms;
}

static enum holdfast_state state_of(const char *word)
{
    bool is_away = word != NULL && strcmp(word, "disconnected") == 0;
    bool is_expired = word != NULL && strcmp(word, "expired") == 0;
    return is_expired ? HOLDFAST_EXPIRED : is_away ? HOLDFAST_DISCONNECTED : HOLDFAST_CONNECTED;
}

/* A key that is text is shown as it is. */
static void read_key(struct holdfast_client *client, const char *key)
{
    if (strncmp(key, "hex:", 4) == 0) {
        client->key_len = get_hex(key + 4, client->key, HOLDFAST_KEY_MAX);
        return;
    }
    client->key_len = strnlen(key, HOLDFAST_KEY_MAX);
    memcpy(client->key, key, client->key_len);
}

/* The client of this object. False: it is none. */
static bool read_client(const json_t *body, struct holdfast_client *ret)
{
    const char *id = json_string_value(json_object_get(body, "id"));
    const char *key = json_string_value(json_object_get(body, "key"));
    const char *bytes = json_string_value(json_object_get(body, "bytes"));
    if (id == NULL || id[0] != 'c' || key == NULL)
        return false;
    ret->id = strtoull(id + 1, NULL, 10);
    read_key(ret, key);
    copy_text(ret->protocol, sizeof ret->protocol, json_object_get(body, "protocol"));
    copy_text(ret->name, sizeof ret->name, json_object_get(body, "name"));
    copy_text(ret->address, sizeof ret->address, json_object_get(body, "address"));
    ret->bytes_len = bytes == NULL ? 0 : get_hex(bytes, ret->bytes, sizeof ret->bytes);
    ret->connection = (uint32_t)json_integer_value(json_object_get(body, "connection"));
    ret->window_in_force_s = (uint32_t)json_integer_value(json_object_get(body, "window_s"));
    ret->state = state_of(json_string_value(json_object_get(body, "state")));
    ret->deadline_ms = milliseconds_of(json_string_value(json_object_get(body, "deadline")));
    return true;
}

static enum holdfast_result say_foreign(struct holdfast *holdfast)
{
    (void)snprintf(holdfast->error, sizeof holdfast->error,
                   "the answer names no client; is it holdfast that listens at %s?",
                   holdfast->control);
    return HOLDFAST_REFUSED;
}

static enum holdfast_result call_of(struct holdfast *holdfast, const char *method, const char *path,
                                    json_t *body, struct holdfast_client *client)
{
    enum holdfast_result result = call(holdfast, method, path, body);
    if (result != HOLDFAST_DONE)
        return result;
    json_t *answer = json_loads(holdfast->link.body, JSON_ALLOW_NUL, NULL);
    bool is_good = read_client(answer, client);
    json_decref(answer);
    return is_good ? HOLDFAST_DONE : say_foreign(holdfast);
}

/* The same with a body, which is NULL when there was no memory for it. */
static enum holdfast_result call_with(struct holdfast *holdfast, const char *method,
                                      const char *path, json_t *body,
                                      struct holdfast_client *client)
{
    return body != NULL ? call_of(holdfast, method, path, body, client) : say_unmade(holdfast);
}

/* ---- the calls ---- */

enum holdfast_result holdfast_register(struct holdfast *holdfast, struct holdfast_client *client)
{
    char path[PATH_LEN_MAX];
    if (!set_path(client, "", false, path))
        return say_unmade(holdfast);
    json_t *body = json_object();
    put(&body, "window_s", json_integer(client->window_s));
    put(&body, "bytes", bytes_of(client));
    if (client->name[0] != '\0')
        put(&body, "name", json_string(client->name));
    if (client->address[0] != '\0')
        put(&body, "address", json_string(client->address));
    return call_with(holdfast, "PUT", path, body, client);
}

enum holdfast_result holdfast_reconnect(struct holdfast *holdfast, struct holdfast_client *client)
{
    char path[PATH_LEN_MAX];
    if (!set_path(client, "/reconnect", false, path))
        return say_unmade(holdfast);
    json_t *body = json_object();
    if (client->address[0] != '\0')
        put(&body, "address", json_string(client->address));
    return call_with(holdfast, "POST", path, body, client);
}

enum holdfast_result holdfast_disconnect(struct holdfast *holdfast, struct holdfast_client *client,
                                         uint32_t timeout_s)
{
    char path[PATH_LEN_MAX];
    if (!set_path(client, "/disconnect", true, path))
        return say_unmade(holdfast);
    json_t *body = json_object();
    put(&body, "timeout_s", json_integer(timeout_s));
    return call_with(holdfast, "POST", path, body, client);
}

enum holdfast_result holdfast_update(struct holdfast *holdfast, struct holdfast_client *client)
{
    char path[PATH_LEN_MAX];
    if (!set_path(client, "", true, path))
        return say_unmade(holdfast);
    json_t *body = json_object();
    put(&body, "bytes", bytes_of(client));
    return call_with(holdfast, "PATCH", path, body, client);
}

enum holdfast_result holdfast_remove(struct holdfast *holdfast,
                                     const struct holdfast_client *client)
{
    char path[PATH_LEN_MAX];
    if (!set_path(client, "", true, path))
        return say_unmade(holdfast);
    enum holdfast_result result = call(holdfast, "DELETE", path, NULL);
    /* With the id it cannot be another one that is unknown: the lost answer said "removed". */
    if (result == HOLDFAST_UNKNOWN && holdfast->is_repeat && client->id != 0)
        return HOLDFAST_DONE;
    return result;
}

enum holdfast_result holdfast_find(struct holdfast *holdfast, struct holdfast_client *client)
{
    char path[PATH_LEN_MAX];
    if (!set_path(client, "", false, path))
        return say_unmade(holdfast);
    return call_of(holdfast, "GET", path, NULL, client);
}

enum holdfast_result holdfast_take_expired(struct holdfast *holdfast, const char *protocol,
                                           struct holdfast_client *ret)
{
    char path[PATH_LEN_MAX];
    (void)snprintf(path, sizeof path, "/%.*s/expired", HOLDFAST_PROTOCOL_MAX, protocol);
    *ret = (struct holdfast_client){0};
    return call_of(holdfast, "POST", path, NULL, ret);
}

/* A page of one. The cursor of the next is null at the end, where a page may be empty. A list has
 * no length: one that a killed server did not end is UNREACHABLE. */
static enum holdfast_result read_page(struct holdfast *holdfast, uint64_t *cursor,
                                      struct holdfast_client *ret)
{
    json_t *page = json_loads(holdfast->link.body, JSON_ALLOW_NUL, NULL);
    const json_t *rows = json_object_get(page, "tracked");
    const char *next = json_string_value(json_object_get(page, "next"));
    enum holdfast_result result = HOLDFAST_NONE;
    if (page == NULL)
        result = HOLDFAST_UNREACHABLE;
    else if (!json_is_array(rows))
        result = say_foreign(holdfast);
    else if (json_array_size(rows) > 0)
        result = read_client(json_array_get(rows, 0), ret) ? HOLDFAST_DONE : say_foreign(holdfast);
    if (result == HOLDFAST_DONE || result == HOLDFAST_NONE)
        *cursor = next != NULL ? strtoull(next, NULL, 10) : UINT64_MAX;
    json_decref(page);
    return result;
}

enum holdfast_result holdfast_next(struct holdfast *holdfast, const char *protocol,
                                   uint64_t *cursor, struct holdfast_client *ret)
{
    char path[PATH_LEN_MAX];
    uint32_t cut = 0;
    *ret = (struct holdfast_client){0};
    while (*cursor != UINT64_MAX) {
        (void)snprintf(path, sizeof path, "?protocol=%.*s&limit=1&cursor=%llu",
                       HOLDFAST_PROTOCOL_MAX, protocol, (unsigned long long)*cursor);
        enum holdfast_result result = call(holdfast, "GET", path, NULL);
        if (result == HOLDFAST_DONE)
            result = read_page(holdfast, cursor, ret);
        else if (result == HOLDFAST_UNREACHABLE)
            return result; /* it was patient already */
        if (result == HOLDFAST_UNREACHABLE && ++cut == CUT_MAX)
            return say_foreign(holdfast);
        if (result != HOLDFAST_NONE && result != HOLDFAST_UNREACHABLE)
            return result;
    }
    return HOLDFAST_NONE;
}
