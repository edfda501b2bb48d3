/*
 * served.c -- see served.h.
 */
#include "served.h"
#include "base/units.h"

#include "proto/nsm.h"
#include "wire/sockaddr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static const struct program *const programs[] = {&nsm_program};

void served_open(struct served *served, const struct rpc_server_limits *limits)
{
    *served = (struct served){.clock = {.now_ns = SECOND_NS, .wall_ns = 1, .is_set = true}};
    static const struct file_set everything = {{(const uint8_t *)"default", 7}, {NULL, 0}};
    struct core_limits core_limits = {.clients_max = 10,
                                      .locks_max = 10,
                                      .locks_per_client_max = 10,
                                      .waiters_max = 10,
                                      .bytes_max = 65536,
                                      .batch_puts_max = 4,
                                      .file_sets = &everything,
                                      .file_set_count = 1,
                                      .lease = &served->lease};
    served->core = core_new(&core_limits, 1);
    assert_non_null(served->core);
    core_start(served->core, &(struct core_boot){0});
    struct rpc_server_limits leased = *limits;
    leased.lease = &served->lease;
    served->server = rpc_server_new(&leased, programs, 1, served->core, 1);
    assert_non_null(served->server);
    assert_int_equal(uv_loop_init(&served->loop), 0);
    struct listen_failure failure;
    if (listen_open(NULL, 0, 0, &served->set, &failure) != 0)
        fail_msg("%s", failure.text);
    served->port = served->set.port;
}

void served_close(struct served *served)
{
    rpc_server_check(served->server);
    assert_int_equal(uv_run(&served->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&served->loop), 0);
    rpc_server_free(served->server);
    core_free(served->core);
}

void served_store(struct served *served)
{
    struct store_batch batch;
    assert_true(core_take_batch(served->core, &batch));
    rpc_server_stored(served->server, batch.txn, true, served->clock.now_ns, served->clock.wall_ns);
}

bool served_was_reported(struct served *served, enum event_kind kind, const char *from)
{
    struct address address = served_address(from);
    struct event event;
    bool found = false;
    while (event_take(core_events(served->core), &event))
        found = found || (event.kind == kind && address_equal(&event.from, &address));
    return found;
}

struct address served_address(const char *text)
{
    struct address address;
    assert_true(address_parse(bytes_of_text(text), &address));
    return address;
}

int served_client(int type, const char *text)
{
    struct address address = served_address(text);
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(&address, 0, &at);
    int fd = socket(at.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, at_len) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

void served_send(const struct served *served, int fd, const char *to, const struct packet *call)
{
    assert_false(call->overflowed);
    struct address address = served_address(to);
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(&address, served->port, &at);
    assert_int_equal(sendto(fd, call->bytes, call->len, 0, (const struct sockaddr *)&at, at_len),
                     call->len);
}

bool served_take_datagram(int fd, struct address *ret_from, uint16_t *ret_port,
                          struct packet_reply *ret)
{
    static uint8_t message[65536];
    struct sockaddr_storage from;
    socklen_t from_len = sizeof from;
    ssize_t len =
        recvfrom(fd, message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
    if (len < 0)
        return false;
    *ret_from = sockaddr_address((const struct sockaddr *)&from, ret_port);
    assert_true(packet_get_reply(message, (uint32_t)len, ret));
    return true;
}
