/*
 * line.c -- letters between the server and the hosts that it calls; see line.h.
 *
 * What is on its way when the server dies goes on: hosts still get the calls, and their answers
 * reach a server that knows nothing of them. Events of a line that the client has closed are
 * delivered too; it must not care.
 */
#include "line.h"

#include "base/hash.h"
#include "called.h"
#include "callee.h"
#include "era.h"
#include "kernel.h"
#include "machine.h"
#include "peer/packet.h"
#include "stranger.h"
#include "told.h"

#include <stdlib.h>

enum { PORTMAPPER = 111 };

static struct host *host_of(struct world *world, const struct address *address)
{
    for (uint32_t i = 0; i < world_host_count(world); i++)
        if (address_equal(&world->hosts[i].address, address))
            return &world->hosts[i];
    struct host *stranger = stranger_host(world, address);
    if (stranger != NULL)
        return stranger;
    char text[ADDRESS_TEXT_MAX];
    address_text(address, text);
    world_fail(world, "O10", "the server calls %s, from where nobody ever called", text);
}

static uint64_t delay_ns(struct world *world)
{
    return 1 + world_random(world, world->is_calm ? MILLISECOND : world->plan.delay_max_ns);
}

static bool happens(struct world *world, uint32_t percent)
{
    return !world->is_calm && !era_is_pressing(world) && world_chance(world, percent);
}

static void post(struct world *world, const struct letter *like, struct bytes bytes,
                 uint64_t time_ns)
{
    struct letter *letter = malloc(sizeof *letter + bytes.len);
    if (letter == NULL)
        abort();
    *letter = *like;
    letter->len = bytes.len;
    letter->sent_ns = world->now_ns;
    if (bytes.len > 0)
        memcpy(letter->bytes, bytes.at, bytes.len);
    queue_add(&world->queue, time_ns, QUEUE_LETTER, letter, 0);
}

/* Letters of a line arrive in order. */
static void post_in_order(struct world *world, const struct letter *like, struct bytes bytes,
                          uint64_t *last_ns, uint64_t after_ns)
{
    uint64_t at_ns = world->now_ns + after_ns + delay_ns(world) + world_resend_ns(world);
    if (at_ns <= *last_ns)
        at_ns = *last_ns + 1;
    *last_ns = at_ns;
    post(world, like, bytes, at_ns);
}

static void post_datagram(struct world *world, const struct letter *like, struct bytes bytes,
                          uint64_t after_ns)
{
    const struct plan *plan = &world->plan;
    uint32_t copies = happens(world, plan->loss) ? 0 : 1;
    while (copies < 4 && happens(world, plan->duplication))
        copies++;
    for (uint32_t i = 0; i < copies; i++) {
        uint64_t at_ns = world->now_ns + after_ns + delay_ns(world);
        if (happens(world, plan->late))
            at_ns += world_random(world, world_chance(world, 50) ? 10 * SECOND : 200 * SECOND);
        post(world, like, bytes, at_ns);
    }
}

/* ---- from the server ---- */

static struct line *find_line(struct world *world, uint32_t run, uint64_t connection)
{
    for (uint32_t i = world->line_count; i > 0; i--) {
        struct line *line = world->lines[i - 1];
        if (line->run < run)
            break;
        if (line->run == run && line->connection == connection)
            return line;
    }
    world_fail(world, "O10", "the client speaks of a connection that it never asked for");
}

static void connect_line(struct world *world, const struct client_action *action, struct host *host)
{
    if (world->line_count == world->line_max) {
        world->line_max = world->line_max ? 2 * world->line_max : 64;
        world->lines = realloc(world->lines, world->line_max * sizeof(struct line *));
        if (world->lines == NULL)
            abort();
    }
    struct line *line = calloc(1, sizeof *line);
    if (line == NULL)
        abort();
    *line = (struct line){.connection = action->connection,
                          .run = world->machine.run,
                          .host = host,
                          .port = action->port,
                          .is_open = true};
    world->lines[world->line_count++] = line;
    struct letter letter = {LETTER_CONNECT, line, host, action->port, 0, 0, false, 0};
    post_in_order(world, &letter, (struct bytes){0}, &line->to_host_ns, 0);
}

/* Somebody else answers: from another address, or from another port. */
static void forge_answer(struct world *world, const struct letter *letter, struct bytes call)
{
    static struct packet packet;
    struct letter answer = *letter;
    answer.kind = LETTER_ANSWER;
    if (world_chance(world, 50))
        answer.host = &world->hosts[(letter->host->index + 1) % world_host_count(world)];
    else
        answer.port++;
    packet_clear(&packet);
    packet_put_u32(&packet, packet_xid(call.at, call.len));
    packet_put_u32(&packet, 1); /* REPLY, accepted, AUTH_NONE, SUCCESS */
    for (uint32_t i = 0; i < 4; i++)
        packet_put_u32(&packet, 0);
    post(world, &answer, (struct bytes){packet.bytes, packet.len}, world->now_ns + 1);
}

