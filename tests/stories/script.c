/*
 * script.c -- reads stories; see script.h.
 *
 * A line is words. What the first words say decides how the rest is read; every word must be used
 * up. Lines before the first story hold for all stories of the file.
 */
#include "stories/script.h"

#include "stories/words.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LENGTH = 512 };

static const char *const statuses[] = {"granted",  "denied", "nolocks", "blocked", "grace",
                                       "deadlock", "?",      "stale",   "toobig",  NULL};

const char *script_status_text(uint32_t status)
{
    return status < sizeof(statuses) / sizeof(statuses[0]) - 1 ? statuses[status] : "no answer";
}

/* "A", "B2"; false: no such word. */
static bool take_who(uint32_t *ret_client, uint32_t *ret_process)
{
    const char *text = words_peek();
    if (text[0] < 'A' || text[0] >= 'A' + SCRIPT_CLIENTS ||
        (text[1] != '\0' && (text[1] < '2' || text[1] > '3' || text[2] != '\0')))
        return false;
    *ret_client = (uint32_t)(text[0] - 'A');
    *ret_process = text[1] == '\0' ? 0 : (uint32_t)(text[1] - '1');
    (void)words_any("a client");
    return true;
}

static void read_client(uint32_t *ret)
{
    uint32_t process;
    if (!take_who(ret, &process) || process != 0)
        words_refuse("\"%s\" is no client", words_peek());
}

static struct script_range read_range(bool has_mode)
{
    static const char *const modes[] = {"S", "X", NULL};
    struct script_range range = {.offset = words_number("the offset")};
    if (!words_take("end"))
        range.len = words_number("the length");
    if (has_mode)
        range.exclusive = words_choice(modes, "mode") == 1;
    return range;
}

/* ---- steps ---- */

static void read_answer(struct script_step *step)
{
    if (!words_take("->"))
        words_refuse("here is missing: -> and the answer");
    step->has_status = true;
    step->value = words_choice(statuses, "answer");
    if (step->verb != SCRIPT_TEST || !words_take("by"))
        return;
    step->has_holder = true;
    if (!take_who(&step->holder, &step->holder_process))
        words_refuse("\"%s\" is no client", words_peek());
    step->held = read_range(true);
}

static void read_lock_words(struct script_step *step)
{
    static const char *const files[] = {"f", "g", "h", NULL};
    for (;;) {
        if (step->verb == SCRIPT_LOCK && words_take("wait"))
            step->wait = true;
        else if (words_take("reclaim"))
            step->reclaim = true;
        else if (words_take("of"))
            step->file = words_choice(files, "file");
        else if (words_take("state")) {
            step->has_state = true;
            step->state = (uint32_t)words_number("the state");
        } else
            return;
    }
}

static bool read_call(struct script_step *step)
{
    static const char *const verbs[] = {"lock", "unlock", "cancel", "test", "share", "unshare"};
    static const char *const rights[] = {"-", "r", "w", "rw", NULL};
    uint32_t verb = 0;
    while (verb < 6 && !words_take(verbs[verb]))
        verb++;
    if (verb == 6)
        return false;
    step->verb = (enum script_verb)verb;
    if (step->verb == SCRIPT_SHARE) {
        step->access = words_choice(rights, "access: -, r, w or rw");
        if (!words_take("deny"))
            words_refuse("here is missing: deny");
        step->mode = words_choice(rights, "what is denied: -, r, w or rw");
    } else if (step->verb != SCRIPT_UNSHARE) {
        step->range = read_range(step->verb != SCRIPT_UNLOCK);
    }
    read_lock_words(step);
    read_answer(step);
    return true;
}

static void read_within(struct script_step *step)
{
    if (!words_take("within"))
        return;
    step->ms = 1000 * words_number("seconds");
    (void)words_take("s");
}

static void read_is(struct script_step *step)
{
    static const char *const moods[] = {"well", "silent", "unreachable", "mute", "slow", NULL};
    uint64_t unused;
    if (words_take("called")) {
        step->verb = SCRIPT_IS_CALLED;
    } else if (words_take("granted")) {
        step->verb = SCRIPT_IS_GRANTED;
        step->value = 1;
        step->has_range = words_is_number(words_peek(), &unused);
        if (step->has_range)
            step->range = read_range(true);
        read_within(step);
    } else if (words_take("not granted")) {
        step->verb = SCRIPT_IS_NOT_GRANTED;
    } else if (words_take("notified")) {
        step->verb = SCRIPT_IS_NOTIFIED;
        step->value = 1;
        read_within(step);
    } else if (words_take("not notified")) {
        step->verb = SCRIPT_IS_NOTIFIED;
    } else {
        step->verb = SCRIPT_IS;
        step->mood = (enum script_mood)words_choice(moods, "way to be");
    }
}

