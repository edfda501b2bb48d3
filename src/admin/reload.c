/*
 * reload.c -- see reload.h.
 */
#include "admin/reload.h"

enum { REFUSAL_MAX = 2048 };

static void add_change(struct writer *out, const struct admin_change *change)
{
    writer_object(out, NULL);
    writer_text(out, "option", change->option);
    writer_text(out, "from", change->from);
    writer_text(out, "to", change->to);
    writer_end_object(out);
}

static void tell(struct exchange *exchange, const struct admin_reload *report)
{
    struct writer out = {0};
    writer_object(&out, NULL);
    writer_text(&out, "result", "done");
    writer_list(&out, "changed");
    for (uint32_t i = 0; i < report->change_count; i++)
        add_change(&out, &report->changes[i]);
    writer_end_list(&out);
    writer_list(&out, "needs_restart");
    for (uint32_t i = 0; i < report->restart_count; i++)
        writer_text(&out, NULL, report->needs_restart[i]);
    writer_end_list(&out);
    writer_end_object(&out);
    exchange_json(exchange, MHD_HTTP_OK, &out);
}

/* The sentence is ours, and longer than what exchange_error quotes of a request. */
static void refuse(struct exchange *exchange, const struct admin_reload *report)
{
    char buffer[REFUSAL_MAX];
    struct text error;
    struct writer out = {0};
    text_init(&error, buffer, sizeof buffer);
    text_add(&error, "not reloaded: ");
    text_add(&error, report->why);
    writer_object(&out, NULL);
    writer_text(&out, "error", buffer);
    writer_text(&out, "hint", "nothing has changed");
    writer_end_object(&out);
    exchange_json(exchange, MHD_HTTP_CONFLICT, &out);
}

void reload_answer(struct exchange *exchange)
{
    const struct admin *admin = exchange->admin;
    if (exchange->reading == 0)
        exchange->reading = admin->reload(admin->context, &exchange->who);
    const struct admin_reload *report = admin->reload_report(admin->context, exchange->reading);
    exchange->is_pending = report == NULL;
    if (report == NULL)
        return;
    if (report->is_done)
        tell(exchange, report);
    else
        refuse(exchange, report);
}
