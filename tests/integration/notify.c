/*
 * notify.c -- registrants are told that the server restarted, and what they watch.
 *
 * The server and its registrants live in a network namespace of their own, where port 111 of every
 * 127.x.y.z is free. Registrants are hosts (hosts.h): 127.1.0.1 and on have a portmapper on UDP and
 * a service on TCP, the special ones (127.2.0.1 and on) something else each. Half of them reach the
 * server at 127.0.0.1, the others at 127.0.0.2, and must be called from there (R-NOTIFY-1).
 *
 * Shown, by what the hosts got and nothing else:
 *  - after kill -9 and a restart each is told our name, a larger state and its own priv, once per
 *    start, at its own address (D3, P3); the next restart tells everybody again;
 *  - services on UDP only, at the port in my_name, at 12049, behind a portmapper that is silent
 *    over UDP or has no UDP at all are found (D3, D4); a refused call is owed still (R-NOTIFY-6);
 *  - who comes up 3 s after our start is told in its first attempt, who comes up later by the
 *    ladder;
 *  - kill -9 at a random moment of the notification loses nobody (R-NOTIFY-4);
 *  - SM_NOTIFY is relayed once per state to those who watch the name (D7);
 *  - SM_SIMU_CRASH tells everybody, from a privileged port only (D6).
 *  - while 200 hosts are silent the others are told and callers are answered; the log then says how
 *    many were reached and how many were not.
 *
 * HOLDFAST_NOTIFY_ROUNDS (3) rounds of kills.
 */
#include "harness.h"
#include "hosts.h"
#include "peer/emu_net.h"
#include "peer/load.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS    UINT64_C(1000000000)
#define PATIENCE_NS  (60 * SECOND_NS)
#define PLAIN        UINT32_C(0x7f010001) /* 127.1.0.1 */
#define PLAIN_FEW    200
#define PLAIN_MANY   1000
#define SPECIAL      UINT32_C(0x7f020001) /* 127.2.0.1 */
#define SILENT       UINT32_C(0x7f030001) /* 127.3.0.1 */
#define SILENT_HOSTS 200
#define WATCHED      "127.9.0.1"
#define WATCHED_HOST UINT32_C(0x7f090001)
#define STRANGER     UINT32_C(0x7f090002)
#define WATCHERS     50 /* the first of the plain hosts */
#define OTHER        "other.example"
#define OUR_NAME     "nas.example"
#define TCP_PORT     7024
#define UDP_PORT     7025
#define HINTED_PORT  7777
#define DEFAULT_PORT 12049
#define PRIVILEGED   700
#define REGISTRANTS  2048
#define CALL_MS      60000
#define COMPLAINTS   10
#define LATE_NS      (3 * SECOND_NS)
#define VERY_LATE_NS (SECOND_NS * 5 / 2)
#define CALLER_NS    (2 * SECOND_NS) /* far more than a call takes, far less than 200 hosts do */
#define FIRST_BUDGET (15 * SECOND_NS)
#define FIRST_TEXT   "15"

struct registrant {
    uint32_t address, server; /* it calls from here to there */
    const char *my_name, *mon_name;
    bool is_registered;
    uint32_t refusals;      /* calls that it refuses in the start under test */
    uint32_t told, refused; /* in the start under test, as far as counted */
    uint64_t told_ns;       /* the last time */
};

/* The special hosts, in the order in which they are added. */
enum special {
    UDP_ONLY,
    HINTED,
    HINTED_ALONE, /* no portmapper at all */
    AT_DEFAULT,
    SYSTEM_ERROR,
    NO_PROCEDURE,
    SILENT_UDP, /* its portmapper answers on TCP */
    NO_UDP,     /* the same, and the kernel says so */
    LATE,
    VERY_LATE,
    SPECIALS
};

