/*
 * test_names.c -- what this server is called: from options and host at once, from the resolver
 * when it answers, and no start that waits for one that does not.
 *
 * The resolver is this file's: its functions take the place of libc's, for libuv's threads as well.
 * It answers, fails, or hangs until the test lets it go.
 */
/* gethostname is ours here; fortified, the library's header would make it inline. */
#undef _FORTIFY_SOURCE

#include "daemon/names.h"
#include "unit/core/fixture.h"
#include "unit/core/lock_fixture.h"
#include "unit/test.h"

#include <netdb.h>
#include <pthread.h>

static const char *the_host_name;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool fails, hangs;
    uint32_t waiting, asked;
} resolver = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Takes the place of libc's. */
int gethostname(char *name, size_t size)
{
    assert_true(strlen(the_host_name) < size);
    memcpy(name, the_host_name, strlen(the_host_name) + 1);
    return 0;
}

static bool resolver_answers(void)
{
    (void)pthread_mutex_lock(&resolver.mutex);
    resolver.asked++;
    resolver.waiting++;
    (void)pthread_cond_broadcast(&resolver.changed);
    while (resolver.hangs)
        (void)pthread_cond_wait(&resolver.changed, &resolver.mutex);
    resolver.waiting--;
    bool answers = !resolver.fails;
    (void)pthread_mutex_unlock(&resolver.mutex);
    return answers;
}

int getnameinfo(const struct sockaddr *restrict address, socklen_t len, char *restrict host,
                socklen_t host_size, char *restrict service, socklen_t service_size, int flags)
{
    (void)address, (void)len, (void)host_size, (void)flags;
    if (service != NULL && service_size > 0)
        service[0] = '\0';
    if (!resolver_answers())
        return EAI_NONAME;
    memcpy(host, "ptr.example", sizeof "ptr.example");
    return 0;
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    (void)service;
    (void)hints;
    if (!resolver_answers())
        return EAI_NONAME;
    struct addrinfo *result = calloc(1, sizeof *result);
    char *canonical =
        strcmp(name, "box") == 0 ? strdup("localhost.localdomain") : strdup("srv.example");
    if (result == NULL || canonical == NULL)
        abort();
    result->ai_canonname = canonical;
    *ret = result;
    return 0;
}

void freeaddrinfo(struct addrinfo *result)
{
    free(result->ai_canonname);
    free(result);
}

static uv_loop_t loop;
static struct core *core;
static struct names *names;
static uint32_t done_count;

static void set_resolver(bool fails, bool hangs)
{
    (void)pthread_mutex_lock(&resolver.mutex);
    resolver.fails = fails;
    resolver.hangs = hangs;
    resolver.asked = 0;
    (void)pthread_cond_broadcast(&resolver.changed);
    (void)pthread_mutex_unlock(&resolver.mutex);
}

/* Until one of libuv's threads is inside the resolver. */
static void wait_until_it_hangs(void)
{
    (void)pthread_mutex_lock(&resolver.mutex);
    while (resolver.waiting == 0)
        (void)pthread_cond_wait(&resolver.changed, &resolver.mutex);
    (void)pthread_mutex_unlock(&resolver.mutex);
}

static void begin(const char *host_name, uint32_t count, char *const *given)
{
    struct config config = {0};
    the_host_name = host_name;
    config.names.count = count;
    for (uint32_t i = 0; i < count; i++)
        config.names.at[i] = given[i];
    assert_int_equal(uv_loop_init(&loop), 0);
    names = names_new(&loop, &config);
    assert_non_null(names);
    done_count = 0;
}

static void end(void)
{
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    names_free(names);
}

/* A core that was killed; `is_owed`: while a client held a lock. */
static void begin_core(bool is_owed)
{
    struct core_limits limits = lock_fixture_limits;
    struct peer from = fixture_peer("10.0.0.2", 700);
    struct lock_request request = lock_fixture_request("f", "oh");
    set_resolver(false, false);
    limits.name_count = names_list(names, &limits.names);
    core = lock_fixture_new(&limits);
    if (is_owed) {
        uint32_t client = lock_fixture_client(core, "10.0.0.2", "a");
        client_asked(core, client, &from, &request);
        lock_fixture_lock(core, client, 1, "f", 0);
        (void)lock_fixture_store(core, NULL);
    }
    core = lock_fixture_restart(core, &limits, 0);
}

