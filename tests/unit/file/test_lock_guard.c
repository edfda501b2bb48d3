/*
 * test_lock_guard.c -- which caller may lock which file of an export (F-LOCK): handles that are
 * forged, gone or of no export; clients that the export does not list; read-only exports; what the
 * user may read or owns, squashed as for any other call; and a file system that does not answer.
 */
#include "../test.h"
#include "caller.h"
#include "file/lock_guard.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct caller caller;

static int begin(void **state)
{
    (void)state;
    caller_start(&caller, "rw");
    return 0;
}

static int end(void **state)
{
    (void)state;
    caller_stop(&caller);
    return 0;
}

static struct guard_question question(const struct nfs_fh *fh)
{
    return (struct guard_question){
        .from = &caller.peer, .credential = &caller.credential, .fh = caller_bytes(fh)};
}

/* Asks until it is known, as the server does. */
static enum guard_verdict judge(const struct guard_question *asked)
{
    const struct job_desk *desk = file_desk(caller.service);
    for (;;) {
        enum guard_verdict verdict = file_judge_lock(caller.service, asked);
        if (verdict != GUARD_LATER)
            return verdict;
        assert_null(desk->next(desk->context)); /* collects what the pool found */
    }
}

static enum guard_verdict judge_fh(const struct nfs_fh *fh)
{
    struct guard_question asked = question(fh);
    return judge(&asked);
}

static struct nfs_fh make(const char *name, uint32_t mode)
{
    struct nfs_fh fh;
    assert_int_equal(caller_create(&caller, &caller.root, name, mode, &fh), NFS_OK);
    return fh;
}

TEST(test_lock_guard__who_may_read_may_lock)
{
    struct nfs_fh fh = make("f", 0640);
    assert_int_equal(judge_fh(&fh), GUARD_ALLOWED);
    caller_be(&caller, 1001, 1000);
    assert_int_equal(judge_fh(&fh), GUARD_ALLOWED);
    caller_be(&caller, 1001, 1001);
    assert_int_equal(judge_fh(&fh), GUARD_NO_ACCESS);
    struct guard_question asked = question(&fh);
    asked.exclusive = true; /* write access is not asked for */
    caller_be(&caller, 1001, 1000);
    assert_int_equal(judge(&asked), GUARD_ALLOWED);
}

TEST(test_lock_guard__the_owner_always_may)
{
    struct nfs_fh fh = make("f", 0);
    assert_int_equal(judge_fh(&fh), GUARD_ALLOWED);
    caller_be(&caller, 1001, 1000);
    assert_int_equal(judge_fh(&fh), GUARD_NO_ACCESS);
}

TEST(test_lock_guard__what_a_chmod_changes_counts_at_once)
{
    struct nfs_fh fh = make("f", 0600);
    caller_be(&caller, 1001, 1001);
    assert_int_equal(judge_fh(&fh), GUARD_NO_ACCESS);
    assert_int_equal(chmod(caller_path(&caller, "f"), 0644), 0);
    assert_int_equal(judge_fh(&fh), GUARD_ALLOWED);
    assert_int_equal(chmod(caller_path(&caller, "f"), 0600), 0);
    assert_int_equal(judge_fh(&fh), GUARD_NO_ACCESS);
}

TEST(test_lock_guard__root_is_squashed)
{
    struct nfs_fh fh = make("f", 0600);
    caller_be(&caller, 0, 0);
    assert_int_equal(judge_fh(&fh), GUARD_NO_ACCESS);
    caller_restart(&caller, "rw,no_root_squash");
    assert_int_equal(judge_fh(&fh), GUARD_ALLOWED);
    caller_restart(&caller, "rw,all_squash,anonuid=1000");
    caller_be(&caller, 1001, 1001);
    assert_int_equal(judge_fh(&fh), GUARD_ALLOWED);
}

TEST(test_lock_guard__a_reclaim_gets_what_it_had)
{
    struct nfs_fh fh = make("f", 0600);
    caller_be(&caller, 1001, 1001);
    struct guard_question asked = question(&fh);
    assert_int_equal(judge(&asked), GUARD_NO_ACCESS);
    asked.is_stored = true;
    assert_int_equal(lock_guard_judge(caller.service, &asked), GUARD_ALLOWED);
    caller_restart(&caller, "rw"); /* nor does it wait for somebody to look */
    assert_int_equal(lock_guard_judge(caller.service, &asked), GUARD_ALLOWED);
}