/* What a client does besides its calls. */
static void read_deed(struct script_step *step)
{
    if (read_call(step))
        return;
    if (words_take("is")) {
        read_is(step);
    } else if (words_take("frees all")) {
        step->verb = SCRIPT_FREE_ALL;
        read_lock_words(step);
    } else if (words_take("reboots")) {
        step->verb = SCRIPT_REBOOTS;
        step->value = !words_take("in silence");
        step->has_state = words_take("to state");
        if (step->has_state)
            step->state = (uint32_t)words_number("the state");
    } else if (words_take("notifies state")) {
        step->verb = SCRIPT_NOTIFIES;
        step->state = (uint32_t)words_number("the state");
        if (words_take("as"))
            snprintf(step->word, sizeof(step->word), "%s", words_any("a name"));
    } else if (words_take("has state")) {
        step->verb = SCRIPT_HAS_STATE;
        step->state = (uint32_t)words_number("the state");
    } else if (words_take("stops waiting")) {
        step->verb = SCRIPT_STOPS_WAITING;
    } else if (words_take("answers")) {
        step->verb = SCRIPT_ANSWERS;
        step->has_status = words_left() > 0;
        if (step->has_status)
            step->value = words_choice(statuses, "answer");
    } else {
        words_refuse("\"%s\" is nothing that a client does", words_peek());
    }
}

static void read_count(struct script_step *step)
{
    static const char *const nouns[] = {"locks",  "waiters", "offers", "clients", "unsettled",
                                        "shares", "crashes", "owed",   NULL};
    static const char *const singular[] = {"lock",      "waiter", "offer", "client",
                                           "unsettled", "share",  "crash", "owed"};
    step->verb = SCRIPT_THERE_ARE;
    step->value = (uint32_t)words_number("how many");
    for (uint32_t i = 0; i < sizeof(singular) / sizeof(singular[0]); i++)
        if (words_take(singular[i])) {
            step->noun = (enum script_noun)i;
            return;
        }
    step->noun = (enum script_noun)words_choice(nouns, "thing that is counted");
}

static void read_option(struct script *script);

static void read_server(struct script *script, struct script_step *step)
{
    if (words_take("restarts")) {
        step->verb = SCRIPT_RESTARTS;
        if (words_take("with")) {
            snprintf(step->word, sizeof(step->word), "%s", words_any("an option"));
            step->state = (uint32_t)words_number("its value");
        }
    } else if (words_take("simulates a crash")) {
        step->verb = SCRIPT_SIMULATES;
    } else if (script->step_count == 0) {
        read_option(script);
        step->verb = SCRIPT_PASS;
        step->times = 0; /* no step */
    } else {
        words_refuse("the server restarts, or simulates a crash; its options come first");
    }
}

static void read_operator(struct script_step *step)
{
    static const char *const orders[] = {"releases", "tells", NULL};
    if (words_take("ends grace")) {
        step->verb = SCRIPT_ENDS_GRACE;
        return;
    }
    step->verb = words_choice(orders, "order") == 0 ? SCRIPT_RELEASES : SCRIPT_TELLS;
    read_client(&step->client);
}

static void read_pass(struct script_step *step)
{
    step->verb = SCRIPT_PASS;
    step->ms = words_number("how long");
    if (words_take("s"))
        step->ms *= 1000;
    else if (!words_take("ms"))
        words_refuse("\"%s\" is neither s nor ms", words_peek());
    if (!words_take("pass") && !words_take("passes"))
        words_refuse("here is missing: pass");
}

