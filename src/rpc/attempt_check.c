/*
 * attempt_check.c -- what must be true of an attempt; see attempt.h.
 *
 *  (1) An attempt that has not ended has a timer, not later than its deadline.
 *  (2) A connection is counted in open_count from the moment it may be opened until it is lost,
 *      refused, or told to close. Somebody waits for a turn only while open_count is at its limit.
 *  (3) An ended attempt keeps its slot until its result was taken and its connection told to close.
 *  (4) LOOKING UP has an open question. CONNECTING has a connection or waits for one. ASKING has an
 *      open connection to the service, or awaits datagrams from it. RESTING has neither.
 *  (5) An attempt awaits news of a UDP port at most from LOOKING UP and from ASKING over UDP.
 *  (6) A result is told only when nothing that was written to a connection awaits an answer.
 *  (7) Nobody whose ticket is released waits behind somebody whose ticket is not.
 */
#include "rpc/attempt.h"

#include "base/check.h"

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
        CHECK(a->prot == TRANSPORT_TCP);
        CHECK(!a->is_portmapper);
        CHECK(!a->is_connected);
        CHECK(has_connection != a->wants_connection);
        CHECK(a->awaited_port == 0);
        return;
    case ATTEMPT_ASKING:
        CHECK(!a->is_question_open);
        CHECK(!a->wants_connection);
        CHECK(a->is_connected == (a->prot == TRANSPORT_TCP));
        CHECK(a->awaited_port == (a->prot == TRANSPORT_UDP ? a->port : 0));
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

static void check_queue(const struct rpc_client *client, const struct attempt *a)
{
    const struct list *queue = &client->todo[a->rank];
    CHECK((a->todo != 0) == !list_is_empty(&a->by_todo));
    if (a->todo == 0 || attempt_only_closes(a->rank) || a->by_todo.prev == queue)
        return;
    const struct attempt *before = LIST_ELEMENT(a->by_todo.prev, struct attempt, by_todo);
    CHECK(before->ticket <= a->ticket || before->ticket <= client->released);
}

void attempt_check(const struct rpc_client *client, const struct attempt *a)
{
    CHECK((a->phase == ATTEMPT_ENDED) != timers_is_set(&client->timers, a->slot));
    CHECK(a->phase != ATTEMPT_ENDED || a->has_result || a->todo != 0);
    CHECK(attempt_is_tellable(a) == !list_is_empty(&a->by_result));
    CHECK(!a->is_unanswered || (a->connection != 0 && list_is_empty(&a->by_result)));
    check_queue(client, a);
    CHECK((a->todo & ATTEMPT_DISCONNECT) == 0 || a->connection != 0);
    CHECK(!a->is_connected || a->connection != 0);
    CHECK(!list_is_empty(&a->by_turn) == (a->wants_connection && a->connection == 0));
    CHECK(!a->wants_connection || a->connection == 0 || (a->todo & ATTEMPT_DISCONNECT) != 0);
    CHECK(a->message_index <= a->call.message_count);
    check_phase(a);
}
