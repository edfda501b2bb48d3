/*
 * test_client.c -- one attempt in every situation, move by move in virtual time: look-ups, hints,
 * silence, refusals, losses.
 *
 * Each test says what the client must want done, and nothing else, at every moment. How many
 * attempts share limits and the port cache is in test_client_many.c, how they end before their time
 * in test_client_end.c, random histories in test_client_random.c.
 */
#include "call_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct world world;
static struct packet answer;

static int begin(void **state)
{
    (void)state;
    world_begin(&world, 16, 16);
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_end(&world);
    return 0;
}

/* Up to the open connection with the first message written to it. */
static void reach_service(uint16_t port)
{
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, port);
    world_expect_connect(&world, port);
    world_connected(&world, true);
    world_expect_message_tcp(&world, 0);
}

static void test_client__over_tcp(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    reach_service(700);
    world_expect_nothing(&world);
    world_expect_no_result(&world);
    world_answer_void_tcp(&world);
    world_expect_disconnect(&world, world.connection);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

static void test_client__over_udp_where_only_that_is_registered(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, 0);
    world_expect_question(&world, 2, 17);
    world_answer_port(&world, 800);
    world_expect_message_udp(&world, 800, 0);
    uint32_t xid = world.xid;
    for (uint32_t i = 0; i < 3; i++) { /* repeated with the same xid */
        world_pass_ms(&world, 999);
        world_expect_nothing(&world);
        world_pass_ms(&world, 1);
        world_expect_message_udp(&world, 800, 0);
        assert_int_equal(world.xid, xid);
    }
    world_answer_void_udp(&world, 800);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
    world_answer_void_udp(&world, 800); /* to one of the others */
}

/* Where RPCBIND is spoken, the answer is about the way of the question, and so is the question. */
static void test_client__portmapper_of_other_versions(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    world_put_accepted(&answer, world.xid, PACKET_PROG_MISMATCH);
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_question(&world, 4, 17);
    world_put_accepted(&answer, world.xid, PACKET_PROG_MISMATCH);
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_question(&world, 3, 17);
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS);
    packet_put_text(&answer, "0.0.0.0.3.32");
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_message_udp(&world, 800, 0);
    world_answer_void_udp(&world, 800);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

static void test_client__portmapper_that_refuses_every_version(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    const uint32_t versions[] = {2, 4, 3};
    for (uint32_t i = 0; i < 3; i++) {
        world_expect_question(&world, versions[i], i == 0 ? 6 : 17);
        world_put_accepted(&answer, world.xid, PACKET_PROG_MISMATCH);
        world_datagram(&world, 1, PORTMAPPER, &answer);
    }
    world_expect_nothing(&world); /* rests */
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    rpc_client_cancel(world.client, 7);
}

static void test_client__not_registered_is_not_yet(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    for (uint32_t i = 0; i < 10; i++) { /* every 500 ms until 5 s are over */
        world_expect_question(&world, 2, 6);
        world_answer_port(&world, 0);
        world_expect_question(&world, 2, 17);
        world_answer_port(&world, 0);
        world_pass_ms(&world, 499);
        world_expect_nothing(&world);
        world_expect_no_result(&world);
        world_pass_ms(&world, 1);
    }
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0);
}

static void test_client__not_registered_leads_to_the_hint(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, 0);
    world_expect_question(&world, 2, 17);
    world_answer_port(&world, 0);
    world_expect_connect(&world, 12049);
    world_connected(&world, true);
    world_expect_message_tcp(&world, 0);
    world_answer_void_tcp(&world);
    world_expect_disconnect(&world, world.connection);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

static void test_client__portmapper_error_leads_to_the_hint(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_put_accepted(&answer, world.xid, PACKET_SYSTEM_ERR);
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_connect(&world, 12049);
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, world.connection);
}

/* 1 s of silence over UDP: TCP; 2 s: the hint, by which time the question has one xid throughout.
 */
static void test_client__silent_portmapper(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    uint32_t xid = world.xid;
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    assert_int_equal(world.xid, xid);
    world_pass_ms(&world, 599);
    world_expect_nothing(&world);
    world_pass_ms(&world, 1);
    world_expect_connect(&world, PORTMAPPER);
    world_pass_ms(&world, 300);
    world_connected(&world, true);
    world_expect_question_tcp(&world, 2, 6);
    assert_int_equal(world.xid, xid);
    world_pass_ms(&world, 699);
    world_expect_nothing(&world);
    uint64_t portmapper = world.connection;
    world_pass_ms(&world, 1);
    world_expect_disconnect(&world, portmapper);
    world_expect_connect(&world, 12049);
    world_connected(&world, false);
    /* It stays silent, and is now given 500 ms, so that the hint is tried once per second. */
    for (uint32_t i = 0; i < 2; i++) {
        world_pass_ms(&world, 500);
        world_expect_question(&world, 2, 6);
        assert_int_equal(world.xid, xid);
        world_pass_ms(&world, 400);
        world_expect_question(&world, 2, 6);
        world_pass_ms(&world, 100);
        world_expect_connect(&world, 12049);
        world_connected(&world, false);
    }
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 100);
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0); /* 5 s */
}

