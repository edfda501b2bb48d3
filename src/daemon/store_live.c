/*
 * store_live.c -- see store_live.h.
 *
 * HTTP 1.0: the body is all that follows the headers, up to the end of the connection. That it is
 * whole only its last line can say.
 */
#include "daemon/store_live.h"

#include "admin/store_copy.h"
#include "base/check.h"
#include "store/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SILENCE_S = 60, SENTENCE_MAX = 1024, COURTESY = 10 };

struct answer {
    struct store_command *command;
    const char *path; /* of the control socket */
    FILE *in;
    int status;
    char store[64]; /* which store the server has */
};

/* A negative exit code. */
__attribute__((format(printf, 3, 4))) static int fail(struct store_command *command, int exit_code,
                                                      const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return -store_command_fail(command, exit_code, sentence);
}

/* ---- asking ---- */

/* As the other commands find it. */
static const char *path_of(const struct config *config)
{
    const char *named = config->control_is_default ? getenv("HOLDFAST_CONTROL") : NULL;
    return named != NULL && named[0] != '\0' ? named : config->control;
}

/* Connects, through the path's directory where the path is too long for an address. */
static int connect_to(int fd, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int len = snprintf(name.sun_path, sizeof name.sun_path, "%s", path), directory_fd = -1;
    const char *slash = strrchr(path, '/');
    if ((size_t)len >= sizeof name.sun_path && slash != NULL) {
        char *directory = strndup(path, (size_t)(slash - path) + 1);
        directory_fd = directory == NULL ? -1 : open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        free(directory);
        if (directory_fd < 0)
            return errno;
        len = snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d%s", directory_fd,
                       slash);
    }
    int error = (size_t)len >= sizeof name.sun_path                       ? ENAMETOOLONG
                : connect(fd, (struct sockaddr *)&name, sizeof name) != 0 ? errno
                                                                          : 0;
    if (directory_fd >= 0)
        (void)close(directory_fd);
    return error;
}

