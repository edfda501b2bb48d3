/*
 * attempt.c -- the phases of an attempt; client.h has the drawing.
 *
 * Each attempt has one timer, one xid at a time and at most one TCP connection at a time.
 *
 *
 * Look-up: a portmapper that is silent over UDP for LOOKUP_UDP_NS, or whose host says that nobody
 * listens there, is asked over TCP as well; silent for LOOKUP_NS, it counts as knowing nothing
 * (D4). Silence is measured from its last answer: a slow portmapper that must be asked twice is not
 * a silent one. Knowing nothing leads to the port hint if there is one (D3), else to a rest: "not
 * registered" is "not yet" (R-NOTIFY-6). After a rest an open question is asked again with the same
 * xid, so that an answer that is merely late counts, and silence is believed sooner.
 *
 * What the portmapper said is kept, for each transport by itself. A call goes where it prefers to
 * go, or to the other transport when the preferred one is known not to be there; when neither is
 * known the portmapper is asked.
 *
 * A call that is one way never rests, but for one reason: a port of the cache was no longer right,
 * and nothing has left yet. Over UDP it has ended once it has left.
 *
 * An RPC error ends the attempt where the portmapper has just named the port. At a port that was a
 * guess (the hint, or the cache) it says that somebody else is there, which may change in time.
 */
#include "rpc/attempt.h"

#include "base/check.h"
#include "base/units.h"

#define RESEND_NS     (400 * MS_NS)
#define LOOKUP_UDP_NS (1000 * MS_NS)
#define LOOKUP_NS     (2000 * MS_NS)
#define REST_NS       (500 * MS_NS)
#define CONNECT_NS    (1500 * MS_NS) /* two SYNs */
#define ASK_AGAIN_NS  (1000 * MS_NS) /* a call over UDP */

/* Not later than the deadline, which ends the attempt in any phase. */
static void wait_until(struct rpc_client *client, struct attempt *a, uint64_t time_ns)
{
    timers_set(&client->timers, a->slot,
               time_ns < a->call.deadline_ns ? time_ns : a->call.deadline_ns);
}

static void enter(struct rpc_client *client, struct attempt *a, enum attempt_phase phase,
                  uint64_t now_ns)
{
    attempt_await(client, a, 0);
    a->phase = phase;
    a->phase_since_ns = now_ns;
}

/* ---- moves between the phases ---- */

/* The caller that hears "no answer" may act as if there never will be one. */
bool attempt_is_tellable(const struct attempt *a)
{
    return a->has_result && !a->is_unanswered;
}

void attempt_end(struct rpc_client *client, struct attempt *a, enum client_outcome outcome)
{
    CHECK(a->phase != ATTEMPT_ENDED);
    attempt_disconnect(client, a);
    enter(client, a, ATTEMPT_ENDED, 0);
    a->outcome = outcome;
    a->has_result = true;
    timers_clear(&client->timers, a->slot);
    if (attempt_is_tellable(a))
        list_append(&client->results, &a->by_result);
}

static uint32_t first_prot(const struct attempt *a)
{
    return a->call.way == CLIENT_TCP_FIRST ? TRANSPORT_TCP : TRANSPORT_UDP;
}

static struct port_cache_key port_key(const struct attempt *a, uint32_t prot)
{
    return (struct port_cache_key){
        .host = a->call.to, .prog = a->call.prog, .vers = a->call.vers, .prot = prot};
}

/* The port that is known; 0: none is, and *ret_absent says whether that is known. */
static uint16_t known_port(struct rpc_client *client, const struct attempt *a, uint32_t prot,
                           uint64_t now_ns, bool *ret_absent)
{
    struct port_cache_key key = port_key(a, prot);
    uint16_t port = 0;
    *ret_absent = port_cache_get(client->ports, &key, now_ns, &port) && port == 0;
    return port;
}

static void note_port(struct rpc_client *client, const struct attempt *a, uint32_t prot,
                      uint16_t port, uint64_t now_ns)
{
    struct port_cache_key key = port_key(a, prot);
    port_cache_put(client->ports, &key, port, now_ns);
}

