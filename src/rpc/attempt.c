/*
 * attempt.c -- the phases of an attempt; client.h has the drawing.
 *
 * Each attempt has one timer, one xid at a time and at most one TCP connection at a time. What the
 * wire has to do for it is a set of flags; attempts with flags wait in one of three queues. What
 * was begun is finished first: a machine that is too slow for all calls then makes some of them,
 * instead of opening connections for all of them until the time of each is over.
 *
 * Always true, and asserted by attempt_check():
 *  (1) An attempt that has not ended has a timer, not later than its deadline.
 *  (2) A connection is counted in open_count from the moment it may be opened until it is lost,
 *      refused, or told to close. Somebody waits for a turn only while open_count is at its limit.
 *  (3) An ended attempt keeps its slot until its result was taken and its connection told to close.
 *  (4) LOOKING UP has an open question. CONNECTING has a connection or waits for one. ASKING has an
 *      open connection to the service, or awaits datagrams from it. RESTING has neither.
 *  (5) An attempt awaits news of a UDP port at most from LOOKING UP and from ASKING over UDP.
 *  (6) A result is told only when nothing that was written to a connection awaits an answer.
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
 *
 * Connections: the wire opens connections_max at once; the others wait for their turn, oldest
 * first. Who got no connection within CONNECT_NS while others wait goes to the end of the line:
 * hosts that swallow packets must not keep the turns from hosts that answer.
 */
#include "rpc/attempt.h"

#include "base/check.h"
#include "base/hash.h"
#include "codec/record_mark.h"

#define MS_NS         UINT64_C(1000000)
#define RESEND_NS     (400 * MS_NS)
#define LOOKUP_UDP_NS (1000 * MS_NS)
#define LOOKUP_NS     (2000 * MS_NS)
#define REST_NS       (500 * MS_NS)
#define CONNECT_NS    (1500 * MS_NS) /* two SYNs */
#define ASK_AGAIN_NS  (1000 * MS_NS) /* a call over UDP */

struct attempt *attempt_at(const struct rpc_client *client, uint32_t slot)
{
    return table_at(&client->attempts, slot);
}

uint32_t attempt_xid_chain(const struct rpc_client *client, uint32_t xid)
{
    return chains_of_hash(&client->by_xid, hash_mix(client->seed, xid));
}

uint32_t attempt_awaited_chain(const struct rpc_client *client, const struct address *host,
                               uint16_t port)
{
    uint64_t hash = hash_bytes(client->seed, (struct bytes){(const uint8_t *)host, sizeof *host});
    return chains_of_hash(&client->by_awaited, hash_mix(hash, port));
}

/* A new question gets a new xid; an answer to an older one is then nobody's. */
static void renew_xid(struct rpc_client *client, struct attempt *a)
{
    chains_remove(&client->by_xid, attempt_xid_chain(client, a->xid), a->slot);
    a->xid = client->next_xid++;
    chains_add(&client->by_xid, attempt_xid_chain(client, a->xid), a->slot);
}

static enum attempt_rank rank_of(uint32_t todo)
{
    if ((todo & (uint32_t)ATTEMPT_DISCONNECT) != 0)
        return ATTEMPT_CLOSES;
    bool was_begun = (todo & (uint32_t)(ATTEMPT_LOOKUP_TCP | ATTEMPT_ASK)) != 0;
    return was_begun ? ATTEMPT_GOES_ON : ATTEMPT_BEGINS;
}

static void set_todo(struct rpc_client *client, struct attempt *a, uint32_t todo)
{
    enum attempt_rank rank = rank_of(todo);
    a->todo = todo;
    if (todo != 0 && rank == a->rank && !list_is_empty(&a->by_todo))
        return;
    list_remove(&a->by_todo);
    a->rank = rank;
    if (todo != 0)
        list_append(&client->todo[rank], &a->by_todo);
}

/* What was due before stays due since then: a repeat of what has not left yet needs no new
 * commit. */
static void add_todo(struct rpc_client *client, struct attempt *a, enum attempt_todo todo)
{
    if (todo != ATTEMPT_DISCONNECT && (a->todo & (uint32_t)todo) == 0) {
        a->ticket = client->ticket;
        client->is_due = true;
    }
    set_todo(client, a, a->todo | (uint32_t)todo);
}

static void drop_todo(struct rpc_client *client, struct attempt *a, uint32_t todo)
{
    set_todo(client, a, a->todo & ~todo);
}

/* Not later than the deadline, which ends the attempt in any phase. */
static void wait_until(struct rpc_client *client, struct attempt *a, uint64_t time_ns)
{
    timers_set(&client->timers, a->slot,
               time_ns < a->call.deadline_ns ? time_ns : a->call.deadline_ns);
}

