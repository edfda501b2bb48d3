/*
 * locktest.c -- the fifteen classic cases of POSIX record locking, as calls over the wire.
 *
 * Programs that test locks through a mount have tried the same things for decades: an empty file,
 * the whole file, single bytes, bytes side by side, the ends of the number space, two processes in
 * each other's way, splitting, close, a killed process, upgrades, waiting. Here two owners, parent
 * and child, do them directly against the server: as two processes of one client and as two
 * clients, over TCP and UDP, in NLM versions 4, 3 and 1. A step that answers something else than
 * POSIX says is named with its case. After each case the file must be free.
 *
 * Most cases are tables of steps. Waiting owners are called back where port 111 can be had, which
 * takes root; elsewhere they ask again, as clients behind a firewall do.
 */
#include "harness.h"
#include "peer/emu_client.h"
#include "peer/emu_portmap.h"
#include "peer/emu_table.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PARENT_AT UINT32_C(0x7f030001) /* 127.3.0.1 */
#define SERVER_AT UINT32_C(0x7f000001)
#define CYCLES    400
#define PATIENCE  60000
#define TOP       (UINT64_C(1) << 63) /* the first offset that no file has */
#define TOP_32    (UINT64_C(1) << 32)
#define TO_END    0
#define STEPS_MAX 24
#define GRANTED   PEER_NLM_IS_GRANTED
#define DENIED    PEER_NLM_IS_DENIED
#define FBIG      PEER_NLM_IS_FBIG

enum who { PARENT, CHILD };
enum act { END = 0, TEST_READ, TEST_WRITE, READ, WRITE, UNLOCK };

/* One call and its answer. A TEST that is DENIED also says which range is in the way. */
struct step {
    enum who who;
    enum act act;
    uint64_t offset, len;
    int expected;
    uint64_t held_offset, held_len;
};

enum versions { ALL_VERSIONS, ONLY_32_BITS, ONLY_64_BITS };

struct script {
    const char *name;
    enum versions versions;
    struct step steps[STEPS_MAX];
};

struct owner {
    struct emu_host *host;
    uint32_t svid;
};

static struct {
    struct harness_server server;
    const char *place; /* which case of which set-up, for messages */
    struct owner owners[2];
    uint32_t file;
    bool is_called_back;
} test;

/* ---- steps ---- */

static struct emu_request request(enum who who, bool exclusive, uint64_t offset, uint64_t len)
{
    return (struct emu_request){.file = test.file,
                                .svid = test.owners[who].svid,
                                .exclusive = exclusive,
                                .offset = offset,
                                .len = len};
}

static int act(enum who who, enum act what, uint64_t offset, uint64_t len,
               struct peer_nlm_res *holder)
{
    bool exclusive = what == WRITE || what == TEST_WRITE;
    struct emu_request wanted = request(who, exclusive, offset, len);
    struct emu_host *host = test.owners[who].host;
    if (what == TEST_READ || what == TEST_WRITE)
        return emu_client_test(host, &wanted, holder);
    if (what == UNLOCK)
        return emu_client_unlock(host, &wanted);
    return emu_client_lock(host, &wanted);
}

static const char *status_text(int status)
{
    return status < 0 ? strerror(-status) : peer_nlm_status_text((uint32_t)status);
}

static bool step(const struct step *one)
{
    static const char *const words[] = {"", "test read", "test write", "read", "write", "unlock"};
    struct peer_nlm_res holder = {0};
    int got = act(one->who, one->act, one->offset, one->len, &holder);
    bool is_test = one->act == TEST_READ || one->act == TEST_WRITE;
    bool is_right =
        HARNESS_EXPECT(got == one->expected, "%s: %s %s %" PRIu64 "+%" PRIu64 ": %s and not %s",
                       test.place, one->who == PARENT ? "parent" : "child", words[one->act],
                       one->offset, one->len, status_text(got), status_text(one->expected));
    if (is_right && is_test && got == DENIED)
        is_right = HARNESS_EXPECT(
            holder.offset == one->held_offset && holder.len == one->held_len &&
                holder.svid == test.owners[one->who == PARENT ? CHILD : PARENT].svid,
            "%s: in the way of %" PRIu64 "+%" PRIu64 " is %" PRIu64 "+%" PRIu64 " of svid %u",
            test.place, one->offset, one->len, holder.offset, holder.len, holder.svid);
    return is_right;
}