/* What was known of the program is doubtful. */
static void forget_ports(struct rpc_client *client, const struct attempt *a)
{
    struct port_cache_key tcp = port_key(a, TRANSPORT_TCP), udp = port_key(a, TRANSPORT_UDP);
    port_cache_drop(client->ports, &tcp);
    port_cache_drop(client->ports, &udp);
}

static void give_up(struct rpc_client *client, struct attempt *a);

static void rest(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    forget_ports(client, a);
    if (a->is_finishing || (a->call.is_one_way && (a->is_maybe_delivered || !a->is_guess))) {
        give_up(client, a);
        return;
    }
    attempt_disconnect(client, a);
    enter(client, a, ATTEMPT_RESTING, now_ns);
    wait_until(client, a, now_ns + REST_NS);
}

static void send_message(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    attempt_add_todo(client, a, ATTEMPT_ASK);
    if (a->prot == TRANSPORT_UDP)
        attempt_await(client, a, a->port);
    wait_until(client, a, a->prot == TRANSPORT_UDP ? now_ns + ASK_AGAIN_NS : UINT64_MAX);
}

static void ask(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    attempt_change_xid(client, a);
    a->is_question_open = false;
    enter(client, a, ATTEMPT_ASKING, now_ns);
    send_message(client, a, now_ns);
}

/* A portmapper may have an old entry of ours in the lock manager's place. We would answer what is
 * meant for it. */
static bool is_our_own(const struct rpc_client *client, const struct attempt *a, uint16_t port)
{
    const uint16_t *ours = client->limits.our_ports;
    return a->call.is_upcall && (port == ours[0] || port == ours[1]);
}

/* The port is known, or guessed. */
static void go_to(struct rpc_client *client, struct attempt *a, uint32_t prot, uint16_t port,
                  bool is_guess, uint64_t now_ns)
{
    attempt_disconnect(client, a);
    a->prot = prot;
    a->port = port;
    a->is_guess = is_guess;
    if (prot == TRANSPORT_UDP && a->call.sent_port == port) {
        MARK("client_is_there_already");
        attempt_end(client, a, CLIENT_ANSWERED);
        return;
    }
    if (a->prot == TRANSPORT_UDP) {
        ask(client, a, now_ns);
        return;
    }
    enter(client, a, ATTEMPT_CONNECTING, now_ns);
    wait_until(client, a, now_ns + CONNECT_NS);
    attempt_want_connection(client, a, false);
}

static void send_question(struct rpc_client *client, struct attempt *a)
{
    if (a->is_connected) {
        attempt_add_todo(client, a, ATTEMPT_LOOKUP_TCP);
        return;
    }
    if (lookup_needs_tcp(&a->lookup)) {
        bool is_coming = a->connection != 0 && (a->todo & ATTEMPT_DISCONNECT) == 0;
        if (!is_coming)
            attempt_want_connection(client, a, true);
        return;
    }
    attempt_add_todo(client, a, ATTEMPT_LOOKUP_UDP);
    attempt_await(client, a, PORTMAP_PORT);
}

/* What stands in a->lookup, from now on. */
static void ask_portmapper(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    if (!a->is_question_open)
        attempt_change_xid(client, a);
    a->is_question_open = true;
    a->is_udp_unreachable = false;
    a->is_guess = false;
    enter(client, a, ATTEMPT_LOOKING_UP, now_ns);
    send_question(client, a);
    wait_until(client, a, now_ns + RESEND_NS);
}

void attempt_look_up(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    bool is_only = a->call.way == CLIENT_UDP_ONLY, is_absent, is_other_absent;
    uint32_t prot = first_prot(a);
    uint16_t port = known_port(client, a, prot, now_ns, &is_absent);
    if (port == 0 && is_absent && !is_only) {
        prot = prot == TRANSPORT_TCP ? TRANSPORT_UDP : TRANSPORT_TCP;
        port = known_port(client, a, prot, now_ns, &is_other_absent);
    }
    if (port != 0) {
        MARK("client_port_cached");
        go_to(client, a, prot, port, true, now_ns);
        return;
    }
    if (is_absent && is_only) {
        MARK("client_known_to_be_absent");
        attempt_end(client, a, CLIENT_UNDELIVERED);
        return;
    }
    if (!a->is_question_open)
        a->lookup = lookup_begin(a->call.to.family, first_prot(a), is_only);
    ask_portmapper(client, a, now_ns);
}