TEST(test_lock_guard__handles_that_are_no_files)
{
    struct nfs_fh fh = make("f", 0666), forged = fh, other = fh;
    forged.data[fh.len - 1] ^= 1;
    assert_int_equal(judge_fh(&forged), GUARD_STALE);
    struct guard_question asked = question(&fh);
    asked.fh = (struct bytes){fh.data, 0};
    assert_int_equal(judge(&asked), GUARD_STALE);
    static const uint8_t alien[64] = {0xab};
    asked.fh = (struct bytes){alien, sizeof alien};
    assert_int_equal(judge(&asked), GUARD_STALE);

    assert_int_equal(judge_fh(&other), GUARD_ALLOWED);
    assert_int_equal(unlink(caller_path(&caller, "f")), 0);
    assert_int_equal(judge_fh(&other), GUARD_STALE); /* while it is open here */
    caller_restart(&caller, "rw");
    assert_int_equal(judge_fh(&other), GUARD_STALE); /* and when it is not */
}

TEST(test_lock_guard__the_clients_of_the_export)
{
    struct nfs_fh fh = make("f", 0666);
    char line[128], why_bytes[256];
    struct text why;
    text_init(&why, why_bytes, sizeof why_bytes);
    (void)snprintf(line, sizeof line, "%s 192.0.2.1(rw)", caller.directory);
    assert_true(caller_reload(&caller, line, &why));
    assert_int_equal(judge_fh(&fh), GUARD_NOT_EXPORTED);
    (void)snprintf(line, sizeof line, "%s 127.0.0.0/8(ro)", caller.directory);
    assert_true(caller_reload(&caller, line, &why));
    struct guard_question asked = question(&fh);
    assert_int_equal(judge(&asked), GUARD_ALLOWED);
    asked.exclusive = true;
    assert_int_equal(judge(&asked), GUARD_READ_ONLY);
    asked.is_stored = true; /* it had it when it might write */
    assert_int_equal(judge(&asked), GUARD_ALLOWED);
    (void)snprintf(line, sizeof line, "%s *(rw,secure)", caller.directory);
    assert_true(caller_reload(&caller, line, &why));
    asked = question(&fh);
    assert_int_equal(judge(&asked), GUARD_ALLOWED);
    caller.peer.port = 5000;
    assert_int_equal(judge(&asked), GUARD_NOT_EXPORTED);
    (void)snprintf(line, sizeof line, "/usr *(ro)");
    assert_true(caller_reload(&caller, line, &why));
    assert_int_equal(judge_fh(&fh), GUARD_STALE); /* of no export any more */
}

/* More at once than there is room to ask for: everybody gets its own answer. */
TEST(test_lock_guard__many_questions_at_once)
{
    enum { FILES = 3 * LOCK_GUARD_MAX / 2 };
    static struct nfs_fh handles[FILES];
    char name[16];
    for (uint32_t i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof name, "f%u", i);
        handles[i] = make(name, i % 2 == 0 ? 0644 : 0600);
    }
    caller_restart(&caller, "rw"); /* nothing is open */
    caller_be(&caller, 1001, 1001);
    const struct job_desk *desk = file_desk(caller.service);
    bool is_known[FILES] = {false};
    for (uint32_t left = FILES; left > 0;)
        for (uint32_t i = 0; i < FILES; i++) {
            struct guard_question asked = question(&handles[i]);
            enum guard_verdict verdict =
                is_known[i] ? GUARD_LATER : file_judge_lock(caller.service, &asked);
            assert_null(desk->next(desk->context));
            if (verdict == GUARD_LATER)
                continue;
            assert_int_equal(verdict, i % 2 == 0 ? GUARD_ALLOWED : GUARD_NO_ACCESS);
            is_known[i] = true;
            left--;
        }
}

TEST_MAIN(begin, end, NULL, NULL)