static bool steps(const struct step *all)
{
    bool is_right = true;
    for (uint32_t i = 0; i < STEPS_MAX && all[i].act != END; i++)
        is_right = step(&all[i]) && is_right;
    return is_right;
}

/* Nothing of either owner is left. */
static void expect_free(void)
{
    const struct step all[] = {{PARENT, UNLOCK, 0, TO_END, GRANTED, 0, 0},
                               {CHILD, UNLOCK, 0, TO_END, GRANTED, 0, 0},
                               {PARENT, TEST_WRITE, 0, TO_END, GRANTED, 0, 0},
                               {CHILD, TEST_WRITE, 0, TO_END, GRANTED, 0, 0},
                               {PARENT, END, 0, 0, 0, 0, 0}};
    (void)steps(all);
}

/* ---- the cases that are tables ---- */

/* Granted, refused; a refused test names the range that it met. */
#define OK(who, act, offset, len)                                                                  \
    {                                                                                              \
        who, act, offset, len, GRANTED, 0, 0                                                       \
    }
#define NO(who, act, offset, len)                                                                  \
    {                                                                                              \
        who, act, offset, len, DENIED, 0, 0                                                        \
    }
#define MET(who, act, offset, len, held, held_len)                                                 \
    {                                                                                              \
        who, act, offset, len, DENIED, held, held_len                                              \
    }
#define BIG(who, act, offset, len)                                                                 \
    {                                                                                              \
        who, act, offset, len, FBIG, 0, 0                                                          \
    }

