/*
 * marks.c -- a lock manager that registers hosts with its status monitor until its power is cut,
 * and what it remembers of the answers.
 *
 * usage: marks PORT LEDGER ROUND
 *
 * Runs inside the guest, as only this machine's own lock manager may register. Four processes call
 * SM_MON for hosts of their own, one call at a time; of every three hosts one is unregistered. Each
 * writes into LEDGER.N, which is outside of the guest, what it asks for and what was answered:
 *
 *   ? HOST   a call is under way: nobody knows what the monitor has
 *   + HOST   SM_MON was answered: the monitor must know the host after any cut of the power
 *   - HOST   SM_UNMON was answered: it must have forgotten it
 *
 * The last word on a host counts. HOST is an address that nobody has, a new one in every ROUND.
 * Ends when an answer is anything else.
 */
#include "peer/dial.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, HOSTS_MAX = 60000, CALL_MS = 20000, LOCKD = 100021 };

struct process {
    int fd;
    uint32_t number, round, xid;
    FILE *ledger;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "marks: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void note(struct process *process, char word, const char *host)
{
    if (fprintf(process->ledger, "%c %s\n", word, host) < 0 || fflush(process->ledger) != 0)
        die("ledger");
}

/* Registers the host, or gives it up. */
static void mark(struct process *process, uint32_t number, bool is_watched)
{
    static struct packet call, answer;
    struct packet_reply reply;
    uint32_t result = PEER_NSM_STAT_FAIL, state;
    uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
    char host[32];
    snprintf(host, sizeof(host), "10.%u.%u.%u", 100 + process->round,
             process->number * 50 + number / 250, 1 + number % 250);
    const struct peer_nsm_id id = {host, "nfsd", LOCKD, 3, 16};
    memcpy(priv, &number, sizeof(number));
    packet_clear(&call);
    if (is_watched)
        peer_nsm_put_mon(&call, ++process->xid, &id, priv);
    else
        peer_nsm_put_unmon(&call, ++process->xid, &id);
    note(process, '?', host);
    int err = dial_exchange(process->fd, false, &call, CALL_MS, &answer, &reply);
    if (err != 0) {
        errno = -err;
        die(is_watched ? "SM_MON" : "SM_UNMON");
    }
    bool is_done =
        is_watched ? peer_nsm_get_stat_res(&reply, &result, &state) && result == PEER_NSM_STAT_SUCC
                   : peer_nsm_get_stat(&reply, &state);
    if (!is_done) {
        errno = EBADMSG;
        die(host);
    }
    note(process, is_watched ? '+' : '-', host);
}

static _Noreturn void live(struct process *process, const char *port, const char *ledger)
{
    struct dial_route route = {0};
    char path[512];
    snprintf(path, sizeof(path), "%s.%u", ledger, process->number);
    process->ledger = fopen(path, "ae");
    if (process->ledger == NULL)
        die(path);
    if (!dial_endpoint_read(port, &route.server) || (process->fd = dial_open(&route, CALL_MS)) < 0)
        die("cannot reach the monitor");
    for (uint32_t number = 0; number < HOSTS_MAX / PROCESSES; number++) {
        mark(process, number, true);
        if (number % 3 == 2)
            mark(process, number - 1, false);
    }
    exit(0);
}

int main(int count, char **arguments)
{
    int status, failed = 0;
    if (count != 4) {
        fputs("usage: marks PORT LEDGER ROUND\n", stderr);
        return 2;
    }
    for (uint32_t number = 1; number <= PROCESSES; number++) {
        struct process process = {.number = number,
                                  .round = (uint32_t)strtoul(arguments[3], NULL, 10)};
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0)
            live(&process, arguments[1], arguments[2]);
    }
    while (wait(&status) > 0)
        failed += status != 0;
    return failed != 0;
}
