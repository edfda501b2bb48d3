/*
 * test_client.c -- one attempt in every situation, move by move in virtual time: look-ups, hints,
 * silence, refusals, losses.
 *
 * Each test says what the client must want done, and nothing else, at every moment. How many
 * attempts share limits and the port cache is in test_client_many.c, how they end before their time
 * in test_client_end.c, random histories in test_client_random.c.
 */
#include "call_world.h"
#include "unit/test.h"

static struct world world;
static struct packet answer;

TEST_FIXTURE(begin)
{
    world_begin(&world, 16, 16);
}

TEST_FIXTURE(end)
{
    world_end(&world);
}

/* Up to the open connection with the first message written to it. */
static void reach_service(uint16_t port)
{
    world_expect_question(&world, 2, 6);
    world_answer_port(&world, port);
    world_expect_connect(&world, port);
    world_play(&world, "open; sent 0");
}

TEST(test_client__over_tcp)
{
    world_start(&world, 7, 0);
    reach_service(700);
    world_play(&world, "nothing; no-result; void; close; answered 7 1");
}

TEST(test_client__over_udp_where_only_that_is_registered)
{
    world_play(&world, "start 7 12049; asked 2 6; port 0; asked 2 17; port 800; sent-udp 800 0");
    uint32_t xid = world.xid;
    for (uint32_t i = 0; i < 3; i++) { /* repeated with the same xid */
        world_play(&world, "pass 999; nothing; pass 1; sent-udp 800 0");
        assert_int_equal(world.xid, xid);
    }
    world_play(&world, "void-udp 800; answered 7 1; void-udp 800"); /* to one of the others */
}

/* Where RPCBIND is spoken, the answer is about the way of the question, and so is the question. */
TEST(test_client__portmapper_of_other_versions)
{
    world_play(&world, "start 7 0; asked 2 6");
    world_put_accepted(&answer, world.xid, PACKET_PROG_MISMATCH);
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_question(&world, 4, 17);
    world_put_accepted(&answer, world.xid, PACKET_PROG_MISMATCH);
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_question(&world, 3, 17);
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS);
    packet_put_text(&answer, "0.0.0.0.3.32");
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_play(&world, "sent-udp 800 0; void-udp 800; answered 7 1");
}

TEST(test_client__portmapper_that_refuses_every_version)
{
    world_start(&world, 7, 0);
    const uint32_t versions[] = {2, 4, 3};
    for (uint32_t i = 0; i < 3; i++) {
        world_expect_question(&world, versions[i], i == 0 ? 6 : 17);
        world_put_accepted(&answer, world.xid, PACKET_PROG_MISMATCH);
        world_datagram(&world, 1, PORTMAPPER, &answer);
    }
    world_expect_nothing(&world); /* rests */
    world_play(&world, "pass 500; asked 2 6; cancel 7");
}

TEST(test_client__not_registered_is_not_yet)
{
    world_start(&world, 7, 0);
    for (uint32_t i = 0; i < 10; i++) { /* every 500 ms until 5 s are over */
        world_play(&world, "asked 2 6; port 0; asked 2 17; port 0; pass 499; nothing; "
                           "no-result; pass 1");
    }
    world_expect_result(&world, 7, CLIENT_UNDELIVERED, 0);
}

TEST(test_client__not_registered_leads_to_the_hint)
{
    world_play(&world, "start 7 12049; asked 2 6; port 0; asked 2 17; port 0; connect 12049; "
                       "open; sent 0; void; close; answered 7 1");
}

TEST(test_client__portmapper_error_leads_to_the_hint)
{
    world_play(&world, "start 7 12049; asked 2 6");
    world_put_accepted(&answer, world.xid, PACKET_SYSTEM_ERR);
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_play(&world, "connect 12049; cancel 7; close");
}

/* 1 s of silence over UDP: TCP; 2 s: the hint, by which time the question has one xid throughout.
 */