/* Its portmapper is not there, or does not know the program. */
static void knows_nothing(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    if (lookup_needs_tcp(&a->lookup))
        a->is_question_open = false; /* from the beginning: the program may be on UDP by then */
    if (a->call.port_hint != 0) {
        MARK("client_port_hint");
        go_to(client, a, TRANSPORT_TCP, a->call.port_hint, true, now_ns);
        return;
    }
    rest(client, a, now_ns);
    if (a->phase == ATTEMPT_ENDED) /* the next one that is one way need not ask */
        note_port(client, a, first_prot(a), 0, now_ns);
}

/* ---- what happened ---- */

static void lookup_was_answered(struct rpc_client *client, struct attempt *a, uint32_t way,
                                const struct rpc_answer *answer, uint64_t now_ns)
{
    uint16_t port = 0;
    uint32_t prot = lookup_prot(&a->lookup, way);
    bool was_last = a->lookup.is_last;
    a->is_question_open = false;
    a->was_silent = false;
    switch (lookup_answered(&a->lookup, way, answer, &port)) {
    case LOOKUP_FOUND:
        if (is_our_own(client, a, port)) {
            rest(client, a, now_ns);
            return;
        }
        note_port(client, a, prot, port, now_ns);
        go_to(client, a, prot, port, false, now_ns);
        return;
    case LOOKUP_ASK:
        if (a->lookup.is_last != was_last) /* it is not on this one */
            note_port(client, a, prot, 0, now_ns);
        ask_portmapper(client, a, now_ns);
        return;
    case LOOKUP_NOTHING:
        knows_nothing(client, a, now_ns);
        return;
    }
    UNREACHABLE();
}

static void message_was_answered(struct rpc_client *client, struct attempt *a,
                                 const struct rpc_answer *answer, uint64_t now_ns)
{
    if (answer->stat != RPC_ANSWER_SUCCESS) {
        a->was_refused = true;
        a->is_sent = false;
        forget_ports(client, a);
        if (a->is_guess) {
            MARK("client_refused_at_a_guess");
            rest(client, a, now_ns);
        } else {
            attempt_end(client, a, CLIENT_REFUSED);
        }
        return;
    }
    a->body_len = answer->results.len <= sizeof a->body ? answer->results.len : 0;
    if (a->body_len > 0)
        memcpy(a->body, answer->results.at, a->body_len);
    a->is_sent = false;
    a->message_index++;
    if (a->message_index == a->call.message_count)
        attempt_end(client, a, CLIENT_ANSWERED);
    else
        ask(client, a, now_ns);
}

void attempt_answered(struct rpc_client *client, struct attempt *a, uint32_t way,
                      const struct rpc_answer *answer, uint64_t now_ns)
{
    if (way == TRANSPORT_TCP)
        a->is_unanswered = false;
    if (a->phase == ATTEMPT_LOOKING_UP)
        lookup_was_answered(client, a, way, answer, now_ns);
    else if (a->phase == ATTEMPT_ASKING)
        message_was_answered(client, a, answer, now_ns);
}

void attempt_unreachable(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    attempt_await(client, a, 0);
    if (a->phase == ATTEMPT_ASKING) {
        rest(client, a, now_ns);
        return;
    }
    CHECK(a->phase == ATTEMPT_LOOKING_UP);
    a->is_udp_unreachable = true;
    if (a->connection != 0 || a->wants_connection)
        return; /* TCP will tell */
    if (a->has_tried_tcp || a->call.way == CLIENT_UDP_ONLY) {
        MARK("client_no_portmapper");
        knows_nothing(client, a, now_ns);
        return;
    }
    /* Once per attempt: a firewall may refuse one of the two. */
    attempt_want_connection(client, a, true);
    wait_until(client, a, a->phase_since_ns + LOOKUP_NS);
}

void attempt_connected(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    a->is_connected = true;
    if (a->phase == ATTEMPT_LOOKING_UP) {
        /* The same question with the same xid: whichever answer comes first. */
        attempt_drop_todo(client, a, ATTEMPT_LOOKUP_UDP);
        send_question(client, a);
    } else {
        CHECK(a->phase == ATTEMPT_CONNECTING);
        ask(client, a, now_ns);
    }
}

