/*
 * test_paging.c -- a search that finds little ends after a while, and `next` leads on from there;
 * what it could not look at in full it counts. A sorted page is whole, however long that takes.
 *
 * Client and server take turns in one thread. Each piece of a page takes a second here.
 */
#include "admin/http.h"

#include "../core/monitor.h"
#include "base/units.h"
#include "unit/test.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COUNT = 3000, CLIENTS = 3000, PAGES_MAX = 100 };

static struct world {
    uv_loop_t loop;
    struct http *http;
    uint64_t now_ns;
    enum admin_path path;
    bool is_in_use;
    uint32_t idle_turns; /* of the last page, between its pieces */
} world;

static void tell_facts(void *context, struct admin_facts *ret)
{
    (void)context;
    world.now_ns += SECOND_NS;
    *ret = (struct admin_facts){.now_ns = world.now_ns, .wall_ns = world.now_ns};
}

static bool is_in_use(void *context)
{
    (void)context;
    return world.is_in_use;
}

static bool is_ready(void *context, struct text *ret_reason)
{
    (void)context;
    (void)ret_reason;
    return true;
}

static enum admin_path tell_path(void *context, struct bytes fh, struct bytes *ret)
{
    (void)context;
    (void)fh;
    *ret = bytes_of_text("/srv/mail");
    return world.path;
}

static struct admin admin;

TEST_FIXTURE(start)
{
    struct core_limits limits = fixture_limits;
    struct address address;
    struct text why;
    char buffer[256];
    int exit_code;
    limits.locks_max = limits.locks_per_client_max = limits.batch_puts_max = 2 * COUNT;
    limits.bytes_max = 64 << 20;
    limits.clients_max = 2 * CLIENTS;
    locker_new(&limits);
    lock_many(the_core, 5, A, 0, COUNT);
    settle();
    world = (struct world){.path = ADMIN_PATH_NONE};
    admin = (struct admin){.core = the_core,
                           .is_ready = is_ready,
                           .facts = tell_facts,
                           .is_in_use = is_in_use,
                           .path = tell_path};
    assert_int_equal(uv_loop_init(&world.loop), 0);
    assert_true(address_parse(bytes_of_text("127.0.0.1"), &address));
    text_init(&why, buffer, sizeof buffer);
    world.http = http_new(&world.loop, &address, 0, &admin, &exit_code, &why);
    if (world.http == NULL)
        fail_msg("%s", buffer);
}

TEST_FIXTURE(stop)
{
    http_free(world.http);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world.loop), 0);
    locker_done();
}

static int ask(const char *path)
{
    char request[256];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_port(world.http)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    return fd;
}

/* The response to one request; that of HTTP/1.0 comes in one, not in chunks. */
static const char *get(const char *path)
{
    static char answer[1 << 20];
    int fd = ask(path);
    size_t got = 0;
    uint32_t idle_turns = 0;
    uint64_t first_ns = world.now_ns;
    world.idle_turns = 0;
    for (;;) {
        uint64_t before_ns = world.now_ns;
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        if (world.now_ns == before_ns) {
            idle_turns += before_ns > first_ns;
        } else {
            world.idle_turns += idle_turns;
            idle_turns = 0;
        }
        ssize_t more = recv(fd, answer + got, sizeof answer - 1 - got, MSG_DONTWAIT);
        if (more == 0)
            break;
        got += more > 0 ? (size_t)more : 0;
        assert_true(got < sizeof answer - 1);
    }
    answer[got] = '\0';
    assert_int_equal(close(fd), 0);
    assert_non_null(strstr(answer, " 200 "));
    return answer;
}

/* A number behind `key`, or 0 for null. */
static unsigned long long number(const char *answer, const char *key)
{
    const char *at = strstr(answer, key);
    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, 10);
}

/* Reads all pages of a search for what nobody has. */
static uint32_t read_pages(const char *parameters, uint64_t *ret_unnamed)
{
    char path[128];
    unsigned long long cursor = 0;
    uint32_t pages = 0;
    *ret_unnamed = 0;
    do {
        (void)snprintf(path, sizeof path, "/api/v1/locks?%s&cursor=%llu", parameters, cursor);
        uint64_t before_ns = world.now_ns;
        const char *answer = get(path);
        assert_null(strstr(answer, "granted_at"));
        assert_in_range(world.now_ns - before_ns, SECOND_NS, 10 * SECOND_NS);
        bool is_end = strstr(answer, "\"next\":null") != NULL;
        unsigned long long next = is_end ? 0 : number(answer, "\"next\":\"");
        assert_true(is_end || next > cursor);
        cursor = next;
        *ret_unnamed += number(answer, "\"unnamed\":");
        assert_true(++pages < PAGES_MAX);
    } while (cursor != 0);
    return pages;
}

TEST(test_paging__a_sparse_search_ends_with_next)
{
    uint64_t unnamed;
    assert_true(read_pages("match=nobody", &unnamed) > 1);
    assert_int_equal(unnamed, 0);
}