TEST(test_client__silent_portmapper)
{
    world_play(&world, "start 7 12049; asked 2 6");
    uint32_t xid = world.xid;
    world_play(&world, "pass 400; asked 2 6");
    assert_int_equal(world.xid, xid);
    world_play(&world, "pass 599; nothing; pass 1; connect 111; pass 300; open; asked-tcp 2 6");
    assert_int_equal(world.xid, xid);
    world_play(&world, "pass 699; nothing");
    uint64_t portmapper = world.connection;
    world_pass_ms(&world, 1);
    world_expect_disconnect(&world, portmapper);
    world_play(&world, "connect 12049; refuse");
    /* It stays silent, and is now given 500 ms, so that the hint is tried once per second. */
    for (uint32_t i = 0; i < 2; i++) {
        world_play(&world, "pass 500; asked 2 6");
        assert_int_equal(world.xid, xid);
        world_play(&world, "pass 400; asked 2 6; pass 100; connect 12049; refuse");
    }
    world_play(&world,
               "pass 500; asked 2 6; pass 400; asked 2 6; pass 100; undelivered 7 0"); /* 5 s */
}

TEST(test_client__portmapper_on_tcp_only)
{
    world_play(&world,
               "start 7 12049; asked 2 6; pass 400; asked 2 6; pass 600; connect 111; "
               "open; asked-tcp 2 6; port-tcp 0; asked-tcp 2 17"); /* on the same connection */
    world_play(&world, "pass 1500; nothing"); /* patience counts from its last answer */
    world_play(&world, "port-tcp 800; close; sent-udp 800 0; void-udp 800; answered 7 1");
}

/* Slower than 1 s over UDP, with a TCP port that accepts and says nothing, or refuses. */
TEST(test_client__slow_portmapper)
{
    for (uint32_t refuses = 0; refuses < 2; refuses++) {
        world_play(&world, "start 7 12049; asked 2 6; pass 400; asked 2 6; pass 600; "
                           "connect 111");
        uint64_t portmapper = world.connection;
        world_connected(&world, refuses == 0);
        if (refuses)
            world_expect_question(&world, 2, 6);
        else
            world_expect_question_tcp(&world, 2, 6);
        world_play(&world, "pass 500; port 700");
        if (!refuses)
            world_expect_disconnect(&world, portmapper);
        /* the cache forgets the port */
        world_play(&world, "connect 700; open; sent 0; cancel 7; close; pass 130000");
    }
}

/* Slower than the whole look-up: the answer to the first question still counts in the second. */
TEST(test_client__very_slow_portmapper)
{
    world_play(&world, "start 7 0; asked 2 6");
    uint32_t xid = world.xid;
    world_play(&world, "pass 400; asked 2 6; pass 600; connect 111; pass 1000; close; pass 500; "
                       "asked 2 6");
    assert_int_equal(world.xid, xid);
    world_play(&world, "pass 100; port 700; connect 700; cancel 7; close");
}

/* The host says that nobody listens: TCP is tried once, since a firewall may refuse one of two. */
TEST(test_client__no_portmapper)
{
    world_play(&world, "start 7 12049; asked 2 6; unreachable 112"); /* another port */
    world_play(&world,
               "nothing; unreachable 111; connect 111; unreachable 111"); /* the same news again */
    world_play(&world, "nothing; refuse; connect 12049; refuse; unreachable 111; nothing");
    for (uint32_t i = 0; i < 9; i++) {
        world_play(&world, "pass 500; asked 2 6; unreachable 111; connect 12049; refuse");
    }
    world_play(&world, "pass 500; undelivered 7 0");
}

/* The news of UDP comes when TCP is already under way: TCP decides. */
TEST(test_client__no_portmapper_said_late)
{
    world_play(&world, "start 7 12049; asked 2 6; pass 400; asked 2 6; pass 600; connect 111; "
                       "unreachable 111; nothing; refuse; connect 12049; cancel 7; close");
}

TEST(test_client__portmapper_behind_a_firewall_for_udp)
{
    world_play(&world, "start 7 12049; asked 2 6; unreachable 111; connect 111; open; "
                       "asked-tcp 2 6; port-tcp 700; close; connect 700; cancel 7; close");
}

/* Refused every 500 ms for 3 s; then it comes up, inside the first budget. */
TEST(test_client__comes_up_after_3_s)
{
    world_start(&world, 7, 0);
    for (uint32_t i = 0; i < 6; i++) {
        world_expect_question(&world, 2, 6); /* looked up anew each time: the port may change */
        world_answer_port(&world, (uint16_t)(700 + i));
        world_expect_connect(&world, (uint16_t)(700 + i));
        world_play(&world, "refuse; pass 500");
    }
    reach_service(750);
    world_play(&world, "void; close; answered 7 1");
}

TEST(test_client__several_messages_over_one_connection)
{
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
        world_play(&world, "void; nothing");
        last_xid = world.xid = xid;
    }
    world_play(&world, "void; close; answered 7 8");
}