static struct {
    struct harness_server server;
    uint64_t seed, ready_ns;
    uint32_t state, previous; /* of the server now, and in the start before */
    struct registrant all[REGISTRANTS];
    uint32_t count;
    uint32_t first_special;
    uint32_t accepted, wrong; /* registrations */
    /* What is counted. */
    const char *name;
    uint32_t wanted_state;
    uint32_t wrong_calls;
    uint32_t reached; /* registrants told at least once */
    uint32_t slow;    /* callers that waited for longer than CALLER_NS */
} test;

static void wait_briefly(void)
{
    struct timespec pause = {.tv_nsec = 2000000};
    nanosleep(&pause, NULL);
}

static void wait_until(uint64_t time_ns)
{
    while (dial_now_ns() < time_ns)
        wait_briefly();
}

static void fill_priv(uint32_t index, uint8_t *priv)
{
    for (uint32_t i = 0; i < PEER_NSM_PRIV_LEN; i++)
        priv[i] = (uint8_t)((index >> (8 * (i % 4))) + i);
}

/* ---- registering ---- */

static uint32_t add_host(const struct hosts_host *host, const char *my_name, const char *mon_name)
{
    int index = hosts_add(host);
    if (index != (int)test.count || index >= REGISTRANTS) {
        fprintf(stderr, "notify: too many hosts\n");
        _exit(1);
    }
    test.all[test.count] = (struct registrant){.address = host->address,
                                               .server = UINT32_C(0x7f000001) + test.count % 2,
                                               .my_name = my_name,
                                               .mon_name = mon_name,
                                               .refusals = host->refusals};
    return test.count++;
}

static bool add_plain(uint32_t first, uint32_t end)
{
    bool is_listening = true;
    for (uint32_t i = first; i < end; i++) {
        struct hosts_host host = {.address = PLAIN + i, .tcp_port = TCP_PORT};
        uint32_t index = add_host(&host, "plain", i < WATCHERS ? WATCHED : OTHER);
        is_listening = hosts_listen(index, HOSTS_PORTMAP, true) &&
                       hosts_listen(index, TCP_PORT, false) && is_listening;
    }
    return HARNESS_EXPECT(is_listening, "a host has no sockets");
}

static void on_registered(void *context, uint32_t link, uint64_t tag,
                          const struct packet_reply *reply)
{
    uint32_t res, state;
    (void)context;
    (void)link;
    bool is_right = peer_nsm_get_stat_res(reply, &res, &state) && res == PEER_NSM_STAT_SUCC &&
                    state == test.state;
    test.all[tag].is_registered = is_right;
    test.accepted += is_right;
    test.wrong += !is_right;
}

/* Everybody who is not registered yet, each from its own address. */
static bool register_all(void)
{
    static struct packet call;
    uint8_t priv[PEER_NSM_PRIV_LEN];
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    struct load *load = load_new(REGISTRANTS, on_registered, NULL);
    uint32_t posted = 0;
    test.accepted = test.wrong = 0;
    for (uint32_t i = 0; load && i < test.count; i++) {
        const struct registrant *r = &test.all[i];
        struct dial_route route = {.is_udp = i % 6 == 5,
                                   .server = dial_endpoint_v4(r->server, test.server.port),
                                   .source = dial_endpoint_v4(r->address, 0)};
        struct peer_nsm_id id = {r->mon_name, r->my_name, HOSTS_PROG, HOSTS_VERS, HOSTS_PROC};
        int link = r->is_registered ? -EALREADY : load_open(load, &route);
        if (link < 0)
            continue;
        fill_priv(i, priv);
        peer_nsm_put_mon(&call, 0, &id, priv);
        posted += load_post(load, (uint32_t)link, i, &call);
    }
    while (load && test.accepted + test.wrong < posted && dial_now_ns() < deadline_ns)
        load_turn(load, 20);
    load_free(load);
    uint32_t registered = 0;
    for (uint32_t i = 0; i < test.count; i++)
        registered += test.all[i].is_registered;
    return HARNESS_EXPECT(registered == test.count && test.wrong == 0,
                          "%u of %u are registered, %u answers are wrong", registered, test.count,
                          test.wrong);
}

/* ---- counting what they were told ---- */