/* What the network says of a port is of interest from the first datagram to it on. */
static void await(struct rpc_client *client, struct attempt *a, uint16_t port)
{
    if (a->awaited_port == port)
        return;
    if (a->awaited_port != 0)
        chains_remove(&client->by_awaited,
                      attempt_awaited_chain(client, &a->call.to, a->awaited_port), a->slot);
    a->awaited_port = port;
    if (port != 0)
        chains_add(&client->by_awaited, attempt_awaited_chain(client, &a->call.to, port), a->slot);
}

static void enter(struct rpc_client *client, struct attempt *a, enum attempt_phase phase,
                  uint64_t now_ns)
{
    await(client, a, 0);
    a->phase = phase;
    a->phase_since_ns = now_ns;
}

/* ---- connections ---- */

/* Whoever waited longest may open one, as long as there may be one more. */
static void open_next(struct rpc_client *client)
{
    while (client->open_count < client->limits.connections_max &&
           !list_is_empty(&client->waiting_turn)) {
        struct attempt *a = LIST_ELEMENT(client->waiting_turn.next, struct attempt, by_turn);
        list_remove(&a->by_turn);
        a->wants_connection = false;
        client->open_count++;
        if (++client->serial == 0)
            client->serial = 1; /* 0 would make the connection of slot 0 "none" */
        a->connection = (uint64_t)client->serial << 32 | a->slot;
        add_todo(client, a, ATTEMPT_CONNECT);
    }
}

/* Asks for a connection to the portmapper or to the service; it may have to wait for its turn. */
static void want_connection(struct rpc_client *client, struct attempt *a, bool is_portmapper)
{
    a->is_portmapper = is_portmapper;
    a->has_tried_tcp |= is_portmapper;
    a->wants_connection = true;
    if (a->connection == 0 && list_is_empty(&a->by_turn))
        list_append(&client->waiting_turn, &a->by_turn);
    open_next(client);
}

/* The connection of an attempt is no more; whoever waits for a turn gets it. */
static void release_connection(struct rpc_client *client, struct attempt *a)
{
    CHECK(a->connection != 0);
    CHECK(client->open_count > 0);
    a->connection = 0;
    a->is_connected = false;
    a->is_unanswered = false;
    client->open_count--;
    if (a->wants_connection)
        list_append(&client->waiting_turn, &a->by_turn);
    open_next(client);
}

/* No connection, and no wish for one; nothing is to be done but to close it. */
static void disconnect(struct rpc_client *client, struct attempt *a)
{
    bool is_unheard_of = (a->todo & ATTEMPT_CONNECT) != 0; /* by the wire */
    list_remove(&a->by_turn);
    a->wants_connection = false;
    a->is_connected = false;
    set_todo(client, a, a->todo & (uint32_t)ATTEMPT_DISCONNECT);
    if (is_unheard_of)
        release_connection(client, a);
    else if (a->connection != 0)
        add_todo(client, a, ATTEMPT_DISCONNECT);
}

/* ---- moves between the phases ---- */

/* Whoever hears that there was no answer may act as if there never will be one. */
static bool is_tellable(const struct attempt *a)
{
    return a->has_result && !a->is_unanswered;
}

void attempt_end(struct rpc_client *client, struct attempt *a, enum client_outcome outcome)
{
    CHECK(a->phase != ATTEMPT_ENDED);
    disconnect(client, a);
    enter(client, a, ATTEMPT_ENDED, 0);
    a->outcome = outcome;
    a->has_result = true;
    timers_clear(&client->timers, a->slot);
    if (is_tellable(a))
        list_append(&client->results, &a->by_result);
}

static uint32_t first_prot(const struct attempt *a)
{
    return a->call.way == CLIENT_TCP_FIRST ? PORTMAP_TCP : PORTMAP_UDP;
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
    struct port_cache_key tcp = port_key(a, PORTMAP_TCP), udp = port_key(a, PORTMAP_UDP);
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
    disconnect(client, a);
    enter(client, a, ATTEMPT_RESTING, now_ns);
    wait_until(client, a, now_ns + REST_NS);
}

static void send_message(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    add_todo(client, a, ATTEMPT_ASK);
    if (a->prot == PORTMAP_UDP)
        await(client, a, a->port);
    wait_until(client, a, a->prot == PORTMAP_UDP ? now_ns + ASK_AGAIN_NS : UINT64_MAX);
}

static void ask(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    renew_xid(client, a);
    a->is_question_open = false;
    enter(client, a, ATTEMPT_ASKING, now_ns);
    send_message(client, a, now_ns);
}

