/*
 * main.c -- `peer`: a fake NSM, NLM and NFS client for shell scripts. One call, one line, exit 0 or
 * 1.
 *
 * The usage text below is the manual. "mon" and its relatives say 100021 3 16 when PROG VERS PROC
 * are left out, as a Linux lockd does. In names, \xNN stands for one byte other than NUL.
 */
#include "peer/dial.h"
#include "peer/files.h"
#include "peer/locks.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "peer [-u] [-s SOURCE] [-p SOURCE_PORT] [-t MILLISECONDS] [-n NAME] [-o SVID] [-v VERSION]\n"
    "     [-i UID:GID[:GROUP...]] ADDRESS PORT COMMAND ...\n"
    "  null                                       prints: ok\n"
    "  stat NAME                                  prints: succ STATE | fail STATE\n"
    "  mon MON_NAME MY_NAME [PROG VERS PROC [PRIV]]   the same; PRIV is 32 hex digits\n"
    "  unmon MON_NAME MY_NAME [PROG VERS PROC]    prints: state STATE\n"
    "  unmon-all MY_NAME [PROG VERS PROC]         prints: state STATE\n"
    "  simu-crash                                 prints: ok; tries privileged ports (root)\n"
    "  notify NAME STATE                          prints: ok\n"
    "  raw HEX                                    prints the reply in hex; over TCP the bytes go\n"
    "                                             out as they are, and one record is awaited\n"
    "  hold COUNT                                 COUNT connections, each with half a call sent;\n"
    "                                             prints: holding; ends when the server closes\n"
    "                                             them all, or with standard input\n"
    "  lock FILE [OFFSET [LEN]] [shared]          prints: granted | denied | ...; FILE is any "
    "word,\n"
    "                                             without numbers all of it, LEN 0: to the end\n"
    "  test FILE [OFFSET [LEN]] [shared]          prints: free | held by OWNER ...\n"
    "  unlock FILE [OFFSET [LEN]]                 prints: granted\n"
    "  wait FILE [OFFSET [LEN]] [shared]          prints: waiting, and later: granted\n"
    "  keep FILE [OFFSET [LEN]] [shared]          prints: granted; stays, and reclaims the lock\n"
    "                                             after a restart of the server; a signal ends it\n"
    "  reclaim FILE [OFFSET [LEN]] [shared]       the same as lock, after a restart of the server\n"
    "  cancel FILE [OFFSET [LEN]] [shared]        prints: granted | denied\n"
    "  free-all                                   prints: ok; gives up all that NAME holds\n"
    "                                             locks are of NAME (peer), SVID (1) and SOURCE;\n"
    "                                             VERSION (4) is 1, 3 or 4\n"
    "  files exports                              prints what MOUNT exports, and to whom\n"
    "  files EXPORT COMMAND PATH [MORE]           mounts EXPORT and does one thing there, as UID\n"
    "                                             (0): ls, cat, put (of standard input), stat,\n"
    "                                             readlink, rm, mkdir, rmdir, chmod PATH MODE,\n"
    "                                             mv PATH PATH, ln PATH PATH, symlink PATH TEXT;\n"
    "                                             NFS and MOUNT are on this port\n"
    "peer free-port                               prints a port free on TCP and UDP\n"
    "exit: 0 done, 1 STAT_FAIL, not granted or no answer, 2 usage\n";

struct options {
    struct dial_route route;
    uint32_t timeout_ms;
    const char *name;
    uint32_t svid, vers;
    struct peer_link_identity who;
    char **arguments; /* COMMAND and what follows, NULL at the end */
    int arguments_count;
};

static int usage(void)
{
    fputs(usage_text, stderr);
    return 2;
}