static void count_call(void *context, const struct hosts_call *call)
{
    struct registrant *r = &test.all[call->host];
    (void)context;
    if (strcmp(call->name, test.name) != 0 || call->state != test.wanted_state)
        return;
    if (call->is_refused) {
        r->refused++;
        return;
    }
    r->told_ns = call->at_ns;
    test.reached += r->told++ == 0;
}

/* Counts the calls that said this; test.reached says how many registrants got one. */
static uint32_t count_told(const char *name, uint32_t state)
{
    for (uint32_t i = 0; i < test.count; i++)
        test.all[i].told = test.all[i].refused = 0;
    test.reached = 0;
    test.name = name;
    test.wanted_state = state;
    hosts_each_call(count_call, NULL);
    return test.reached;
}

static bool wait_told(const char *name, uint32_t state, uint32_t wanted)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (count_told(name, state) < wanted && dial_now_ns() < deadline_ns)
        wait_briefly();
    return HARNESS_EXPECT(test.reached >= wanted, "%u of %u were told that %s has the state %u",
                          test.reached, wanted, name, state);
}

/* Whatever is said, it is said to the right one, as it asked for, by whom it knows. */
static void judge_call(void *context, const struct hosts_call *call)
{
    const struct registrant *r = &test.all[call->host];
    uint8_t priv[PEER_NSM_PRIV_LEN];
    (void)context;
    fill_priv(call->host, priv);
    bool is_right = call->is_readable && call->prog == HOSTS_PROG && call->vers == HOSTS_VERS &&
                    call->proc == HOSTS_PROC && call->from == r->server &&
                    memcmp(priv, call->priv, sizeof(priv)) == 0;
    if (test.wrong_calls > COMPLAINTS)
        return; /* the others are no news */
    test.wrong_calls += !HARNESS_EXPECT(
        is_right, "host %u (%08" PRIx32 ") was called from %08" PRIx32 " with %u %u %u", call->host,
        r->address, call->from, call->prog, call->vers, call->proc);
    bool is_ours = strcmp(call->name, OUR_NAME) == 0 && call->state == test.state;
    bool is_relay = strcmp(call->name, WATCHED) == 0 && strcmp(r->mon_name, WATCHED) == 0;
    test.wrong_calls += !HARNESS_EXPECT(is_ours || is_relay,
                                        "host %u was told that %s has the state %u, ours is %u",
                                        call->host, call->name, call->state, test.state);
}

/* Every call was right, and nobody was told twice; leaves what count_told counted. */
static void judge_start(void)
{
    hosts_each_call(judge_call, NULL);
    count_told(OUR_NAME, test.state);
    for (uint32_t i = 0; i < test.count; i++)
        HARNESS_EXPECT(test.all[i].told <= 1, "host %u was told %u times of the state %u", i,
                       test.all[i].told, test.state);
}

/* ---- starts and ends ---- */

static bool start(void)
{
    test.previous = test.state;
    hosts_forget_calls();
    if (!harness_start(&test.server))
        return false;
    test.ready_ns = dial_now_ns();
    test.state = test.server.state;
    uint32_t registered = 0;
    for (uint32_t i = 0; i < test.count; i++)
        registered += test.all[i].is_registered;
    HARNESS_EXPECT(test.server.clients == registered, "%u clients at start, %u registered",
                   test.server.clients, registered);
    return HARNESS_EXPECT(test.state > test.previous && test.state % 2 == 1,
                          "the state went from %u to %u", test.previous, test.state);
}

/* What the dead server sent is still served: it is judged with this start, not the next. */
static void kill_now(void)
{
    int code = harness_stop(&test.server, SIGKILL);
    HARNESS_EXPECT(code == 128 + SIGKILL, "the server ended with %d", code);
    HARNESS_EXPECT(hosts_settle(), "the hosts are busy with a dead server");
}

static uint32_t ms_since_ready(uint64_t time_ns)
{
    return (uint32_t)((time_ns - test.ready_ns) / 1000000);
}

/* ---- 1: told ---- */

