/*
 * test_resolving.c -- whose name somebody claims is asked off the loop: an answer reaches the core,
 * a resolver that hangs keeps nobody waiting, and a bounded number is asked at once.
 *
 * The resolver is this file's: its functions take the place of libc's, for libuv's threads as well.
 * Every name has two addresses, 10.0.0.7 and 2001:db8::7; "unknown" has none.
 */
#include "core/hearsay.h"
#include "daemon/resolving.h"
#include "unit/core/fixture.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool hangs;
    uint32_t waiting, asked;
} resolver = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Takes the place of libc's. */
int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    (void)service, (void)hints;
    (void)pthread_mutex_lock(&resolver.mutex);
    resolver.asked++;
    resolver.waiting++;
    (void)pthread_cond_broadcast(&resolver.changed);
    while (resolver.hangs)
        (void)pthread_cond_wait(&resolver.changed, &resolver.mutex);
    resolver.waiting--;
    (void)pthread_mutex_unlock(&resolver.mutex);
    if (strcmp(name, "unknown") == 0)
        return EAI_NONAME;
    static struct sockaddr_in v4 = {.sin_family = AF_INET};
    static struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    static struct addrinfo second = {.ai_addr = (struct sockaddr *)&v4};
    static struct addrinfo first = {.ai_addr = (struct sockaddr *)&v6, .ai_next = &second};
    (void)inet_pton(AF_INET, "10.0.0.7", &v4.sin_addr);
    (void)inet_pton(AF_INET6, "2001:db8::7", &v6.sin6_addr);
    *ret = &first;
    return 0;
}

void freeaddrinfo(struct addrinfo *result)
{
    (void)result;
}

static uv_loop_t loop;
static const struct rpc_server_limits server_limits = {.outbox_max = 1, .cache_max = 2};
static struct core *core;
static struct rpc_server *server;
static struct resolving *resolving;

static void set_hanging(bool hangs)
{
    (void)pthread_mutex_lock(&resolver.mutex);
    resolver.hangs = hangs;
    (void)pthread_cond_broadcast(&resolver.changed);
    (void)pthread_mutex_unlock(&resolver.mutex);
}

/* Until so many of libuv's threads are inside the resolver. */
static void wait_for_askers(uint32_t count)
{
    (void)pthread_mutex_lock(&resolver.mutex);
    while (resolver.waiting < count)
        (void)pthread_cond_wait(&resolver.changed, &resolver.mutex);
    (void)pthread_mutex_unlock(&resolver.mutex);
}

static void turn(void)
{
    resolving_turn(resolving, fixture_now_ns(), fixture_now_ns());
    core_check(core);
}

TEST_FIXTURE(setup)
{
    resolver.asked = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    core = fixture_new(&fixture_limits);
    server = rpc_server_new(&server_limits, NULL, 0, core, 7);
    assert_non_null(server);
    resolving = resolving_new(&loop, core, server);
    assert_non_null(resolving);
    fixture_mon(core, "10.0.0.2", "named", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "other", "lockd", 1);
    fixture_mon(core, "10.0.0.2", "unknown", "lockd", 1);
    (void)fixture_store(core);
    assert_int_equal(resolving_deadline_ns(resolving), UINT64_MAX);
}

TEST_FIXTURE(teardown)
{
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    resolving_free(resolving);
    rpc_server_free(server);
    core_free(core);
}

TEST(test_resolving__an_answer_reaches_the_core)
{
    fixture_notify(core, "10.0.0.7", "named", 5);
    fixture_notify(core, "2001:db8::7", "other", 5);
    assert_int_equal(resolving_deadline_ns(resolving), fixture_now_ns());
    turn();
    assert_int_equal(resolving_deadline_ns(resolving), UINT64_MAX); /* when an answer comes */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(resolving_deadline_ns(resolving), 0);
    turn();
    assert_int_equal(fixture_status(core).notices, 2);
    assert_int_equal(resolving_deadline_ns(resolving), UINT64_MAX);
    fixture_notify(core, "10.0.0.7", "unknown", 5);
    fixture_notify(core, "10.0.0.66", "named", 7);
    turn();
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    turn();
    assert_int_equal(fixture_status(core).notices, 2);
    assert_int_equal(resolver.asked, 4);
    assert_true(resolving_close(resolving));
}

/* A name that no resolver takes is unknown, without a question. */
TEST(test_resolving__a_name_that_cannot_be_asked)
{
    char name[1025];
    memset(name, 'a', 1024);
    name[1024] = '\0';
    fixture_mon(core, "10.0.0.2", name, "lockd", 1);
    fixture_notify(core, "10.0.0.7", name, 5);
    turn();
    turn();
    assert_int_equal(resolver.asked, 0);
    assert_int_equal(core_lookup_deadline_ns(core), UINT64_MAX);
    assert_int_equal(fixture_status(core).notices, 0);
    assert_true(resolving_close(resolving));
}

/* It costs places, not time; the end of the process does not wait for it. */
TEST(test_resolving__a_hanging_resolver_keeps_nobody_waiting)
{
    set_hanging(true);
    for (uint32_t i = 0; i < 4; i++) {
        char from[32];
        (void)snprintf(from, sizeof from, "10.0.1.%u", i + 1);
        fixture_notify(core, from, "named", 5);
    }
    turn();
    wait_for_askers(RESOLVING_MAX);
    turn();
    assert_int_equal(resolver.asked, RESOLVING_MAX);
    assert_int_equal(resolving_deadline_ns(resolving), UINT64_MAX); /* no room to ask more */
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_false(resolving_close(resolving));
    set_hanging(false);
}

/* What an answer changes needs room in the open batch. */
TEST(test_resolving__an_answer_waits_for_room)
{
    fixture_notify(core, "10.0.0.7", "named", 5);
    turn();
    for (uint32_t i = 0; !core_is_full(core); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "name%u", i);
        fixture_mon(core, "10.0.0.3", name, "lockd", 1);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(resolving_deadline_ns(resolving), UINT64_MAX);
    turn();
    assert_int_equal(fixture_status(core).notices, 0);
    (void)fixture_store(core);
    assert_int_equal(resolving_deadline_ns(resolving), 0);
    turn();
    assert_int_equal(fixture_status(core).notices, 1);
    assert_true(resolving_close(resolving));
}

TEST_MAIN(setup, teardown, NULL, NULL)
