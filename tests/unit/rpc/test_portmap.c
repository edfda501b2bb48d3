/*
 * test_portmap.c -- our own portmapper: each procedure in each version, as bytes through the RPC
 * server. Calls are made and answers read with the tests' own XDR. Passing proves that versions,
 * protocols and families are told apart (U25), that only this machine may register, and that
 * nobody can touch what the server registered itself.
 */
#include "peer/packet.h"
#include "rpc/portmap.h"
#include "rpc/server.h"
#include "unit/test.h"

enum { TCP = 6, UDP = 17, STATUS = 100024, OTHER = 100005 };
enum { NULL_PROC, SET, UNSET, GETADDR, DUMP, GETVERSADDR = 9, GETPORT = GETADDR };

static struct packet call;
static uint8_t reply_bytes[32 * 1024];

struct fixture {
    struct core *core;
    struct portmap *portmap;
    const struct program *programs[1];
    struct rpc_server *server;
    struct rpc_source from;
    struct packet_reply reply;
};

static struct fixture f;

static const struct address here = {.family = 4, .bytes = {127, 0, 0, 1}};
static const struct address here6 = {.family = 6, .bytes = {[15] = 1}};
static const struct address host = {.family = 4, .bytes = {10, 0, 0, 2}};
static const struct address ours = {.family = 4, .bytes = {10, 0, 0, 9}};

/* With the status monitor on every address: TCP and UDP over IPv4, TCP over IPv6. */
TEST_FIXTURE(open_portmap)
{
    static const struct file_set shares[1];
    struct core_limits limits = {.clients_max = 10,
                                 .bytes_max = 65536,
                                 .batch_puts_max = 4,
                                 .file_sets = shares,
                                 .file_set_count = 1};
    f = (struct fixture){.core = core_new(&limits, 1), .portmap = portmap_new()};
    core_start(f.core, &(struct core_boot){0});
    f.programs[0] = portmap_program(f.portmap);
    struct rpc_server_limits server_limits = {.outbox_max = 1, .cache_max = 2};
    f.server = rpc_server_new(&server_limits, f.programs, 1, f.core, 1);
    assert_non_null(f.server);
    assert_true(rpc_server_reply_max(f.server) <= sizeof reply_bytes);
    f.from = (struct rpc_source){
        .peer = {.address = host, .local = ours, .port = 900, .transport = TRANSPORT_TCP}};
    static const struct portmap_service services[] = {
        {STATUS, 1, TCP, {.family = 4}, 12049},
        {STATUS, 1, UDP, {.family = 4}, 12049},
        {STATUS, 1, TCP, {.family = 6}, 12050},
    };
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
        assert_true(portmap_add(f.portmap, &services[i]));
}

TEST_FIXTURE(close_portmap)
{
    rpc_server_free(f.server);
    portmap_free(f.portmap);
    core_free(f.core);
}

static void come_from(const struct address *address, uint16_t port, enum transport transport)
{
    f.from.peer.address = *address;
    f.from.peer.local = address->family == 4 ? ours : here6;
    f.from.peer.port = port;
    f.from.peer.transport = transport;
}

static void begin(uint32_t vers, uint32_t proc)
{
    packet_clear(&call);
    packet_put_call(&call,
                    &(struct packet_call){.xid = 7, .prog = 100000, .vers = vers, .proc = proc});
}

/* Every answer leaves at once. Returns its status. */
static uint32_t ask(void)
{
    struct xdr_out out = xdr_out_of(reply_bytes, rpc_server_reply_max(f.server));
    assert_int_equal(
        rpc_server_receive(f.server, &f.from, (struct bytes){call.bytes, call.len}, 0, 0, &out),
        RPC_ANSWERED);
    assert_true(packet_get_reply(reply_bytes, xdr_out_len(&out), &f.reply));
    assert_true(f.reply.accepted);
    assert_int_equal(f.reply.xid, 7);
    return f.reply.status;
}

static uint32_t ask_word(void)
{
    assert_int_equal(ask(), PACKET_SUCCESS);
    struct packet_reader body = {f.reply.body, f.reply.body_len, false};
    uint32_t word = packet_get_u32(&body);
    assert_true(packet_is_done(&body));
    return word;
}

static uint32_t pmap(uint32_t proc, uint32_t prog, uint32_t vers, uint32_t prot, uint32_t port)
{
    begin(2, proc);
    packet_put_u32(&call, prog);
    packet_put_u32(&call, vers);
    packet_put_u32(&call, prot);
    packet_put_u32(&call, port);
    return ask_word();
}

