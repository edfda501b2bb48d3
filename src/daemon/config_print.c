/*
 * config_print.c -- help and effective configuration, from the option table; see config_print.h.
 */
#include "daemon/config_print.h"

#include "daemon/config_value.h"

#include <inttypes.h>

enum {
    HELP_COLUMN = 30, /* where the sentences begin */
    HELP_WIDTH = 96,
    HELP_MAX = 512,   /* one option's sentence with its default */
    VALUE_MAX = 4500, /* a path, and what goes around it */
};

/* Breaks between words; every line but the first is indented to HELP_COLUMN. */
static void print_wrapped(FILE *out, const char *sentence)
{
    size_t column = HELP_COLUMN;
    while (*sentence != '\0') {
        size_t len = strcspn(sentence, " ");
        if (column > HELP_COLUMN && column + 1 + len > HELP_WIDTH) {
            (void)fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        if (column > HELP_COLUMN) {
            (void)fputc(' ', out);
            column++;
        }
        (void)fwrite(sentence, 1, len, out);
        column += len;
        sentence += len;
        sentence += strspn(sentence, " ");
    }
    (void)fputc('\n', out);
}

void config_print_argument(struct text *text, const struct config_option *option)
{
    if (option->argument != NULL) {
        text_add_char(text, ' ');
        text_add(text, option->argument);
        return;
    }
    for (uint32_t i = 0; option->choices != NULL && option->choices[i] != NULL; i++) {
        text_add_char(text, i == 0 ? ' ' : '|');
        text_add(text, option->choices[i]);
    }
}

const char *config_print_reload(const struct config_option *option)
{
    return (option->flags & CONFIG_RELOADS) != 0  ? " Changes with a reload."
           : (option->flags & CONFIG_RAISES) != 0 ? " Raised by a reload."
                                                  : "";
}

static void print_option(FILE *out, const struct config_option *option)
{
    char buffer[HELP_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "  --");
    text_add(&text, option->name);
    config_print_argument(&text, option);
    if (text.len + 2 > HELP_COLUMN)
        (void)fprintf(out, "%s\n%*s", buffer, HELP_COLUMN, "");
    else
        (void)fprintf(out, "%-*s", HELP_COLUMN, buffer);

    text_init(&text, buffer, sizeof buffer);
    text_add(&text, option->help);
    if ((option->flags & CONFIG_REPEATABLE) != 0)
        text_add(&text, " May be repeated.");
    text_add(&text, config_print_reload(option));
    const char *shown = option->default_text != NULL ? option->default_text : option->default_shown;
    if (shown != NULL) {
        text_add(&text, " [");
        text_add(&text, shown);
        text_add(&text, "]");
    }
    print_wrapped(out, buffer);
}

void config_print_help(FILE *out)
{
    (void)fputs("Usage: holdfastd [options]          (or: holdfast serve [options])\n\n"
                "Keeps NFSv3 locks safe when a client or the server crashes. Runs in the\n"
                "foreground and serves the Network Lock Manager and the Network Status\n"
                "Monitor, RPC programs 100021 and 100024; with --export also files, NFS and\n"
                "MOUNT, 100003 and 100005.\n"
                "Defaults are in square brackets. Options can also be set in a file, without\n"
                "the dashes, as key = value in section [holdfast]; a switch is on or off.\n"
                "SIGHUP reads options and exports again: some change at once.\n",
                out);
    for (uint32_t i = 0; i < config_option_count; i++) {
        if (config_options[i].group != NULL)
            (void)fprintf(out, "\n%s:\n", config_options[i].group);
        print_option(out, &config_options[i]);
    }
    (void)fputs("\nExit codes: 0 ok, 2 usage or configuration, 69 address or port in use,\n"
                "70 internal check failed, 71 another server is registered with rpcbind,\n"
                "74 store failure, 75 takeover hook failed, 76 replaced by another server,\n"
                "78 store format newer than this program.\n",
                out);
}

static void print_origin(FILE *out, const struct config *config, uint32_t index)
{
    switch (config->origins[index]) {
    case CONFIG_FROM_DEFAULT:
        (void)fputs("\n", out);
        return;
    case CONFIG_FROM_FILE:
        (void)fprintf(out, " ; line %" PRIu32 " of the file\n", config->lines[index]);
        return;
    case CONFIG_FROM_GROUP:
        (void)fprintf(out, " ; line %" PRIu32 " of the file, of group %s\n", config->lines[index],
                      config->group);
        return;
    case CONFIG_FROM_COMMAND_LINE:
        (void)fputs(" ; from the command line\n", out);
        return;
    }
}

void config_print_effective(const struct config *config, FILE *out)
{
    (void)fputs("[holdfast]\n", out);
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        uint32_t other =
            config->role == CONFIG_MONITOR ? CONFIG_NOT_OF_MONITOR : CONFIG_NOT_OF_SERVER;
        if ((option->flags & (CONFIG_NO_KEY | other)) != 0)
            continue;
        uint32_t count = config_value_count(config, option);
        if (count == 0)
            (void)fprintf(out, "# %s: %s\n", option->name, option->default_shown);
        for (uint32_t j = 0; j < count; j++) {
            char buffer[VALUE_MAX];
            struct text text;
            text_init(&text, buffer, sizeof buffer);
            config_value_add(&text, config, option, j);
            (void)fprintf(out, "%s = %s", option->name, buffer);
            print_origin(out, config, i);
        }
    }
}
