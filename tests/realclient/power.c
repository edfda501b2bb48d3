/*
 * power.c -- fake clients of a server whose power is cut, and what they remember of its answers.
 *
 * usage: power fill ADDRESS PORT LEDGER      locks and unlocks until the server is gone
 *        power reclaim ADDRESS PORT LEDGER   reclaims what was granted, and gives it back
 *        power test ADDRESS PORT LEDGER      asks who holds it, and gives it back
 *
 * Eight processes lock ranges of their own, one call at a time; of every three locks one is given
 * back. Each writes into LEDGER.N what it asks for and what was answered, the moment it knows:
 *
 *   ? RANGE   a LOCK or an UNLOCK is under way: nobody knows what the server has
 *   + RANGE   GRANTED: the server must have it after any cut of its power
 *   - RANGE   the UNLOCK was answered: the server must not have it any more
 *
 * The last word on a range counts. reclaim is for a server that is in grace, where each + must be
 * granted and each - refused; test is for one that has resumed, where each + must be held by its
 * owner and each - be free. Both give everything back and print how many they looked at. The exit
 * status is 1 when the server has lost something or has too much.
 */
#include "peer/dial.h"
#include "peer/peer_nlm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 8, RANGES_MAX = 100000, RANGE_LEN = 10, PATIENCE_MS = 3000, CHECK_MS = 20000 };

static struct dial_route route;
static uint32_t xid;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "power: %s: %s\n", what, strerror(errno));
    exit(2);
}

static struct peer_nlm_args arguments(const char *name, uint32_t process, uint32_t range)
{
    char oh[64], handle[32] = "";
    struct peer_nlm_args args = {.exclusive = true, .state = 1};
    snprintf(oh, sizeof oh, "%u@%s", process, name);
    snprintf(handle, sizeof handle, "file %u", process);
    args.cookie = peer_nlm_bytes_of("powr", 4);
    args.lock.caller_name = peer_nlm_text(name);
    args.lock.fh = peer_nlm_bytes_of(handle, sizeof handle);
    args.lock.oh = peer_nlm_text(oh);
    args.lock.svid = process;
    args.lock.offset = (uint64_t)range * RANGE_LEN * 2;
    args.lock.len = RANGE_LEN;
    return args;
}

/* The status of the answer; negative: there was none. */
static int ask(int fd, uint32_t procedure, const struct peer_nlm_args *args, uint32_t timeout_ms,
               struct peer_nlm_res *ret)
{
    static struct packet call, answer;
    struct packet_reply reply;
    packet_clear(&call);
    peer_nlm_put_call(&call, ++xid, 4, procedure, args);
    int err = dial_exchange(fd, false, &call, timeout_ms, &answer, &reply);
    if (err < 0)
        return err;
    struct packet_reader body = {reply.body, reply.body_len, false};
    if (!reply.accepted || reply.status != PACKET_SUCCESS ||
        !peer_nlm_get_res(&body, 4, procedure, ret))
        return -EBADMSG;
    return (int)ret->status;
}

/* The network may learn a moment later than we do that a machine has power again. */
static int dial_again(void)
{
    uint64_t end_ns = dial_now_ns() + (uint64_t)CHECK_MS * 1000000;
    int fd = dial_open(&route, PATIENCE_MS);
    while (fd < 0 && dial_now_ns() < end_ns) {
        (void)usleep(100000);
        fd = dial_open(&route, PATIENCE_MS);
    }
    if (fd < 0) {
        errno = -fd;
        die("cannot reach the server again");
    }
    return fd;
}

/* ---- fill ---- */

static void note(FILE *ledger, char word, uint32_t range)
{
    fprintf(ledger, "%c %u\n", word, range);
    fflush(ledger);
}

/* False: the server is gone. */
static bool do_one(int fd, FILE *ledger, uint32_t process, uint32_t procedure, uint32_t range)
{
    static struct peer_nlm_res res;
    struct peer_nlm_args args = arguments("power", process, range);
    note(ledger, '?', range);
    int status = ask(fd, procedure, &args, PATIENCE_MS, &res);
    if (status != PEER_NLM_IS_GRANTED) {
        if (status >= 0)
            printf("process %u: %s of range %u: %s\n", process, peer_nlm_procedure_text(procedure),
                   range, peer_nlm_status_text((uint32_t)status));
        return false;
    }
    note(ledger, procedure == PEER_NLM_LOCK ? '+' : '-', range);
    return true;
}