static void put_rpcb(uint32_t version, uint32_t proc, uint32_t prog, uint32_t vers,
                     const char *netid, const char *uaddr)
{
    begin(version, proc);
    packet_put_u32(&call, prog);
    packet_put_u32(&call, vers);
    packet_put_text(&call, netid);
    packet_put_text(&call, uaddr);
    packet_put_text(&call, "me");
}

static uint32_t rpcb(uint32_t version, uint32_t proc, uint32_t prog, uint32_t vers,
                     const char *netid, const char *uaddr)
{
    put_rpcb(version, proc, prog, vers, netid, uaddr);
    return ask_word();
}

/* The universal address, or "". */
static const char *address_of(uint32_t version, uint32_t proc, uint32_t prog, uint32_t vers,
                              const char *netid)
{
    static char text[128];
    put_rpcb(version, proc, prog, vers, netid, "");
    assert_int_equal(ask(), PACKET_SUCCESS);
    struct packet_reader body = {f.reply.body, f.reply.body_len, false};
    uint32_t len;
    const uint8_t *at = packet_get_opaque(&body, sizeof text - 1, &len);
    assert_true(packet_is_done(&body));
    memcpy(text, at, len);
    text[len] = '\0';
    return text;
}

TEST(test_portmap__null_and_what_is_not_there)
{
    for (uint32_t vers = 2; vers <= 4; vers++) {
        begin(vers, NULL_PROC);
        assert_int_equal(ask(), PACKET_SUCCESS);
        assert_int_equal(f.reply.body_len, 0);
        /* CALLIT, BCAST and all others; GETVERSADDR is version 4's. */
        for (uint32_t proc = 5; proc < 16; proc++) {
            if (vers == 4 && proc == GETVERSADDR)
                continue;
            begin(vers, proc);
            assert_int_equal(ask(), PACKET_PROC_UNAVAIL);
        }
    }
    for (uint32_t vers = 1; vers <= 5; vers += 4) {
        begin(vers, NULL_PROC);
        assert_int_equal(ask(), PACKET_PROG_MISMATCH);
        assert_int_equal(f.reply.low, 2);
        assert_int_equal(f.reply.high, 4);
    }
}

TEST(test_portmap__arguments_are_whole)
{
    come_from(&here, 900, TRANSPORT_TCP);
    for (uint32_t vers = 2; vers <= 4; vers++)
        for (uint32_t proc = 0; proc <= GETVERSADDR; proc++) {
            if (proc > DUMP && (proc != GETVERSADDR || vers != 4))
                continue;
            begin(vers, proc);
            uint32_t header_len = call.len;
            if (proc != NULL_PROC && proc != DUMP) {
                if (vers == 2)
                    for (int i = 0; i < 4; i++)
                        packet_put_u32(&call, 17);
                else
                    put_rpcb(vers, proc, OTHER, 3, "udp", "0.0.0.0.0.9");
            }
            uint32_t whole = call.len;
            packet_put_u32(&call, 0); /* one word too many */
            assert_int_equal(ask(), PACKET_GARBAGE_ARGS);
            for (call.len = header_len; call.len < whole; call.len++)
                assert_int_equal(ask(), PACKET_GARBAGE_ARGS);
        }
    assert_int_equal(portmap_count(f.portmap), 3);
}

TEST(test_portmap__getport)
{
    assert_int_equal(pmap(GETPORT, STATUS, 1, TCP, 0), 12049);
    assert_int_equal(pmap(GETPORT, STATUS, 1, UDP, 0), 12049);
    assert_int_equal(pmap(GETPORT, STATUS, 2, TCP, 0), 0);
    assert_int_equal(pmap(GETPORT, STATUS, 1, 132, 0), 0);
    assert_int_equal(pmap(GETPORT, OTHER, 1, TCP, 0), 0);
    come_from(&here6, 900, TRANSPORT_UDP); /* its own family: TCP is there, UDP is not */
    assert_int_equal(pmap(GETPORT, STATUS, 1, TCP, 0), 12050);
    assert_int_equal(pmap(GETPORT, STATUS, 1, UDP, 0), 0);
}