/* 0 or an errno. */
static int ask(const char *path, FILE **ret)
{
    static const char request[] = "GET /api/v1/store HTTP/1.0\r\nHost: localhost\r\n\r\n";
    const struct timeval patience = {.tv_sec = SILENCE_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = connect_to(fd, path);
    if (error == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        error = errno;
    if (error == 0 && send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0)
        error = errno;
    if (error == 0 && (*ret = fdopen(fd, "r")) == NULL)
        error = errno;
    if (error != 0)
        (void)close(fd);
    return error;
}

static const char *advice_for(int error)
{
    return error == EACCES         ? "only root and the server's user may connect"
           : error == ECONNREFUSED ? "no server is listening there"
           : error == ENOENT       ? "no server has its control socket there"
                                   : strerror(error);
}

static int fail_unreachable(const struct answer *answer, const struct store_failure *in_use,
                            int error)
{
    return fail(answer->command, STORE_COMMAND_STORE,
                "cannot ask the server that has the store: %s: %s; name its control socket with "
                "--control%s%s",
                answer->path, advice_for(error), in_use != NULL ? ". " : "",
                in_use != NULL ? in_use->text : "");
}

/* ---- headers ---- */

static bool read_headers(struct answer *answer)
{
    static const char store[] = STORE_COPY_HEADER ": ";
    char line[1024];
    if (fgets(line, sizeof line, answer->in) == NULL ||
        sscanf(line, "HTTP/%*d.%*d %d", &answer->status) != 1)
        return false;
    while (fgets(line, sizeof line, answer->in) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0')
            return true;
        if (strncasecmp(line, store, sizeof store - 1) == 0)
            (void)snprintf(answer->store, sizeof answer->store, "%.63s", line + sizeof store - 1);
    }
    return false;
}

/* The server says why. */
static int fail_refused(struct answer *answer)
{
    json_t *body = json_loadf(answer->in, 0, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));
    const char *hint = json_string_value(json_object_get(body, "hint"));
    int result = fail(answer->command, STORE_COMMAND_NO, "the server at %s refused: %s; %s",
                      answer->path, error != NULL ? error : "it is of another version",
                      hint != NULL ? hint : "use the holdfast command of that version");
    json_decref(body);
    return result;
}

/* Somebody else's control socket was named. */
static int fail_other_store(struct answer *answer)
{
    char shown[256];
    store_show_url(answer->command->config.store, shown, sizeof shown);
    return fail(answer->command, STORE_COMMAND_STORE,
                "the server at %s has another store than %s; name the control socket of the server "
                "that has it with --control",
                answer->path, shown);
}

/* ---- lines ---- */

static int fail_cut(struct answer *answer, bool is_silent)
{
    if (is_silent)
        return fail(answer->command, STORE_COMMAND_NO,
                    "the server sent nothing for %d s; the export is not complete, try again",
                    SILENCE_S);
    return fail(answer->command, STORE_COMMAND_NO,
                "the server ended the export before it was complete: it was stopped, or this "
                "command wrote nothing for 30 s, or took less than 1 MiB in a minute; try again, "
                "into a file on this machine");
}

static int check_end(struct answer *answer, const struct digest *read, const struct digest *said)
{
    if (read->count == said->count && read->sum == said->sum)
        return 0;
    return fail(answer->command, STORE_COMMAND_NO,
                "%llu records arrived and %llu were sent, or they are not the same; try again",
                (unsigned long long)read->count, (unsigned long long)said->count);
}

static int read_line(struct answer *answer, struct bytes line, struct digest *digest,
                     store_visit_fn visit, void *context, bool *ret_ended)
{
    static struct lines_read read;
    const struct record_change *record = &read.record;
    switch (lines_get(line, &read)) {
    case LINES_RECORD:
        digest_add(digest, record->kind, record->slot, record->value);
        return visit(context, record->kind, record->slot, record->value);
    case LINES_END:
        *ret_ended = true;
        return check_end(answer, digest, &read.end);
    case LINES_ERROR:
        return fail(answer->command, STORE_COMMAND_NO, "the export broke off: %.*s",
                    (int)read.error.len, (const char *)read.error.at);
    case LINES_OTHER:
        return fail(answer->command, STORE_COMMAND_NO,
                    "the server at %s is of another version; use the holdfast command of that "
                    "version",
                    answer->path);
    }
    UNREACHABLE();
}

static int read_lines(struct answer *answer, store_visit_fn visit, void *context)
{
    char *line = NULL;
    size_t size = 0;
    struct digest digest = {0};
    bool has_ended = false;
    int result = 0;
    while (result == 0 && !has_ended) {
        errno = 0;
        ssize_t len = getline(&line, &size, answer->in);
        result = len <= 0 || line[len - 1] != '\n'
                     ? fail_cut(answer, errno == EAGAIN)
                     : read_line(answer, (struct bytes){(const uint8_t *)line, (uint32_t)len},
                                 &digest, visit, context, &has_ended);
    }
    free(line);
    return result;
}

int store_live_load(struct store_command *command, const struct store_failure *in_use,
                    store_visit_fn visit, void *context)
{
    struct answer answer = {.command = command};
    char store[sizeof answer.store];
    (void)!nice(COURTESY); /* no lock waits for a copy */
    answer.path = path_of(&command->config);
    int error = ask(answer.path, &answer.in);
    if (error != 0)
        return fail_unreachable(&answer, in_use, error);
    store_url_identify(command->config.store, store, sizeof store);
    int result = !read_headers(&answer)             ? fail_cut(&answer, errno == EAGAIN)
                 : answer.status != 200             ? fail_refused(&answer)
                 : strcmp(answer.store, store) != 0 ? fail_other_store(&answer)
                                                    : read_lines(&answer, visit, context);
    (void)fclose(answer.in);
    return result;
}