static const struct script scripts[] = {
    {"1 an empty file has no locks",
     ALL_VERSIONS,
     {OK(CHILD, TEST_WRITE, 0, 1), OK(CHILD, TEST_WRITE, 0, TO_END), OK(CHILD, TEST_WRITE, 1, 1),
      OK(CHILD, TEST_WRITE, 1, TO_END), OK(CHILD, TEST_READ, 0, 1), OK(CHILD, UNLOCK, 5, 5)}},
    {"2 the whole file",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, TO_END), MET(CHILD, TEST_WRITE, 0, 1, 0, 0),
      MET(CHILD, TEST_WRITE, 0, TO_END, 0, 0), MET(CHILD, TEST_READ, 1000000, 1, 0, 0),
      MET(CHILD, TEST_WRITE, 0x7fffffff, TO_END, 0, 0), NO(CHILD, READ, 77, 1),
      OK(PARENT, TEST_WRITE, 0, TO_END), OK(PARENT, UNLOCK, 0, TO_END),
      OK(CHILD, TEST_WRITE, 0, TO_END)}},
    {"3 the first byte",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, 1), MET(CHILD, TEST_WRITE, 0, 1, 0, 1),
      MET(CHILD, TEST_WRITE, 0, TO_END, 0, 1), OK(CHILD, TEST_WRITE, 1, 1),
      OK(CHILD, TEST_WRITE, 1, TO_END), OK(CHILD, WRITE, 1, TO_END), OK(PARENT, UNLOCK, 0, 1)}},
    {"4 the second byte, and what is around it",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 1, 1), OK(CHILD, TEST_WRITE, 0, 1), MET(CHILD, TEST_WRITE, 0, 2, 1, 1),
      MET(CHILD, TEST_WRITE, 0, TO_END, 1, 1), MET(CHILD, TEST_WRITE, 1, 1, 1, 1),
      MET(CHILD, TEST_WRITE, 1, 9999, 1, 1), OK(CHILD, TEST_WRITE, 2, 9999),
      OK(CHILD, TEST_WRITE, 2, TO_END), OK(PARENT, UNLOCK, 1, 1)}},
    {"5 bytes side by side become one lock",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, 1), OK(PARENT, WRITE, 1, 1), MET(CHILD, TEST_WRITE, 1, 1, 0, 2),
      OK(CHILD, TEST_WRITE, 2, TO_END), OK(PARENT, WRITE, 3, 1), MET(CHILD, TEST_WRITE, 2, 2, 3, 1),
      OK(PARENT, WRITE, 2, 1), MET(CHILD, TEST_WRITE, 3, 1, 0, 4), OK(PARENT, UNLOCK, 0, 4)}},
    {"6 the ends of 63 bits",
     ONLY_64_BITS,
     {OK(PARENT, WRITE, TOP - 1, 1), MET(CHILD, TEST_WRITE, TOP - 1, TO_END, TOP - 1, 1),
      OK(CHILD, TEST_WRITE, TOP - 2, 1), MET(CHILD, TEST_WRITE, 0, TO_END, TOP - 1, 1),
      OK(PARENT, UNLOCK, TOP - 1, 1), OK(PARENT, WRITE, TOP - 10, 100),
      MET(CHILD, TEST_WRITE, TOP - 1, 1, TOP - 10, TO_END), BIG(CHILD, WRITE, TOP, 1),
      BIG(CHILD, TEST_WRITE, TOP, TO_END), BIG(CHILD, WRITE, TOP - 1, UINT64_MAX - 1),
      OK(CHILD, UNLOCK, TOP, 1), OK(PARENT, WRITE, 5, UINT64_MAX),
      MET(CHILD, TEST_WRITE, TOP_32 * 2, 1, 5, TO_END)}},
    {"6 the ends of 32 bits",
     ONLY_32_BITS,
     {OK(PARENT, WRITE, TOP_32 - 1, 1), MET(CHILD, TEST_WRITE, TOP_32 - 1, 1, TOP_32 - 1, 1),
      OK(CHILD, TEST_WRITE, TOP_32 - 2, 1), OK(PARENT, UNLOCK, TOP_32 - 1, 1),
      OK(PARENT, WRITE, TOP_32 - 10, 100),
      MET(CHILD, TEST_WRITE, TOP_32 - 1, 1, TOP_32 - 10, TO_END), OK(PARENT, UNLOCK, 0, TO_END),
      OK(PARENT, WRITE, 5, TOP_32 - 1), MET(CHILD, TEST_WRITE, 900, 1, 5, TO_END)}},
    {"7 parent and child exclude each other",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, 10), OK(CHILD, WRITE, 10, 10), NO(PARENT, WRITE, 10, 1),
      NO(CHILD, WRITE, 9, 1), NO(PARENT, WRITE, 5, 10), OK(PARENT, UNLOCK, 5, 5),
      OK(CHILD, WRITE, 5, 5), NO(PARENT, READ, 5, 1), OK(CHILD, UNLOCK, 5, 15),
      OK(PARENT, WRITE, 0, TO_END), NO(CHILD, WRITE, 500, 1), OK(PARENT, UNLOCK, 0, TO_END),
      OK(CHILD, WRITE, 500, 1)}},
    {"9 readers share, a writer is alone",
     ALL_VERSIONS,
     {OK(PARENT, READ, 0, 100), OK(CHILD, READ, 50, 100), OK(CHILD, TEST_READ, 0, TO_END),
      MET(CHILD, TEST_WRITE, 0, 10, 0, 100), NO(PARENT, WRITE, 60, 1), NO(CHILD, WRITE, 90, 1),
      OK(PARENT, WRITE, 0, 50), NO(CHILD, READ, 49, 1), OK(CHILD, UNLOCK, 50, 50),
      OK(PARENT, WRITE, 60, 1), NO(CHILD, READ, 60, 1), OK(CHILD, READ, 61, 39)}},
    {"10 a hole splits a lock",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, 100), OK(PARENT, UNLOCK, 40, 20),
      MET(CHILD, TEST_WRITE, 0, TO_END, 0, 40), OK(CHILD, TEST_WRITE, 40, 20),
      MET(CHILD, TEST_WRITE, 60, 1, 60, 40), MET(CHILD, TEST_WRITE, 39, 1, 0, 40),
      OK(CHILD, WRITE, 40, 20), NO(PARENT, WRITE, 30, 20), OK(PARENT, UNLOCK, 0, 1),
      OK(PARENT, UNLOCK, 99, 1), MET(CHILD, TEST_WRITE, 0, 40, 1, 39),
      MET(CHILD, TEST_WRITE, 98, TO_END, 60, 39), OK(CHILD, TEST_WRITE, 99, TO_END)}},
    {"10 a read lock in the middle of a write lock",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 10, 30), OK(PARENT, READ, 20, 10), OK(CHILD, TEST_READ, 20, 10),
      MET(CHILD, TEST_WRITE, 20, 10, 20, 10), MET(CHILD, TEST_READ, 10, 30, 10, 10),
      MET(CHILD, TEST_READ, 30, TO_END, 30, 10), OK(PARENT, WRITE, 20, 10),
      MET(CHILD, TEST_READ, 25, 1, 10, 30)}},
    {"11 close gives back all of one owner and nothing else",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, 1), OK(PARENT, READ, 10, 5), OK(PARENT, WRITE, 1000, TO_END),
      OK(CHILD, WRITE, 20, 5), OK(CHILD, READ, 10, 2), OK(PARENT, UNLOCK, 0, TO_END),
      OK(CHILD, WRITE, 0, 10), OK(CHILD, WRITE, 1000, 1), MET(PARENT, TEST_WRITE, 22, 1, 20, 5),
      MET(PARENT, TEST_WRITE, 10, 2, 10, 2), OK(PARENT, TEST_WRITE, 12, 8)}},
    {"13 upgrade and downgrade",
     ALL_VERSIONS,
     {OK(PARENT, READ, 0, 10), OK(PARENT, WRITE, 0, 10), NO(CHILD, READ, 0, 1),
      OK(PARENT, READ, 0, 10), OK(CHILD, READ, 0, 10), NO(PARENT, WRITE, 0, 10),
      MET(CHILD, TEST_WRITE, 0, 10, 0, 10), OK(CHILD, UNLOCK, 0, 10), OK(PARENT, WRITE, 0, 10),
      OK(PARENT, READ, 4, 2), OK(CHILD, READ, 4, 2), NO(CHILD, READ, 3, 1)}},
    {"14 overlapping locks of one owner",
     ALL_VERSIONS,
     {OK(PARENT, WRITE, 0, 10), OK(PARENT, WRITE, 5, 10), MET(CHILD, TEST_WRITE, 14, 1, 0, 15),
      OK(PARENT, WRITE, 30, TO_END), OK(PARENT, WRITE, 12, 20), MET(CHILD, TEST_WRITE, 50, 1, 0, 0),
      OK(PARENT, UNLOCK, 20, TO_END), MET(CHILD, TEST_WRITE, 19, TO_END, 0, 20),
      OK(CHILD, TEST_WRITE, 20, TO_END), OK(PARENT, WRITE, 3, 4),
      MET(CHILD, TEST_WRITE, 3, 1, 0, 20)}},
};