TEST(test_portmap__getaddr)
{
    static const struct {
        uint32_t version, proc;
    } ways[] = {{3, GETADDR}, {4, GETADDR}, {4, GETVERSADDR}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        uint32_t v = ways[i].version, p = ways[i].proc;
        come_from(&host, 900, TRANSPORT_TCP);
        /* The address that was asked; without a network id the way that the call came. */
        assert_string_equal(address_of(v, p, STATUS, 1, "tcp"), "10.0.0.9.47.17");
        assert_string_equal(address_of(v, p, STATUS, 1, "udp"), "10.0.0.9.47.17");
        assert_string_equal(address_of(v, p, STATUS, 1, ""), "10.0.0.9.47.17");
        /* No address of ours in that family is known: the port alone is right. */
        assert_string_equal(address_of(v, p, STATUS, 1, "tcp6"), "::.47.18");
        assert_string_equal(address_of(v, p, STATUS, 1, "udp6"), "");
        assert_string_equal(address_of(v, p, STATUS, 1, "local"), "");
        assert_string_equal(address_of(v, p, STATUS, 3, "tcp"), "");
        assert_string_equal(address_of(v, p, OTHER, 1, "tcp"), "");
        come_from(&here6, 900, TRANSPORT_TCP);
        assert_string_equal(address_of(v, p, STATUS, 1, ""), "::1.47.18");
        come_from(&here6, 900, TRANSPORT_UDP);
        assert_string_equal(address_of(v, p, STATUS, 1, ""), "");
    }
}

TEST(test_portmap__getaddr_of_one_address)
{
    struct portmap_service service = {OTHER, 3, UDP, host, 2049};
    assert_true(portmap_add(f.portmap, &service));
    assert_string_equal(address_of(4, GETADDR, OTHER, 3, "udp"), "10.0.0.2.8.1");
}

/* The bytes of both kinds of list, word by word. */
TEST(test_portmap__dump)
{
    static const uint32_t words[] = {1, STATUS, 1, TCP, 12049, 1, STATUS, 1, UDP, 12049, 0};
    begin(2, DUMP);
    assert_int_equal(ask(), PACKET_SUCCESS);
    struct packet_reader body = {f.reply.body, f.reply.body_len, false};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_int_equal(packet_get_u32(&body), words[i]);
    assert_true(packet_is_done(&body));

    static const char *const texts[][2] = {
        {"tcp", "0.0.0.0.47.17"}, {"udp", "0.0.0.0.47.17"}, {"tcp6", "::.47.18"}};
    for (uint32_t vers = 3; vers <= 4; vers++) {
        begin(vers, DUMP);
        assert_int_equal(ask(), PACKET_SUCCESS);
        struct packet expected;
        packet_clear(&expected);
        for (size_t i = 0; i < 3; i++) {
            packet_put_u32(&expected, 1);
            packet_put_u32(&expected, STATUS);
            packet_put_u32(&expected, 1);
            packet_put_text(&expected, texts[i][0]);
            packet_put_text(&expected, texts[i][1]);
            packet_put_text(&expected, "holdfast");
        }
        packet_put_u32(&expected, 0);
        assert_int_equal(f.reply.body_len, expected.len);
        assert_memory_equal(f.reply.body, expected.bytes, expected.len);
    }
}

/* Many bytes for few are not sent to an address that nobody has proved. */
TEST(test_portmap__dump_over_udp_is_for_this_machine)
{
    for (uint32_t vers = 2; vers <= 4; vers++) {
        come_from(&host, 900, TRANSPORT_UDP);
        begin(vers, DUMP);
        assert_int_equal(ask(), PACKET_PROC_UNAVAIL);
        come_from(&here, 900, TRANSPORT_UDP);
        assert_int_equal(ask(), PACKET_SUCCESS);
    }
}

TEST(test_portmap__set_and_unset)
{
    come_from(&here, 900, TRANSPORT_TCP);
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 2000), 1);
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 2000), 1); /* as it is */
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 2001), 0); /* taken */
    assert_int_equal(rpcb(3, SET, OTHER, 3, "udp", "0.0.0.0.7.209"), 1);
    assert_int_equal(rpcb(4, SET, OTHER, 3, "tcp6", "::.7.210"), 1);
    assert_int_equal(pmap(GETPORT, OTHER, 3, TCP, 0), 2000);
    assert_int_equal(pmap(GETPORT, OTHER, 3, UDP, 0), 2001);
    assert_string_equal(address_of(4, GETADDR, OTHER, 3, "tcp6"), "::.7.210");

    assert_int_equal(rpcb(4, UNSET, OTHER, 3, "udp", ""), 1); /* alone (U31) */
    assert_int_equal(rpcb(4, UNSET, OTHER, 3, "udp", ""), 0);
    assert_int_equal(pmap(GETPORT, OTHER, 3, TCP, 0), 2000);
    assert_int_equal(pmap(SET, OTHER, 3, UDP, 2001), 1);
    assert_int_equal(pmap(UNSET, OTHER, 4, 0, 0), 0);
    assert_int_equal(pmap(UNSET, OTHER, 3, TCP, 2000), 1); /* version 2: both */
    assert_int_equal(pmap(GETPORT, OTHER, 3, UDP, 0), 0);
    assert_string_equal(address_of(4, GETADDR, OTHER, 3, "tcp6"), "::.7.210");
    assert_int_equal(rpcb(3, UNSET, OTHER, 3, "", ""), 1); /* all that is left */
    assert_int_equal(portmap_count(f.portmap), 3);
}