/* A call leaves for its host. */
static void note_sent(struct world *world, const struct host *host, const struct address *local,
                      struct bytes call)
{
    if (stranger_is_at(world, &host->address))
        world->calls_out++; /* it may be told anything */
    else if (called_is_for_locker(world, host, call))
        called_sent(world, host, local, call);
    else
        told_sent(world, host, local, call);
}

static void send_datagram(struct world *world, const struct client_action *action,
                          struct host *host)
{
    struct letter letter = {LETTER_DATAGRAM,       NULL, host, action->port, 0, 0,
                            action->from_listener, 0};
    if (action->port != PORTMAPPER) {
        note_sent(world, host, &action->local, action->bytes);
        if (happens(world, world->plan.forged))
            forge_answer(world, &letter, action->bytes);
    }
    post_datagram(world, &letter, action->bytes, 0);
}

static void write_line(struct world *world, struct line *line, const struct client_action *action)
{
    if (!line->is_open)
        world_fail(world, "O10", "the client writes to a connection that it has closed");
    if (action->bytes.len < 4 ||
        load_be32(action->bytes.at) != (UINT32_C(0x80000000) | (action->bytes.len - 4)))
        world_fail(world, "O10", "a record has the wrong record mark");
    if (line->port != PORTMAPPER)
        note_sent(world, line->host, &action->local,
                  (struct bytes){action->bytes.at + 4, action->bytes.len - 4});
    struct letter letter = {LETTER_RECORD, line, line->host, line->port, 0, 0, false, 0};
    post_in_order(world, &letter, action->bytes, &line->to_host_ns, world->holds_ns);
}

void line_turn(struct world *world)
{
    uint32_t run = world->machine.run;
    struct client_action action;
    while (rpc_client_next_action(world->machine.client, &action)) {
        struct host *host = host_of(world, &action.to);
        host->tried_ns = world->now_ns;
        world->history = hash_mix(world->history, hash_bytes(world->now_ns, action.bytes));
        switch (action.kind) {
        case CLIENT_DATAGRAM:
            world_trace(world, "the server sends %u bytes to port %u of host %u", action.bytes.len,
                        action.port, host->index);
            send_datagram(world, &action, host);
            break;
        case CLIENT_CONNECT:
            world_trace(world, "the server connects to port %u of host %u", action.port,
                        host->index);
            connect_line(world, &action, host);
            break;
        case CLIENT_WRITE:
            world_trace(world, "the server writes %u bytes to host %u", action.bytes.len,
                        host->index);
            write_line(world, find_line(world, run, action.connection), &action);
            break;
        case CLIENT_DISCONNECT:
            find_line(world, run, action.connection)->is_open = false;
            find_line(world, run, action.connection)->is_aborted |= action.is_abort;
            break;
        }
    }
}

void line_turn_ghost(struct world *world)
{
    struct client_action action;
    while (rpc_client_next_action(world->machine.ghost, &action)) {
        bool is_sent = action.kind == CLIENT_DATAGRAM || action.kind == CLIENT_WRITE;
        if (!is_sent || world->now_ns >= world->machine.ghost_until_ns)
            continue; /* the last look at the clock: wire/caller_udp.c, caller_tcp.c */
        struct host *host = host_of(world, &action.to);
        world_trace(world, "the replaced server sends %u bytes to port %u of host %u",
                    action.bytes.len, action.port, host->index);
        if (action.kind == CLIENT_DATAGRAM)
            send_datagram(world, &action, host);
        else
            write_line(world, find_line(world, world->machine.ghost_run, action.connection),
                       &action);
        world->machine.ghost_sent++;
    }
}

/* ---- from the hosts ---- */

void line_answer(struct world *world, const struct letter *to, struct bytes message,
                 uint64_t after_ns)
{
    struct letter answer = {LETTER_ANSWER,     to->line, to->host, to->port, 0, 0,
                            to->from_listener, 0};
    if (to->line == NULL) {
        post_datagram(world, &answer, message, after_ns);
        return;
    }
    answer.kind = LETTER_ANSWER_RECORD;
    post_in_order(world, &answer, message, &to->line->to_server_ns, after_ns);
}

void line_break(struct world *world, const struct letter *to, uint64_t after_ns)
{
    struct letter letter = {LETTER_UNREACHABLE, to->line, to->host, to->port, 0, 0, false, 0};
    if (to->line == NULL) {
        post_datagram(world, &letter, (struct bytes){0}, after_ns);
        return;
    }
    letter.kind = LETTER_LOST;
    post_in_order(world, &letter, (struct bytes){0}, &to->line->to_server_ns, after_ns);
}