void attempt_lost(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    attempt_drop_todo(client, a, ATTEMPT_LOOKUP_TCP | ATTEMPT_ASK);
    attempt_release_connection(client, a);
    if (a->phase != ATTEMPT_LOOKING_UP) {
        rest(client, a, now_ns);
    } else if (a->is_udp_unreachable || lookup_needs_tcp(&a->lookup)) {
        MARK("client_no_portmapper_on_tcp");
        knows_nothing(client, a, now_ns);
    } else {
        send_question(client, a); /* it may be slow over UDP; the timer stands */
    }
}

/* ---- time ---- */

/* The portmapper has not answered yet. */
static void keep_looking_up(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - a->phase_since_ns;
    uint64_t patience_ns = a->was_silent ? REST_NS : LOOKUP_NS;
    if (age_ns >= patience_ns) {
        MARK("client_portmapper_silent");
        a->was_silent = true;
        knows_nothing(client, a, now_ns);
        return;
    }
    bool has_tcp = a->connection != 0 || a->wants_connection;
    if (age_ns >= LOOKUP_UDP_NS && !has_tcp && a->call.way != CLIENT_UDP_ONLY)
        attempt_want_connection(client, a, true);
    else if (!has_tcp)
        send_question(client, a);
    bool is_early = age_ns < LOOKUP_UDP_NS && LOOKUP_UDP_NS < patience_ns;
    wait_until(client, a, a->phase_since_ns + (is_early ? LOOKUP_UDP_NS : patience_ns));
}

/*
 * No connection yet. Attempts that wait for a turn go first. Where the port was only a guess, the
 * portmapper is asked again: a host that was silent may have come up meanwhile.
 */
static void keep_connecting(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    if (a->connection != 0 && !a->wants_connection && a->is_guess) {
        MARK("client_guess_is_silent");
        attempt_disconnect(client, a);
        forget_ports(client, a);
        attempt_look_up(client, a, now_ns);
        return;
    }
    if (a->connection != 0 && !a->wants_connection && !list_is_empty(&client->waiting_turn)) {
        MARK("client_connection_yields");
        attempt_disconnect(client, a);
        attempt_want_connection(client, a, false);
    }
    wait_until(client, a, now_ns + CONNECT_NS);
}

static void give_up(struct rpc_client *client, struct attempt *a)
{
    if (a->phase == ATTEMPT_CONNECTING || a->phase == ATTEMPT_ASKING)
        forget_ports(client, a);
    enum client_outcome outcome = CLIENT_UNDELIVERED;
    if (a->is_maybe_delivered)
        outcome = a->was_refused ? CLIENT_REFUSED : CLIENT_UNKNOWN;
    attempt_end(client, a, outcome);
}

void attempt_finish(struct rpc_client *client, struct attempt *a, uint64_t deadline_ns,
                    uint64_t now_ns)
{
    bool is_written = a->phase == ATTEMPT_ASKING && a->is_unanswered;
    a->is_finishing = true;
    if (!is_written || deadline_ns <= now_ns) {
        give_up(client, a);
        return;
    }
    MARK("client_awaits_a_last_answer");
    if (deadline_ns < a->call.deadline_ns)
        a->call.deadline_ns = deadline_ns;
    wait_until(client, a, UINT64_MAX);
}

void attempt_time_out(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    if (now_ns >= a->call.deadline_ns) {
        give_up(client, a);
        return;
    }
    switch (a->phase) {
    case ATTEMPT_LOOKING_UP:
        keep_looking_up(client, a, now_ns);
        return;
    case ATTEMPT_CONNECTING:
        keep_connecting(client, a, now_ns);
        return;
    case ATTEMPT_ASKING: /* over UDP: the same call again */
        CHECK(a->prot == TRANSPORT_UDP);
        send_message(client, a, now_ns);
        return;
    case ATTEMPT_RESTING:
        attempt_look_up(client, a, now_ns);
        return;
    case ATTEMPT_ENDED:
        break;
    }
    UNREACHABLE();
}
