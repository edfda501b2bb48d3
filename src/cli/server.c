/*
 * server.c -- HTTP over the control socket with libcurl; see server.h.
 *
 * A path may be longer than a socket address allows. Then its directory is opened, and libcurl gets
 * the path through /proc.
 */
#include "cli/server.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
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
    "holdfast-data/" CONTROL_NAME,
    "/run/holdfast/" CONTROL_NAME,
};

struct server {
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
static bool set_path(struct server *server, const char *path, char ret[static SOCKET_NAME_MAX])
{
    server->path = path;
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
    if (server->directory_fd >= 0)
        (void)close(server->directory_fd);
    server->directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    int len = snprintf(ret, SOCKET_NAME_MAX, "/proc/self/fd/%d%s", server->directory_fd, slash);
    return server->directory_fd >= 0 && len > 0 && len < SOCKET_NAME_MAX;
}

/* Does a server accept connections there? The rest is libcurl's job. */
static bool try_path(struct server *server, const char *path)
{
    char name[SOCKET_NAME_MAX];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!set_path(server, path, name)) {
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
    return is_there && curl_easy_setopt(server->curl, CURLOPT_UNIX_SOCKET_PATH, name) == CURLE_OK;
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
    for (size_t i = 0; i < count; i++)
        (void)fprintf(stderr, "  %s: %s\n", places[i], advice_for(errors[i]));
    (void)fputs("  To start it: holdfast serve. If its control socket is elsewhere, name it with "
                "--control or HOLDFAST_CONTROL.\n",
                stderr);
}

struct server *server_find(const struct arguments *arguments)
{
    struct server *server = calloc(1, sizeof *server);
    const char *places[PLACES_MAX];
    int errors[PLACES_MAX] = {0};
    size_t count = list_places(arguments, places);
    if (server != NULL) {
        server->directory_fd = -1;
        server->command = arguments->command;
        server->curl = curl_easy_init();
    }
    if (server == NULL || server->curl == NULL) {
        (void)fprintf(stderr, "holdfast %s: out of memory\n", arguments->command->name);
        server_free(server);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        errno = 0;
        if (try_path(server, places[i]))
            return server;
        errors[i] = errno;
    }
    say_unreachable(arguments, places, errors, count);
    server_free(server);
    return NULL;
}

void server_free(struct server *server)
{
    if (server == NULL)
        return;
    curl_easy_cleanup(server->curl);
    if (server->directory_fd >= 0)
        (void)close(server->directory_fd);
    free(server);
}

/* One request; *ret is filled on a reply. */
static CURLcode perform(struct server *server, const char *method, const char *url,
                        struct server_reply *ret)
{
    struct body body = {0};
    bool is_change = strcmp(method, "GET") != 0;
    long patience_s = is_change ? SERVER_PATIENCE_CHANGE_S : SERVER_PATIENCE_S;
    bool is_set = curl_easy_setopt(server->curl, CURLOPT_URL, url) == CURLE_OK &&
                  curl_easy_setopt(server->curl, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
                  curl_easy_setopt(server->curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
                  curl_easy_setopt(server->curl, CURLOPT_WRITEDATA, &body) == CURLE_OK &&
                  curl_easy_setopt(server->curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                  /* Limits silence, not the total: a long list may take a while. */
                  curl_easy_setopt(server->curl, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
                  curl_easy_setopt(server->curl, CURLOPT_LOW_SPEED_TIME, patience_s) == CURLE_OK &&
                  curl_easy_setopt(server->curl, CURLOPT_PROXY, "") == CURLE_OK;
    CURLcode result = is_set ? curl_easy_perform(server->curl) : CURLE_FAILED_INIT;
    if (result == CURLE_OK) {
        (void)curl_easy_getinfo(server->curl, CURLINFO_RESPONSE_CODE, &ret->status);
        if (body.at != NULL)
            ret->body = json_loadb(body.at, body.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    }
    free(body.at);
    return result;
}

int server_ask(struct server *server, const char *method, const char *path,
               struct server_reply *ret)
{
    char url[URL_MAX];
    *ret = (struct server_reply){0};
    int len = snprintf(url, sizeof url, "http://localhost%s", path);
    if (len < 0 || (size_t)len >= sizeof url) {
        (void)fprintf(stderr, "holdfast %s: argument too long\n", server->command->name);
        return EXIT_USAGE;
    }
    CURLcode result = perform(server, method, url, ret);
    if (result == CURLE_OK)
        return EXIT_OK;
    bool is_change = strcmp(method, "GET") != 0;
    if (result == CURLE_OPERATION_TIMEDOUT)
        (void)fprintf(stderr, "holdfast %s: no reply from the server at %s for %d s%s\n",
                      server->command->name, server->path,
                      is_change ? SERVER_PATIENCE_CHANGE_S : SERVER_PATIENCE_S,
                      is_change ? "; the change may still take effect" : "");
    else
        (void)fprintf(stderr, "holdfast %s: no reply from the server at %s: %s\n",
                      server->command->name, server->path, curl_easy_strerror(result));
    return EXIT_UNREACHABLE;
}

json_t *server_try(struct server *server, const char *path)
{
    struct server_reply reply = {0};
    char url[URL_MAX];
    int len = snprintf(url, sizeof url, "http://localhost%s", path);
    if (len > 0 && (size_t)len < sizeof url && perform(server, "GET", url, &reply) == CURLE_OK &&
        reply.status == 200)
        return reply.body;
    server_reply_done(&reply);
    return NULL;
}

void server_reply_done(struct server_reply *reply)
{
    json_decref(reply->body);
    *reply = (struct server_reply){0};
}

int server_print_error(const struct server *server, const struct server_reply *reply)
{
    const char *error = json_string_value(json_object_get(reply->body, "error"));
    const char *hint = json_string_value(json_object_get(reply->body, "hint"));
    if (error == NULL)
        (void)fprintf(stderr, "holdfast %s: the server replied with status %ld\n",
                      server->command->name, reply->status);
    else
        (void)fprintf(stderr, "holdfast %s: %s; %s\n", server->command->name, error,
                      hint != NULL ? hint : "");
    return EXIT_NO;
}

json_t *server_get(struct server *server, const char *path, int *ret_exit_code)
{
    struct server_reply reply;
    *ret_exit_code = server_ask(server, "GET", path, &reply);
    if (*ret_exit_code != EXIT_OK)
        return NULL;
    if (reply.status == 200 && reply.body != NULL)
        return reply.body;
    *ret_exit_code = server_print_error(server, &reply);
    server_reply_done(&reply);
    return NULL;
}
