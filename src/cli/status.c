/*
 * status.c -- `holdfast status`: one screen in words, and an exit code for those who watch.
 *
 * --watch refreshes it every second, with a progress bar per client during recovery, and keeps
 * going while the server is down: restarts are what it is for. On a terminal the picture never
 * exceeds its height: it is built in full, measured, and rebuilt with less until it fits.
 */
#include "cli/grid.h"
#include "cli/http_client.h"
#include "cli/print.h"
#include "cli/status_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PICTURE_BYTES = 64 * 1024,
    NAME_MIN = 8,     /* characters that are always shown of a name */
    BESIDE_NAME = 85, /* columns of a line of a client, about */
};

static const struct status_shape everything = {.blocker_max = SIZE_MAX,
                                               .waiting_max = SIZE_MAX,
                                               .silent_max = SIZE_MAX,
                                               .conflict_max = SIZE_MAX};

/* Lines of a terminal that the text takes, including the cursor's. An escape up to its "m" takes no
 * room. */
static size_t count_lines(const char *text, size_t width)
{
    size_t lines = 1, column = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\033') {
            text += strcspn(text, "m");
            if (*text == '\0')
                break;
            continue;
        }
        bool is_first = ((unsigned char)*text & 0xc0) != 0x80; /* of a character of UTF-8 */
        if (*text == '\n' || (is_first && column == width)) {
            lines++;
            column = 0;
        }
        column += *text != '\n' && is_first;
    }
    return lines;
}

/* True: it fits, or nothing more can be left out, and it was printed. */
static bool print_if_it_fits(const json_t *status, const struct status_shape *shape)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL)
        return false;
    status_text_print(out, status, shape);
    bool is_made = fclose(out) == 0 && text != NULL;
    bool is_least = shape->is_brief && shape->waiting_max == 0 && shape->silent_max == 0 &&
                    shape->conflict_max == 0 && shape->blocker_max == 0;
    bool fits =
        is_made && (is_least || count_lines(text, grid_terminal_width()) <= grid_terminal_height());
    if (fits)
        (void)fputs(text, stdout);
    free(text);
    return fits;
}

/* As much as fits the terminal: what stays the same goes first, then missing clients, and blockers
 * that do not answer last. */
static void print_watched(const json_t *status)
{
    size_t width = grid_terminal_width();
    const json_t *grace = json_object_get(status, "grace");
    const json_t *waiting = grace != NULL ? grace : json_object_get(status, "hosts");
    struct status_shape shape = {
        .is_watched = true,
        .blocker_max = json_array_size(json_object_get(status, "blockers")),
        .waiting_max = json_array_size(json_object_get(waiting, "waiting_for")),
        .silent_max = json_array_size(json_object_get(status, "silent_holders")),
        .conflict_max = json_array_size(json_object_get(status, "name_conflicts")),
    };
    if (width == 0) {
        status_text_print(stdout, status, &shape);
        return;
    }
    shape.name_max = width > BESIDE_NAME + NAME_MIN ? width - BESIDE_NAME : NAME_MIN;
    while (!print_if_it_fits(status, &shape)) {
        if (!shape.is_brief)
            shape.is_brief = true;
        else if (shape.waiting_max > 0)
            shape.waiting_max--;
        else if (shape.conflict_max > 0)
            shape.conflict_max--;
        else if (shape.blocker_max > 0)
            shape.blocker_max--;
        else if (shape.silent_max > 0)
            shape.silent_max--;
        else
            break; /* out of memory: the next picture may fit */
    }
}

static void print_line(const json_t *status)
{
    char *text = json_dumps(status, JSON_COMPACT | JSON_REAL_PRECISION(PRINT_DIGITS));
    if (text != NULL)
        (void)puts(text);
    free(text);
}

static void print_no_reply(void)
{
    (void)fputs("holdfast  no reply at ", stdout);
    status_text_clock(stdout);
    (void)puts("; trying again every second");
}

/* One picture of --watch; NULL: the server does not reply. */
static void print_picture(const json_t *status, bool is_json)
{
    if (is_json && status != NULL)
        print_line(status);
    if (is_json)
        return;
    if (isatty(STDOUT_FILENO))
        (void)fputs("\033[H\033[J", stdout); /* home, and clear what follows */
    if (status != NULL)
        print_watched(status);
    else
        print_no_reply();
    if (!isatty(STDOUT_FILENO))
        (void)puts("");
}

/* Runs until interrupted. A server that is unreachable at first is an error. */
static int watch(struct http_client *http, bool is_json)
{
    int exit_code;
    json_t *status = http_client_get(http, "/api/v1/status", &exit_code);
    if (status == NULL)
        return exit_code;
    static char buffer[PICTURE_BYTES];
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* a picture appears at once */
    for (;;) {
        print_picture(status, is_json);
        json_decref(status);
        if (arguments_finish() != EXIT_OK)
            return EXIT_NO;
        const struct timespec pause = {.tv_sec = 1};
        (void)nanosleep(&pause, NULL); /* an early wake-up does no harm */
        status = http_client_try(http, "/api/v1/status");
    }
}

static int show(struct http_client *http, bool is_json)
{
    int exit_code;
    json_t *status = http_client_get(http, "/api/v1/status", &exit_code);
    if (status != NULL && is_json)
        print_json(status);
    else if (status != NULL)
        status_text_print(stdout, status, &everything);
    bool is_well = json_array_size(json_object_get(status, "attention")) == 0;
    json_decref(status);
    if (exit_code == EXIT_OK)
        exit_code = arguments_finish();
    return exit_code == EXIT_OK && !is_well ? EXIT_NO : exit_code;
}

int status_run(struct http_client *http, const struct arguments *arguments)
{
    bool is_json = arguments_has(arguments, "json");
    return arguments_has(arguments, "watch") ? watch(http, is_json) : show(http, is_json);
}
