/*
 * route.c -- the routes; see route.h.
 */
#include "admin/route.h"

#include "admin/events.h"
#include "admin/exports.h"
#include "admin/list.h"
#include "admin/metrics.h"
#include "admin/options.h"
#include "admin/order.h"
#include "admin/reload.h"
#include "admin/samples.h"
#include "admin/status.h"
#include "admin/store_copy.h"
#include "admin/tracked.h"
#include "admin/web_page.h"

#include <stdlib.h>

enum { REASON_MAX = 1024, ALLOW_MAX = 64, HINT_MAX = 128 };

enum method { METHOD_READ, METHOD_DELETE, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_END };

typedef void (*answer_fn)(struct exchange *exchange);

struct route {
    const char *path;              /* {id}, {protocol}, {key}: one segment of any kind */
    const char *parameters;        /* of reading: "limit, cursor"; NULL: none */
    const char *change_parameters; /* of changing: the same */
    bool needs_core;
    bool is_tracking; /* members of --tracker-group may use it */
    bool takes_body;
    bool is_private; /* over the control socket only */
    answer_fn answers[METHOD_END];
};

static void answer_health(struct exchange *exchange)
{
    exchange_text(exchange, MHD_HTTP_OK, "ok\n");
}

static void answer_ready(struct exchange *exchange)
{
    char buffer[REASON_MAX];
    struct text reason;
    text_init(&reason, buffer, sizeof buffer);
    if (exchange->admin->is_ready(exchange->admin->context, &reason)) {
        exchange_text(exchange, MHD_HTTP_OK, "ready\n");
        return;
    }
    exchange_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "not ready: ", (struct bytes){(const uint8_t *)buffer, reason.len},
                   "clients are not being served; /healthz shows whether the process is alive");
}

static const struct route routes[] = {
    {.path = "/", .answers[METHOD_READ] = web_page_answer},
    {.path = "/page.js", .answers[METHOD_READ] = web_page_script_answer},
    {.path = "/page.css", .answers[METHOD_READ] = web_page_style_answer},
    {.path = "/healthz", .is_tracking = true, .answers[METHOD_READ] = answer_health},
    {.path = "/readyz", .is_tracking = true, .answers[METHOD_READ] = answer_ready},
    {.path = "/metrics", .needs_core = true, .answers[METHOD_READ] = metrics_answer},
    {.path = "/api/v1/status", .answers[METHOD_READ] = status_answer},
    {.path = "/api/v1/config", .answers[METHOD_READ] = options_answer},
    {.path = "/api/v1/clients",
     .parameters =
         "match, words, client, state, protocol, name, mon_name, only, sort, limit, cursor",
     .needs_core = true,
     .answers[METHOD_READ] = list_clients},
    {.path = "/api/v1/clients/{id}",
     .change_parameters = "file",
     .needs_core = true,
     .answers = {[METHOD_READ] = list_client, [METHOD_DELETE] = order_release}},
    {.path = "/api/v1/clients/{id}/notify",
     .needs_core = true,
     .answers[METHOD_POST] = order_notify},
    {.path = "/api/v1/clients/{id}/move",
     .change_parameters = "address",
     .needs_core = true,
     .answers[METHOD_POST] = order_move},
    {.path = "/api/v1/locks",
     .parameters = "match, client, file, share, export, limit, cursor",
     .needs_core = true,
     .answers[METHOD_READ] = list_locks},
    {.path = "/api/v1/waiters",
     .parameters = "match, client, blocked_by, file, share, export, limit, cursor",
     .needs_core = true,
     .answers[METHOD_READ] = list_waiters},
    {.path = "/api/v1/notifications",
     .parameters = "only, sort, limit, cursor",
     .needs_core = true,
     .answers[METHOD_READ] = list_notifications},
    {.path = "/api/v1/shares",
     .parameters = "limit, cursor",
     .needs_core = true,
     .answers[METHOD_READ] = list_shares},
    {.path = "/api/v1/exports",
     .parameters = "limit, cursor",
     .needs_core = true,
     .answers[METHOD_READ] = exports_answer},
    {.path = "/api/v1/samples",
     .parameters = "after",
     .needs_core = true,
     .answers[METHOD_READ] = samples_answer},
    {.path = "/api/v1/events",
     .parameters = "after",
     .needs_core = true,
     .answers[METHOD_READ] = events_answer},
    {.path = "/api/v1/store",
     .needs_core = true,
     .is_private = true,
     .answers[METHOD_READ] = store_copy_answer},
    {.path = "/api/v1/reload", .needs_core = true, .answers[METHOD_POST] = reload_answer},
    {.path = "/api/v1/restart-notice",
     .needs_core = true,
     .answers[METHOD_POST] = order_restart_notice},
    {.path = "/api/v1/grace", .needs_core = true, .answers[METHOD_DELETE] = order_end_grace},
    {.path = "/api/v1/tracked",
     .parameters = "protocol, state, limit, cursor",
     .needs_core = true,
     .is_tracking = true,
     .answers[METHOD_READ] = tracked_list},
    {.path = "/api/v1/tracked/{protocol}/expired",
     .needs_core = true,
     .is_tracking = true,
     .takes_body = true,
     .answers[METHOD_POST] = tracked_take},
    {.path = "/api/v1/tracked/{protocol}/{key}",
     .change_parameters = "id, connection",
     .needs_core = true,
     .is_tracking = true,
     .takes_body = true,
     .answers = {[METHOD_READ] = tracked_show,
                 [METHOD_PUT] = tracked_register,
                 [METHOD_PATCH] = tracked_update,
                 [METHOD_DELETE] = tracked_remove}},
    {.path = "/api/v1/tracked/{protocol}/{key}/reconnect",
     .needs_core = true,
     .is_tracking = true,
     .takes_body = true,
     .answers[METHOD_POST] = tracked_reconnect},
    {.path = "/api/v1/tracked/{protocol}/{key}/disconnect",
     .change_parameters = "id, connection",
     .needs_core = true,
     .is_tracking = true,
     .takes_body = true,
     .answers[METHOD_POST] = tracked_disconnect},
};

