/*
 * options.c -- the options in force; see options.h.
 */
#include "admin/options.h"

enum { VALUE_MAX = 5000 };

static json_t *values_of(const struct admin *admin, uint32_t option)
{
    json_t *values = json_array();
    char buffer[VALUE_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    for (uint32_t i = 0; values != NULL && admin->option_value(admin->context, option, i, &text);
         i++) {
        (void)json_array_append_new(values, exchange_json_bytes(bytes_of_text(buffer)));
        text_init(&text, buffer, sizeof buffer);
    }
    return values;
}

void options_answer(struct exchange *exchange)
{
    const struct admin *admin = exchange->admin;
    json_t *options = json_array();
    struct admin_option option;
    for (uint32_t i = 0; options != NULL && admin->option(admin->context, i, &option); i++) {
        if (option.name == NULL)
            continue;
        json_t *standard =
            option.default_text == NULL ? json_null() : json_string(option.default_text);
        (void)json_array_append_new(options,
                                    json_pack("{s:s, s:o, s:o, s:s, s:s}", "name", option.name,
                                              "values", values_of(admin, i), "default", standard,
                                              "from", option.origin, "help", option.help));
    }
    exchange_json(exchange, MHD_HTTP_OK, json_pack("{s:o}", "options", options));
}
