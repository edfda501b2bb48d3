/*
 * locks.c -- the lock commands of `peer`; see locks.h.
 *
 * A file is any word of at most 32 characters; its handle is the word, padded with zeros. A lock
 * belongs to the source address, the name and the svid, not to this process: it is there after the
 * command has ended, and another command with the same three gives it back.
 */
#include "peer/locks.h"

#include "peer/stay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HANDLE_LEN 32

static const struct {
    const char *name;
    enum peer_nlm_procedure procedure;
} commands[] = {
    {"lock", PEER_NLM_LOCK},     {"test", PEER_NLM_TEST},    {"unlock", PEER_NLM_UNLOCK},
    {"cancel", PEER_NLM_CANCEL}, {"wait", PEER_NLM_LOCK},    {"free-all", PEER_NLM_FREE_ALL},
    {"keep", PEER_NLM_LOCK},     {"reclaim", PEER_NLM_LOCK},
};

bool locks_is_command(const char *command)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, command) == 0)
            return true;
    return false;
}

const char *locks_name(const struct locks_options *options)
{
    return options->name ? options->name : "peer";
}

/* A word, filled up with zeros; or the bytes that hex:0123 names, and no more. */
static struct peer_nlm_bytes handle_of(const char *word)
{
    uint8_t bytes[HANDLE_LEN] = {0};
    if (strncmp(word, "hex:", 4) == 0) {
        uint32_t len = 0;
        for (word += 4; len < HANDLE_LEN && sscanf(word, "%2hhx", &bytes[len]) == 1; len++)
            word += word[1] == 0 ? 1 : 2;
        return peer_nlm_bytes_of(bytes, len);
    }
    struct peer_nlm_bytes handle = peer_nlm_text(word);
    handle.len = HANDLE_LEN; /* what is behind the word is zero */
    return handle;
}

/* FILE [OFFSET [LEN]] ["shared"]; without numbers the whole file. */
static bool parse(const struct locks_options *options, struct peer_nlm_args *ret)
{
    char oh[128];
    int count = options->arguments_count;
    char **at = options->arguments;
    memset(ret, 0, sizeof(*ret));
    ret->cookie = peer_nlm_bytes_of("peer", 4);
    ret->exclusive = true;
    ret->lock.caller_name = peer_nlm_text(locks_name(options));
    ret->lock.svid = options->svid;
    snprintf(oh, sizeof(oh), "%u@%s", options->svid, locks_name(options));
    ret->lock.oh = peer_nlm_text(oh);
    ret->reclaim = strcmp(at[0], "reclaim") == 0;
    if (strcmp(at[0], "free-all") == 0)
        return count == 1;
    if (count > 2 && strcmp(at[count - 1], "shared") == 0) {
        ret->exclusive = false;
        count--;
    }
    if (count < 2 || count > 4)
        return false;
    size_t len_max = strncmp(at[1], "hex:", 4) == 0 ? 4 + 2 * HANDLE_LEN : HANDLE_LEN;
    if (strlen(at[1]) > len_max)
        return false;
    ret->lock.fh = handle_of(at[1]);
    ret->lock.offset = count > 2 ? strtoull(at[2], NULL, 0) : 0;
    ret->lock.len = count > 3 ? strtoull(at[3], NULL, 0) : 0;
    return true;
}

static void print_holder(const struct peer_nlm_res *res)
{
    printf("held by ");
    for (uint32_t i = 0; i < res->oh.len; i++) {
        uint8_t c = res->oh.at[i];
        printf(c > ' ' && c < 127 && c != '\\' ? "%c" : "\\x%02x", c);
    }
    printf(" (svid %u), %s, offset %llu, ", res->svid, res->exclusive ? "exclusive" : "shared",
           (unsigned long long)res->offset);
    if (res->len == 0)
        puts("to the end");
    else
        printf("%llu bytes\n", (unsigned long long)res->len);
}

int locks_print(const struct locks_options *options, int status, const struct peer_nlm_res *res)
{
    static const char *const words[] = {"granted",  "denied",   "no resources", "blocked",
                                        "in grace", "deadlock", "read-only",    "stale handle",
                                        "too big",  "failed"};
    bool is_test = strcmp(options->arguments[0], "test") == 0;
    if (status < 0)
        printf("failed %s\n", strerror(-status));
    else if (strcmp(options->arguments[0], "free-all") == 0)
        puts("ok");
    else if (is_test && status == PEER_NLM_IS_DENIED && res)
        print_holder(res);
    else if (is_test && status == PEER_NLM_IS_GRANTED)
        puts("free");
    else
        puts(words[status]);
    return status == PEER_NLM_IS_GRANTED ? 0 : 1;
}

/* ---- one call ---- */

static int run_call(const struct locks_options *options, enum peer_nlm_procedure procedure,
                    const struct peer_nlm_args *args)
{
    static struct packet call, answer;
    static struct peer_nlm_res res;
    struct packet_reply reply;
    uint32_t xid = (uint32_t)dial_now_ns() ^ (uint32_t)getpid() << 16;
    peer_nlm_put_call(&call, xid, options->vers, procedure, args);
    int result = dial_call(&options->route, &call, options->timeout_ms, &answer, &reply);
    if (result < 0)
        return locks_print(options, result, NULL);
    struct packet_reader body = {reply.body, reply.body_len, false};
    if (!reply.accepted || reply.status != PACKET_SUCCESS) {
        printf("error %s\n", packet_reply_text(&reply));
        return 1;
    }
    if (!peer_nlm_get_res(&body, options->vers, procedure, &res))
        return locks_print(options, -EBADMSG, NULL);
    return locks_print(options, (int)res.status, &res);
}

int locks_run(const struct locks_options *options)
{
    static struct peer_nlm_args args;
    const char *command = options->arguments[0];
    if (!parse(options, &args))
        return 2;
    if (strcmp(command, "wait") == 0)
        return stay_wait(options, &args);
    if (strcmp(command, "keep") == 0)
        return stay_keep(options, &args);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, command) == 0)
            return run_call(options, commands[i].procedure, &args);
    return 2;
}