/* One step of the text that `split` has taken apart; times 0: it was an option. */
static struct script_step read_step(struct script *script)
{
    static const char *const graces[] = {"over", "on", NULL};
    struct script_step step = {.line = words_line(), .times = 1, .span = 1};
    uint64_t unused;
    snprintf(step.text, sizeof(step.text), "%s", words_text());
    if (words_take("server")) {
        read_server(script, &step);
    } else if (words_take("operator")) {
        read_operator(&step);
    } else if (words_take("log has")) {
        step.verb = SCRIPT_LOG_HAS;
        step.value = words_take("once");
        const char *text = strstr(words_text(), step.value ? "once " : "has ");
        snprintf(step.word, sizeof(step.word), "%s", text == NULL ? "" : strchr(text, ' ') + 1);
        words_skip();
    } else if (words_take("grace is")) {
        step.verb = SCRIPT_GRACE_IS;
        step.value = words_choice(graces, "state of grace");
    } else if (words_take("there are") || words_take("there is")) {
        read_count(&step);
    } else if (words_is_number(words_peek(), &unused)) {
        read_pass(&step);
    } else if (take_who(&step.client, &step.process)) {
        script->clients[step.client].is_used = true;
        read_deed(&step);
    } else {
        words_refuse("\"%s\" begins no line of a story", words_peek());
    }
    if (words_left() > 0)
        words_refuse("\"%s\" is one word too many", words_peek());
    return step;
}

static struct script_step *add_step(struct script *script, const struct script_step *step)
{
    if (script->step_count == script->step_max) {
        script->step_max = script->step_max ? 2 * script->step_max : 16;
        script->steps = realloc(script->steps, script->step_max * sizeof(*script->steps));
        if (script->steps == NULL)
            words_refuse("no memory");
    }
    script->steps[script->step_count] = *step;
    return &script->steps[script->step_count++];
}

/* The steps of this text, separated by semicolons. */
static void read_text(struct script *script, char *text)
{
    while (text != NULL) {
        char *next = strchr(text, ';');
        if (next != NULL)
            *next++ = '\0';
        words_split(text);
        struct script_step step = read_step(script);
        if (step.times > 0)
            add_step(script, &step);
        text = next;
    }
}

/* "3 times: this; that", "3 times:" before lines that are indented, or one step. */
static void read_steps(struct script *script)
{
    static uint64_t times, by;
    static uint32_t first;
    char text[SCRIPT_LINE_MAX];
    char *rest = text;
    uint64_t unused;
    bool is_indented = words_text()[0] == ' ';
    snprintf(text, sizeof(text), "%s", words_text());
    char *colon = strchr(text, ':');
    if (is_indented && times == 1)
        words_refuse("only what is repeated is indented");
    if (!is_indented) {
        times = 1;
        first = script->step_count;
    }
    if (!is_indented && colon != NULL && words_is_number(words_peek(), &unused)) {
        *colon = '\0';
        words_split(text);
        times = words_number("how often");
        if (!words_take("times"))
            words_refuse("here is missing: times");
        by = words_take("by") ? words_number("by how much") : 0;
        rest = colon + 1;
        words_split(rest);
        if (words_left() == 0)
            return; /* the lines that follow */
    }
    read_text(script, rest);
    if (script->step_count > first) {
        script->steps[first].times = (uint32_t)times;
        script->steps[first].by = times > 1 ? by : 0;
        script->steps[first].span = script->step_count - first;
    }
}

/* ---- what stands before the steps ---- */

static void read_option(struct script *script)
{
    if (script->option_count == SCRIPT_OPTIONS_MAX)
        words_refuse("more than %d options", SCRIPT_OPTIONS_MAX);
    struct script_option *option = &script->options[script->option_count++];
    snprintf(option->key, sizeof(option->key), "%s", words_any("an option"));
    option->value = words_left() > 0 ? (uint32_t)words_number("its value") : 1;
}

static void read_client_line(struct script *script)
{
    uint32_t client;
    read_client(&client);
    struct script_client *one = &script->clients[client];
    if (words_take("named")) {
        read_client(&one->named);
        memcpy(one->name, script->clients[one->named].name, sizeof(one->name));
    } else if (words_take("called"))
        snprintf(one->name, sizeof(one->name), "%s", words_any("a name"));
    else if (words_take("behind"))
        read_client(&one->behind);
    else if (words_take("sends messages"))
        one->sends_messages = true;
    else if (words_take("is not monitored"))
        one->is_unmonitored = true;
    else
        words_refuse("\"%s\" is nothing that a client is", words_peek());
}