static uint32_t number_of(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 0);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Hex digits to bytes; -1 when it is not hex. */
static int bytes_of_hex(const char *text, uint8_t *buffer, size_t size)
{
    size_t len = 0;
    for (; text[0] && text[1]; text += 2) {
        int high = hex_digit(text[0]), low = hex_digit(text[1]);
        if (high < 0 || low < 0 || len == size)
            return -1;
        buffer[len++] = (uint8_t)(high << 4 | low);
    }
    return text[0] ? -1 : (int)len;
}

/* Replaces \xNN in place. */
static char *unescape(char *text)
{
    char *to = text;
    for (char *from = text; *from;) {
        if (from[0] == '\\' && from[1] == 'x' && hex_digit(from[2]) >= 0 &&
            hex_digit(from[3]) >= 0) {
            *to++ = (char)(hex_digit(from[2]) << 4 | hex_digit(from[3]));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}

/* MON_NAME MY_NAME [PROG VERS PROC]; without_mon_name leaves the first out. */
static bool get_id(const struct options *options, bool without_mon_name, struct peer_nsm_id *ret)
{
    char **at = options->arguments + 1;
    int count = options->arguments_count - 1;
    struct peer_nsm_id id = {.mon_name = "", .my_prog = 100021, .my_vers = 3, .my_proc = 16};
    if (!without_mon_name && count-- > 0)
        id.mon_name = unescape(*at++);
    if (count-- < 1)
        return false;
    id.my_name = unescape(*at++);
    if (count != 0 && count < 3)
        return false;
    if (count >= 3) {
        id.my_prog = number_of(at[0]);
        id.my_vers = number_of(at[1]);
        id.my_proc = number_of(at[2]);
    }
    *ret = id;
    return true;
}

enum shape { SHAPE_NONE, SHAPE_VOID, SHAPE_STAT_RES, SHAPE_STAT };

/* Builds the call that the command names; SHAPE_NONE: it makes no sense. */
static enum shape build(const struct options *options, struct packet *call)
{
    const char *command = options->arguments[0];
    int count = options->arguments_count;
    uint32_t xid = (uint32_t)dial_now_ns() ^ (uint32_t)getpid() << 16;
    struct peer_nsm_id id;
    if (strcmp(command, "null") == 0 && count == 1) {
        peer_nsm_put_null(call, xid);
        return SHAPE_VOID;
    }
    if (strcmp(command, "simu-crash") == 0 && count == 1) {
        peer_nsm_put_simu_crash(call, xid);
        return SHAPE_VOID;
    }
    if (strcmp(command, "notify") == 0 && count == 3) {
        peer_nsm_put_notify(call, xid, unescape(options->arguments[1]),
                            number_of(options->arguments[2]));
        return SHAPE_VOID;
    }
    if (strcmp(command, "stat") == 0 && count == 2) {
        peer_nsm_put_stat(call, xid, unescape(options->arguments[1]));
        return SHAPE_STAT_RES;
    }
    if (strcmp(command, "mon") == 0 && get_id(options, false, &id)) {
        uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
        if (count == 7 && bytes_of_hex(options->arguments[6], priv, sizeof(priv)) != sizeof(priv))
            return SHAPE_NONE;
        peer_nsm_put_mon(call, xid, &id, priv);
        return SHAPE_STAT_RES;
    }
    if (strcmp(command, "unmon") == 0 && get_id(options, false, &id)) {
        peer_nsm_put_unmon(call, xid, &id);
        return SHAPE_STAT;
    }
    if (strcmp(command, "unmon-all") == 0 && get_id(options, true, &id)) {
        peer_nsm_put_unmon_all(call, xid, &id);
        return SHAPE_STAT;
    }
    return SHAPE_NONE;
}

static int print_reply(enum shape shape, const struct packet_reply *reply)
{
    uint32_t res, state;
    if (shape == SHAPE_VOID && peer_nsm_is_void(reply)) {
        puts("ok");
        return 0;
    }
    if (shape == SHAPE_STAT && peer_nsm_get_stat(reply, &state)) {
        printf("state %u\n", state);
        return 0;
    }
    if (shape == SHAPE_STAT_RES && peer_nsm_get_stat_res(reply, &res, &state)) {
        printf("%s %u\n", res == PEER_NSM_STAT_SUCC ? "succ" : "fail", state);
        return res == PEER_NSM_STAT_SUCC ? 0 : 1;
    }
    printf("error %s\n", packet_reply_text(reply));
    return 1;
}

/* A socket from a privileged port: the highest one that is free. */
static int open_privileged(struct options *options)
{
    struct sockaddr_in v4;
    struct dial_route *route = &options->route;
    if (route->source.len == 0)
        route->source = dial_endpoint_v4(INADDR_LOOPBACK, 0);
    int fd = -EADDRINUSE;
    for (uint16_t port = 1023; port >= 600 && fd == -EADDRINUSE; port--) {
        memcpy(&v4, &route->source.at, sizeof(v4));
        v4.sin_port = htons(port);
        memcpy(&route->source.at, &v4, sizeof(v4));
        fd = dial_open(route, options->timeout_ms);
    }
    return fd;
}

static int run_call(struct options *options)
{
    static struct packet call, answer;
    struct packet_reply reply;
    enum shape shape = build(options, &call);
    if (shape == SHAPE_NONE)
        return usage();
    bool is_privileged = strcmp(options->arguments[0], "simu-crash") == 0 && geteuid() == 0;
    int fd =
        is_privileged ? open_privileged(options) : dial_open(&options->route, options->timeout_ms);
    int result = fd < 0 ? fd
                        : dial_exchange(fd, options->route.is_udp, &call, options->timeout_ms,
                                        &answer, &reply);
    if (fd >= 0)
        close(fd);
    if (result < 0) {
        printf("failed %s\n", strerror(-result));
        return 1;
    }
    return print_reply(shape, &reply);
}

static int run_raw(struct options *options)
{
    static struct packet out, in;
    if (options->arguments_count != 2)
        return usage();
    int len = bytes_of_hex(options->arguments[1], out.bytes, sizeof(out.bytes));
    if (len < 0)
        return usage();
    int fd = dial_open(&options->route, options->timeout_ms);
    int result = fd < 0 ? fd : dial_send(fd, out.bytes, (size_t)len, options->timeout_ms);
    if (result == 0)
        result = options->route.is_udp
                     ? dial_receive(fd, in.bytes, sizeof(in.bytes), options->timeout_ms)
                     : dial_receive_record(fd, &in, options->timeout_ms);
    if (fd >= 0)
        close(fd);
    if (result < 0) {
        printf("failed %s\n", strerror(-result));
        return 1;
    }
    for (int i = 0; i < result; i++)
        printf("%02x", in.bytes[i]);
    putchar('\n');
    return 0;
}

/* Waits until all sockets are closed by the server, or until standard input ends. */
static void wait_closed(const int *fds, uint32_t count)
{
    uint32_t open_count = count;
    char byte;
    while (open_count > 0) {
        open_count = 0;
        for (uint32_t i = 0; i < count; i++)
            if (recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
                open_count++;
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        if (open_count > 0 && poll(&input, 1, 20) > 0 && read(STDIN_FILENO, &byte, 1) <= 0)
            return;
    }
}

static int run_hold(struct options *options)
{
    static const uint8_t half_a_call[] = {0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0};
    if (options->arguments_count != 2 || options->route.is_udp)
        return usage();
    uint32_t count = number_of(options->arguments[1]);
    int *fds = calloc(count + 1, sizeof(*fds));
    if (!fds)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        fds[i] = dial_open(&options->route, options->timeout_ms);
        if (fds[i] < 0 ||
            dial_send(fds[i], half_a_call, sizeof(half_a_call), options->timeout_ms) < 0) {
            printf("failed at connection %u\n", i + 1);
            free(fds);
            return 1;
        }
    }
    puts("holding");
    fflush(stdout);
    wait_closed(fds, count);
    free(fds);
    return 0;
}

static int run_locks(const struct options *options)
{
    struct locks_options locks = {.route = options->route,
                                  .timeout_ms = options->timeout_ms,
                                  .name = options->name,
                                  .svid = options->svid,
                                  .vers = options->vers,
                                  .arguments = options->arguments,
                                  .arguments_count = options->arguments_count};
    int result = locks_run(&locks);
    return result == 2 ? usage() : result;
}

static int run_files(const struct options *options)
{
    struct files_options files = {.route = options->route,
                                  .timeout_ms = options->timeout_ms,
                                  .who = options->who,
                                  .arguments = options->arguments,
                                  .arguments_count = options->arguments_count};
    int result = files_run(&files);
    return result == 2 ? usage() : result;
}

/* Below the range that the kernel takes for outgoing connections: nobody gets it by chance. */
static int run_free_port(void)
{
    uint32_t start = (uint32_t)(dial_now_ns() / 1000) + (uint32_t)getpid() * 7919;
    for (uint32_t attempt = 0; attempt < 1000; attempt++) {
        uint16_t port = (uint16_t)(12100 + (start + attempt) % 20000);
        int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
        bool is_free = bind(tcp, (struct sockaddr *)&at, sizeof(at)) == 0 &&
                       bind(udp, (struct sockaddr *)&at, sizeof(at)) == 0;
        close(tcp);
        close(udp);
        if (is_free) {
            printf("%u\n", port);
            return 0;
        }
    }
    return 1;
}

/* UID:GID[:GROUP...] */
static struct peer_link_identity identity_of(char *text)
{
    struct peer_link_identity who = {.uid = number_of(text)};
    char *at = strchr(text, ':');
    if (at)
        who.gid = number_of(at + 1);
    while (at && (at = strchr(at + 1, ':')) && who.group_count < PEER_LINK_GROUPS_MAX)
        who.groups[who.group_count++] = number_of(at + 1);
    return who;
}

static bool parse(int argc, char **argv, struct options *ret)
{
    struct options options = {.timeout_ms = 30000, .svid = 1, .vers = 4};
    const char *source = NULL;
    uint16_t source_port = 0;
    int option;
    while ((option = getopt(argc, argv, "+us:p:t:n:o:v:i:")) != -1) {
        if (option == 'u')
            options.route.is_udp = true;
        else if (option == 's')
            source = optarg;
        else if (option == 'p')
            source_port = (uint16_t)number_of(optarg);
        else if (option == 't')
            options.timeout_ms = number_of(optarg);
        else if (option == 'n')
            options.name = optarg;
        else if (option == 'o')
            options.svid = number_of(optarg);
        else if (option == 'v')
            options.vers = number_of(optarg);
        else if (option == 'i')
            options.who = identity_of(optarg);
        else
            return false;
    }
    if (argc - optind < 3)
        return false;
    uint16_t port = (uint16_t)number_of(argv[optind + 1]);
    if (!dial_endpoint_parse(argv[optind], port, &options.route.server))
        return false;
    if (!source && source_port != 0)
        source = options.route.server.at.ss_family == AF_INET ? "0.0.0.0" : "::";
    if (source && !dial_endpoint_parse(source, source_port, &options.route.source))
        return false;
    options.arguments = argv + optind + 2;
    options.arguments_count = argc - optind - 2;
    *ret = options;
    return true;
}

int main(int argc, char **argv)
{
    struct options options;
    if (argc == 2 && strcmp(argv[1], "free-port") == 0)
        return run_free_port();
    if (!parse(argc, argv, &options))
        return usage();
    if (strcmp(options.arguments[0], "raw") == 0)
        return run_raw(&options);
    if (strcmp(options.arguments[0], "hold") == 0)
        return run_hold(&options);
    if (locks_is_command(options.arguments[0]))
        return run_locks(&options);
    if (strcmp(options.arguments[0], "files") == 0)
        return run_files(&options);
    return run_call(&options);
}
