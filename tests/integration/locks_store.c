/*
 * locks_store.c -- LOCK while the store does not answer.
 *
 * Passing proves (U1, P1, R-DRC-1, R-BLK-9), with a store whose commits hang for three seconds:
 *  (1) the same LOCK sent again meanwhile, by the RPC layer (same xid, also from a new connection)
 *      and by the lock layer (a new xid), over TCP and UDP, is never DENIED; exactly one lock is
 *      held and stored in the end;
 *  (2) nothing that depends on the store is answered before: neither LOCK, nor the refusal of a
 *      LOCK that conflicts, nor TEST; NULL is, so that a slow disk does not look like a dead
 *      server;
 *  (3) a blocking LOCK sent twice meanwhile waits once: one UNLOCK, one grant, nothing left over;
 *  (4) an UNLOCK is not acknowledged before it is durable: killed meanwhile, the server still has
 *      the lock;
 *  (5) a store that hangs for good makes the server exit with code 74 (D9), also if it stands
 *      still again and again: only the first time is not the store's.
 *
 * A library in front of fdatasync (slow_sync.c) makes the commits hang; HOLDFAST_SLOW_SYNC_LIBRARY
 * names it.
 */
#include "lock_call.h"
#include "lock_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define STALL_MS    3000
#define SILENCE_MS  50                   /* how long an answer is looked for that must not come */
#define ALPHA       UINT32_C(0x7f080001) /* 127.8.0.1 */
#define BETA        UINT32_C(0x7f080002)

static struct harness_server server;
static const char *gate;

static struct lock_call call_of(enum peer_nlm_procedure procedure, const char *name, uint32_t file)
{
    return (struct lock_call){.procedure = procedure,
                              .name = name,
                              .svid = 5,
                              .file = file,
                              .offset = 100,
                              .len = 50,
                              .exclusive = true,
                              .state = 3};
}

/* ---- the store ---- */

static void stall(void)
{
    int fd = open(gate, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    HARNESS_EXPECT(fd >= 0, "%s: %s", gate, strerror(errno));
    close(fd);
}

static void let_go(void)
{
    HARNESS_EXPECT(unlink(gate) == 0, "%s: %s", gate, strerror(errno));
}

/* ---- calls whose answers come later ---- */

struct line {
    int fd;
    bool is_udp;
    const struct lock_call *call;
    uint32_t xid;
};

static struct line open_line(uint32_t source, uint16_t port, bool is_udp)
{
    struct line line = {.is_udp = is_udp};
    struct dial_route route = harness_route(&server, is_udp);
    route.source = dial_endpoint_v4(source, port);
    line.fd = dial_open(&route, PATIENCE_MS);
    HARNESS_EXPECT(line.fd >= 0, "no connection: %s", strerror(-line.fd));
    return line;
}

static void send_on(struct line *line, const struct lock_call *call, uint32_t xid)
{
    static struct packet packet;
    lock_call_put(&packet, call);
    packet_set_xid(&packet, xid);
    line->call = call;
    line->xid = xid;
    int result = line->is_udp ? dial_send(line->fd, packet.bytes, packet.len, PATIENCE_MS)
                              : dial_send_record(line->fd, packet.bytes, packet.len, PATIENCE_MS);
    HARNESS_EXPECT(result == 0, "send: %s", strerror(-result));
}

/* The status of the next answer; negative errno: none in that time. */
static int next_answer(struct line *line, uint32_t timeout_ms)
{
    static struct packet answer;
    struct packet_reply reply;
    int len = line->is_udp ? dial_receive(line->fd, answer.bytes, sizeof(answer.bytes), timeout_ms)
                           : dial_receive_record(line->fd, &answer, timeout_ms);
    if (len < 0)
        return len;
    if (!packet_get_reply(answer.bytes, (uint32_t)len, &reply) || reply.xid != line->xid)
        return -EBADMSG;
    return lock_call_status(line->call, &reply, NULL);
}

static void demand_silence(struct line *line, const char *what)
{
    int status = next_answer(line, SILENCE_MS);
    HARNESS_EXPECT(status == -ETIMEDOUT, "%s was answered %s before the store did", what,
                   lock_call_text(status));
}

static void demand_answer(struct line *line, uint32_t expected, const char *what)
{
    int status = next_answer(line, PATIENCE_MS);
    HARNESS_EXPECT(status == (int)expected, "%s: %s and not %s", what, lock_call_text(status),
                   peer_nlm_status_text(expected));
}

/* What may be answered or not, but never otherwise. */
static uint32_t count_answers(struct line *line, uint32_t expected, const char *what)
{
    uint32_t count = 0;
    int status;
    while ((status = next_answer(line, SILENCE_MS)) >= 0) {
        HARNESS_EXPECT(status == (int)expected, "%s: %s", what, lock_call_text(status));
        count++;
    }
    return count;
}

static void demand_null(void)
{
    static struct packet call, answer;
    struct packet_reply reply;
    struct lock_call null = {.procedure = PEER_NLM_NULL, .name = ""};
    for (int is_udp = 0; is_udp < 2; is_udp++) {
        struct dial_route route = harness_route(&server, is_udp);
        lock_call_put(&call, &null);
        packet_set_xid(&call, 9);
        int result = dial_call(&route, &call, PATIENCE_MS, &answer, &reply);
        HARNESS_EXPECT(result == 0 && reply.accepted && reply.status == PACKET_SUCCESS,
                       "NULL while the store hangs: %s", strerror(-result));
    }
}

static uint16_t port_of(int fd)
{
    struct dial_endpoint at = {.len = sizeof(at.at)};
    return getsockname(fd, (struct sockaddr *)&at.at, &at.len) == 0 ? dial_endpoint_port(&at) : 0;
}

static void wait_out(uint64_t start_ns)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    while (dial_now_ns() - start_ns < STALL_MS * UINT64_C(1000000))
        nanosleep(&pause, NULL);
}

