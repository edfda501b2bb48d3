/*
 * http_client.c -- HTTP over the control socket with libcurl; see http_client.h.
 *
 * A path may be longer than a socket address allows. Then its directory is opened, and libcurl gets
 * the path through /proc.
 */
#include "cli/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    PLACES_MAX = 4,
    URL_MAX = 8192,
    BODY_MAX = 64 * 1024 * 1024,
    SOCKET_NAME_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path),
};

#define CONTROL_NAME "control.sock"

static const char *const default_places[] = {
    "/var/lib/holdfast/" CONTROL_NAME,
    "/var/lib/holdfast-monitor/" CONTROL_NAME,
    "holdfast-data/" CONTROL_NAME,
    "/run/holdfast/" CONTROL_NAME,
};

struct http_client {
    const struct command *command;
    CURL *curl;
    int directory_fd; /* -1: not needed */
    const char *path; /* for messages */
};

struct body {
    char *at;
    size_t len;
};

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct body *body = context;
    size_t len = size * count;
    if (len == 0 || body->len + len > BODY_MAX)
        return 0;
    char *at = realloc(body->at, body->len + len + 1);
    if (at == NULL)
        return 0;
    memcpy(at + body->len, data, len);
    body->at = at;
    body->len += len;
    at[body->len] = '\0';
    return len;
}

/* A name that fits into a socket address. False: no such directory, or no name fits. */
static bool set_path(struct http_client *http, const char *path, char ret[static SOCKET_NAME_MAX])
{
    http->path = path;
    if (strlen(path) < SOCKET_NAME_MAX) {
        (void)snprintf(ret, SOCKET_NAME_MAX, "%s", path);
        return true;
    }
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    char *directory = strndup(path, (size_t)(slash - path) + 1);
    if (directory == NULL)
        return false;
    if (http->directory_fd >= 0)
        (void)close(http->directory_fd);
    http->directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    int len = snprintf(ret, SOCKET_NAME_MAX, "/proc/self/fd/%d%s", http->directory_fd, slash);
    return http->directory_fd >= 0 && len > 0 && len < SOCKET_NAME_MAX;
}

/* Does a server accept connections there? The rest is libcurl's job. */
static bool try_path(struct http_client *http, const char *path)
{
    char name[SOCKET_NAME_MAX];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!set_path(http, path, name)) {
        if (errno == 0)
            errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address.sun_path, name, sizeof name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    int error = errno;
    (void)close(fd);
    errno = error;
    return is_there && curl_easy_setopt(http->curl, CURLOPT_UNIX_SOCKET_PATH, name) == CURLE_OK;
}

static size_t list_places(const struct arguments *arguments, const char *ret[static PLACES_MAX])
{
    const char *given = arguments_value(arguments, "control");
    if (given == NULL)
        given = getenv("HOLDFAST_CONTROL");
    if (given != NULL && given[0] != '\0') {
        ret[0] = given;
        return 1;
    }
    size_t count = sizeof default_places / sizeof default_places[0];
    for (size_t i = 0; i < count; i++)
        ret[i] = default_places[i];
    return count;
}

static const char *advice_for(int error)
{
    return error == EACCES         ? "only root and the server's user may connect"
           : error == ECONNREFUSED ? "no server is running there"
                                   : strerror(error);
}

static void say_unreachable(const struct arguments *arguments, const char *const *places,
                            const int *errors, size_t count)
{
    (void)fprintf(stderr, "holdfast %s: cannot reach the server\n", arguments->command->name);
    bool is_forbidden = false; /* then it may well be running */
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(stderr, "  %s: %s\n", places[i], advice_for(errors[i]));
        is_forbidden |= errors[i] == EACCES;
    }
    if (is_forbidden)
        (void)fprintf(stderr, "  Run it as root or as the server's user: sudo holdfast %s\n",
                      arguments->command->name);
    else
        (void)fputs("  To start it: holdfast serve. If its control socket is elsewhere, name it "
                    "with --control or HOLDFAST_CONTROL.\n",
                    stderr);
}

struct http_client *http_client_find(const struct arguments *arguments)
{
    struct http_client *http = calloc(1, sizeof *http);
    const char *places[PLACES_MAX];
    int errors[PLACES_MAX] = {0};
    size_t count = list_places(arguments, places);
    if (http != NULL) {
        http->directory_fd = -1;
        http->command = arguments->command;
        http->curl = curl_easy_init();
    }
    if (http == NULL || http->curl == NULL) {
        (void)fprintf(stderr, "holdfast %s: out of memory\n", arguments->command->name);
        http_client_free(http);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        errno = 0;
        if (try_path(http, places[i]))
            return http;
        errors[i] = errno;
    }
    say_unreachable(arguments, places, errors, count);
    http_client_free(http);
    return NULL;
}

void http_client_free(struct http_client *http)
{
    if (http == NULL)
        return;
    curl_easy_cleanup(http->curl);
    if (http->directory_fd >= 0)
        (void)close(http->directory_fd);
    free(http);
}

/* A change that is waited for. */
struct wait {
    struct http_client *http;
    time_t look_s; /* when to look whether the server is still there */
};

static bool is_there(const struct http_client *http);