/* "not sim: why", "only core: why". */
static void read_exclusion(struct script *script, bool is_only)
{
    static const char *const drivers[] = {"core:", "sim:", "process:", NULL};
    const char *why = strchr(words_text(), ':');
    uint32_t named = words_choice(drivers, "driver, followed by a colon and the reason");
    if (why == NULL || why[1] == '\0' || words_left() == 0)
        words_refuse("here is missing: the reason");
    words_skip();
    for (uint32_t i = 0; i < 3; i++)
        if ((i == named) != is_only)
            snprintf(script->excluded[i], sizeof(script->excluded[i]), "%s", why + 2);
}

static bool read_heading(struct script *script)
{
    if (words_take("rule")) {
        (void)words_any("the rule that is shown");
        words_skip(); /* for readers */
    } else if (words_take("versions")) {
        script->has_versions = true;
        memset(script->has_version, 0, sizeof(script->has_version));
        do {
            uint64_t version = words_number("a version: 1, 3 or 4");
            if (version != 1 && version != 3 && version != 4)
                words_refuse("there are versions 1, 3 and 4");
            script->has_version[version] = true;
        } while (words_left() > 0);
    } else if (words_take("everybody is notified in time")) {
        script->is_told_in_time = true;
    } else if (words_take("also as one client")) {
        script->as_one_client = true;
    } else if (words_take("client")) {
        read_client_line(script);
    } else if (words_take("not")) {
        read_exclusion(script, false);
    } else if (words_take("only")) {
        read_exclusion(script, true);
    } else {
        return false;
    }
    if (words_left() > 0)
        words_refuse("\"%s\" is one word too many", words_peek());
    return true;
}

/* ---- files ---- */

static void begin_story(struct script_book *book, const struct script *common)
{
    if (book->count == book->max) {
        book->max = book->max ? 2 * book->max : 64;
        book->at = realloc(book->at, book->max * sizeof(*book->at));
        if (book->at == NULL)
            words_refuse("no memory");
    }
    struct script *script = &book->at[book->count++];
    *script = *common;
    script->file = words_file();
    script->line = words_line();
    if (words_count() < 2)
        words_refuse("a story has a title");
    snprintf(script->title, sizeof(script->title), "%s", words_text() + strlen("story "));
    uint32_t len = 0;
    for (const char *at = script->title; *at != '\0'; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        bool is_capital = *at >= 'A' && *at <= 'Z';
        if (is_letter || is_capital)
            script->slug[len++] = (char)(is_capital ? *at - 'A' + 'a' : *at);
        else if (len > 0 && script->slug[len - 1] != '-')
            script->slug[len++] = '-';
    }
    script->slug[len] = '\0';
    for (uint32_t i = 0; i + 1 < book->count; i++)
        if (strcmp(book->at[i].slug, script->slug) == 0)
            words_refuse("another story has this title");
}

static void read_line(struct script_book *book, struct script *common)
{
    bool is_inside = book->count > 0 && book->at[book->count - 1].file == words_file();
    struct script *script = is_inside ? &book->at[book->count - 1] : common;
    words_split(words_text());
    if (words_count() == 0 || words_peek()[0] == '#')
        return;
    if (strcmp(words_peek(), "story") == 0)
        begin_story(book, common);
    else if (!read_heading(script))
        read_steps(script);
    if (common->step_count > 0)
        words_refuse("a step before the first story");
}

static void read_file(const char *path, struct script_book *book)
{
    struct script common = {.has_version = {[4] = true}};
    char text[SCRIPT_LINE_MAX];
    FILE *file = fopen(path, "re");
    char *name = strdup(path); /* stories point to it for as long as they live */
    for (uint32_t i = 0; i < SCRIPT_CLIENTS; i++)
        common.clients[i] =
            (struct script_client){.named = i, .behind = i, .name = {(char)('a' + i), '\0'}};
    if (file == NULL || name == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    words_of_file(name);
    while (fgets(text, sizeof(text), file) != NULL) {
        words_next_line(text);
        read_line(book, &common);
    }
    fclose(file);
}

static int is_text(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".txt") == 0;
}

void script_read(const char *directory, struct script_book *ret)
{
    struct dirent **entries;
    char path[PATH_LENGTH];
    int count = scandir(directory, &entries, is_text, alphasort);
    memset(ret, 0, sizeof(*ret));
    if (count <= 0) {
        fprintf(stderr, "%s: no stories\n", directory);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
        read_file(path, ret);
        free(entries[i]);
    }
    free(entries);
}
