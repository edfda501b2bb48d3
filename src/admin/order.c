/*
 * order.c -- turns a request on the control socket into a command of the core, and its result into
 * a response.
 *
 *   done       200 {"result": "done"}
 *   begun      a long release: no response until all of it is freed
 *   later      not possible yet: tried again in the next turn, no response until then
 *   no client  404
 *   nothing    409: no grace period, the client holds nothing (there), or is there already
 *   taken      409: a client of that name holds locks at that address
 *   address    400: not the address of a host, or an unknown interface
 *   no bytes   507
 *
 * The response is ready at once but leaves when what it says is durable (P1): exchange.after_txn.
 */
#include "admin/order.h"

#include "admin/list.h"
#include "base/check.h"
#include "base/hex.h"
#include "core/view.h"
#include "wire/sockaddr.h"

static void say(struct exchange *exchange, unsigned status, const char *result)
{
    struct writer out = {0};
    writer_object(&out, NULL);
    writer_text(&out, "result", result);
    writer_end_object(&out);
    exchange_json(exchange, status, &out);
}

static void report_no_grace(struct exchange *exchange)
{
    struct core_status status;
    core_status(exchange->admin->core, &status);
    exchange_error(
        exchange, MHD_HTTP_CONFLICT,
        status.is_monitor ? "a status monitor has no grace period" : "no grace period is active",
        (struct bytes){0},
        status.is_monitor ? "for the kernel's, as root: echo Y > /proc/fs/lockd/nlm_end_grace"
                          : "new locks are already granted");
}

/* There is nothing to do. */
static void report_nothing(struct exchange *exchange, const struct order *order)
{
    if (order->kind == ORDER_RESTART_NOTICE)
        exchange_error(exchange, MHD_HTTP_CONFLICT, "this server is no status monitor",
                       (struct bytes){0}, "its own restart notifies its clients");
    else if (order->kind == ORDER_END_GRACE)
        report_no_grace(exchange);
    else if (order->kind == ORDER_MOVE)
        exchange_error(exchange, MHD_HTTP_CONFLICT, "already at that address: ", exchange->id,
                       "nothing to move");
    else
        exchange_error(exchange, MHD_HTTP_CONFLICT,
                       order->fh.len > 0 ? "holds no locks on that file: " : "holds no locks: ",
                       exchange->id, "see the log for what happened to them");
}

static void report(struct exchange *exchange, const struct order *order, enum order_result result)
{
    struct bytes id = exchange->id;
    switch (result) {
    case ORDER_DONE:
        say(exchange, MHD_HTTP_OK, "done");
        return;
    case ORDER_NO_CLIENT:
        exchange_error(
            exchange, MHD_HTTP_NOT_FOUND, "no such client: ", id,
            order->kind == ORDER_RELEASE
                ? "it is gone, unknown, or of a protocol that removes its own clients; holdfast "
                  "clients lists them"
                : "it is gone, unknown, or not a lock client; holdfast clients lists them");
        return;
    case ORDER_NOTHING:
        report_nothing(exchange, order);
        return;
    case ORDER_BAD_ADDRESS:
        if (address_is_link_local(&order->to))
            exchange_error(
                exchange, MHD_HTTP_BAD_REQUEST, "a link-local address needs an interface",
                (struct bytes){0},
                "append the interface of this machine that leads to the client, like %eth0");
        else
            exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "no host can have that address",
                           (struct bytes){0}, "give the address the client calls from now");
        return;
    case ORDER_TAKEN:
        exchange_error(exchange, MHD_HTTP_CONFLICT,
                       "not moved, because a client of that name holds locks at that address: ", id,
                       "release one of the two; holdfast clients shows both");
        return;
    case ORDER_NO_BYTES:
        exchange_error(exchange, MHD_HTTP_INSUFFICIENT_STORAGE, "no room for another address",
                       (struct bytes){0}, "--max-bytes is used up");
        return;
    case ORDER_BEGUN:
    case ORDER_LATER:
        break;
    }
    UNREACHABLE();
}

static void give(struct exchange *exchange, const struct order *order)
{
    struct core_answer answer = {.order_result = ORDER_LATER};
    exchange->admin->obey(exchange->admin->context, order, &exchange->who, &answer);
    exchange->after_txn = answer.after_txn;
    exchange->is_pending = answer.order_result == ORDER_LATER || answer.order_result == ORDER_BEGUN;
    if (answer.order_result == ORDER_BEGUN)
        CHECK(view_handle(exchange->admin->core, order->client, &exchange->freeing));
    if (!exchange->is_pending)
        report(exchange, order, answer.order_result);
}

/* It has begun: over when nothing is left, and said when that is durable. */
static void go_on_with_release(struct exchange *exchange)
{
    exchange->is_pending = view_is_freeing(exchange->admin->core, exchange->freeing);
    if (exchange->is_pending)
        return;
    exchange->after_txn = core_fence(exchange->admin->core);
    say(exchange, MHD_HTTP_OK, "done");
}

void order_end_grace(struct exchange *exchange)
{
    give(exchange, &(struct order){.kind = ORDER_END_GRACE});
}

void order_restart_notice(struct exchange *exchange)
{
    give(exchange, &(struct order){.kind = ORDER_RESTART_NOTICE});
}

void order_release(struct exchange *exchange)
{
    struct order order = {.kind = ORDER_RELEASE};
    uint8_t handle[RECORD_FH_MAX];
    const char *file = exchange_parameter(exchange, "file");
    if (exchange->freeing != 0) {
        go_on_with_release(exchange);
        return;
    }
    if (!list_read_id(exchange, exchange->id, &order.client))
        return;
    if (file != NULL) {
        if (!hex_parse(file, handle, RECORD_FH_MAX, &order.fh.len)) {
            exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                           "not a file handle: ", bytes_of_text(file),
                           "a handle is up to 64 pairs of hex digits");
            return;
        }
        order.fh.at = handle;
    }
    give(exchange, &order);
}

void order_notify(struct exchange *exchange)
{
    struct order order = {.kind = ORDER_NOTIFY};
    if (list_read_id(exchange, exchange->id, &order.client))
        give(exchange, &order);
}

void order_move(struct exchange *exchange)
{
    struct order order = {.kind = ORDER_MOVE};
    const char *address = exchange_parameter(exchange, "address");
    if (!list_read_id(exchange, exchange->id, &order.client))
        return;
    if (address == NULL) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "missing parameter: address",
                       (struct bytes){0}, "for example move?address=192.0.2.9");
        return;
    }
    if (!address_parse(bytes_of_text(address), &order.to)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                       "not an IP address: ", bytes_of_text(address),
                       "give the address the client calls from now, like 192.0.2.9 or 2001:db8::9; "
                       "names are not resolved here");
        return;
    }
    if (order.to.zone[0] != '\0' && sockaddr_index(&order.to) == 0) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "this machine has no interface ",
                       bytes_of_text(order.to.zone),
                       "no client can be reached that way; ip link lists the interfaces");
        return;
    }
    give(exchange, &order);
}