/* libcurl calls this about once a second; not 0: it stops waiting. */
static int on_wait(void *context, curl_off_t unused1, curl_off_t unused2, curl_off_t unused3,
                   curl_off_t unused4)
{
    struct wait *wait = context;
    (void)unused1, (void)unused2, (void)unused3, (void)unused4;
    if (time(NULL) < wait->look_s)
        return 0;
    bool is_lost = !is_there(wait->http);
    wait->look_s = time(NULL) + HTTP_CLIENT_PATIENCE_S;
    return is_lost;
}

/* One request; *ret is filled on a reply. */
static CURLcode perform(struct http_client *http, const char *method, const char *url,
                        struct http_client_reply *ret)
{
    struct body body = {0};
    bool is_change = strcmp(method, "GET") != 0;
    struct wait wait = {http, time(NULL) + HTTP_CLIENT_PATIENCE_S};
    long patience_s = is_change ? 0 : HTTP_CLIENT_PATIENCE_S; /* 0: no limit */
    bool is_set =
        curl_easy_setopt(http->curl, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_WRITEDATA, &body) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        /* Limits silence, not the total: a long list may take a while. */
        curl_easy_setopt(http->curl, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_LOW_SPEED_TIME, patience_s) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_XFERINFOFUNCTION, on_wait) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_XFERINFODATA, &wait) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_NOPROGRESS, is_change ? 0L : 1L) == CURLE_OK &&
        curl_easy_setopt(http->curl, CURLOPT_PROXY, "") == CURLE_OK;
    CURLcode result = is_set ? curl_easy_perform(http->curl) : CURLE_FAILED_INIT;
    if (result == CURLE_OK) {
        (void)curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &ret->status);
        if (body.at != NULL)
            ret->body = json_loadb(body.at, body.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    }
    free(body.at);
    return result;
}

/* Does the server reply to somebody else meanwhile? */
static bool is_there(const struct http_client *http)
{
    struct http_client other = {.command = http->command, .curl = curl_easy_duphandle(http->curl)};
    struct http_client_reply reply = {0};
    bool is_good = other.curl != NULL &&
                   perform(&other, "GET", "http://localhost/api/v1/status", &reply) == CURLE_OK;
    http_client_reply_done(&reply);
    curl_easy_cleanup(other.curl);
    return is_good;
}

int http_client_ask(struct http_client *http, const char *method, const char *path,
                    struct http_client_reply *ret)
{
    char url[URL_MAX];
    *ret = (struct http_client_reply){0};
    int len = snprintf(url, sizeof url, "http://localhost%s", path);
    if (len < 0 || (size_t)len >= sizeof url) {
        (void)fprintf(stderr, "holdfast %s: argument too long\n", http->command->name);
        return EXIT_USAGE;
    }
    CURLcode result = perform(http, method, url, ret);
    if (result == CURLE_OK)
        return EXIT_OK;
    if (result == CURLE_OPERATION_TIMEDOUT || result == CURLE_ABORTED_BY_CALLBACK)
        (void)fprintf(stderr, "holdfast %s: no reply from the server at %s for %d s%s\n",
                      http->command->name, http->path, HTTP_CLIENT_PATIENCE_S,
                      result == CURLE_ABORTED_BY_CALLBACK ? "; the change may still take effect"
                                                          : "");
    else
        (void)fprintf(stderr, "holdfast %s: no reply from the server at %s: %s\n",
                      http->command->name, http->path, curl_easy_strerror(result));
    return EXIT_UNREACHABLE;
}

json_t *http_client_try(struct http_client *http, const char *path)
{
    struct http_client_reply reply = {0};
    char url[URL_MAX];
    int len = snprintf(url, sizeof url, "http://localhost%s", path);
    if (len > 0 && (size_t)len < sizeof url && perform(http, "GET", url, &reply) == CURLE_OK &&
        reply.status == 200)
        return reply.body;
    http_client_reply_done(&reply);
    return NULL;
}

void http_client_reply_done(struct http_client_reply *reply)
{
    json_decref(reply->body);
    *reply = (struct http_client_reply){0};
}

int http_client_print_error(const struct http_client *http, const struct http_client_reply *reply)
{
    const char *error = json_string_value(json_object_get(reply->body, "error"));
    const char *hint = json_string_value(json_object_get(reply->body, "hint"));
    if (error == NULL)
        (void)fprintf(stderr, "holdfast %s: the server replied with status %ld\n",
                      http->command->name, reply->status);
    else
        (void)fprintf(stderr, "holdfast %s: %s; %s\n", http->command->name, error,
                      hint != NULL ? hint : "");
    return EXIT_NO;
}

json_t *http_client_get(struct http_client *http, const char *path, int *ret_exit_code)
{
    struct http_client_reply reply;
    *ret_exit_code = http_client_ask(http, "GET", path, &reply);
    if (*ret_exit_code != EXIT_OK)
        return NULL;
    if (reply.status == 200 && reply.body != NULL)
        return reply.body;
    *ret_exit_code = http_client_print_error(http, &reply);
    http_client_reply_done(&reply);
    return NULL;
}

int http_client_run(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    exit_code = command->check != NULL ? command->check(&arguments) : EXIT_OK;
    if (exit_code != EXIT_OK)
        return exit_code;
    struct http_client *http = http_client_find(&arguments);
    if (http == NULL)
        return EXIT_UNREACHABLE;
    exit_code = command->ask(http, &arguments);
    http_client_free(http);
    return exit_code == EXIT_OK ? arguments_finish() : exit_code;
}