static void test_client__portmapper_on_tcp_only(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 600);
    world_expect_connect(&world, PORTMAPPER);
    world_connected(&world, true);
    world_expect_question_tcp(&world, 2, 6);
    world_answer_port_tcp(&world, 0);
    world_expect_question_tcp(&world, 2, 17); /* on the same connection */
    world_pass_ms(&world, 1500);
    world_expect_nothing(&world); /* patience counts from its last answer */
    world_answer_port_tcp(&world, 800);
    world_expect_disconnect(&world, world.connection);
    world_expect_message_udp(&world, 800, 0);
    world_answer_void_udp(&world, 800);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

/* Slower than 1 s over UDP, with a TCP port that accepts and says nothing, or refuses. */
static void test_client__slow_portmapper(void **state)
{
    (void)state;
    for (uint32_t refuses = 0; refuses < 2; refuses++) {
        world_start(&world, 7, 12049);
        world_expect_question(&world, 2, 6);
        world_pass_ms(&world, 400);
        world_expect_question(&world, 2, 6);
        world_pass_ms(&world, 600);
        world_expect_connect(&world, PORTMAPPER);
        uint64_t portmapper = world.connection;
        world_connected(&world, refuses == 0);
        if (refuses)
            world_expect_question(&world, 2, 6);
        else
            world_expect_question_tcp(&world, 2, 6);
        world_pass_ms(&world, 500);
        world_answer_port(&world, 700);
        if (!refuses)
            world_expect_disconnect(&world, portmapper);
        world_expect_connect(&world, 700);
        world_connected(&world, true);
        world_expect_message_tcp(&world, 0);
        rpc_client_cancel(world.client, 7);
        world_expect_disconnect(&world, world.connection);
        world_pass_ms(&world, 130000); /* the cache forgets the port */
    }
}

/* Slower than the whole look-up: the answer to the first question still counts in the second. */
static void test_client__very_slow_portmapper(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    uint32_t xid = world.xid;
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 600);
    world_expect_connect(&world, PORTMAPPER);
    world_pass_ms(&world, 1000);
    world_expect_disconnect(&world, world.connection);
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    assert_int_equal(world.xid, xid);
    world_pass_ms(&world, 100);
    world_answer_port(&world, 700);
    world_expect_connect(&world, 700);
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, world.connection);
}

/* The host says that nobody listens: TCP is tried once, since a firewall may refuse one of two. */
static void test_client__no_portmapper(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_unreachable(&world, 112); /* another port */
    world_expect_nothing(&world);
    world_unreachable(&world, PORTMAPPER);
    world_expect_connect(&world, PORTMAPPER);
    world_unreachable(&world, PORTMAPPER); /* the same news again */
    world_expect_nothing(&world);
    world_connected(&world, false);
    world_expect_connect(&world, 12049);
    world_connected(&world, false);
    world_unreachable(&world, PORTMAPPER);
    world_expect_nothing(&world);
    for (uint32_t i = 0; i < 9; i++) {
        world_pass_ms(&world, 500);
        world_expect_question(&world, 2, 6);
        world_unreachable(&world, PORTMAPPER);
        world_expect_connect(&world, 12049);
        world_connected(&world, false);
    }
    world_pass_ms(&world, 500);
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0);
}

/* The news of UDP comes when TCP is already under way: TCP decides. */
static void test_client__no_portmapper_said_late(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 600);
    world_expect_connect(&world, PORTMAPPER);
    world_unreachable(&world, PORTMAPPER);
    world_expect_nothing(&world);
    world_connected(&world, false);
    world_expect_connect(&world, 12049);
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, world.connection);
}

static void test_client__portmapper_behind_a_firewall_for_udp(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_unreachable(&world, PORTMAPPER);
    world_expect_connect(&world, PORTMAPPER);
    world_connected(&world, true);
    world_expect_question_tcp(&world, 2, 6);
    world_answer_port_tcp(&world, 700);
    world_expect_disconnect(&world, world.connection);
    world_expect_connect(&world, 700);
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, world.connection);
}