/* ---- the cases that are programs ---- */

static void run_cycles(void)
{
    struct step last = {PARENT, WRITE, 0, 10, GRANTED, 0, 0};
    for (uint32_t i = 0; i < CYCLES; i++) {
        struct step lock = {
            i % 2 ? CHILD : PARENT, i % 3 ? WRITE : READ, i % 7, 1 + i % 5, GRANTED, 0, 0};
        struct step other = {
            i % 2 ? PARENT : CHILD, TEST_WRITE, i % 7, 1, DENIED, i % 7, 1 + i % 5};
        struct step unlock = lock;
        unlock.act = UNLOCK;
        if (!step(&lock) || (i % 16 == 0 && !step(&other)) || !step(&unlock))
            return; /* one message is enough */
    }
    (void)step(&last); /* everything is free, so this is too */
}

/* True when the owner waits. */
static bool block(enum who who, const struct emu_request *wanted, uint32_t *ret_wait)
{
    int status = emu_client_block(test.owners[who].host, wanted, ret_wait);
    return HARNESS_EXPECT(status == PEER_NLM_IS_BLOCKED, "%s: a blocking lock: %s", test.place,
                          status_text(status));
}

static bool wait_granted(enum who who, uint32_t wait)
{
    int status = emu_client_wait(test.owners[who].host, wait, PATIENCE);
    return HARNESS_EXPECT(status == GRANTED, "%s: the waiting %s: %s", test.place,
                          who == PARENT ? "parent" : "child", status_text(status));
}

