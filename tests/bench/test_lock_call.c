/*
 * test_lock_call.c -- the lock calls of the bench: what was patched into them is read back by the
 * decoder of tests/peer, right answers are what its encoder writes, the locks that are held touch
 * each other nowhere, and file handles come from a file.
 */
#include "bench/lock_call.h"
#include "unit/test.h"

#include <unistd.h>

#define COOKIE UINT64_C(0x1122334455667788)

static struct lock_call_files load(uint32_t count, const char *path)
{
    struct lock_call_files files;
    assert_true(lock_call_load(&files, count, path));
    return files;
}

static void check_call(const struct lock_call_files *files, enum peer_nlm_procedure procedure)
{
    const struct lock_call_range range = {2, 4711, UINT64_C(0x123456789a)};
    static const uint8_t cookie[] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
    static struct peer_nlm_args args;
    struct lock_call call;
    struct packet_call header;
    assert_true(lock_call_make(&call, files, procedure, "somebody"));
    lock_call_set(&call, files, COOKIE, &range);
    struct packet_reader reader = {call.packet->bytes, call.packet->len, false};
    assert_true(packet_get_call(&reader, &header));
    assert_int_equal(header.prog, PEER_NLM_PROGRAM);
    assert_int_equal(header.proc, procedure);
    assert_true(peer_nlm_get_args(&reader, 4, procedure, &args));
    assert_int_equal(args.cookie.len, sizeof(cookie));
    assert_memory_equal(args.cookie.at, cookie, sizeof(cookie));
    assert_int_equal(args.lock.fh.len, files->handle_len);
    assert_memory_equal(args.lock.fh.at, files->handles[2], files->handle_len);
    assert_int_equal(args.lock.oh.len, LOCK_CALL_OH_LEN);
    assert_memory_equal(args.lock.oh.at, "00004711", LOCK_CALL_OH_LEN);
    assert_int_equal(args.lock.caller_name.len, strlen("somebody"));
    assert_int_equal(args.lock.svid, 4711);
    assert_int_equal(args.lock.offset, UINT64_C(0x123456789a));
    assert_int_equal(args.lock.len, LOCK_CALL_RANGE_LEN);
    assert_false(args.block);
    assert_false(args.reclaim);
    free(call.packet);
}

TEST(test_lock_call__what_is_patched_is_read_back)
{
    struct lock_call_files files = load(3, NULL);
    check_call(&files, PEER_NLM_TEST);
    check_call(&files, PEER_NLM_LOCK);
    check_call(&files, PEER_NLM_UNLOCK);
    free(files.handles);
}

/* Behind its xid, a reply is what the encoder of tests/peer makes of the same result. */
static void check_reply(const uint8_t *reply, uint32_t len, const struct peer_nlm_res *res)
{
    static struct packet expected;
    packet_clear(&expected);
    packet_put_accepted(&expected, 9, PACKET_SUCCESS);
    peer_nlm_put_res(&expected, 4, PEER_NLM_TEST, res);
    assert_int_equal(len, expected.len - 4);
    assert_memory_equal(reply, expected.bytes + 4, len);
}

TEST(test_lock_call__answers_are_what_a_server_sends)
{
    uint8_t reply[LOCK_CALL_REPLY_MAX];
    const struct lock_call_range holder = {0, 12, 4096};
    static struct peer_nlm_res res;
    uint64_t cookie = __builtin_bswap64(COOKIE);
    res.cookie = peer_nlm_bytes_of(&cookie, sizeof(cookie));
    check_reply(reply, lock_call_granted(reply, COOKIE), &res);
    res.status = PEER_NLM_IS_DENIED;
    res.exclusive = true;
    res.svid = 12;
    res.oh = peer_nlm_text("00000012");
    res.offset = 4096;
    res.len = LOCK_CALL_RANGE_LEN;
    check_reply(reply, lock_call_denied(reply, COOKIE, &holder), &res);
}

TEST(test_lock_call__held_locks_touch_nowhere)
{
    struct lock_call_files files = load(4, NULL);
    for (uint32_t number = 0; number < 100; number++) {
        struct lock_call_range one = lock_call_held(&files, number);
        struct lock_call_range next = lock_call_held(&files, number + files.count);
        assert_int_equal(one.file, number % 4);
        assert_int_equal(next.file, one.file);
        assert_true(next.offset > one.offset + LOCK_CALL_RANGE_LEN);
        assert_int_not_equal(next.svid, one.svid);
    }
    free(files.handles);
}

TEST(test_lock_call__handles_come_from_a_file)
{
    char path[] = "/tmp/holdfast-handles-XXXXXX";
    struct lock_call_files files;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fprintf(file, "0102030405\na1a2a3a4a5\nb1b2\n");
    fclose(file);
    files = load(2, path);
    assert_int_equal(files.handle_len, 5);
    assert_memory_equal(files.handles[1], "\xa1\xa2\xa3\xa4\xa5", 5);
    free(files.handles);
    assert_false(lock_call_load(&files, 3, path)); /* of another length */
    free(files.handles);
    assert_false(lock_call_load(&files, 4, path)); /* not so many */
    free(files.handles);
    unlink(path);
    assert_false(lock_call_load(&files, 1, path));
    free(files.handles);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
