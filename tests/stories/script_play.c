/*
 * script_play.c -- plays stories on a driver; see script.h.
 *
 * The driver does and sees; what was expected is compared here, so that all drivers mean the same
 * by a line and say the same when it goes another way.
 */
#include "stories/script.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAYS_MAX = 12, REFUSED = 77, MESSAGE_MAX = 1024 };

/* ---- what was read ---- */

uint32_t script_option(const struct script *script, const char *key, uint32_t otherwise)
{
    for (uint32_t i = script->option_count; i > 0; i--)
        if (strcmp(script->options[i - 1].key, key) == 0)
            return script->options[i - 1].value;
    return otherwise;
}

void script_free(struct script_book *book)
{
    for (uint32_t i = 0; i < book->count; i++) {
        free(book->at[i].steps);
        if (i + 1 == book->count || book->at[i + 1].file != book->at[i].file)
            free((void *)(uintptr_t)book->at[i].file);
    }
    free(book->at);
}

/* ---- may it be told? ---- */

static uint64_t passing_ms(const struct script *script)
{
    uint64_t ms = 0;
    for (uint32_t i = 0; i < script->step_count; i += script->steps[i].span)
        for (uint32_t j = i; j < i + script->steps[i].span; j++)
            ms += script->steps[j].verb == SCRIPT_PASS
                      ? script->steps[j].ms * script->steps[i].times
                      : 0;
    return ms;
}

const char *script_refusal(const struct script_driver *driver, const struct script *script)
{
    static char why[SCRIPT_TITLE_MAX + SCRIPT_LINE_MAX];
    uint64_t ms = passing_ms(script);
    if (script->excluded[driver->number][0] != '\0')
        return script->excluded[driver->number];
    if (driver->real_ms_max > 0 && ms > driver->real_ms_max) {
        snprintf(why, sizeof(why), "%" PRIu64 " s would really pass", ms / 1000);
        return why;
    }
    for (uint32_t i = 0; i < script->step_count; i++) {
        const struct script_step *step = &script->steps[i];
        bool has_none = driver->act[step->verb] == NULL && step->verb != SCRIPT_LOG_HAS;
        const char *because =
            has_none ? "it has nothing of the kind" : driver->cannot(script, step);
        if (because == NULL)
            continue;
        snprintf(why, sizeof(why), "line %u: %s", step->line, because);
        return why;
    }
    return NULL;
}

/* Version 4 over TCP; what the story lists, over both; and once more as one client. */
static uint32_t ways_of(const struct script_driver *driver, const struct script *script,
                        struct script_way ret[static WAYS_MAX])
{
    uint32_t count = 0;
    for (uint32_t version = 4; version >= 1 && driver->has_ways; version--)
        for (int is_udp = 0; is_udp < 2; is_udp++)
            if (script->has_version[version] && (is_udp == 0 || script->has_versions))
                ret[count++] = (struct script_way){version, is_udp, false};
    if (count == 0)
        ret[count++] = (struct script_way){4, false, false};
    for (uint32_t i = 0, all = count; i < all && script->as_one_client; i++)
        if (all == 1 || ret[i].is_udp == (ret[i].version != 3)) /* once in each version */
            ret[count++] = (struct script_way){ret[i].version, ret[i].is_udp, true};
    return count;
}

/* ---- playing ---- */

static const char *range_text(const struct script_range *range)
{
    static char text[2][64];
    static uint32_t next;
    char *at = text[next++ % 2];
    if (range->len == 0)
        snprintf(at, sizeof(text[0]), "%" PRIu64 " end %c", range->offset,
                 range->exclusive ? 'X' : 'S');
    else
        snprintf(at, sizeof(text[0]), "%" PRIu64 " %" PRIu64 " %c", range->offset, range->len,
                 range->exclusive ? 'X' : 'S');
    return at;
}

static bool is_same_range(const struct script_range *a, const struct script_range *b)
{
    return a->offset == b->offset && a->len == b->len && a->exclusive == b->exclusive;
}