static bool run_told(void)
{
    if (!add_plain(0, PLAIN_FEW) || !register_all())
        return false;
    for (uint32_t restart = 0; restart < 2; restart++) {
        kill_now();
        if (!start() || !wait_told(OUR_NAME, test.state, PLAIN_FEW))
            return false;
        printf("told: %u of state %u in %u ms\n", test.reached, test.state,
               ms_since_ready(dial_now_ns()));
        judge_start();
    }
    return true;
}

/* ---- 2 and 3: hosts that are not as simple ---- */

static bool add_specials(void)
{
    static const struct {
        const char *my_name;
        struct hosts_host host;
        uint16_t udp[2], tcp[2]; /* where it listens */
    } rows[SPECIALS] = {
        [UDP_ONLY] = {"udp", {.udp_port = UDP_PORT}, {HOSTS_PORTMAP, UDP_PORT}, {0}},
        [HINTED] = {"hinted:7777", {0}, {HOSTS_PORTMAP}, {HINTED_PORT}},
        [HINTED_ALONE] = {"alone:7777", {0}, {0}, {HINTED_PORT}},
        [AT_DEFAULT] = {"default", {0}, {HOSTS_PORTMAP}, {DEFAULT_PORT}},
        [SYSTEM_ERROR] = {"system",
                          {.tcp_port = TCP_PORT, .refusals = 1, .refusal = PACKET_SYSTEM_ERR},
                          {HOSTS_PORTMAP},
                          {TCP_PORT}},
        [NO_PROCEDURE] = {"procedure",
                          {.tcp_port = TCP_PORT, .refusals = 1, .refusal = PACKET_PROC_UNAVAIL},
                          {HOSTS_PORTMAP},
                          {TCP_PORT}},
        [SILENT_UDP] = {"silent",
                        {.tcp_port = TCP_PORT, .is_silent = true},
                        {HOSTS_PORTMAP},
                        {HOSTS_PORTMAP, TCP_PORT}},
        [NO_UDP] = {"tcp", {.tcp_port = TCP_PORT}, {0}, {HOSTS_PORTMAP, TCP_PORT}},
        [LATE] = {"late", {.tcp_port = TCP_PORT}, {0}, {0}},
        [VERY_LATE] = {"very-late", {.tcp_port = TCP_PORT}, {0}, {0}},
    };
    bool is_listening = true;
    test.first_special = test.count;
    for (uint32_t i = 0; i < SPECIALS; i++) {
        struct hosts_host host = rows[i].host;
        host.address = SPECIAL + i;
        uint32_t index = add_host(&host, rows[i].my_name, OTHER);
        for (uint32_t k = 0; k < 2; k++) {
            if (rows[i].udp[k] != 0)
                is_listening = hosts_listen(index, rows[i].udp[k], true) && is_listening;
            if (rows[i].tcp[k] != 0)
                is_listening = hosts_listen(index, rows[i].tcp[k], false) && is_listening;
        }
    }
    return HARNESS_EXPECT(is_listening, "a host has no sockets");
}

static struct registrant *special(enum special which)
{
    return &test.all[test.first_special + which];
}

static bool bring_up(enum special which)
{
    uint32_t index = test.first_special + which;
    return HARNESS_EXPECT(hosts_listen(index, TCP_PORT, false) &&
                              hosts_listen(index, HOSTS_PORTMAP, true),
                          "the late host %d has no sockets", (int)which);
}

static void judge_specials(void)
{
    for (uint32_t i = 0; i < SPECIALS; i++) {
        const struct registrant *r = special((enum special)i);
        HARNESS_EXPECT(r->refused == r->refusals, "%s refused %u calls and not %u", r->my_name,
                       r->refused, r->refusals);
        if (i != VERY_LATE)
            HARNESS_EXPECT(r->told == 1, "%s was told %u times", r->my_name, r->told);
    }
    HARNESS_EXPECT(special(VERY_LATE)->told == 0, "a host that is not up was told");
    /* The second attempt cannot begin before the budget of the first one is over. */
    uint64_t late_ns = special(LATE)->told_ns - test.ready_ns;
    HARNESS_EXPECT(late_ns >= LATE_NS && late_ns < FIRST_BUDGET,
                   "it came up at 3,000 ms and was told at %u ms",
                   ms_since_ready(special(LATE)->told_ns));
}

