/*
 * locks.c -- the lock commands of `peer`; see locks.h.
 *
 * A file is any word of at most 32 characters; its handle is the word, padded with zeros. A lock
 * belongs to the source address, the name and the svid, not to this process: it is there after the
 * command has ended, and another command with the same three gives it back.
 *
 * "wait" is an emulated Linux client: it answers the callback when it can listen on port 111 of its
 * address, and asks again every second in any case.
 */
#include "peer/locks.h"

#include "peer/emu_client.h"
#include "peer/emu_portmap.h"
#include "peer/emu_table.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HANDLE_LEN 32
#define POLL_MS    1000

static const struct {
    const char *name;
    enum peer_nlm_procedure procedure;
} commands[] = {
    {"lock", PEER_NLM_LOCK},     {"test", PEER_NLM_TEST}, {"unlock", PEER_NLM_UNLOCK},
    {"cancel", PEER_NLM_CANCEL}, {"wait", PEER_NLM_LOCK}, {"free-all", PEER_NLM_FREE_ALL},
};

bool locks_is_command(const char *command)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, command) == 0)
            return true;
    return false;
}

static const char *name_of(const struct locks_options *options)
{
    return options->name ? options->name : "peer";
}

static struct peer_nlm_bytes handle_of(const char *word)
{
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
    ret->lock.caller_name = peer_nlm_text(name_of(options));
    ret->lock.svid = options->svid;
    snprintf(oh, sizeof(oh), "%u@%s", options->svid, name_of(options));
    ret->lock.oh = peer_nlm_text(oh);
    if (strcmp(at[0], "free-all") == 0)
        return count == 1;
    if (count > 2 && strcmp(at[count - 1], "shared") == 0) {
        ret->exclusive = false;
        count--;
    }
    if (count < 2 || count > 4 || strlen(at[1]) > HANDLE_LEN)
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

static int print_status(const struct locks_options *options, int status,
                        const struct peer_nlm_res *res)
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
        return print_status(options, result, NULL);
    struct packet_reader body = {reply.body, reply.body_len, false};
    if (!reply.accepted || reply.status != PACKET_SUCCESS) {
        printf("error %s\n", packet_reply_text(&reply));
        return 1;
    }
    if (!peer_nlm_get_res(&body, options->vers, procedure, &res))
        return print_status(options, -EBADMSG, NULL);
    return print_status(options, (int)res.status, &res);
}

/* ---- waiting ---- */

static uint32_t v4_address(const struct dial_endpoint *endpoint)
{
    struct sockaddr_in v4;
    memcpy(&v4, &endpoint->at, sizeof(v4));
    return endpoint->len > 0 && v4.sin_family == AF_INET ? ntohl(v4.sin_addr.s_addr) : 0;
}

/* With a portmapper if port 111 can be had, else without any service. */
static struct emu_host *open_host(const struct locks_options *options, struct emu_kind *kind)
{
    struct emu_host_config config = {.address = v4_address(&options->route.source),
                                     .name = name_of(options),
                                     .server = options->route.server,
                                     .portmap_port = EMU_PORTMAP_PORT};
    if (config.address == 0)
        config.address = INADDR_LOOPBACK;
    *kind = emu_table_get("linux")->kind;
    kind->vers = options->vers;
    struct emu_host *host = emu_host_new(kind, &config);
    if (!host) {
        kind->is_unreachable = true;
        host = emu_host_new(kind, &config);
    }
    if (host) {
        host->state = 0; /* nobody restarts here */
        host->is_udp = options->route.is_udp;
        host->is_privileged = false;
        host->timeout_ms = options->timeout_ms;
        host->poll_ms = POLL_MS;
    }
    return host;
}

static int wait_for(struct emu_host *host, const struct emu_request *request)
{
    uint32_t wait;
    int status = emu_client_block(host, request, &wait);
    if (status != PEER_NLM_IS_BLOCKED && status != PEER_NLM_IS_GRACE)
        return status;
    printf("waiting%s\n", host->kind->is_unreachable ? ", asking every second" : "");
    fflush(stdout);
    do {
        status = emu_client_wait(host, wait, UINT32_MAX);
    } while (status == -ETIMEDOUT);
    return status;
}

static int run_wait(const struct locks_options *options, const struct peer_nlm_args *args)
{
    static struct emu_kind kind;
    struct emu_request request = {.svid = args->lock.svid,
                                  .exclusive = args->exclusive,
                                  .offset = args->lock.offset,
                                  .len = args->lock.len,
                                  .fh = &args->lock.fh};
    if (v4_address(&options->route.server) == 0) {
        puts("failed: wait needs an IPv4 address of the server");
        return 2;
    }
    if (!emu_net_start())
        return print_status(options, -errno, NULL);
    struct emu_host *host = open_host(options, &kind);
    int status = host ? wait_for(host, &request) : -errno;
    bool is_called = host && emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED) +
                                     emu_host_count(host, PEER_NLM_PROGRAM, PEER_NLM_GRANTED_MSG) >
                                 0;
    emu_host_free(host);
    emu_net_stop();
    if (status == PEER_NLM_IS_GRANTED && is_called) {
        puts("granted, the server called back");
        return 0;
    }
    return print_status(options, status, NULL);
}

int locks_run(const struct locks_options *options)
{
    static struct peer_nlm_args args;
    const char *command = options->arguments[0];
    if (!parse(options, &args))
        return 2;
    if (strcmp(command, "wait") == 0)
        return run_wait(options, &args);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, command) == 0)
            return run_call(options, commands[i].procedure, &args);
    return 2;
}