static void run_killed(void)
{
    const struct step before[] = {
        OK(PARENT, WRITE, 0, 10), OK(CHILD, WRITE, 20, 10), {PARENT, END, 0, 0, 0, 0, 0}};
    /* A process that is killed while it waits: its kernel cancels and unlocks (R-BLK-8). */
    const struct step after[] = {OK(CHILD, UNLOCK, 0, TO_END),
                                 OK(PARENT, WRITE, 20, 10),
                                 OK(PARENT, UNLOCK, 0, TO_END),
                                 OK(PARENT, TEST_WRITE, 0, TO_END),
                                 {PARENT, END, 0, 0, 0, 0, 0}};
    struct emu_request wanted = request(CHILD, true, 5, 10);
    uint32_t wait;
    bool is_owned;
    if (!steps(before) || !block(CHILD, &wanted, &wait))
        return;
    int status = emu_client_give_up(test.owners[CHILD].host, wait, &is_owned);
    HARNESS_EXPECT(status == GRANTED && !is_owned, "%s: CANCEL of a waiting lock: %s", test.place,
                   status_text(status));
    (void)steps(after);
}

static void run_handover(void)
{
    const struct step first[] = {OK(PARENT, WRITE, 0, 10), {PARENT, END, 0, 0, 0, 0, 0}};
    const struct step release[] = {OK(PARENT, UNLOCK, 0, 10), {PARENT, END, 0, 0, 0, 0, 0}};
    const struct step taken[] = {MET(PARENT, TEST_WRITE, 0, 1, 0, 10),
                                 NO(PARENT, WRITE, 9, 1),
                                 {PARENT, END, 0, 0, 0, 0, 0}};
    struct emu_request of_child = request(CHILD, true, 0, 10);
    struct emu_request of_parent = request(PARENT, true, 0, 10);
    uint32_t wait;
    if (!steps(first) || !block(CHILD, &of_child, &wait) || !steps(release) ||
        !wait_granted(CHILD, wait) || !steps(taken))
        return;
    /* And back. */
    if (!block(PARENT, &of_parent, &wait))
        return;
    int status = emu_client_unlock(test.owners[CHILD].host, &of_child);
    HARNESS_EXPECT(status == GRANTED, "%s: unlock: %s", test.place, status_text(status));
    (void)wait_granted(PARENT, wait);
}