enum { HOLES_MAX = 2 };

/* Does the path match, and what do the {} of the pattern stand for? */
static bool is_match(const char *pattern, const char *path, struct bytes ret_holes[HOLES_MAX])
{
    for (uint32_t hole = 0;; hole++) {
        size_t same = strcspn(pattern, "{");
        if (pattern[same] == '\0')
            return strcmp(pattern, path) == 0;
        if (strncmp(pattern, path, same) != 0)
            return false;
        path += same;
        size_t len = strcspn(path, "/");
        if (len == 0)
            return false;
        ret_holes[hole] = (struct bytes){(const uint8_t *)path, (uint32_t)len};
        path += len;
        pattern = strchr(pattern, '}') + 1;
    }
}

static enum method method_of(const char *name)
{
    if (strcmp(name, MHD_HTTP_METHOD_GET) == 0 || strcmp(name, MHD_HTTP_METHOD_HEAD) == 0)
        return METHOD_READ;
    if (strcmp(name, MHD_HTTP_METHOD_DELETE) == 0)
        return METHOD_DELETE;
    if (strcmp(name, MHD_HTTP_METHOD_POST) == 0)
        return METHOD_POST;
    if (strcmp(name, MHD_HTTP_METHOD_PUT) == 0)
        return METHOD_PUT;
    if (strcmp(name, MHD_HTTP_METHOD_PATCH) == 0)
        return METHOD_PATCH;
    return METHOD_END;
}

static void refuse_method(struct exchange *exchange)
{
    static const char *const names[METHOD_END] = {"GET, HEAD", "DELETE", "POST", "PUT", "PATCH"};
    char buffer[ALLOW_MAX];
    struct text allow;
    text_init(&allow, buffer, sizeof buffer);
    for (int method = 0; method < METHOD_END; method++) {
        if (exchange->route->answers[method] == NULL)
            continue;
        text_add(&allow, allow.len > 0 ? ", " : "");
        text_add(&allow, names[method]);
    }
    bool is_read_only = strcmp(buffer, names[METHOD_READ]) == 0;
    exchange_error(
        exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
        is_read_only ? "read-only: " : "method not allowed: ", bytes_of_text(exchange->path),
        is_read_only ? "use GET or HEAD" : "the Allow header lists the allowed methods");
    exchange_header(exchange, MHD_HTTP_HEADER_ALLOW, buffer);
}

struct parameter_check {
    const char *known;
    uint32_t seen;     /* a bit for each of them */
    const char *wrong; /* the first invalid one; NULL: none */
    const char *why;
};