static void describe(const struct script_step *step, uint32_t value, char ret[static MESSAGE_MAX])
{
    if (step->verb <= SCRIPT_UNSHARE)
        snprintf(ret, MESSAGE_MAX, "%s", script_status_text(value));
    else if (step->verb == SCRIPT_GRACE_IS)
        snprintf(ret, MESSAGE_MAX, "grace is %s", value ? "on" : "over");
    else if (step->verb == SCRIPT_IS_GRANTED || step->verb == SCRIPT_IS_NOT_GRANTED)
        snprintf(ret, MESSAGE_MAX, "%s", value ? "granted" : "not granted");
    else if (step->verb == SCRIPT_IS_NOTIFIED)
        snprintf(ret, MESSAGE_MAX, "%s", value ? "notified" : "not notified");
    else
        snprintf(ret, MESSAGE_MAX, "%u", value);
}

static bool is_compared(const struct script_step *step)
{
    return step->verb <= SCRIPT_UNSHARE || step->verb == SCRIPT_GRACE_IS ||
           step->verb == SCRIPT_IS_GRANTED || step->verb == SCRIPT_IS_NOT_GRANTED ||
           step->verb == SCRIPT_IS_NOTIFIED || step->verb == SCRIPT_THERE_ARE;
}

/* What is wrong with what came; false: nothing. */
static bool is_wrong(const struct script_step *step, const struct script_seen *seen,
                     char ret[static MESSAGE_MAX])
{
    char expected[MESSAGE_MAX], came[MESSAGE_MAX];
    if (seen->why[0] != '\0') {
        snprintf(ret, MESSAGE_MAX, "%s", seen->why);
        return true;
    }
    if (is_compared(step) && seen->value != step->value) {
        describe(step, step->value, expected);
        describe(step, seen->value, came);
        snprintf(ret, MESSAGE_MAX, "expected: %.400s; came: %.400s", expected, came);
        return true;
    }
    if (step->has_holder && seen->has_holder &&
        (seen->svid != step->holder_process + 1 || !is_same_range(&seen->held, &step->held))) {
        snprintf(ret, MESSAGE_MAX, "expected: process %u with %s; came: process %u with %s",
                 step->holder_process + 1, range_text(&step->held), seen->svid,
                 range_text(&seen->held));
        return true;
    }
    return false;
}

/* Clients become processes of the first one. */
static void make_one_client(struct script_step *step)
{
    step->process += step->client;
    step->holder_process += step->holder;
    step->client = step->holder = 0;
}

static void play_step(const struct script_driver *driver, const struct script *script,
                      const struct script_way *way, const struct script_step *given, uint64_t moved)
{
    struct script_step step = *given;
    struct script_seen seen = {0};
    char wrong[MESSAGE_MAX], message[2 * MESSAGE_MAX];
    step.range.offset += moved;
    if (way->is_one_client)
        make_one_client(&step);
    if (way->version < 4 && step.value == SCRIPT_DEADLOCK && step.verb == SCRIPT_LOCK)
        step.value = SCRIPT_DENIED; /* those have no such answer (R-BLK-18) */
    if (driver->act[step.verb] == NULL)
        return; /* SCRIPT_LOG_HAS */
    driver->act[step.verb](&step, &seen);
    driver->settle(&step);
    if (!is_wrong(&step, &seen, wrong))
        return;
    snprintf(message, sizeof(message), "%s:%u: %s\n%s:%u: %s", script->file, step.line, step.text,
             script->file, step.line, wrong);
    driver->fail(message);
}

/* A restart with another option; the last of a key counts. */
static void change_option(const struct script_driver *driver, struct script *script,
                          const struct script_step *step)
{
    if (step->verb != SCRIPT_RESTARTS || step->word[0] == '\0' ||
        script->option_count == SCRIPT_OPTIONS_MAX)
        return;
    struct script_option *option = &script->options[script->option_count++];
    snprintf(option->key, sizeof(option->key), "%s", step->word);
    option->value = step->state;
    driver->configure(script);
}

void script_play(const struct script_driver *driver, const struct script *given,
                 const struct script_way *way)
{
    struct script copy = *given, *script = &copy;
    driver->configure(script);
    driver->begin(script, way);
    for (uint32_t i = 0; i < script->step_count; i += script->steps[i].span)
        for (uint32_t round = 0; round < script->steps[i].times; round++)
            for (uint32_t j = i; j < i + script->steps[i].span; j++) {
                change_option(driver, script, &script->steps[j]);
                play_step(driver, script, way, &script->steps[j], round * script->steps[i].by);
            }
    driver->end();
}