TEST(test_portmap__set_refuses_nonsense)
{
    come_from(&here, 900, TRANSPORT_TCP);
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 0), 0);
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 65536), 0);
    assert_int_equal(pmap(SET, OTHER, 3, 132, 99), 0);
    assert_int_equal(pmap(SET, 100000, 2, TCP, 99), 0);
    assert_int_equal(rpcb(4, SET, 100000, 4, "tcp", "0.0.0.0.0.111"), 0);
    assert_int_equal(rpcb(4, SET, OTHER, 3, "local", "/run/x"), 0);
    assert_int_equal(rpcb(4, SET, OTHER, 3, "tcp", "::.1.1"), 0);
    assert_int_equal(rpcb(4, SET, OTHER, 3, "tcp", "0.0.0.0.0.0"), 0);
    assert_int_equal(rpcb(4, SET, OTHER, 3, "tcp", "somewhere"), 0);
    assert_int_equal(rpcb(4, UNSET, OTHER, 3, "x25", ""), 0);
    assert_int_equal(portmap_count(f.portmap), 3);
}

TEST(test_portmap__other_hosts_change_nothing)
{
    struct address last;
    come_from(&here, 900, TRANSPORT_TCP);
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 2000), 1);
    assert_int_equal(portmap_refused(f.portmap, &last), 0);
    come_from(&host, 900, TRANSPORT_TCP);
    assert_int_equal(pmap(SET, OTHER, 3, UDP, 2000), 0);
    assert_int_equal(rpcb(4, SET, OTHER, 3, "udp", "0.0.0.0.7.208"), 0);
    assert_int_equal(pmap(UNSET, OTHER, 3, TCP, 2000), 0);
    assert_int_equal(rpcb(3, UNSET, OTHER, 3, "tcp", ""), 0);
    assert_int_equal(pmap(GETPORT, OTHER, 3, TCP, 0), 2000);
    assert_int_equal(portmap_count(f.portmap), 4);
    assert_int_equal(portmap_refused(f.portmap, &last), 4);
    assert_true(address_equal(&last, &host));
}

TEST(test_portmap__owners)
{
    come_from(&here, 900, TRANSPORT_TCP);
    /* Nobody replaces or removes what the server itself added. */
    assert_int_equal(pmap(SET, STATUS, 1, TCP, 99), 0);
    assert_int_equal(pmap(UNSET, STATUS, 1, 0, 0), 0);
    assert_int_equal(rpcb(4, UNSET, STATUS, 1, "", ""), 0);
    assert_int_equal(pmap(GETPORT, STATUS, 1, TCP, 0), 12049);
    /* What a privileged port added, another port does not remove; the other way round it may. */
    assert_int_equal(pmap(SET, OTHER, 3, TCP, 2000), 1);
    come_from(&here, 1024, TRANSPORT_TCP);
    assert_int_equal(pmap(UNSET, OTHER, 3, 0, 0), 0);
    assert_int_equal(pmap(SET, OTHER, 1, TCP, 2000), 1);
    come_from(&here, 1023, TRANSPORT_TCP);
    assert_int_equal(pmap(UNSET, OTHER, 1, 0, 0), 1);
    assert_int_equal(pmap(UNSET, OTHER, 3, 0, 0), 1);
}

/* A full table with the longest addresses still fits into one answer. */
TEST(test_portmap__full)
{
    come_from(&here, 900, TRANSPORT_TCP);
    static const char longest[] = "2001:db80:1111:2222:3333:4444:5555:6666.255.255";
    uint32_t i;
    for (i = portmap_count(f.portmap); i < PORTMAP_SERVICES_MAX; i++)
        assert_int_equal(rpcb(4, SET, 200000 + i, 1, "tcp6", longest), 1);
    assert_int_equal(rpcb(4, SET, 200000 + i, 1, "tcp6", longest), 0);
    assert_false(portmap_add(f.portmap, &(struct portmap_service){1, 1, TCP, {.family = 4}, 1}));
    for (uint32_t vers = 2; vers <= 4; vers++) {
        begin(vers, DUMP);
        assert_int_equal(ask(), PACKET_SUCCESS);
    }
    assert_true(f.reply.body_len > 10000);
    assert_int_equal(rpcb(4, UNSET, 200000 + i - 1, 1, "tcp6", ""), 1);
    assert_int_equal(rpcb(4, SET, 200000 + i, 1, "tcp6", longest), 1);
}

TEST_MAIN(open_portmap, close_portmap, NULL, NULL)