static enum MHD_Result check_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                       size_t name_len, const char *value, size_t value_len)
{
    struct parameter_check *check = context;
    uint32_t bit = 1;
    (void)kind, (void)name_len;
    size_t len = strlen(name);
    check->wrong = name;
    check->why = "unknown parameter ";
    for (const char *at = check->known; at != NULL && *at != '\0'; at += strspn(at, ", ")) {
        size_t known_len = strcspn(at, ",");
        if (known_len == len && strncmp(at, name, len) == 0) {
            check->why = value == NULL                ? "parameter without a value: "
                         : strlen(value) != value_len ? "parameter contains a NUL byte: "
                         : (check->seen & bit)        ? "parameter given twice: "
                                                      : NULL;
            break;
        }
        at += known_len;
        bit <<= 1;
    }
    if (check->why != NULL)
        return MHD_NO;
    check->wrong = NULL;
    check->seen |= bit;
    return MHD_YES;
}

/*
 * True: responded with 400, because a parameter is unknown, has no "=", contains a NUL or comes
 * twice. A reader of parameters finds the first of a name, up to a NUL, and none if it has no
 * value: a filter meant to narrow a request would be lost, and everything released.
 */
static bool refuse_parameter(struct exchange *exchange, const char *known)
{
    struct parameter_check check = {.known = known};
    (void)MHD_get_connection_values_n(exchange->connection, MHD_GET_ARGUMENT_KIND, check_parameter,
                                      &check);
    if (check.wrong == NULL)
        return false;
    char buffer[HINT_MAX];
    struct text hint;
    text_init(&hint, buffer, sizeof buffer);
    text_add(&hint, known != NULL ? "allowed: " : "none is allowed here");
    text_add(&hint, known != NULL ? known : "");
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST, check.why, bytes_of_text(check.wrong), buffer);
    return true;
}

/* The route of the path, and what its {} stand for. Of several the one that has the method: the key
 * of a tracked client may be "expired". */
static void find(struct exchange *exchange, enum method method)
{
    exchange->route = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        struct bytes holes[HOLES_MAX] = {0};
        bool has_method = method != METHOD_END && routes[i].answers[method] != NULL;
        if (!is_match(routes[i].path, exchange->path, holes) ||
            (exchange->route != NULL && !has_method))
            continue;
        exchange->route = &routes[i];
        exchange->id = holes[0];
        exchange->key = holes[1];
    }
}

/* True: already responded, because this caller may not do that. */
static bool refuse_caller(struct exchange *exchange, bool is_change)
{
    struct bytes path = bytes_of_text(exchange->path);
    if ((is_change || exchange->route->is_private) && !exchange->is_control) {
        exchange_error(exchange, MHD_HTTP_FORBIDDEN,
                       is_change ? "no changes over TCP: " : "not over TCP: ", path,
                       "use the holdfast command on this machine, or the --control socket");
        return true;
    }
    if (!exchange->is_tracker || exchange->route->is_tracking)
        return false;
    exchange_error(
        exchange, MHD_HTTP_FORBIDDEN, "members of --tracker-group may not use ", path,
        "they may use /api/v1/tracked; only root and the server's user may use the rest");
    return true;
}

bool route_takes_body(const struct exchange *exchange)
{
    return exchange->route != NULL && exchange->route->takes_body;
}

/* True: already responded, because the body says that it is too long. */
static bool refuse_body(struct exchange *exchange)
{
    const char *length = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
                                                     MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length == NULL || !route_takes_body(exchange) || strtoull(length, NULL, 10) <= BODY_LEN_MAX)
        return false;
    exchange_error(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long", (struct bytes){0},
                   "at most 8,192 bytes");
    return true;
}
_Static_assert(BODY_LEN_MAX == 8192, "the sentence says so");

bool route_find(struct exchange *exchange, const char *method_name)
{
    enum method method = method_of(method_name);
    find(exchange, method);
    if (exchange->route == NULL) {
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "nothing found at ",
                       bytes_of_text(exchange->path),
                       "try /api/v1/status, /metrics, /healthz or /readyz");
        return false;
    }
    if (method == METHOD_END || exchange->route->answers[method] == NULL) {
        refuse_method(exchange);
        return false;
    }
    if (refuse_caller(exchange, method != METHOD_READ) ||
        refuse_parameter(exchange, method == METHOD_READ ? exchange->route->parameters
                                                         : exchange->route->change_parameters))
        return false;
    if (exchange->route->needs_core && exchange->admin->core == NULL) {
        exchange_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "starting", (struct bytes){0},
                       "try again when /readyz reports ready");
        return false;
    }
    exchange->answer = exchange->route->answers[method];
    return !refuse_body(exchange);
}

/* A path that ends at a NUL would name something else than what was asked for: one with %00 stays
 * as it is, and nothing is found there. Parameters are looked at one by one. */
size_t route_unescape(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    if (text[0] == '/' && strstr(text, "%00") != NULL)
        return strlen(text);
    return MHD_http_unescape(text);
}
