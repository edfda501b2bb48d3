/*
 * console.c -- the hooks of the HTTP endpoints; see console.h.
 */
#include "daemon/console.h"

#include "base/check.h"
#include "daemon/config_value.h"
#include "store/store.h"

static bool is_ready(void *context, struct text *ret_reason)
{
    const struct console *console = context;
    if (console->driver == NULL) {
        if (!opening_explain(console->opening, ret_reason))
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

static bool tell_option(void *context, uint32_t index, struct admin_option *ret)
{
    static const char *const origins[] = {"default", "file", "command line"};
    const struct console *console = context;
    if (index >= config_option_count)
        return false;
    const struct config_option *option = &config_options[index];
    *ret = (struct admin_option){
        .name = (option->flags & CONFIG_NO_KEY) != 0 ? NULL : option->name,
        .help = option->help,
        .default_text = option->default_text != NULL ? option->default_text : option->default_shown,
        .origin = origins[console->config->origins[index]],
    };
    return true;
}

static bool tell_option_value(void *context, uint32_t option, uint32_t index, struct text *ret)
{
    const struct console *console = context;
    const struct config_option *row = &config_options[option];
    if (index >= config_value_count(console->config, row))
        return false;
    if (row->type == CONFIG_STORE)
        text_add(ret, console->store);
    else
        config_value_add(ret, console->config, row, index);
    return true;
}

static void tell_facts(void *context, struct admin_facts *ret)
{
    struct console *console = context;
    uint64_t now_ns = clock_now_ns(console->clock);
    *ret = (struct admin_facts){
        .now_ns = now_ns,
        .wall_ns = clock_wall_ns(console->clock),
        .uptime_ns = now_ns - console->start_ns,
        .store = console->store,
        .is_standby = console->config->standby && console->driver == NULL,
        .rpcbind = rpcbind_word(console->config),
    };
    struct text why;
    text_init(&why, ret->not_found_why, sizeof ret->not_found_why);
    if (console->driver == NULL || console->registrar == NULL) {
        text_add(&why, "starting");
        return;
    }
    ret->commit_age_ns = driver_commit_age_ns(console->driver);
    ret->commit_durations = &driver_meter(console->driver)->commit_durations;
    ret->batch_records = &driver_meter(console->driver)->batch_records;
    ret->is_found = registrar_is_ready(console->registrar, &why);
}

static const char *name_of(enum order_kind kind)
{
    switch (kind) {
    case ORDER_END_GRACE:
        return "end the grace period";
    case ORDER_RELEASE:
        return "release a client's locks";
    case ORDER_NOTIFY:
        return "notify a client again";
    case ORDER_MOVE:
        return "move a client to another address";
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
    case ORDER_BAD_ADDRESS:
        return "not the address of a host";
    case ORDER_TAKEN:
        return "a client of that name holds locks there";
    case ORDER_NO_BYTES:
        return "no room for the address";
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
    if (ret->order_result == ORDER_LATER)
        return; /* it is given again in the next turn */
    char client[32], file[2 * RECORD_FH_MAX + 1], to[ADDRESS_TEXT_MAX];
    struct text id, hex;
    text_init(&id, client, sizeof client);
    text_add_char(&id, 'c');
    text_add_u64(&id, order->client);
    text_init(&hex, file, sizeof file);
    text_add_hex(&hex, order->fh);
    address_text(&order->to, to);
    bool is_move = order->kind == ORDER_MOVE;
    const struct log_field fields[] = {
        LOG_MESSAGE("operator command"),
        LOG_TEXT("order", name_of(order->kind)),
        LOG_TEXT("result", name_of_result(ret->order_result)),
        LOG_NUMBER("uid", who->uid),
        LOG_NUMBER("pid", (uint64_t)who->pid),
        LOG_TEXT("client", client), /* these two are not part of every order */
        LOG_TEXT(is_move ? "to" : "file", is_move ? to : file),
    };
    size_t absent = order->kind == ORDER_END_GRACE ? 2 : order->fh.len == 0 && !is_move ? 1 : 0;
    log_fields(console->log, LOG_LEVEL_WARNING, clock_wall_ns(console->clock), fields,
               sizeof fields / sizeof fields[0] - absent);
}

void console_init(struct console *console, const struct config *config, struct log *log,
                  struct clock *clock)
{
    *console = (struct console){
        .admin = {.context = console,
                  .is_ready = is_ready,
                  .facts = tell_facts,
                  .option = tell_option,
                  .option_value = tell_option_value,
                  .obey = obey},
        .config = config,
        .log = log,
        .clock = clock,
        .start_ns = clock_now_ns(clock),
    };
    store_show_url(config->store, console->store, sizeof console->store);
}