/* (1) and (2): everything that a client may do while it gets no answer. */
static void lock_again(bool is_udp, uint32_t file)
{
    const char *over = is_udp ? "UDP" : "TCP";
    struct lock_call lock = call_of(PEER_NLM_LOCK, "alpha", file);
    struct lock_call conflict = call_of(PEER_NLM_LOCK, "beta", file);
    struct lock_call test = call_of(PEER_NLM_TEST, "beta", file);
    struct line first = open_line(ALPHA, 0, is_udp), other = open_line(BETA, 0, false);
    struct line asking = open_line(BETA, 0, is_udp), retry = open_line(ALPHA, 0, is_udp);
    uint16_t port = port_of(first.fd);
    stall();
    uint64_t start_ns = dial_now_ns();
    send_on(&first, &lock, 1000);
    send_on(&first, &lock, 1000); /* by the RPC layer */
    send_on(&retry, &lock, 2000); /* by the lock layer, from another port */
    send_on(&retry, &lock, 2001);
    send_on(&other, &conflict, 3000);
    send_on(&asking, &test, 4000);
    demand_null();
    demand_silence(&first, "LOCK");
    demand_silence(&other, "LOCK that conflicts");
    demand_silence(&asking, "TEST");
    if (!is_udp) { /* a new connection from the same port, as Linux makes it */
        const struct linger reset = {.l_onoff = 1};
        (void)setsockopt(first.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(first.fd);
        first = open_line(ALPHA, port, false);
        send_on(&first, &lock, 1000);
    }
    wait_out(start_ns);
    demand_silence(&first, "LOCK");
    let_go();
    demand_answer(&first, PEER_NLM_IS_GRANTED, "LOCK");
    (void)count_answers(&first, PEER_NLM_IS_GRANTED, "LOCK again");
    retry.xid = 2000;
    demand_answer(&retry, PEER_NLM_IS_GRANTED, "LOCK with another xid");
    retry.xid = 2001;
    demand_answer(&retry, PEER_NLM_IS_GRANTED, "LOCK with a third xid");
    demand_answer(&other, PEER_NLM_IS_DENIED, "LOCK that conflicts");
    demand_answer(&asking, PEER_NLM_IS_DENIED, "TEST");
    printf("LOCK over %s, sent four times into a store that hung for %u ms: granted\n", over,
           STALL_MS);
    close(first.fd);
    close(other.fd);
    close(asking.fd);
    close(retry.fd);
}

static void demand_now(uint32_t source, struct lock_call call, uint32_t expected, const char *what)
{
    int status = lock_call_once(&server, source, false, &call, NULL);
    HARNESS_EXPECT(status == (int)expected, "%s: %s and not %s", what, lock_call_text(status),
                   peer_nlm_status_text(expected));
}

/* (3) */
static void block_again(uint32_t file)
{
    struct lock_call lock = call_of(PEER_NLM_LOCK, "alpha", file);
    struct lock_call wait = call_of(PEER_NLM_LOCK, "beta", file);
    struct lock_call end = call_of(PEER_NLM_UNLOCK, "alpha", file);
    struct lock_call test = call_of(PEER_NLM_TEST, "gamma", file);
    wait.block = true;
    demand_now(ALPHA, lock, PEER_NLM_IS_GRANTED, "LOCK");
    struct line waiting = open_line(BETA, 0, true), again = open_line(BETA, 0, false);
    stall();
    /* Something for the store to hang on: a refusal to wait changes nothing. */
    struct lock_call other = call_of(PEER_NLM_LOCK, "alpha", file + 1);
    struct line busy = open_line(ALPHA, 0, false);
    send_on(&busy, &other, 1);
    send_on(&waiting, &wait, 5000);
    send_on(&waiting, &wait, 5000);
    send_on(&again, &wait, 6000);
    demand_silence(&waiting, "LOCK that waits");
    let_go();
    demand_answer(&waiting, PEER_NLM_IS_BLOCKED, "LOCK that waits");
    demand_answer(&again, PEER_NLM_IS_BLOCKED, "LOCK that waits, again");
    demand_answer(&busy, PEER_NLM_IS_GRANTED, "LOCK beside it");
    (void)count_answers(&waiting, PEER_NLM_IS_BLOCKED, "LOCK that waits, repeated");
    demand_now(ALPHA, end, PEER_NLM_IS_GRANTED, "UNLOCK");
    demand_now(BETA, wait, PEER_NLM_IS_GRANTED, "the poll of the waiter");
    wait.procedure = PEER_NLM_UNLOCK;
    demand_now(BETA, wait, PEER_NLM_IS_GRANTED, "its UNLOCK");
    demand_now(BETA, test, PEER_NLM_IS_GRANTED, "TEST: a second waiter was granted");
    close(waiting.fd);
    close(again.fd);
    close(busy.fd);
}

/* (4): the lock of file 1 is there; its UNLOCK is on its way when the server dies. */
static void unlock_and_kill(uint32_t file)
{
    struct lock_call unlock = call_of(PEER_NLM_UNLOCK, "alpha", file);
    struct line line = open_line(ALPHA, 0, false);
    stall();
    send_on(&line, &unlock, 7000);
    demand_null();
    demand_silence(&line, "UNLOCK");
    HARNESS_EXPECT(harness_stop(&server, SIGKILL) == 128 + SIGKILL, "SIGKILL");
    let_go();
    int status = next_answer(&line, SILENCE_MS);
    HARNESS_EXPECT(status < 0, "UNLOCK was answered %s", lock_call_text(status));
    close(line.fd);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* It runs for half a second at a time: if each standstill were forgiven, ten would be needed. The
 * lock of this file is there, and grace is on: UNLOCK writes also then. */
static void hang_and_stop(uint32_t file)
{
    struct lock_call unlock = call_of(PEER_NLM_UNLOCK, "alpha", file);
    int stops = 0;
    server.extra[0] = "--store-timeout";
    server.extra[1] = "5";
    if (!harness_start(&server))
        return;
    struct line line = open_line(ALPHA, 0, false);
    stall();
    send_on(&line, &unlock, 8000);
    demand_null();
    demand_silence(&line, "UNLOCK");
    for (; stops < 6 && harness_is_alive(&server); stops++) {
        kill(server.pid, SIGSTOP);
        pause_ms(2500); /* longer than what counts as a standstill */
        kill(server.pid, SIGCONT);
        pause_ms(500);
    }
    bool is_alive = harness_is_alive(&server);
    int code = harness_stop(&server, is_alive ? SIGKILL : 0);
    HARNESS_EXPECT(code == 74, "stopped %d times: exit %d", stops, code);
    let_go();
    close(line.fd);
}

static void on_lock(void *context, const struct lock_dump_lock *lock)
{
    uint32_t *per_file = context;
    if (HARNESS_EXPECT(lock->file < 8, "file %u", lock->file))
        per_file[lock->file]++;
    HARNESS_EXPECT(strcmp(lock->name, "alpha") == 0 && lock->start == 100 && lock->end == 149 &&
                       lock->exclusive && lock->svid == 5,
                   "stored: %s svid %u", lock->name, lock->svid);
}

int main(void)
{
    const char *library = getenv("HOLDFAST_SLOW_SYNC_LIBRARY");
    if (!library || !*library) {
        puts("SKIP locks_store: no library that slows the store; sanitizers do not allow one");
        return HARNESS_SKIPPED;
    }
    uint32_t stored[8] = {0};
    struct lock_dump dump;
    harness_init("locks_store");
    gate = harness_path("gate");
    setenv("HOLDFAST_SLOW_SYNC", gate, 1);
    setenv("LD_PRELOAD", library, 1);
    server.listen = "127.0.0.1";
    server.store = harness_path("store");
    if (!harness_start(&server))
        return harness_finish();
    lock_again(false, 1);
    lock_again(true, 2);
    block_again(3); /* and 4 */
    unlock_and_kill(1);
    if (lock_dump_read(server.store, on_lock, stored, &dump))
        HARNESS_EXPECT(stored[1] == 1 && stored[2] == 1 && stored[3] == 0 && stored[4] == 1,
                       "stored: %u, %u, %u and %u locks on the files", stored[1], stored[2],
                       stored[3], stored[4]);
    hang_and_stop(2);
    return harness_finish();
}