static bool run_specials(void)
{
    const char *const usual[] = {test.server.extra[1], test.server.extra[3]};
    if (!add_specials() || !register_all())
        return false;
    kill_now();
    test.server.extra[1] = test.server.extra[3] = FIRST_TEXT;
    if (!start())
        return false;
    wait_until(test.ready_ns + LATE_NS);
    if (!bring_up(LATE) || !wait_told(OUR_NAME, test.state, test.count - 1))
        return false;
    judge_start();
    judge_specials();
    printf("specials: all told in %u ms, the late one at %u ms, the refusing ones at %u and %u "
           "ms\n",
           ms_since_ready(dial_now_ns()), ms_since_ready(special(LATE)->told_ns),
           ms_since_ready(special(SYSTEM_ERROR)->told_ns),
           ms_since_ready(special(NO_PROCEDURE)->told_ns));
    test.server.extra[1] = usual[0];
    test.server.extra[3] = usual[1];
    return true;
}

/* The window of 1 s and the first attempt, of 2 s, are over when the host comes up. */
static bool run_ladder(void)
{
    const char *const usual[] = {test.server.extra[1], test.server.extra[3]};
    kill_now();
    test.server.extra[1] = "1";
    test.server.extra[3] = "2";
    if (!start())
        return false;
    wait_until(test.ready_ns + VERY_LATE_NS);
    if (!wait_told(OUR_NAME, test.state, test.count - 1))
        return false;
    HARNESS_EXPECT(test.reached == test.count - 1, "a host that is not up was told");
    if (!bring_up(VERY_LATE) || !wait_told(OUR_NAME, test.state, test.count))
        return false;
    judge_start();
    printf("ladder: up at %u ms, told at %u ms\n", (uint32_t)(VERY_LATE_NS / 1000000),
           ms_since_ready(special(VERY_LATE)->told_ns));
    test.server.extra[1] = usual[0];
    test.server.extra[3] = usual[1];
    return true;
}

/* ---- 4: kill -9 in the middle ---- */

static bool run_kills(uint32_t rounds)
{
    uint64_t full_ns = SECOND_NS / 4; /* what telling everybody takes, as far as known */
    if (!add_plain(PLAIN_FEW, PLAIN_MANY) || !register_all())
        return false;
    for (uint32_t round = 1; round <= rounds; round++) {
        kill_now();
        printf("kills: round %u:", round);
        for (uint32_t kills = 1 + (uint32_t)(harness_random(&test.seed) % 3); kills > 0; kills--) {
            if (!start())
                return false;
            wait_until(test.ready_ns + harness_random(&test.seed) % full_ns);
            kill_now();
            judge_start();
            printf(" %u told, killed;", test.reached);
        }
        if (!start() || !wait_told(OUR_NAME, test.state, test.count))
            return false;
        /* Hosts that do without a portmapper on UDP take a second; the others are the storm. */
        uint64_t last_ns = test.ready_ns;
        for (uint32_t i = 0; i < test.count; i++)
            if (i - test.first_special >= SPECIALS && test.all[i].told_ns > last_ns)
                last_ns = test.all[i].told_ns;
        full_ns = last_ns - test.ready_ns + SECOND_NS / 100;
        judge_start();
        printf(" %u told of state %u in %u ms\n", test.reached, test.state,
               ms_since_ready(dial_now_ns()));
    }
    return true;
}

/* ---- 5 and 6: news while we serve ---- */

static bool send_call(const struct packet *call, uint32_t source, uint16_t port,
                      struct packet_reply *ret)
{
    static struct packet answer;
    struct dial_route route = harness_route(&test.server, true);
    route.source = dial_endpoint_v4(source, port);
    int err = dial_call(&route, call, CALL_MS, &answer, ret);
    return HARNESS_EXPECT(err == 0, "no answer: %s", strerror(-err));
}