void script_play_ways(const struct script_driver *driver, const struct script *script)
{
    struct script_way ways[WAYS_MAX];
    uint32_t count = ways_of(driver, script, ways);
    for (uint32_t i = 0; i < count; i++)
        script_play(driver, script, &ways[i]);
}

/* ---- all of them ---- */

static const char *way_text(const struct script_driver *driver, const struct script_way *way)
{
    static char text[64];
    text[0] = '\0';
    if (driver->has_ways)
        snprintf(text, sizeof(text), ", version %u over %s", way->version,
                 way->is_udp ? "UDP" : "TCP");
    if (way->is_one_client)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ", as one client");
    return text;
}

/* One telling, in a process of its own whose words are kept; or why there is none. */
struct telling {
    const struct script *script;
    struct script_way way;
    char refusal[SCRIPT_TITLE_MAX + SCRIPT_LINE_MAX];
    pid_t pid;
    FILE *said;
};

static void begin_telling(const struct script_driver *driver, struct telling *telling)
{
    if (telling->refusal[0] != '\0')
        return;
    fflush(NULL);
    telling->said = tmpfile();
    telling->pid = telling->said != NULL ? fork() : -1;
    if (telling->pid != 0)
        return;
    dup2(fileno(telling->said), STDERR_FILENO);
    dup2(fileno(telling->said), STDOUT_FILENO); /* that one is for TAP */
    script_play(driver, telling->script, &telling->way);
    exit(0);
}

static void print_said(struct telling *telling)
{
    int letter, before = '\n';
    rewind(telling->said);
    for (; (letter = getc(telling->said)) != EOF; before = letter)
        printf(before == '\n' ? "# %c" : "%c", letter);
}

static bool end_telling(const struct script_driver *driver, struct telling *telling,
                        uint32_t number)
{
    int status = -1;
    if (telling->refusal[0] != '\0') {
        printf("ok %u - %s # SKIP %s\n", number, telling->script->title, telling->refusal);
        return true;
    }
    while (telling->pid > 0 && waitpid(telling->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    bool is_over = telling->pid > 0 && WIFEXITED(status);
    bool is_refused = is_over && WEXITSTATUS(status) == REFUSED;
    bool is_good = is_over && (WEXITSTATUS(status) == 0 || is_refused);
    printf("%s %u - %s%s%s\n", is_good ? "ok" : "not ok", number, telling->script->title,
           way_text(driver, &telling->way), is_refused ? " # SKIP it cannot run here" : "");
    if (telling->said != NULL && (!is_good || is_refused))
        print_said(telling);
    if (telling->said != NULL)
        fclose(telling->said);
    return is_good;
}

static uint32_t add_tellings(const struct script_driver *driver, const struct script *script,
                             struct telling *ret)
{
    struct script_way ways[WAYS_MAX];
    const char *why = script_refusal(driver, script);
    uint32_t count = why == NULL ? ways_of(driver, script, ways) : 1;
    for (uint32_t i = 0; i < count; i++) {
        ret[i] = (struct telling){.script = script};
        if (why == NULL)
            ret[i].way = ways[i];
        else
            snprintf(ret[i].refusal, sizeof(ret[i].refusal), "%s", why);
    }
    return count;
}

int script_main(const struct script_driver *driver, const char *directory, const char *only)
{
    struct script_book book;
    uint32_t count = 0, begun = 0;
    bool is_good = true;
    script_read(directory, &book);
    struct telling *all = calloc(book.count * WAYS_MAX, sizeof(*all));
    for (uint32_t i = 0; all != NULL && i < book.count; i++)
        if (only == NULL || strcmp(only, book.at[i].slug) == 0)
            count += add_tellings(driver, &book.at[i], &all[count]);
    printf("1..%u\n", count);
    for (uint32_t i = 0; i < count; i++) {
        for (; begun < count && begun < i + driver->jobs; begun++)
            begin_telling(driver, &all[begun]);
        is_good = end_telling(driver, &all[i], i + 1) && is_good;
    }
    free(all);
    script_free(&book);
    return is_good && count > 0 ? 0 : 1;
}

int script_command(const struct script_driver *driver, int count, char **values)
{
    if (count == 2 || count == 3)
        return script_main(driver, values[1], count == 3 ? values[2] : NULL);
    fprintf(stderr, "usage: stories_%s DIRECTORY [STORY]\n", driver->name);
    return 2;
}