/* Refused every 500 ms for 3 s; then it comes up, inside the first budget. */
static void test_client__comes_up_after_3_s(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    for (uint32_t i = 0; i < 6; i++) {
        world_expect_question(&world, 2, 6); /* looked up anew each time: the port may change */
        world_answer_port(&world, (uint16_t)(700 + i));
        world_expect_connect(&world, (uint16_t)(700 + i));
        world_connected(&world, false);
        world_pass_ms(&world, 500);
    }
    reach_service(750);
    world_answer_void_tcp(&world);
    world_expect_disconnect(&world, world.connection);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

static void test_client__several_messages_over_one_connection(void **state)
{
    (void)state;
    struct client_attempt attempt = world_attempt(&world, 7, 8);
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    reach_service(700);
    uint32_t last_xid = world.xid;
    for (uint32_t i = 1; i < 8; i++) {
        world_answer_void_tcp(&world);
        world_expect_message_tcp(&world, i);
        assert_int_not_equal(world.xid, last_xid);
        uint32_t xid = world.xid;
        world.xid = last_xid; /* the last answer once more */
        world_answer_void_tcp(&world);
        world_expect_nothing(&world);
        last_xid = world.xid = xid;
    }
    world_answer_void_tcp(&world);
    world_expect_disconnect(&world, world.connection);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 8);
}

/* Which message was answered is kept over lost connections; the rest is sent again. */
static void test_client__connection_lost_between_messages(void **state)
{
    (void)state;
    struct client_attempt attempt = world_attempt(&world, 7, 3);
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    reach_service(700);
    world_answer_void_tcp(&world);
    world_expect_message_tcp(&world, 1);
    world_lost(&world);
    world_lost(&world); /* nobody's by now */
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, 701);
    world_expect_connect(&world, 701);
    world_connected(&world, true);
    world_expect_message_tcp(&world, 1);
    world_answer_void_tcp(&world);
    world_lost(&world); /* before the third message was asked for */
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 600);
    world_expect_connect(&world, PORTMAPPER);
    world_pass_ms(&world, 1000);
    world_expect_disconnect(&world, world.connection);
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 600);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 100);
    world_expect_result(&world, 7, CLIENT_UNKNOWN, 2);
}

static void test_client__lost_portmapper_connection(void **state)
{
    (void)state;
    world_start(&world, 7, 12049);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 600);
    world_expect_connect(&world, PORTMAPPER);
    world_connected(&world, true);
    world_expect_question_tcp(&world, 2, 6);
    world_lost(&world);
    world_expect_question(&world, 2, 6); /* over UDP again, until 2 s are over */
    world_pass_ms(&world, 1000);
    world_expect_connect(&world, 12049);
    rpc_client_cancel(world.client, 7);
    world_expect_disconnect(&world, world.connection);
}

/* ---- answers that are none ---- */

static void test_client__answers_from_elsewhere(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    uint32_t xid = world.xid;
    world_put_accepted(&answer, xid, PACKET_SUCCESS);
    packet_put_u32(&answer, 666);
    world_datagram(&world, 2, PORTMAPPER, &answer); /* another host */
    world_datagram(&world, 1, 112, &answer);        /* another port */
    packet_set_xid(&answer, xid + 1);
    world_datagram(&world, 1, PORTMAPPER, &answer); /* another question */
    packet_set_xid(&answer, xid);
    answer.len = 23;
    world_datagram(&world, 1, PORTMAPPER, &answer); /* cut */
    answer.len = 0;
    world_datagram(&world, 1, PORTMAPPER, &answer); /* empty */
    packet_put_call(&answer, &(struct packet_call){.xid = xid, .prog = 100000});
    world_datagram(&world, 1, PORTMAPPER, &answer); /* a call */
    world_expect_nothing(&world);
    world_answer_port(&world, 0);
    world_expect_question(&world, 2, 17);
    uint32_t second_xid = world.xid;
    world.xid = xid;
    world_answer_port(&world, 666); /* the first question, which was answered */
    world_expect_nothing(&world);
    world.xid = second_xid;
    world_answer_port(&world, 800);
    world_expect_message_udp(&world, 800, 0);
    world_answer_void_udp(&world, 801);
    world_answer_void_udp(&world, PORTMAPPER);
    world_expect_no_result(&world);
    world_answer_void_udp(&world, 800);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

static void test_client__answers_over_tcp_that_are_none(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    reach_service(700);
    uint32_t xid = world.xid;
    world_put_accepted(&answer, xid, PACKET_SUCCESS);
    world_datagram(&world, 1, 700, &answer); /* over UDP, to a call over TCP */
    world_expect_no_result(&world);
    world.xid = xid - 1;
    world_answer_void_tcp(&world);
    answer.len = 23;
    world_record(&world, &answer);
    answer.len = 24;
    rpc_client_record(world.client, world.connection + (UINT64_C(1) << 32),
                      (struct bytes){answer.bytes, answer.len}, world.now_ns);
    rpc_client_record(world.client, 0, (struct bytes){answer.bytes, answer.len}, world.now_ns);
    rpc_client_record(world.client, 9999, (struct bytes){answer.bytes, answer.len}, world.now_ns);
    world_expect_nothing(&world);
    world_expect_no_result(&world);
    world.xid = xid;
    world_answer_void_tcp(&world);
    world_answer_void_tcp(&world); /* twice */
    world_expect_disconnect(&world, world.connection);
    world_answer_void_tcp(&world); /* and when it is closed */
    world_lost(&world);
    world_connected(&world, true);
    world_expect_result(&world, 7, CLIENT_ANSWERED, 1);
}

static void test_client__registered_at_an_impossible_port(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, 65536 + 700); /* not 700 */
    world_expect_question(&world, 2, 17);
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS); /* without a port */
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_nothing(&world); /* rests */
    rpc_client_cancel(world.client, 7);
}

