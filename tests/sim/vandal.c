/*
 * vandal.c -- bad input and orders from strangers; see vandal.h.
 *
 * Bad input must get the documented answer, or none, at once. Orders that are well formed but not
 * the vandal's to give (removing others' registrations, announcing others' reboots, simulating a
 * crash from elsewhere than a privileged local port) are answered politely and must change nothing:
 * that is left to the oracle, which knows nobody at the vandal's address.
 */
#include "vandal.h"

#include "machine.h"
#include "peer/peer_nsm.h"

#include <string.h>

enum expectation {
    ANY_REFUSAL, /* an error answer, or none */
    NOTHING,
    RPC_MISMATCH_2,
    AUTH_ERROR,
    PROG_UNAVAIL,
    PROG_MISMATCH_1,
    PROC_UNAVAIL,
    GARBAGE,
    POLITE, /* a well-formed call: answered later */
};

static const struct peer_nsm_id own_id = {"victim", "vandal", 200000, 1, 1};

static void put_call(struct packet *packet, uint32_t prog, uint32_t vers, uint32_t proc)
{
    packet_clear(packet);
    packet_put_call(packet,
                    &(struct packet_call){.xid = 1, .prog = prog, .vers = vers, .proc = proc});
}

static enum expectation make_rubbish(struct world *world, struct packet *packet)
{
    packet_clear(packet);
    uint64_t len = world_random(world, 200);
    for (uint64_t i = 0; i < len; i++) {
        uint8_t byte = (uint8_t)world_random(world, 256);
        packet_put_bytes(packet, &byte, 1);
    }
    return ANY_REFUSAL;
}

static enum expectation make_damaged(struct world *world, struct packet *packet)
{
    static const uint8_t priv[PEER_NSM_PRIV_LEN] = "vandal";
    peer_nsm_put_mon(packet, 1, &own_id, priv);
    if (world_chance(world, 50)) {
        packet->len = (uint32_t)world_random(world, packet->len);
        return packet->len >= 40 ? GARBAGE : NOTHING; /* the header of this call has 40 bytes */
    }
    packet_put_bytes(packet, "\0\0\0", world_chance(world, 50) ? 1 : 3);
    return GARBAGE;
}

static enum expectation make_header(struct world *world, struct packet *packet)
{
    switch (world_random(world, 6)) {
    case 0: /* RPC version 3 */
        put_call(packet, PEER_NSM_PROGRAM, 1, PEER_NSM_STAT);
        packet->bytes[11] = 3;
        return RPC_MISMATCH_2;
    case 1: /* a flavour that nobody speaks */
        put_call(packet, PEER_NSM_PROGRAM, 1, PEER_NSM_STAT);
        packet->bytes[27] = 6;
        return AUTH_ERROR;
    case 2: /* a reply */
        put_call(packet, PEER_NSM_PROGRAM, 1, PEER_NSM_NULL);
        packet->bytes[7] = 1;
        return NOTHING;
    case 3:
        put_call(packet, 100003, 3, 0);
        return PROG_UNAVAIL;
    case 4:
        put_call(packet, PEER_NSM_PROGRAM, world_chance(world, 50) ? 0 : 2, PEER_NSM_MON);
        return PROG_MISMATCH_1;
    default:
        put_call(packet, PEER_NSM_PROGRAM, 1,
                 world_chance(world, 50) ? PEER_NSM_PROCEDURES : UINT32_MAX);
        return PROC_UNAVAIL;
    }
}

static enum expectation make_long_name(struct world *world, struct packet *packet)
{
    char name[1025];
    memset(name, 'n', sizeof name);
    (void)world;
    put_call(packet, PEER_NSM_PROGRAM, 1, PEER_NSM_STAT);
    packet_put_opaque(packet, name, sizeof name);
    return GARBAGE;
}

/* Somebody else's registration, name or crash. */
static enum expectation make_order(struct world *world, struct packet *packet)
{
    const struct owner *victim = &world->owners[world_random(world, world->plan.owners)];
    const struct key *key = &victim->keys[world_random(world, victim->key_count)];
    struct peer_nsm_id id = {world->names[key->name].text, victim->my_name, key->my_prog,
                             key->my_vers, key->my_proc};
    uint32_t xid = (uint32_t)world_random(world, UINT32_MAX);
    switch (world_random(world, 4)) {
    case 0:
        peer_nsm_put_unmon(packet, xid, &id);
        break;
    case 1:
        peer_nsm_put_unmon_all(packet, xid, &id);
        break;
    case 2:
        peer_nsm_put_notify(packet, xid, id.mon_name, 4711);
        break;
    default:
        peer_nsm_put_simu_crash(packet, xid);
        break;
    }
    return POLITE;
}

static bool is_as_expected(enum expectation expected, enum rpc_verdict verdict, struct bytes bytes)
{
    struct packet_reply reply = {0};
    if (expected == POLITE)
        return verdict == RPC_WAITING || verdict == RPC_BUSY;
    if (verdict == RPC_NO_ANSWER)
        return expected == NOTHING || expected == ANY_REFUSAL;
    if (verdict != RPC_ANSWERED || !packet_get_reply(bytes.at, bytes.len, &reply))
        return false;
    switch (expected) {
    case NOTHING:
    case POLITE:
        return false;
    case ANY_REFUSAL:
        return !reply.accepted || reply.status != PACKET_SUCCESS;
    case RPC_MISMATCH_2:
        return !reply.accepted && reply.status == PACKET_RPC_MISMATCH && reply.low == 2 &&
               reply.high == 2;
    case AUTH_ERROR:
        return !reply.accepted && reply.status == PACKET_AUTH_ERROR;
    case PROG_UNAVAIL:
        return reply.accepted && reply.status == PACKET_PROG_UNAVAIL;
    case PROG_MISMATCH_1:
        return reply.accepted && reply.status == PACKET_PROG_MISMATCH && reply.low == 1 &&
               reply.high == 1;
    case PROC_UNAVAIL:
        return reply.accepted && reply.status == PACKET_PROC_UNAVAIL;
    case GARBAGE:
        return reply.accepted && reply.status == PACKET_GARBAGE_ARGS;
    }
    return false;
}

void vandal_strike(struct world *world)
{
    static enum expectation (*const makers[])(struct world *, struct packet *) = {
        make_rubbish, make_damaged, make_header, make_long_name, make_order, make_order};
    static struct packet packet;
    if (!world->machine.is_up)
        return;
    uint64_t which = world_random(world, sizeof makers / sizeof makers[0]);
    if (world->plan.owners == 0 && makers[which] == make_order)
        which = 0;
    enum expectation expected = makers[which](world, &packet);
    struct rpc_source from = {.peer = {.port = 40000, .transport = TRANSPORT_UDP}};
    /* Sometimes a local stranger, but never on a privileged port. */
    const char *address = world_chance(world, 20) ? "127.6.6.6" : "10.66.6.6";
    (void)address_parse(bytes_of_text(address), &from.peer.address);
    struct bytes reply;
    enum rpc_verdict verdict =
        machine_receive_raw(world, &from, (struct bytes){packet.bytes, packet.len}, &reply);
    world_trace(world, "a vandal sends %u bytes of kind %llu", packet.len,
                (unsigned long long)which);
    if (!is_as_expected(expected, verdict, reply))
        world_fail(world, "P6", "bad input of kind %llu, expectation %d, got verdict %d",
                   (unsigned long long)which, (int)expected, (int)verdict);
    machine_turn(world);
}