/* Two owners that wait for each other: the second one is told (R-BLK-18). */
static void run_deadlock(void)
{
    const struct step before[] = {
        OK(PARENT, WRITE, 0, 1), OK(CHILD, WRITE, 1, 1), {PARENT, END, 0, 0, 0, 0, 0}};
    struct emu_request of_parent = request(PARENT, true, 1, 1);
    struct emu_request of_child = request(CHILD, true, 0, 1);
    uint32_t wait, none;
    int expected = test.owners[PARENT].host->kind->vers == 4 ? PEER_NLM_IS_DEADLCK : DENIED;
    if (!steps(before) || !block(PARENT, &of_parent, &wait))
        return;
    int status = emu_client_block(test.owners[CHILD].host, &of_child, &none);
    HARNESS_EXPECT(status == expected, "%s: the second one of a deadlock: %s and not %s",
                   test.place, status_text(status), status_text(expected));
    const struct step release[] = {OK(CHILD, UNLOCK, 1, 1), {PARENT, END, 0, 0, 0, 0, 0}};
    if (steps(release))
        (void)wait_granted(PARENT, wait);
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"8 many cycles", run_cycles},
    {"12 a killed process", run_killed},
    {"15 waiting hands the lock over", run_handover},
    {"15 waiting for each other", run_deadlock},
};

/* ---- set-ups ---- */

struct setup {
    const char *name;
    uint32_t vers;
    bool is_udp, is_one_client;
};

static const struct setup setups[] = {
    {"v4 TCP two clients", 4, false, false}, {"v4 UDP one client", 4, true, true},
    {"v3 TCP one client", 3, false, true},   {"v3 UDP two clients", 3, true, false},
    {"v1 UDP two clients", 1, true, false},
};

static bool is_for(const struct script *script, uint32_t vers)
{
    return script->versions == ALL_VERSIONS || (script->versions == ONLY_64_BITS) == (vers == 4);
}

static void run_setup(const struct setup *setup, uint32_t number)
{
    struct emu_kind kind = emu_table_get("linux")->kind;
    struct emu_host *hosts[2] = {NULL, NULL};
    char place[160];
    kind.vers = setup->vers;
    kind.is_unreachable = !test.is_called_back;
    for (uint32_t i = 0; i < (setup->is_one_client ? 1 : 2); i++) {
        struct emu_host_config config = {.address = PARENT_AT + 2 * number + i,
                                         .name = i == 0 ? "parent" : "child",
                                         .server = dial_endpoint_v4(SERVER_AT, test.server.port),
                                         .portmap_port = EMU_PORTMAP_PORT};
        hosts[i] = emu_host_new(&kind, &config);
        if (!HARNESS_EXPECT(hosts[i], "%s: no sockets: %s", setup->name, strerror(errno)))
            goto out;
        hosts[i]->is_udp = setup->is_udp;
    }
    test.owners[PARENT] = (struct owner){hosts[0], 1};
    test.owners[CHILD] = (struct owner){setup->is_one_client ? hosts[0] : hosts[1], 2};
    test.place = place;
    for (uint32_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (!is_for(&scripts[i], setup->vers))
            continue;
        snprintf(place, sizeof(place), "%s: case %s", setup->name, scripts[i].name);
        test.file++;
        (void)steps(scripts[i].steps);
        expect_free();
    }
    for (uint32_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        snprintf(place, sizeof(place), "%s: case %s", setup->name, programs[i].name);
        test.file++;
        programs[i].run();
        expect_free();
    }
    printf("%s: done\n", setup->name);
out:
    emu_host_free(hosts[0]);
    emu_host_free(hosts[1]);
}

int main(void)
{
    test.is_called_back = emu_net_enter();
    if (!test.is_called_back)
        printf(
            "locktest: no network namespace (%s): waiting owners are not called back, they ask\n",
            strerror(errno));
    harness_init("locktest");
    test.server.store = harness_path("store");
    test.server.listen = "127.0.0.1";
    if (!emu_net_start() || !harness_start(&test.server))
        return 1;
    for (uint32_t i = 0; i < sizeof(setups) / sizeof(setups[0]); i++)
        run_setup(&setups[i], i);
    int code = harness_stop(&test.server, SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    emu_net_stop();
    return harness_finish();
}