static bool send_notice(uint32_t source, uint32_t xid, uint32_t state)
{
    static struct packet call;
    struct packet_reply reply;
    packet_clear(&call);
    peer_nsm_put_notify(&call, xid, WATCHED, state);
    return send_call(&call, source, 0, &reply) &&
           HARNESS_EXPECT(peer_nsm_is_void(&reply), "SM_NOTIFY: %s", packet_reply_text(&reply));
}

static void judge_relay(uint32_t state)
{
    count_told(WATCHED, state);
    for (uint32_t i = 0; i < test.count; i++) {
        uint32_t wanted = strcmp(test.all[i].mon_name, WATCHED) == 0;
        HARNESS_EXPECT(test.all[i].told == wanted, "host %u got %u relays of the state %u", i,
                       test.all[i].told, state);
    }
}

static bool run_relay(void)
{
    hosts_forget_calls();
    /* Relays leave in the order in which they became owed: what state 9 must not bring had come
       before state 7 arrived. */
    if (!send_notice(WATCHED_HOST, 501, 5) || !wait_told(WATCHED, 5, WATCHERS) ||
        !send_notice(WATCHED_HOST, 502, 5) || !send_notice(STRANGER, 503, 9) ||
        !send_notice(WATCHED_HOST, 504, 7) || !wait_told(WATCHED, 7, WATCHERS))
        return false;
    judge_relay(5);
    judge_relay(7);
    count_told(WATCHED, 9);
    HARNESS_EXPECT(test.reached == 0, "a stranger's notice was relayed to %u", test.reached);
    count_told(OUR_NAME, test.state);
    HARNESS_EXPECT(test.reached == 0, "a relay told %u of our own state", test.reached);
    hosts_each_call(judge_call, NULL);
    printf("relay: two states to %u watchers\n", WATCHERS);
    return true;
}

static bool ask_state(uint32_t *ret)
{
    static struct packet call;
    struct packet_reply reply;
    uint32_t res;
    packet_clear(&call);
    peer_nsm_put_stat(&call, 600 + *ret, OTHER);
    return send_call(&call, UINT32_C(0x7f000001), 0, &reply) &&
           HARNESS_EXPECT(peer_nsm_get_stat_res(&reply, &res, ret), "SM_STAT: %s",
                          packet_reply_text(&reply));
}

static bool run_simulated_crash(void)
{
    static struct packet call;
    struct packet_reply reply;
    uint32_t state = 0;
    hosts_forget_calls();
    packet_clear(&call);
    peer_nsm_put_simu_crash(&call, 700);
    if (!send_call(&call, UINT32_C(0x7f000001), 0, &reply) || !ask_state(&state))
        return false;
    HARNESS_EXPECT(state == test.state, "SM_SIMU_CRASH from any port made the state %u", state);
    packet_clear(&call);
    peer_nsm_put_simu_crash(&call, 701);
    if (!send_call(&call, UINT32_C(0x7f000001), PRIVILEGED, &reply) || !ask_state(&state))
        return false;
    if (!HARNESS_EXPECT(state > test.state, "SM_SIMU_CRASH left the state at %u", state))
        return false;
    test.ready_ns = dial_now_ns();
    test.previous = test.state;
    test.state = state;
    if (!wait_told(OUR_NAME, state, test.count))
        return false;
    judge_start();
    count_told(OUR_NAME, test.previous);
    HARNESS_EXPECT(test.reached == 0, "%u were told the state of before", test.reached);
    printf("simulated crash: %u told of state %u in %u ms\n", test.count, state,
           ms_since_ready(dial_now_ns()));
    return true;
}

/* ---- 7: hosts that are silent ---- */

static bool add_silent(void)
{
    bool is_listening = true;
    for (uint32_t i = 0; i < SILENT_HOSTS; i++) {
        struct hosts_host host = {.address = SILENT + i, .is_silent = true};
        uint32_t index = add_host(&host, "silent", OTHER);
        is_listening = hosts_listen(index, HOSTS_PORTMAP, true) && is_listening;
    }
    return HARNESS_EXPECT(is_listening, "a host has no sockets");
}