static void assert_said(const char *const *expected, uint32_t count)
{
    struct core_call call;
    fixture_ready(core);
    (void)lock_fixture_store(core, NULL);
    assert_true(fixture_next_call(core, &call));
    assert_int_equal(call.our_name_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_true(bytes_equal(call.our_names[i], bytes_of_text(expected[i])));
}

static void on_done(void *context)
{
    assert_ptr_equal(context, &done_count);
    done_count++;
}

static void ask(void)
{
    names_ask(names, core, &done_count, on_done);
}

TEST(test_names__from_options_and_host)
{
    static char *given[] = {"nas.example", "nas", "srv", "nas"};
    static const struct {
        const char *host_name;
        uint32_t given_count, count;
        const char *names[CORE_NAMES_MAX];
    } cases[] = {
        {"srv", 0, 1, {"srv"}},
        {"srv.example", 0, 2, {"srv.example", "srv"}},
        {"srv.example", 4, 4, {"nas.example", "nas", "srv", "srv.example"}},
        {"other.example", 3, 5, {"nas.example", "nas", "srv", "other.example", "other"}},
        {"localhost", 0, 0, {NULL}},
        {"LocalHost.localdomain", 1, 1, {"nas.example"}},
        {"localhosts", 0, 1, {"localhosts"}},
        {"", 0, 0, {NULL}},
        {".", 0, 0, {NULL}},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bytes *list;
        begin(cases[i].host_name, cases[i].given_count, given);
        assert_int_equal(names_list(names, &list), cases[i].count);
        for (uint32_t at = 0; at < cases[i].count; at++)
            assert_true(bytes_equal(list[at], bytes_of_text(cases[i].names[at])));
        const char *first = cases[i].count > 0 ? cases[i].names[0] : "localhost";
        assert_true(bytes_equal(names_first(names), bytes_of_text(first)));
        assert_true(names_close(names));
        end();
    }
}

TEST(test_names__the_resolver_is_heard)
{
    static const char *const expected[] = {"srv", "srv.example", "ptr.example", "10.0.0.1"};
    begin("srv", 0, NULL);
    begin_core(true);
    ask();
    assert_int_equal(done_count, 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(done_count, 1);
    assert_int_equal(resolver.asked, 2);
    assert_said(expected, 4);
    assert_true(names_close(names));
    end();
    lock_fixture_free(core);
}

/* What every host calls itself is nobody's name; a full name needs no question. */
TEST(test_names__what_is_not_asked_or_not_said)
{
    static const char *const expected[] = {"box", "ptr.example", "10.0.0.1"};
    static const char *const expected_full[] = {"srv.example", "srv", "ptr.example", "10.0.0.1"};
    begin("box", 0, NULL);
    begin_core(true);
    ask();
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_said(expected, 3);
    assert_true(names_close(names));
    end();
    lock_fixture_free(core);
    begin("srv.example", 0, NULL);
    begin_core(true);
    ask();
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(resolver.asked, 1);
    assert_said(expected_full, 4);
    assert_true(names_close(names));
    end();
    lock_fixture_free(core);
}

TEST(test_names__a_failing_resolver_changes_nothing)
{
    static const char *const expected[] = {"srv", "10.0.0.1"};
    begin("srv", 0, NULL);
    begin_core(true);
    set_resolver(true, false);
    ask();
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(done_count, 1);
    assert_said(expected, 2);
    assert_true(names_close(names));
    end();
    lock_fixture_free(core);
}

/* Nobody is to be told: nobody is asked, and nothing waits. */
TEST(test_names__nobody_to_tell_nobody_to_ask)
{
    begin("srv", 0, NULL);
    begin_core(false);
    ask();
    assert_int_equal(done_count, 1);
    assert_int_equal(resolver.asked, 0);
    assert_true(names_close(names));
    end();
    lock_fixture_free(core);
}

/* A resolver that hangs delays the start by the patience we have, and its answer is still heard. */
TEST(test_names__a_hanging_resolver_is_not_waited_for)
{
    static const char *const expected[] = {"srv", "srv.example", "ptr.example", "10.0.0.1"};
    begin("srv", 0, NULL);
    begin_core(true);
    set_resolver(false, true);
    uint64_t start_ms = uv_now(&loop);
    ask();
    while (done_count == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_true(uv_now(&loop) - start_ms >= NAMES_PATIENCE_MS);
    set_resolver(false, false);
    (void)uv_run(&loop, UV_RUN_DEFAULT); /* until it has answered */
    assert_int_equal(done_count, 1);
    assert_said(expected, 4);
    assert_true(names_close(names));
    end();
    lock_fixture_free(core);
}

/* The end of the process does not wait for it either; a late answer then meets nobody. */
TEST(test_names__closed_while_it_hangs)
{
    begin("srv", 0, NULL);
    begin_core(true);
    set_resolver(false, true);
    ask();
    wait_until_it_hangs();
    assert_false(names_close(names));
    lock_fixture_free(core); /* there is no core any more */
    set_resolver(false, false);
    end();
    assert_int_equal(done_count, 0);
    assert_true(names_close(NULL));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
