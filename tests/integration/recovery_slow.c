/*
 * recovery_slow.c -- a client with so many locks that its reclaim takes longer than grace.
 *
 * It reclaims one lock at a time, as Linux does, and paced so that a fifth of them is left when
 * grace ends. Passing proves that all of its reclaims are granted (R-GRACE-10), that meanwhile
 * others are served, but do not get what it has not reclaimed yet, and that the store then holds
 * what it held before. The rate that it would have without the pace is printed: with R-GRACE-9 an
 * exact reclaim writes nothing, so 100,000 of them fit into a grace of 20 s.
 */
#include "lock_bulk.h"
#include "lock_dump.h"
#include "recovery_scene.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOLDER    UINT32_C(0x7f0b0001) /* 127.11.0.1 */
#define OTHER     UINT32_C(0x7f080001)
#define FILE_MANY 1
#define FILE_NEW  2
#define LOOKS     50 /* how often it is looked whether others are served */
#define PATIENCE  60000

static uint32_t lock_count;

static struct lock_call hold(uint32_t number)
{
    return recovery_scene_lock("holder", 1 + number % 100, FILE_MANY, (uint64_t)number * 4, 2);
}

static void take_locks(void)
{
    struct lock_bulk bulk = {.what = "LOCK", .source = HOLDER, .count = lock_count, .call = hold};
    (void)lock_bulk_run(recovery_scene_server(), &bulk);
    HARNESS_EXPECT(bulk.by_status[PEER_NLM_IS_GRANTED] == lock_count, "%u of %u locks granted",
                   bulk.by_status[PEER_NLM_IS_GRANTED], lock_count);
}

struct reclaimer {
    int fd;
    uint32_t xid;
    uint32_t granted, refused;
    int first_refusal; /* its status */
    uint64_t calling_ns;
    uint32_t after_end; /* granted when grace was known to be over */
    bool is_over;       /* grace, as somebody else saw it */
    uint32_t others_served;
};

static void reclaim_one(struct reclaimer *reclaimer, uint32_t number)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    struct lock_call call = recovery_scene_reclaim(hold(number));
    uint64_t start_ns = dial_now_ns();
    lock_call_put(&packet, &call);
    packet_set_xid(&packet, ++reclaimer->xid);
    int status = dial_exchange(reclaimer->fd, false, &packet, PATIENCE, &answer, &reply);
    if (status == 0)
        status = lock_call_status(&call, &reply, NULL);
    reclaimer->calling_ns += dial_now_ns() - start_ns;
    if (status != PEER_NLM_IS_GRANTED && reclaimer->refused++ == 0)
        reclaimer->first_refusal = status;
    reclaimer->granted += status == PEER_NLM_IS_GRANTED;
    reclaimer->after_end += status == PEER_NLM_IS_GRANTED && reclaimer->is_over;
}

/* Once grace is over others get new locks, and not the last one of the holder. */
static void look(struct reclaimer *reclaimer, uint32_t turn)
{
    struct lock_call new = recovery_scene_lock("other", 1, FILE_NEW, (uint64_t)turn * 2, 1);
    struct lock_call last = hold(lock_count - 1);
    last.name = "other";
    int status = lock_call_once(recovery_scene_server(), OTHER, false, &new, NULL);
    reclaimer->is_over |= status != PEER_NLM_IS_GRACE;
    if (!reclaimer->is_over)
        return;
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "a new lock after grace: %s",
                   lock_call_text(status));
    reclaimer->others_served += status == PEER_NLM_IS_GRANTED;
    recovery_scene_demand(OTHER, last, PEER_NLM_IS_DENIED, "what is not reclaimed yet");
}

static void wait_until(uint64_t time_ns)
{
    uint64_t now_ns = dial_now_ns();
    if (now_ns >= time_ns)
        return;
    uint64_t left_ns = time_ns - now_ns;
    struct timespec pause = {.tv_sec = (time_t)(left_ns / 1000000000),
                             .tv_nsec = (long)(left_ns % 1000000000)};
    (void)nanosleep(&pause, NULL);
}

/* Five quarters of the grace for all of them, however fast the server is. */
static void reclaim_slowly(uint32_t grace_s)
{
    struct reclaimer reclaimer = {0};
    struct dial_route route = harness_route(recovery_scene_server(), false);
    route.source = dial_endpoint_v4(HOLDER, 0);
    reclaimer.fd = dial_open(&route, PATIENCE);
    if (!HARNESS_EXPECT(reclaimer.fd >= 0, "%s", strerror(-reclaimer.fd)))
        return;
    uint64_t whole_ns = grace_s * UINT64_C(1250000000);
    for (uint32_t i = 0; i < lock_count; i++) {
        if (i % (lock_count / LOOKS) == 0)
            look(&reclaimer, i);
        wait_until(recovery_scene_ready_ns() + whole_ns / lock_count * i);
        reclaim_one(&reclaimer, i);
    }
    close(reclaimer.fd);
    printf("%u of %u reclaims granted in %" PRIu64 " ms with a grace of %u s, %u of them after its "
           "end, while %u new locks of others were granted; %.0f us each (the goal: all within 20 "
           "s: 200)\n",
           reclaimer.granted, lock_count, recovery_scene_since_ready_ms(), grace_s,
           reclaimer.after_end, reclaimer.others_served,
           (double)reclaimer.calling_ns / 1000 / lock_count);
    HARNESS_EXPECT(reclaimer.granted == lock_count, "%u refused, the first one: %s",
                   reclaimer.refused, lock_call_text(reclaimer.first_refusal));
    HARNESS_EXPECT(reclaimer.after_end > 0 && reclaimer.others_served > 0,
                   "grace did not end while it reclaimed");
}

static void judge_store(uint32_t news)
{
    struct lock_dump dump = {0};
    int code = harness_stop(recovery_scene_server(), SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    if (lock_dump_read(recovery_scene_server()->store, NULL, NULL, &dump))
        HARNESS_EXPECT(dump.locks >= lock_count && dump.locks <= lock_count + news,
                       "%u locks are stored, %u were held", dump.locks, lock_count);
}

int main(void)
{
    lock_count = harness_number("HOLDFAST_SLOW_LOCKS", 4000);
    uint32_t grace_s = harness_number("HOLDFAST_SLOW_GRACE", 4);
    static char seconds[16];
    if (!recovery_scene_open("recovery_slow", 1))
        return HARNESS_SKIPPED;
    snprintf(seconds, sizeof(seconds), "%u", grace_s);
    recovery_scene_options((const char *[]){"--grace", seconds, "--name", "nas", NULL});
    uint32_t holder = recovery_scene_host(HOLDER, "holder");
    if (recovery_scene_start()) {
        take_locks();
        if (recovery_scene_restart(SIGKILL) && recovery_scene_await_told(holder)) {
            reclaim_slowly(grace_s);
            judge_store(LOOKS + 1);
        }
    }
    return recovery_scene_close();
}