/* ---- refusals ---- */

static void test_client__refused_by_the_program(void **state)
{
    (void)state;
    const uint32_t errors[] = {PACKET_PROG_UNAVAIL, PACKET_PROG_MISMATCH, PACKET_PROC_UNAVAIL,
                               PACKET_GARBAGE_ARGS, PACKET_SYSTEM_ERR};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        world_start(&world, 7, 12049);
        reach_service(700); /* also: the port was not kept */
        world_put_accepted(&answer, world.xid, errors[i]);
        world_record(&world, &answer);
        world_expect_disconnect(&world, world.connection);
        world_expect_result(&world, 7, CLIENT_REFUSED, 0);
    }
}

/* Somebody else is at the port of the hint; the service may still register in time. */
static void test_client__refused_at_a_guess(void **state)
{
    (void)state;
    for (uint32_t comes_up = 0; comes_up < 2; comes_up++) {
        world_start(&world, 7, 12049);
        for (uint32_t i = 0; i < 10 - 5 * comes_up; i++) {
            world_expect_question(&world, 2, 6);
            world_answer_port(&world, 0);
            world_expect_question(&world, 2, 17);
            world_answer_port(&world, 0);
            world_expect_connect(&world, 12049);
            world_connected(&world, true);
            world_expect_message_tcp(&world, 0);
            world_put_accepted(&answer, world.xid, PACKET_PROG_UNAVAIL);
            world_record(&world, &answer);
            world_expect_disconnect(&world, world.connection);
            world_expect_no_result(&world);
            world_pass_ms(&world, 500);
        }
        if (comes_up) {
            reach_service(700);
            world_answer_void_tcp(&world);
            world_expect_disconnect(&world, world.connection);
        }
        world_expect_result(&world, 7, comes_up ? CLIENT_ANSWERED : CLIENT_REFUSED, comes_up);
    }
}

static void test_client__udp_service_that_is_gone(void **state)
{
    (void)state;
    world_start(&world, 7, 0);
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, 0);
    world_expect_question(&world, 2, 17);
    world_answer_port(&world, 800);
    world_expect_message_udp(&world, 800, 0);
    world_unreachable(&world, PORTMAPPER); /* of no interest any more */
    world_unreachable(&world, 800);
    world_expect_nothing(&world);
    world_pass_ms(&world, 500);
    world_expect_question(&world, 2, 6);
    world_pass_ms(&world, 400);
    world_expect_question(&world, 2, 6);
    rpc_client_cancel(world.client, 7);
}

#define CLIENT_TEST(name) cmocka_unit_test_setup_teardown(test_client__##name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(over_tcp),
        CLIENT_TEST(over_udp_where_only_that_is_registered),
        CLIENT_TEST(portmapper_of_other_versions),
        CLIENT_TEST(portmapper_that_refuses_every_version),
        CLIENT_TEST(not_registered_is_not_yet),
        CLIENT_TEST(not_registered_leads_to_the_hint),
        CLIENT_TEST(portmapper_error_leads_to_the_hint),
        CLIENT_TEST(silent_portmapper),
        CLIENT_TEST(portmapper_on_tcp_only),
        CLIENT_TEST(slow_portmapper),
        CLIENT_TEST(very_slow_portmapper),
        CLIENT_TEST(no_portmapper),
        CLIENT_TEST(no_portmapper_said_late),
        CLIENT_TEST(portmapper_behind_a_firewall_for_udp),
        CLIENT_TEST(comes_up_after_3_s),
        CLIENT_TEST(several_messages_over_one_connection),
        CLIENT_TEST(connection_lost_between_messages),
        CLIENT_TEST(lost_portmapper_connection),
        CLIENT_TEST(answers_from_elsewhere),
        CLIENT_TEST(answers_over_tcp_that_are_none),
        CLIENT_TEST(registered_at_an_impossible_port),
        CLIENT_TEST(refused_by_the_program),
        CLIENT_TEST(refused_at_a_guess),
        CLIENT_TEST(udp_service_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