void line_accept(struct world *world, const struct letter *to, bool is_open)
{
    struct letter letter = {LETTER_REFUSED, to->line, to->host, to->port, 0, 0, false, 0};
    if (is_open)
        letter.kind = LETTER_CONNECTED;
    post_in_order(world, &letter, (struct bytes){0}, &to->line->to_server_ns, 0);
    if (is_open && happens(world, world->plan.loss / 4))
        line_break(world, to, world_random(world, SECOND));
}

/* ---- arrival ---- */

/* Nobody heard it; TCP says it again after 1, 2, 4 s. */
static void connect_again(struct world *world, const struct letter *letter)
{
    struct letter again = *letter;
    again.tries++;
    if (letter->line->is_open && letter->tries < 3)
        post(world, &again, (struct bytes){0}, world->now_ns + (SECOND << letter->tries));
}

static void arrive_at_server(struct world *world, const struct letter *letter)
{
    struct rpc_client *client = world->machine.client;
    struct bytes bytes = {letter->bytes, letter->len};
    const struct address *from = &letter->host->address;
    uint64_t now_ns = machine_now_ns(world);
    uint64_t connection = letter->line != NULL ? letter->line->connection : 0;
    if (!world->machine.is_up || (letter->line != NULL && letter->line->run != world->machine.run))
        return;
    switch (letter->kind) {
    case LETTER_DATAGRAM:
    case LETTER_CONNECT:
    case LETTER_RECORD:
        abort();
    case LETTER_ANSWER:
        core_listen_first(world->machine.core); /* something was read */
        if (letter->from_listener)
            machine_hear(world, from, letter->port, bytes);
        else
            rpc_client_datagram(client, from, letter->port, bytes, now_ns);
        break;
    case LETTER_UNREACHABLE:
        rpc_client_unreachable(client, from, letter->port, now_ns);
        break;
    case LETTER_CONNECTED:
    case LETTER_REFUSED:
        letter->line->is_open &= letter->kind == LETTER_CONNECTED;
        rpc_client_connected(client, connection, letter->kind == LETTER_CONNECTED, now_ns);
        break;
    case LETTER_ANSWER_RECORD:
        core_listen_first(world->machine.core);
        rpc_client_record(client, connection, bytes, now_ns);
        break;
    case LETTER_LOST:
        letter->line->is_open = false;
        letter->line->is_aborted = true; /* as wire/caller_tcp.c does */
        rpc_client_lost(client, connection, now_ns);
        break;
    }
    machine_called(world);
}

bool line_is_to_server(const struct letter *letter)
{
    return letter->kind != LETTER_DATAGRAM && letter->kind != LETTER_CONNECT &&
           letter->kind != LETTER_RECORD;
}

void line_arrive(struct world *world, struct letter *letter)
{
    bool is_record = letter->kind == LETTER_RECORD;
    if (is_record && !letter->line->is_aborted &&
        kernel_holds(world, &letter->line->kept, QUEUE_LETTER, letter))
        return;
    if (line_is_to_server(letter))
        arrive_at_server(world, letter);
    else if (is_record && letter->line->is_aborted && !world_allows(world, WORLD_LATE))
        world->excluded++; /* (5): what was on its way is the network's */
    else if (is_record && kernel_has_dropped(world, &letter->line->kept))
        world->kernel_dropped++;
    else if (letter->kind == LETTER_CONNECT &&
             (letter->host->mood == CALLEE_SILENT || happens(world, world->plan.loss / 2)))
        connect_again(world, letter);
    else if (letter->kind == LETTER_RECORD && happens(world, 2))
        line_break(world, letter, 0); /* on the way */
    else
        callee_receive(world, letter);
    free(letter);
}

void line_cut_all(struct world *world, bool is_replaced)
{
    if (!is_replaced) {
        line_end(world, world->machine.run);
        return;
    }
    for (uint32_t i = world->line_count; i > 0 && world->lines[i - 1]->run == world->machine.run;
         i--)
        world->lines[i - 1]->kept = kernel_keep(world);
}

void line_end(struct world *world, uint32_t run)
{
    for (uint32_t i = world->line_count; i > 0 && world->lines[i - 1]->run >= run; i--) {
        if (world->lines[i - 1]->run != run)
            continue;
        world->lines[i - 1]->is_open = false;
        world->lines[i - 1]->is_aborted = true; /* SO_LINGER 0: also by kill -9 */
    }
}

void line_done(struct world *world)
{
    for (uint32_t i = 0; i < world->line_count; i++)
        free(world->lines[i]);
    free(world->lines);
}