TEST(test_paging__rows_that_could_not_be_searched_are_counted)
{
    uint64_t unnamed;
    world.path = ADMIN_PATH_UNKNOWN;
    (void)read_pages("match=nobody", &unnamed);
    assert_int_equal(unnamed, COUNT);
}

/* It need not be searched for: the page is full, however long that takes. */
TEST(test_paging__a_plain_page_is_full)
{
    const char *answer = get("/api/v1/locks?limit=1000");
    uint32_t rows = 0;
    for (const char *at = answer; (at = strstr(at, "granted_at")) != NULL; at++)
        rows++;
    assert_int_equal(rows, 1000);
    assert_null(strstr(answer, "unnamed"));
}

/* Of 1,000 rows; how many pieces it came in. */
static uint64_t count_pieces(bool is_used)
{
    world.is_in_use = is_used;
    uint64_t before_ns = world.now_ns;
    size_t len = strlen(get("/api/v1/locks?limit=1000"));
    assert_in_range(len, 200 * 1024, 400 * 1024);
    return (world.now_ns - before_ns) / SECOND_NS;
}

/* A call that comes meanwhile waits for a few rows, and there is time for it between two pieces. */
TEST(test_paging__pieces_are_short_while_clients_call)
{
    assert_in_range(count_pieces(false), 1, 20);
    assert_in_range(count_pieces(true), 50, 200);
    assert_true(world.idle_turns > 0);
}

/* Nor does it wait while thousands of locks are searched; a page ends after the same time. */
TEST(test_paging__a_piece_searches_less_while_clients_call)
{
    uint64_t unnamed;
    uint32_t pages = read_pages("match=nobody", &unnamed);
    world.is_in_use = true;
    assert_in_range(read_pages("match=nobody", &unnamed), 2 * pages, 5 * pages);
}

/* Each has a lock, and those with larger numbers come first in their table. */
static void add_clients(void)
{
    char name[32];
    for (uint32_t i = CLIENTS; i > 0; i--) {
        (void)snprintf(name, sizeof name, "node%u", i);
        struct locker who = {"10.0.0.9", name, 1};
        lock_many(the_core, 5, who, 100000 + i, 1);
        if (i % 1000 == 0)
            settle();
    }
    settle();
}

/* Reads a page, and the rows' names in order; returns how many. */
static uint32_t expect_names(const char *path, uint32_t first, int step)
{
    char name[32];
    const char *answer = get(path);
    uint32_t rows = 0;
    for (const char *at = answer; (at = strstr(at, "\"name\":\"node")) != NULL; at++, rows++) {
        (void)snprintf(name, sizeof name, "\"name\":\"node%d\"", (int)first + step * (int)rows);
        assert_int_equal(strncmp(at, name, strlen(name)), 0);
    }
    assert_int_equal(number(answer, "\"total\":"), CLIENTS);
    return rows;
}

TEST(test_paging__a_sorted_page_is_whole)
{
    add_clients();
    uint64_t before_ns = world.now_ns;
    assert_int_equal(expect_names("/api/v1/clients?words=node&sort=name&limit=1000", 1, 1), 1000);
    assert_true(world.now_ns - before_ns >= 3 * SECOND_NS); /* in pieces, beyond its time */
    assert_int_equal(number(get("/api/v1/clients?words=node&sort=name"), "\"before\":"), 0);
    assert_int_equal(expect_names("/api/v1/clients?words=node&sort=-name", CLIENTS, -1), 100);
    /* behind node2950: 50 are left */
    const char *rest = "/api/v1/clients?words=node&sort=name&cursor=0-99999-6e6f646532393530";
    assert_int_equal(expect_names(rest, 2951, 1), 50);
    assert_int_equal(number(get(rest), "\"before\":"), 2950);
    assert_non_null(strstr(get(rest), "\"next\":null"));
}

/* Pages that wait for a name take all places, and more: the oldest ones make room, and nothing runs
 * for them any more. */
TEST(test_paging__pages_that_wait_do_not_keep_others_out)
{
    enum { PAGES = 300, TURNS_MAX = 100000 };
    static int pages[PAGES];
    char answer[1024];
    ssize_t len = -1;
    world.path = ADMIN_PATH_LATER;
    for (size_t i = 0; i < PAGES; i++)
        pages[i] = ask("/api/v1/locks?limit=5");
    int fd = ask("/healthz");
    for (uint32_t i = 0; i < TURNS_MAX && len <= 0; i++) {
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        len = recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT);
    }
    assert_true(len > 0);
    answer[len] = '\0';
    assert_non_null(strstr(answer, "200 OK"));
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(close(pages[i]), 0);
    /* When all are gone the loop has nothing to do. */
    for (uint32_t i = 0; i < TURNS_MAX && uv_backend_timeout(&world.loop) == 0; i++)
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_int_not_equal(uv_backend_timeout(&world.loop), 0);
}

TEST_MAIN(start, stop, NULL, NULL)