/* What other callers feel: NULL, and a new registration, each answered; at once, nearly always. */
static bool call_meanwhile(uint32_t number)
{
    static struct packet call;
    static const uint8_t priv[PEER_NSM_PRIV_LEN] = {7};
    struct peer_nsm_id id = {"meanwhile", "caller", HOSTS_PROG, HOSTS_VERS, HOSTS_PROC};
    struct packet_reply reply;
    uint32_t res, state;
    uint64_t begin_ns = dial_now_ns();
    packet_clear(&call);
    peer_nsm_put_null(&call, 2 * number);
    if (!send_call(&call, UINT32_C(0x7f000001), 0, &reply) ||
        !HARNESS_EXPECT(peer_nsm_is_void(&reply), "NULL: %s", packet_reply_text(&reply)))
        return false;
    packet_clear(&call);
    peer_nsm_put_mon(&call, 2 * number + 1, &id, priv);
    if (!send_call(&call, UINT32_C(0x7f000001), 0, &reply) ||
        !HARNESS_EXPECT(peer_nsm_get_stat_res(&reply, &res, &state) && res == PEER_NSM_STAT_SUCC &&
                            state == test.state,
                        "SM_MON: %s", packet_reply_text(&reply)))
        return false;
    test.slow += dial_now_ns() - begin_ns >= CALLER_NS;
    return true;
}

static bool run_silent(void)
{
    static const char over[] = "first round of notifications finished";
    uint32_t others = test.count, calls = 0;
    char words[80];
    if (!add_silent() || !register_all())
        return false;
    kill_now();
    if (!start())
        return false;
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (!harness_log_contains(&test.server, over) && dial_now_ns() < deadline_ns) {
        if (!call_meanwhile(1000 + calls++))
            return false;
        wait_briefly();
    }
    snprintf(words, sizeof(words), "clients=\"%u,%03u of %u,%03u reached, %u failed\"",
             others / 1000, others % 1000, test.count / 1000, test.count % 1000, SILENT_HOSTS);
    HARNESS_EXPECT(harness_log_contains(&test.server, words), "the log has no '%s'", words);
    judge_start();
    HARNESS_EXPECT(test.reached == others && calls > 0, "%u of %u were told, %u calls meanwhile",
                   test.reached, others, calls);
    /* The machine may hold one up; if silent hosts did, most would wait. */
    HARNESS_EXPECT(test.slow * 10 <= calls, "%u of %u NULL and SM_MON took over 2 s", test.slow,
                   calls);
    printf("silent: the round was over after %u ms; %u NULL and SM_MON meanwhile\n",
           ms_since_ready(dial_now_ns()), calls);
    return true;
}

int main(void)
{
    static const char *const options[] = {"--recovery-window", "5",  "--notify-timeout", "5",
                                          "--give-up",         "30", "--name",           OUR_NAME};
    if (!emu_net_enter()) {
        printf("notify: skipped: no network namespace of its own (%s); it takes root\n",
               strerror(errno));
        return HARNESS_SKIPPED;
    }
    harness_init("notify");
    test.seed = harness_seed() | 1;
    test.server.store = harness_path("store");
    for (uint32_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        test.server.extra[i] = options[i];
    if (!hosts_start()) {
        fprintf(stderr, "notify: no memory or no thread for the hosts\n");
        return 1;
    }
    bool is_done = start() && run_told() && run_specials() && run_ladder() &&
                   run_kills(harness_number("HOLDFAST_NOTIFY_ROUNDS", 3)) && run_relay() &&
                   run_simulated_crash() && run_silent();
    HARNESS_EXPECT(is_done, "not all was tried");
    if (test.server.pid > 0) {
        int code = harness_stop(&test.server, SIGTERM);
        HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    }
    hosts_stop();
    return harness_finish();
}
