/*
 * console.c -- the hooks of the HTTP endpoints; see console.h.
 */
#include "daemon/console.h"

#include "base/check.h"
#include "daemon/config_value.h"

static bool is_ready(void *context, struct text *ret_reason)
{
    const struct console *console = context;
    if (console->driver == NULL) {
        text_add(ret_reason, "starting");
        return false;
    }
    return driver_is_ready(console->driver, ret_reason);
}

static const char *rpcbind_word(const struct config *config)
{
    const struct config_option *option = config_find("rpcbind");
    CHECK(option != NULL);
    return option->choices[config->rpcbind];
}

static void tell_facts(void *context, struct admin_facts *ret)
{
    struct console *console = context;
    uint64_t now_ns = clock_now_ns(console->clock);
    *ret = (struct admin_facts){
        .now_ns = now_ns,
        .wall_ns = clock_wall_ns(console->clock),
        .uptime_ns = now_ns - console->start_ns,
        .store = console->config->store,
        .rpcbind = rpcbind_word(console->config),
    };
    struct text why;
    text_init(&why, ret->not_found_why, sizeof ret->not_found_why);
    if (console->driver == NULL || console->registrar == NULL) {
        text_add(&why, "starting");
        return;
    }
    ret->commit_age_ns = driver_commit_age_ns(console->driver);
    ret->is_found = registrar_is_ready(console->registrar, &why);
}

static const char *name_of(enum order_kind kind)
{
    switch (kind) {
    case ORDER_END_GRACE:
        return "end grace";
    case ORDER_RELEASE:
        return "release what a client holds";
    case ORDER_NOTIFY:
        return "tell a client of our state again";
    }
    UNREACHABLE();
}

static const char *name_of_result(enum order_result result)
{
    switch (result) {
    case ORDER_DONE:
        return "done";
    case ORDER_BEGUN:
        return "begun";
    case ORDER_NO_CLIENT:
        return "no such client";
    case ORDER_NOTHING:
        return "nothing to do";
    case ORDER_LATER:
        return "later";
    }
    UNREACHABLE();
}

static void obey(void *context, const struct order *order, const struct admin_caller *who,
                 struct core_answer *ret)
{
    struct console *console = context;
    *ret = (struct core_answer){.order_result = ORDER_LATER};
    if (console->driver != NULL)
        driver_order(console->driver, order, ret);
    char file[2 * RECORD_FH_MAX + 1];
    struct text hex;
    text_init(&hex, file, sizeof file);
    text_add_hex(&hex, order->fh);
    log_say(console->log, LOG_LEVEL_WARNING, clock_wall_ns(console->clock),
            LOG_MESSAGE("order of an operator"), LOG_TEXT("order", name_of(order->kind)),
            LOG_NUMBER("client", order->client), LOG_TEXT("file", file),
            LOG_TEXT("result", name_of_result(ret->order_result)), LOG_NUMBER("uid", who->uid),
            LOG_NUMBER("pid", (uint64_t)who->pid));
}

void console_init(struct console *console, const struct config *config, struct log *log,
                  struct clock *clock)
{
    *console = (struct console){
        .admin = {.context = console, .is_ready = is_ready, .facts = tell_facts, .obey = obey},
        .config = config,
        .log = log,
        .clock = clock,
        .start_ns = clock_now_ns(clock),
    };
}
