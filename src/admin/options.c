/*
 * options.c -- the options in force; see options.h.
 */
#include "admin/options.h"

enum { VALUE_MAX = 5000 };

static void add_values(struct writer *out, const struct admin *admin, uint32_t option)
{
    char buffer[VALUE_MAX];
    struct text text;
    writer_list(out, "values");
    text_init(&text, buffer, sizeof buffer);
    for (uint32_t i = 0; admin->option_value(admin->context, option, i, &text); i++) {
        writer_text(out, NULL, buffer);
        text_init(&text, buffer, sizeof buffer);
    }
    writer_end_list(out);
}

void options_answer(struct exchange *exchange)
{
    const struct admin *admin = exchange->admin;
    struct writer out = {0};
    struct admin_option option;
    writer_object(&out, NULL);
    writer_list(&out, "options");
    for (uint32_t i = 0; admin->option(admin->context, i, &option); i++) {
        if (option.name == NULL)
            continue;
        writer_object(&out, NULL);
        writer_text(&out, "name", option.name);
        add_values(&out, admin, i);
        writer_text(&out, "default", option.default_text);
        writer_text(&out, "from", option.origin);
        writer_text(&out, "help", option.help);
        writer_end_object(&out);
    }
    writer_end_list(&out);
    writer_end_object(&out);
    exchange_json(exchange, MHD_HTTP_OK, &out);
}