/* The port is known, or guessed. */
static void go_to(struct rpc_client *client, struct attempt *a, uint32_t prot, uint16_t port,
                  bool is_guess, uint64_t now_ns)
{
    disconnect(client, a);
    a->prot = prot;
    a->port = port;
    a->is_guess = is_guess;
    if (prot == PORTMAP_UDP && a->call.sent_port == port) {
        MARK("client_is_there_already");
        attempt_end(client, a, CLIENT_ANSWERED);
        return;
    }
    if (a->prot == PORTMAP_UDP) {
        ask(client, a, now_ns);
        return;
    }
    enter(client, a, ATTEMPT_CONNECTING, now_ns);
    wait_until(client, a, now_ns + CONNECT_NS);
    want_connection(client, a, false);
}

static void send_question(struct rpc_client *client, struct attempt *a)
{
    if (a->is_connected) {
        add_todo(client, a, ATTEMPT_LOOKUP_TCP);
        return;
    }
    if (lookup_needs_tcp(&a->lookup)) {
        bool is_coming = a->connection != 0 && (a->todo & ATTEMPT_DISCONNECT) == 0;
        if (!is_coming)
            want_connection(client, a, true);
        return;
    }
    add_todo(client, a, ATTEMPT_LOOKUP_UDP);
    await(client, a, PORTMAP_PORT);
}

/* What stands in a->lookup, from now on. */
static void ask_portmapper(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    if (!a->is_question_open)
        renew_xid(client, a);
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
        prot = prot == PORTMAP_TCP ? PORTMAP_UDP : PORTMAP_TCP;
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
        go_to(client, a, PORTMAP_TCP, a->call.port_hint, true, now_ns);
        return;
    }
    rest(client, a, now_ns);
    if (a->phase == ATTEMPT_ENDED) /* the next one that is one way need not ask */
        note_port(client, a, first_prot(a), 0, now_ns);
}

/* ---- what the wire has to do ---- */

/* Builds a call in client->message with the record mark in front that a TCP stream needs. */
static struct bytes put_call(struct rpc_client *client, const struct attempt *a, bool is_question,
                             bool is_record)
{
    uint32_t skip = is_record ? RECORD_MARK_LEN : 0;
    uint32_t way = is_record ? PORTMAP_TCP : PORTMAP_UDP;
    struct xdr_out out =
        xdr_out_of(client->message + skip, (uint32_t)sizeof client->message - skip);
    if (is_question) {
        lookup_put(&a->lookup, way, a->xid, a->call.to.family, a->call.prog, a->call.vers, &out);
    } else {
        uint32_t i = a->message_index;
        rpc_msg_put_call(&out, a->xid, a->call.prog, a->call.vers, a->call.proc);
        xdr_put_fixed(&out, arena_at(client->arena, a->cells[i], a->call.messages[i].len));
    }
    CHECK(!out.overflowed);
    if (is_record)
        store_be32(client->message, RECORD_MARK_LAST | xdr_out_len(&out));
    return (struct bytes){client->message, skip + xdr_out_len(&out)};
}

void attempt_act(struct rpc_client *client, struct attempt *a, struct client_action *ret)
{
    CHECK(a->todo != 0);
    uint32_t first = a->todo & -a->todo;
    drop_todo(client, a, first);
    *ret = (struct client_action){
        .connection = a->connection, .to = a->call.to, .local = a->call.local};
    switch ((enum attempt_todo)first) {
    case ATTEMPT_DISCONNECT:
        ret->kind = CLIENT_DISCONNECT;
        ret->is_abort = a->is_unanswered;
        release_connection(client, a);
        if (is_tellable(a) && list_is_empty(&a->by_result))
            list_append(&client->results, &a->by_result);
        return;
    case ATTEMPT_CONNECT:
        ret->kind = CLIENT_CONNECT;
        ret->port = a->is_portmapper ? PORTMAP_PORT : a->port;
        ret->is_privileged = a->call.is_privileged && !a->is_portmapper;
        return;
    case ATTEMPT_LOOKUP_UDP:
        ret->kind = CLIENT_DATAGRAM;
        ret->port = PORTMAP_PORT;
        ret->bytes = put_call(client, a, true, false);
        return;
    case ATTEMPT_LOOKUP_TCP:
        ret->kind = CLIENT_WRITE;
        ret->bytes = put_call(client, a, true, true);
        a->is_unanswered = true;
        return;
    case ATTEMPT_ASK:
        ret->kind = a->prot == PORTMAP_UDP ? CLIENT_DATAGRAM : CLIENT_WRITE;
        ret->port = a->port;
        ret->from_listener = a->call.from_listener && a->prot == PORTMAP_UDP;
        ret->is_privileged = a->call.is_privileged;
        ret->bytes = put_call(client, a, false, a->prot == PORTMAP_TCP);
        a->is_unanswered = a->prot == PORTMAP_TCP;
        a->is_maybe_delivered = true;
        a->was_refused = false;
        a->is_repeated |= a->is_sent || a->prot == PORTMAP_UDP; /* the network repeats, too */
        a->is_sent = true;
        if (a->call.is_one_way && a->prot == PORTMAP_UDP)
            attempt_end(client, a, CLIENT_UNKNOWN);
        return;
    }
    UNREACHABLE();
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
    if (way == PORTMAP_TCP)
        a->is_unanswered = false;
    if (a->phase == ATTEMPT_LOOKING_UP)
        lookup_was_answered(client, a, way, answer, now_ns);
    else if (a->phase == ATTEMPT_ASKING)
        message_was_answered(client, a, answer, now_ns);
}

