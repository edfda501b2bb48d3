/*
 * test_nlm.c -- the fake client's NLM: bytes written down by hand, and both directions agree.
 *
 * The golden bytes are those of the protocol notes, worked out from C702 and RFC 1813. For every
 * procedure and version arguments and results are written and read back; every cut and every byte
 * too many is refused. A checker that reads wrongly would accuse or acquit the server by mistake.
 */
#include "peer/peer_nlm.h"
#include "unit/test.h"

static const uint32_t versions[] = {1, 3, 4};

static void fill(struct peer_nlm_args *args, uint32_t fh_len)
{
    memset(args, 0, sizeof(*args));
    args->cookie = peer_nlm_bytes_of("\0\0\0\1", 4);
    args->block = true;
    args->exclusive = true;
    args->state = 3;
    args->lock.caller_name = peer_nlm_text("cl1");
    args->lock.fh.len = fh_len;
    for (uint32_t i = 0; i < fh_len; i++)
        args->lock.fh.at[i] = (uint8_t)(i + 1);
    args->lock.oh = peer_nlm_text("7@cl1");
    args->lock.svid = 7;
}

TEST(test_nlm__lock_has_the_golden_bytes)
{
    static const uint8_t expected[] = {
        0, 0,   0,   4,   0,   0,   0,   1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0,
        3, 'c', 'l', '1', 0,   0,   0,   0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0,
        0, 5,   '7', '@', 'c', 'l', '1', 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0,
        0, 0,   0,   0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3};
    static struct packet packet;
    static struct peer_nlm_args args;
    fill(&args, 8);
    packet_clear(&packet);
    peer_nlm_put_args(&packet, 4, PEER_NLM_LOCK, &args);
    assert_int_equal(packet.len, 76);
    assert_int_equal(sizeof(expected), 76);
    assert_memory_equal(packet.bytes, expected, sizeof(expected));
    fill(&args, 32);
    packet_clear(&packet);
    peer_nlm_put_args(&packet, 3, PEER_NLM_LOCK, &args);
    assert_int_equal(packet.len, 92);
}

TEST(test_nlm__test_result_has_the_golden_bytes)
{
    static const uint8_t expected[] = {0, 0, 0, 4, 0, 0, 0, 1, 0,   0,   0,   1,   0,   0, 0, 1,
                                       0, 0, 0, 7, 0, 0, 0, 5, '7', '@', 'c', 'l', '1', 0, 0, 0,
                                       0, 0, 0, 0, 0, 0, 0, 0, 0,   0,   0,   0,   0,   0, 0, 0};
    static struct packet packet;
    static struct peer_nlm_res res;
    res = (struct peer_nlm_res){.status = PEER_NLM_IS_DENIED, .exclusive = true, .svid = 7};
    res.cookie = peer_nlm_bytes_of("\0\0\0\1", 4);
    res.oh = peer_nlm_text("7@cl1");
    packet_clear(&packet);
    peer_nlm_put_res(&packet, 4, PEER_NLM_TEST, &res);
    assert_int_equal(packet.len, sizeof(expected));
    assert_memory_equal(packet.bytes, expected, sizeof(expected));
    res.status = PEER_NLM_IS_GRANTED;
    packet_clear(&packet);
    peer_nlm_put_res(&packet, 4, PEER_NLM_LOCK, &res);
    assert_int_equal(packet.len, 12);
}

/* Reads `packet` with one byte less, one more, and as it is. */
static bool reads_only_whole(struct packet *packet, uint32_t vers, uint32_t procedure, bool is_res)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    uint32_t whole = packet->len;
    packet_put_u32(packet, 0);
    for (uint32_t len = 0; len <= whole + 1; len++) {
        struct packet_reader reader = {packet->bytes, len, false};
        bool is_read = is_res ? peer_nlm_get_res(&reader, vers, procedure, &res)
                              : peer_nlm_get_args(&reader, vers, procedure, &args);
        if (is_read != (len == whole))
            return false;
    }
    packet->len = whole;
    return true;
}

static void check_args(uint32_t vers, uint32_t procedure)
{
    static struct packet first, second;
    static struct peer_nlm_args args, read;
    fill(&args, 32);
    args.lock.oh = peer_nlm_bytes_of("\0\1\0\377\0", 5);
    args.lock.offset = 4000000000;
    args.lock.len = 17;
    args.mode = 3;
    args.access = 1;
    args.reclaim = true;
    memset(args.priv, 0xab, sizeof(args.priv));
    packet_clear(&first);
    packet_clear(&second);
    peer_nlm_put_args(&first, vers, procedure, &args);
    assert_true(reads_only_whole(&first, vers, procedure, false));
    struct packet_reader reader = {first.bytes, first.len, false};
    assert_true(peer_nlm_get_args(&reader, vers, procedure, &read));
    peer_nlm_put_args(&second, vers, procedure, &read);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.bytes, second.bytes, first.len);
}

