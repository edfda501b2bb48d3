/*
 * tell.c -- what clients and their status monitors do, in the words of stories; see locker.h.
 */
#include "core/state.h"
#include "monitor.h"
#include "stories/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct locker read_locker(void)
{
    static const char *const names[] = {"A", "A2", "B", "C", "D", "E", "N", NULL};
    const struct locker all[] = {A, A2, B, C, D, ELSEWHERE, NEIGHBOUR};
    return all[words_choice(names, "client")];
}

/* What follows the range. */
static int read_how(struct request *ret)
{
    static const char *const words[] = {"S",       "X",     "wait", "reclaim", "unmonitored",
                                        "message", "state", "of",   "->",      NULL};
    static const char *const files[] = {"f", "g", "h", NULL};
    static const int bits[] = {S, X, BLOCK, RECLAIM, UNMONITORED, MESSAGE};
    int how = 0;
    for (uint32_t word; (word = words_choice(words, "way to ask")) < 8;)
        if (word == 7)
            ret->lock.fh = bytes_of_text(files[words_choice(files, "file")]);
        else if (word == 6)
            ret->lock.state = (uint32_t)words_number("the state");
        else
            how |= bits[word];
    return how;
}

static enum lock_status read_status(void)
{
    static const char *const names[] = {"granted",  "denied",  "blocked", "grace",
                                        "deadlock", "nolocks", NULL};
    static const enum lock_status statuses[] = {LOCK_GRANTED, LOCK_DENIED,   LOCK_BLOCKED,
                                                LOCK_GRACE,   LOCK_DEADLOCK, LOCK_NO_RESOURCES};
    return statuses[words_choice(names, "answer")];
}

static void expect_answer(enum lock_status came, const char *step)
{
    if (came != read_status())
        fail_msg("%s: the answer is %d", step, (int)came);
}

static void expect_number(uint64_t came, uint64_t expected, const char *step)
{
    if (came != expected)
        fail_msg("%s: it is %llu", step, (unsigned long long)came);
}

/* A client reboots, or says so; notify() knows whether that is news. */
static void tell_notice(struct locker who, const char *step)
{
    static const char *const outcomes[] = {"nothing", "news", NULL};
    char name[64];
    uint32_t state = (uint32_t)words_number("the state");
    (void)snprintf(name, sizeof name, "%s", words_take("as") ? words_any("a name") : who.name);
    if (!words_take("->"))
        words_refuse("here is missing: -> news, or nothing");
    expect_number(notify(who, name, state), words_choice(outcomes, "outcome"), step);
}

static void tell_has(struct locker who, const char *step)
{
    static const char *const nouns[] = {"locks", "shares", "waiters", NULL};
    const struct client *client = client_of(who);
    const uint32_t counts[] = {client->life.lock_count, client->life.share_count,
                               client->life.waiter_count};
    if (words_take("locks")) {
        expect_number(has_locks(who), true, step);
        return;
    }
    uint64_t expected = words_take("no") ? 0 : words_number("how many");
    expect_number(counts[words_choice(nouns, "thing that a client has")], expected, step);
}

static void tell_is(struct locker who, const char *step)
{
    if (words_take("asked and says"))
        says(asked(who), (uint32_t)words_number("the state"));
    else if (words_take("called and says"))
        answered(granted(who), read_status());
    else if (words_take("known in state"))
        expect_number(client_of(who)->stored.state_seen, words_number("the state"), step);
    else
        words_refuse("\"%s\" is nothing that a client is", words_peek());
}

static void tell_call(const char *step)
{
    static const char *const verbs[] = {"lock", "unlock", "cancel", "test", NULL};
    static const enum request_kind kinds[] = {REQUEST_NLM_LOCK, REQUEST_NLM_UNLOCK,
                                              REQUEST_NLM_CANCEL, REQUEST_NLM_TEST};
    static const char *const rights[] = {"-", "r", "w", "rw", NULL};
    struct locker who = read_locker();
    if (words_take("frees all")) {
        free_all(who);
    } else if (words_take("unshare")) {
        unshare_file(who);
    } else if (words_take("notifies")) {
        tell_notice(who, step);
    } else if (words_take("has")) {
        tell_has(who, step);
    } else if (words_take("is")) {
        tell_is(who, step);
    } else if (words_take("share")) {
        uint32_t access = words_choice(rights, "access");
        if (!words_take("deny"))
            words_refuse("here is missing: deny");
        uint32_t mode = words_choice(rights, "what is denied");
        int how = words_take("reclaim") ? RECLAIM : 0;
        if (!words_take("->"))
            words_refuse("here is missing: the answer");
        expect_answer(share(who, mode, access, how), step);
    } else {
        enum request_kind kind = kinds[words_choice(verbs, "call")];
        uint64_t offset = words_number("offset");
        uint64_t len = words_take("end") ? 0 : words_number("length");
        struct request asked = {.lock.state = UINT32_MAX};
        int how = read_how(&asked);
        struct request request = locker_request(kind, who, offset, len, how);
        if (asked.lock.state != UINT32_MAX)
            request.lock.state = asked.lock.state;
        if (asked.lock.fh.len > 0)
            request.lock.fh = asked.lock.fh;
        expect_answer(locker_step(who, &request).status, step);
    }
}

static void tell_count(const char *step)
{
    static const char *const nouns[] = {"locks",  "waiters", "offers", "clients", "crashes", "lock",
                                        "waiter", "offer",   "client", "crash",   NULL};
    struct core_status status = fixture_status(the_core);
    const uint64_t counts[] = {status.locks, status.waiters, status.offers, status.clients,
                               status.reboots.crashes_detected};
    uint64_t expected = words_number("how many");
    expect_number(counts[words_choice(nouns, "thing that is counted") % 5], expected, step);
}

static void tell_step(const char *step)
{
    uint64_t seconds;
    words_split(step);
    if (words_take("server restarts")) {
        restart();
    } else if (words_take("grace is")) {
        static const char *const states[] = {"over", "on", NULL};
        settle();
        if (words_choice(states, "state of grace") != fixture_status(the_core).grace.is_on)
            fail_msg("%s: it is not", step);
    } else if (words_take("there are") || words_take("there is")) {
        tell_count(step);
    } else if (words_take("nobody is asked")) {
        expect_number(nobody_asked(), true, step);
    } else if (words_take("nobody is called")) {
        expect_number(nobody_called(), true, step);
    } else if (words_is_number(words_peek(), &seconds)) {
        words_skip();
        fixture_wait(seconds * FIXTURE_SECOND);
        settle();
    } else {
        tell_call(step);
    }
    if (words_left() > 0)
        fail_msg("%s: \"%s\" is one word too many", step, words_peek());
}

void tell(const char *story)
{
    char step[160];
    for (words_of_file(story); *story != '\0'; story += *story == ';') {
        size_t len = strcspn(story, ";");
        assert_true(len < sizeof step);
        memcpy(step, story, len);
        step[len] = '\0';
        tell_step(step);
        story += len;
    }
}