void attempt_unreachable(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    await(client, a, 0);
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
    want_connection(client, a, true);
    wait_until(client, a, a->phase_since_ns + LOOKUP_NS);
}

void attempt_connected(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    a->is_connected = true;
    if (a->phase == ATTEMPT_LOOKING_UP) {
        /* The same question with the same xid: whichever answer comes first. */
        drop_todo(client, a, ATTEMPT_LOOKUP_UDP);
        send_question(client, a);
    } else {
        CHECK(a->phase == ATTEMPT_CONNECTING);
        ask(client, a, now_ns);
    }
}

void attempt_lost(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    drop_todo(client, a, ATTEMPT_LOOKUP_TCP | ATTEMPT_ASK);
    release_connection(client, a);
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
        want_connection(client, a, true);
    else if (!has_tcp)
        send_question(client, a);
    bool is_early = age_ns < LOOKUP_UDP_NS && LOOKUP_UDP_NS < patience_ns;
    wait_until(client, a, a->phase_since_ns + (is_early ? LOOKUP_UDP_NS : patience_ns));
}

/*
 * No connection yet. Whoever waits for a turn is let in first. Where the port was only a guess, the
 * portmapper is asked again: a host that was silent may have come up meanwhile.
 */
static void keep_connecting(struct rpc_client *client, struct attempt *a, uint64_t now_ns)
{
    if (a->connection != 0 && !a->wants_connection && a->is_guess) {
        MARK("client_guess_is_silent");
        disconnect(client, a);
        forget_ports(client, a);
        attempt_look_up(client, a, now_ns);
        return;
    }
    if (a->connection != 0 && !a->wants_connection && !list_is_empty(&client->waiting_turn)) {
        MARK("client_connection_yields");
        disconnect(client, a);
        want_connection(client, a, false);
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
        CHECK(a->prot == PORTMAP_UDP);
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

static void check_phase(const struct attempt *a)
{
    bool is_closing = (a->todo & ATTEMPT_DISCONNECT) != 0;
    bool has_connection = a->connection != 0 && !is_closing;
    switch (a->phase) {
    case ATTEMPT_LOOKING_UP:
        CHECK(a->is_question_open);
        CHECK(!has_connection || a->is_portmapper);
        CHECK(a->awaited_port == 0 || a->awaited_port == PORTMAP_PORT);
        return;
    case ATTEMPT_CONNECTING:
        CHECK(a->prot == PORTMAP_TCP);
        CHECK(!a->is_portmapper);
        CHECK(!a->is_connected);
        CHECK(has_connection != a->wants_connection);
        CHECK(a->awaited_port == 0);
        return;
    case ATTEMPT_ASKING:
        CHECK(!a->is_question_open);
        CHECK(!a->wants_connection);
        CHECK(a->is_connected == (a->prot == PORTMAP_TCP));
        CHECK(a->awaited_port == (a->prot == PORTMAP_UDP ? a->port : 0));
        return;
    case ATTEMPT_RESTING:
    case ATTEMPT_ENDED:
        CHECK(!a->wants_connection);
        CHECK(!has_connection);
        CHECK(a->awaited_port == 0);
        CHECK((a->todo & ~(uint32_t)ATTEMPT_DISCONNECT) == 0);
        return;
    }
    UNREACHABLE();
}

void attempt_check(const struct rpc_client *client, const struct attempt *a)
{
    CHECK((a->phase == ATTEMPT_ENDED) != timers_is_set(&client->timers, a->slot));
    CHECK(a->phase != ATTEMPT_ENDED || a->has_result || a->todo != 0);
    CHECK(is_tellable(a) == !list_is_empty(&a->by_result));
    CHECK(!a->is_unanswered || a->connection != 0);
    CHECK((a->todo != 0) == !list_is_empty(&a->by_todo));
    CHECK((a->todo & ATTEMPT_DISCONNECT) == 0 || a->connection != 0);
    CHECK(!a->is_connected || a->connection != 0);
    CHECK(!list_is_empty(&a->by_turn) == (a->wants_connection && a->connection == 0));
    CHECK(!a->wants_connection || a->connection == 0 || (a->todo & ATTEMPT_DISCONNECT) != 0);
    CHECK(a->message_index <= a->call.message_count);
    check_phase(a);
}
