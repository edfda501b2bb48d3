/*
 * http_get.c -- one request, one answer; see http_get.h.
 */
#include "http_get.h"

#include "peer/dial.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS UINT64_C(60000000000)

static CURL *shared; /* keeps its connection between requests */

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct http_reply *reply = context;
    char *body = realloc(reply->body, reply->len + size * count + 1);
    if (body == NULL)
        return 0;
    memcpy(body + reply->len, data, size * count);
    reply->body = body;
    reply->len += size * count;
    body[reply->len] = '\0';
    return size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct http_reply *reply = context;
    size_t used = strlen(reply->headers), len = size * count;
    if (used + len < sizeof(reply->headers)) {
        memcpy(reply->headers + used, data, len);
        reply->headers[used + len] = '\0';
    }
    return len;
}

struct http_reply http_ask(const struct http_place *place, const char *method, const char *path,
                           const char *header)
{
    struct http_reply reply = {0};
    char url[4096];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", place->port != 0 ? place->port : 80, path);
    if (shared == NULL)
        shared = curl_easy_init();
    else
        curl_easy_reset(shared);
    struct curl_slist *headers = header != NULL ? curl_slist_append(NULL, header) : NULL;
    curl_easy_setopt(shared, CURLOPT_URL, url);
    curl_easy_setopt(shared, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(shared, CURLOPT_NOBODY, strcmp(method, "HEAD") == 0 ? 1L : 0L);
    curl_easy_setopt(shared, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(shared, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(shared, CURLOPT_WRITEDATA, &reply);
    curl_easy_setopt(shared, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(shared, CURLOPT_HEADERDATA, &reply);
    curl_easy_setopt(shared, CURLOPT_PROXY, "");
    curl_easy_setopt(shared, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(shared, CURLOPT_PATH_AS_IS, 1L);
    if (place->socket != NULL)
        curl_easy_setopt(shared, CURLOPT_UNIX_SOCKET_PATH, place->socket);
    uint64_t start_ns = dial_now_ns();
    if (curl_easy_perform(shared) == CURLE_OK)
        curl_easy_getinfo(shared, CURLINFO_RESPONSE_CODE, &reply.status);
    reply.took_ns = dial_now_ns() - start_ns;
    if (reply.body != NULL)
        reply.json = json_loadb(reply.body, reply.len, 0, NULL);
    curl_slist_free_all(headers);
    return reply;
}

void http_reply_done(struct http_reply *reply)
{
    json_decref(reply->json);
    free(reply->body);
    *reply = (struct http_reply){0};
}

static uint16_t port_in(const char *log)
{
    char line[4096];
    unsigned port = 0;
    FILE *file = fopen(log, "r");
    while (file != NULL && port == 0 && fgets(line, sizeof(line), file) != NULL) {
        const char *at = strstr(line, "serving HTTP port=");
        if (at != NULL && sscanf(at, "serving HTTP port=%u", &port) != 1)
            port = 0;
    }
    if (file != NULL)
        fclose(file);
    return (uint16_t)port;
}

uint16_t http_port(const char *log)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    uint16_t port;
    while ((port = port_in(log)) == 0 && dial_now_ns() < deadline_ns)
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return port;
}