/* Which message was answered is kept over lost connections; the rest is sent again. */
TEST(test_client__connection_lost_between_messages)
{
    struct client_attempt attempt = world_attempt(&world, 7, 3);
    assert_true(rpc_client_start(world.client, &attempt, world.now_ns));
    reach_service(700);
    world_play(&world, "void; sent 1; lose; lose"); /* nobody's by now */
    /* before the third message was asked for */
    world_play(&world, "pass 500; asked 2 6; port 701; connect 701; open; sent 1; void; lose");
    world_play(&world, "pass 500; asked 2 6; pass 400; asked 2 6; pass 600; connect 111; "
                       "pass 1000; close; pass 500; asked 2 6; pass 400; asked 2 6; pass 600; "
                       "asked 2 6; pass 400; asked 2 6; pass 100; unknown 7 2");
}

TEST(test_client__lost_portmapper_connection)
{
    world_play(&world,
               "start 7 12049; asked 2 6; pass 400; asked 2 6; pass 600; connect 111; "
               "open; asked-tcp 2 6; lose; asked 2 6"); /* over UDP again, until 2 s are over */
    world_play(&world, "pass 1000; connect 12049; cancel 7; close");
}

/* ---- answers that are none ---- */

TEST(test_client__answers_from_elsewhere)
{
    world_play(&world, "start 7 0; asked 2 6");
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
    world_play(&world, "nothing; port 0; asked 2 17");
    uint32_t second_xid = world.xid;
    world.xid = xid;
    world_answer_port(&world, 666); /* the first question, which was answered */
    world_expect_nothing(&world);
    world.xid = second_xid;
    world_play(&world, "port 800; sent-udp 800 0; void-udp 801; void-udp 111; no-result; "
                       "void-udp 800; answered 7 1");
}

TEST(test_client__answers_over_tcp_that_are_none)
{
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
    world_play(&world, "nothing; no-result");
    world.xid = xid;
    world_play(&world, "void; void");  /* twice */
    world_play(&world, "close; void"); /* and when it is closed */
    world_play(&world, "lose; open; answered 7 1");
}

TEST(test_client__registered_at_an_impossible_port)
{
    world_play(&world, "start 7 0; asked 2 6");
    world_answer_port(&world, 65536 + 700); /* not 700 */
    world_expect_question(&world, 2, 17);
    world_put_accepted(&answer, world.xid, PACKET_SUCCESS); /* without a port */
    world_datagram(&world, 1, PORTMAPPER, &answer);
    world_expect_nothing(&world); /* rests */
    rpc_client_cancel(world.client, 7);
}

/* ---- refusals ---- */

TEST(test_client__refused_by_the_program)
{
    const uint32_t errors[] = {PACKET_PROG_UNAVAIL, PACKET_PROG_MISMATCH, PACKET_PROC_UNAVAIL,
                               PACKET_GARBAGE_ARGS, PACKET_SYSTEM_ERR};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        world_start(&world, 7, 12049);
        reach_service(700); /* also: the port was not kept */
        world_put_accepted(&answer, world.xid, errors[i]);
        world_record(&world, &answer);
        world_play(&world, "close; refused 7 0");
    }
}

/* Somebody else is at the port of the hint; the service may still register in time. */
TEST(test_client__refused_at_a_guess)
{
    for (uint32_t comes_up = 0; comes_up < 2; comes_up++) {
        world_start(&world, 7, 12049);
        for (uint32_t i = 0; i < 10 - 5 * comes_up; i++) {
            world_play(&world, "asked 2 6; port 0; asked 2 17; port 0; connect 12049; open; "
                               "sent 0");
            world_put_accepted(&answer, world.xid, PACKET_PROG_UNAVAIL);
            world_record(&world, &answer);
            world_play(&world, "close; no-result; pass 500");
        }
        if (comes_up) {
            reach_service(700);
            world_play(&world, "void; close");
        }
        world_expect_result(&world, 7, comes_up ? CLIENT_ANSWERED : CLIENT_REFUSED, comes_up);
    }
}

TEST(test_client__udp_service_that_is_gone)
{
    world_play(&world, "start 7 0; asked 2 6; port 0; asked 2 17; port 800; sent-udp 800 0; "
                       "unreachable 111"); /* of no interest any more */
    world_play(&world, "unreachable 800; nothing; pass 500; asked 2 6; pass 400; asked 2 6; "
                       "cancel 7");
}

TEST_MAIN(begin, end, NULL, NULL)