static _Noreturn void fill(const char *path, uint32_t process)
{
    FILE *ledger = fopen(path, "w");
    int fd = dial_again();
    if (ledger == NULL)
        die(path);
    xid = process << 24;
    for (uint32_t range = 0; range < RANGES_MAX; range++) {
        if (!do_one(fd, ledger, process, PEER_NLM_LOCK, range))
            exit(0);
        if (range % 3 == 2 && !do_one(fd, ledger, process, PEER_NLM_UNLOCK, range - 1))
            exit(0);
    }
    exit(0);
}

/* ---- the reckoning ---- */

static char words[RANGES_MAX];
static uint32_t granted, returned, in_doubt, wrong;

static uint32_t read_ledger(const char *path)
{
    FILE *ledger = fopen(path, "r");
    char word;
    uint32_t range, count = 0;
    if (ledger == NULL)
        die(path);
    memset(words, 0, sizeof words);
    while (fscanf(ledger, " %c %u", &word, &range) == 2 && range < RANGES_MAX) {
        words[range] = word;
        count = range + 1 > count ? range + 1 : count;
    }
    fclose(ledger);
    return count;
}

static void accuse(const char *path, uint32_t range, const char *what, int status)
{
    wrong++;
    printf("%s: range %u %s; the server says %s\n", path, range, what,
           status < 0 ? strerror(-status) : peer_nlm_status_text((uint32_t)status));
}

static bool is_held(int fd, bool by_reclaim, uint32_t process, uint32_t range, int *ret_status)
{
    static struct peer_nlm_res res;
    struct peer_nlm_args args = arguments(by_reclaim ? "power" : "stranger", process, range);
    args.reclaim = by_reclaim;
    args.state = by_reclaim ? 0 : args.state;
    *ret_status = ask(fd, by_reclaim ? PEER_NLM_LOCK : PEER_NLM_TEST, &args, CHECK_MS, &res);
    if (by_reclaim)
        return *ret_status == PEER_NLM_IS_GRANTED;
    return *ret_status == PEER_NLM_IS_DENIED && res.svid == process &&
           res.offset == args.lock.offset && res.len == args.lock.len;
}

static void reckon(const char *path, uint32_t process, bool by_reclaim)
{
    static struct peer_nlm_res res;
    uint32_t count = read_ledger(path);
    int fd = dial_again(), status;
    for (uint32_t range = 0; range < count; range++) {
        bool held = is_held(fd, by_reclaim, process, range, &status);
        granted += words[range] == '+';
        returned += words[range] == '-';
        in_doubt += words[range] == '?';
        if (words[range] == '+' && !held)
            accuse(path, range, "was granted", status);
        if (words[range] == '-' && held)
            accuse(path, range, "was given back", status);
        if (status < 0)
            die("no answer");
    }
    struct peer_nlm_args args = arguments("power", process, 0);
    args.lock.len = 0; /* the whole file */
    status = ask(fd, PEER_NLM_UNLOCK, &args, CHECK_MS, &res);
    if (status != PEER_NLM_IS_GRANTED)
        accuse(path, 0, "and all others are given back", status);
    close(fd);
}

int main(int argc, char **argv)
{
    bool is_fill = argc == 5 && strcmp(argv[1], "fill") == 0;
    bool is_reclaim = argc == 5 && strcmp(argv[1], "reclaim") == 0;
    if ((!is_fill && !is_reclaim && (argc != 5 || strcmp(argv[1], "test") != 0)) ||
        !dial_endpoint_parse(argv[2], (uint16_t)strtol(argv[3], NULL, 10), &route.server)) {
        fputs("usage: power fill|reclaim|test ADDRESS PORT LEDGER\n", stderr);
        return 2;
    }
    for (uint32_t process = 1; process <= PROCESSES; process++) {
        char path[512];
        snprintf(path, sizeof path, "%s.%u", argv[4], process);
        pid_t pid = is_fill ? fork() : 0;
        if (pid < 0)
            die("fork");
        if (is_fill && pid == 0)
            fill(path, process);
        if (!is_fill)
            reckon(path, process, is_reclaim);
    }
    while (wait(NULL) > 0)
        continue;
    if (!is_fill)
        printf("granted %u returned %u in-doubt %u wrong %u\n", granted, returned, in_doubt, wrong);
    return wrong > 0;
}