static void check_res(uint32_t vers, uint32_t procedure, uint32_t status)
{
    static struct packet first, second;
    static struct peer_nlm_res res, read;
    res = (struct peer_nlm_res){.status = status, .svid = 9, .offset = 1, .len = 4294967295};
    res.cookie = peer_nlm_bytes_of("\1\2\3\4\5\6\7\10", 8);
    res.oh = peer_nlm_bytes_of("\0x", 2);
    packet_clear(&first);
    packet_clear(&second);
    peer_nlm_put_res(&first, vers, procedure, &res);
    assert_true(reads_only_whole(&first, vers, procedure, true));
    struct packet_reader reader = {first.bytes, first.len, false};
    assert_true(peer_nlm_get_res(&reader, vers, procedure, &read));
    peer_nlm_put_res(&second, vers, procedure, &read);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.bytes, second.bytes, first.len);
}

TEST(test_nlm__every_procedure_reads_what_it_writes)
{
    for (uint32_t v = 0; v < 3; v++) {
        for (uint32_t procedure = 0; procedure < PEER_NLM_PROCEDURES; procedure++) {
            if (strcmp(peer_nlm_procedure_text(procedure), "?") == 0)
                continue;
            if (procedure < PEER_NLM_TEST_RES || procedure > PEER_NLM_GRANTED_RES)
                check_args(versions[v], procedure);
            check_res(versions[v], procedure, PEER_NLM_IS_GRANTED);
            check_res(versions[v], procedure, PEER_NLM_IS_DENIED);
        }
    }
}

TEST(test_nlm__old_versions_have_no_new_status)
{
    static struct packet packet;
    static struct peer_nlm_res res;
    for (uint32_t status = 0; status <= 10; status++) {
        for (uint32_t v = 0; v < 3; v++) {
            res = (struct peer_nlm_res){.status = status};
            packet_clear(&packet);
            peer_nlm_put_res(&packet, versions[v], PEER_NLM_LOCK, &res);
            struct packet_reader reader = {packet.bytes, packet.len, false};
            assert_int_equal(peer_nlm_get_res(&reader, versions[v], PEER_NLM_LOCK, &res),
                             status <= (versions[v] == 4 ? 9u : 4u));
        }
    }
}

TEST(test_nlm__oversized_objects_can_be_sent_and_are_not_read)
{
    static struct packet packet;
    static struct peer_nlm_args args;
    for (uint32_t len = 1024; len <= 1025; len++) {
        fill(&args, 32);
        args.cookie.len = len;
        packet_clear(&packet);
        peer_nlm_put_args(&packet, 4, PEER_NLM_TEST, &args);
        struct packet_reader reader = {packet.bytes, packet.len, false};
        assert_int_equal(peer_nlm_get_args(&reader, 4, PEER_NLM_TEST, &args), len == 1024);
    }
}

TEST(test_nlm__a_call_is_read_as_it_was_written)
{
    static struct packet call;
    static struct peer_nlm_args args;
    struct packet_call header;
    fill(&args, 32);
    peer_nlm_put_call(&call, 77, 3, PEER_NLM_NM_LOCK, &args);
    struct packet_reader reader = {call.bytes, call.len, false};
    assert_true(packet_get_call(&reader, &header));
    assert_int_equal(header.xid, 77);
    assert_int_equal(header.prog, PEER_NLM_PROGRAM);
    assert_int_equal(header.vers, 3);
    assert_int_equal(header.proc, 22);
    assert_int_equal(header.auth, PACKET_AUTH_SYS);
    assert_true(peer_nlm_get_args(&reader, 3, PEER_NLM_NM_LOCK, &args));
    assert_int_equal(peer_nlm_answer_to(PEER_NLM_LOCK_MSG), PEER_NLM_LOCK_RES);
    assert_int_equal(peer_nlm_answer_to(PEER_NLM_LOCK), PEER_NLM_NULL);
    call.bytes[7] = 1; /* now it is a reply */
    reader = (struct packet_reader){call.bytes, call.len, false};
    assert_false(packet_get_call(&reader, &header));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
