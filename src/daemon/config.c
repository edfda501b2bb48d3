/*
 * config.c -- reads the options from defaults, file and command line; see config.h.
 *
 * Five defaults depend on something else and are filled in last: the store (on who we are),
 * --control (on the store), --nlm-port and --nsm-port (on --port) and --grace (on
 * --recovery-window).
 *
 * Always true: a value is set only by an origin that is at least as strong as the one that set it
 * before; a stronger one replaces a list, the same one adds to it.
 */
#include "daemon/config.h"

#include "base/check.h"
#include "base/suggest.h"
#include "daemon/config_file.h"
#include "daemon/config_value.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

const struct config_option *config_find(const char *name)
{
    for (uint32_t i = 0; i < config_option_count; i++)
        if (strcmp(config_options[i].name, name) == 0)
            return &config_options[i];
    return NULL;
}

void config_add_suggestion(struct text *text, const char *name, bool keys_only)
{
    struct suggest suggest;
    suggest_init(&suggest, name);
    for (uint32_t i = 0; i < config_option_count; i++)
        if (!keys_only || (config_options[i].flags & CONFIG_NO_KEY) == 0)
            suggest_offer(&suggest, config_options[i].name);
    if (suggest.best == NULL)
        return;
    text_add(text, "; did you mean ");
    text_add(text, keys_only ? "" : "--");
    text_add(text, suggest.best);
    text_add(text, "?");
}

int config_set(struct config *config, const struct config_option *option, const char *value,
               enum config_origin origin, uint32_t line, struct text *ret_why)
{
    size_t index = (size_t)(option - config_options);
    CHECK(index < config_option_count);
    CHECK(origin >= config->origins[index]);
    bool adds = (option->flags & CONFIG_REPEATABLE) != 0 && origin == config->origins[index];
    bool is_of_file = origin == CONFIG_FROM_FILE || origin == CONFIG_FROM_GROUP;
    if (is_of_file && config->origins[index] == origin && !adds) {
        text_add(ret_why, "already given in line ");
        text_add_u64(ret_why, config->lines[index]);
        text_add(ret_why, "; remove one of them");
        return -EINVAL;
    }
    if (!adds)
        config_value_clear(config, option);
    int result = config_value_parse(config, option, value, ret_why);
    if (result != 0)
        return result;
    config->origins[index] = origin;
    config->lines[index] = line;
    return 0;
}

void config_add_value(struct text *text, const struct config_option *option, const char *value)
{
    char shown[128];
    if (option->type == CONFIG_STORE) {
        store_show_url(value, shown, sizeof shown);
        value = shown;
    }
    text_add_escaped(text, bytes_of_text(value), 80);
}

/* One step through the command line. */
struct arguments {
    int argc;
    char *const *argv;
    int index;
    const struct config_option *option;
    const char *value; /* NULL: a flag without one */
};

static bool is_argument_of(const char *argument, const char *name, const char **ret_value)
{
    size_t len = strlen(name);
    if (strncmp(argument, name, len) != 0)
        return false;
    if (argument[len] == '=')
        *ret_value = argument + len + 1;
    return argument[len] == '\0' || argument[len] == '=';
}

static void refuse_argument(const char *argument, struct text *ret_why)
{
    text_add_escaped(ret_why, bytes_of_text(argument), 80);
    if (argument[0] != '-') {
        text_add(ret_why, ": not an option; options begin with --");
        return;
    }
    char name[64];
    struct text text;
    text_init(&text, name, sizeof name);
    for (const char *at = argument + strspn(argument, "-"); *at != '\0' && *at != '='; at++)
        text_add_char(&text, *at);
    text_add(ret_why, ": unknown option");
    config_add_suggestion(ret_why, name, false);
    text_add(ret_why, " (--help lists the options)");
}

/* 1: option and value are filled in. 0: the end. -EINVAL: *ret_why says what is wrong. */
static int arguments_next(struct arguments *at, struct text *ret_why)
{
    if (at->index >= at->argc)
        return 0;
    const char *argument = at->argv[at->index++];
    at->option = NULL;
    at->value = NULL;
    if (strcmp(argument, "-h") == 0)
        argument = "--help";
    for (uint32_t i = 0; i < config_option_count && strncmp(argument, "--", 2) == 0; i++)
        if (is_argument_of(argument + 2, config_options[i].name, &at->value))
            at->option = &config_options[i];
    if (at->option == NULL) {
        refuse_argument(argument, ret_why);
        return -EINVAL;
    }
    if (at->value != NULL || at->option->type == CONFIG_FLAG)
        return 1;
    /* No value begins with two dashes: such a word is the next option, and the value is missing. */
    if (at->index >= at->argc || strncmp(at->argv[at->index], "--", 2) == 0) {
        text_add(ret_why, argument);
        text_add(ret_why, ": needs a value");
        return -EINVAL;
    }
    at->value = at->argv[at->index++];
    return 1;
}

static int set_from_arguments(struct config *config, struct arguments at, struct text *ret_why)
{
    int result;
    while ((result = arguments_next(&at, ret_why)) > 0) {
        struct text before = *ret_why;
        text_add(ret_why, "--");
        text_add(ret_why, at.option->name);
        if (at.value != NULL) {
            text_add_char(ret_why, ' ');
            config_add_value(ret_why, at.option, at.value);
        }
        text_add(ret_why, ": ");
        result = config_set(config, at.option, at.value != NULL ? at.value : "on",
                            CONFIG_FROM_COMMAND_LINE, 0, ret_why);
        if (result != 0)
            return result;
        *ret_why = before;
        ret_why->start[ret_why->len] = '\0';
    }
    return result;
}

static bool is_question(const struct config *config)
{
    return config->show_help || config->show_version || config->show_manual ||
           config->show_manual_conf;
}

/* Finds the options that decide how to continue, and any word that is not an option, before a file
 * is opened. */
static int look_ahead(struct config *config, struct arguments at, const char **ret_file,
                      struct text *ret_why)
{
    int result;
    while ((result = arguments_next(&at, ret_why)) > 0) {
        if (at.option->offset == offsetof(struct config, show_help))
            config->show_help = true;
        if (at.option->offset == offsetof(struct config, show_version))
            config->show_version = true;
        if (at.option->offset == offsetof(struct config, show_manual))
            config->show_manual = true;
        if (at.option->offset == offsetof(struct config, show_manual_conf))
            config->show_manual_conf = true;
        if (is_question(config))
            return 0;
        if (at.option->offset == offsetof(struct config, file))
            *ret_file = at.value;
    }
    return result;
}

static int set_defaults(struct config *config, struct text *ret_why)
{
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        if (option->default_text == NULL)
            continue;
        int result =
            config_set(config, option, option->default_text, CONFIG_FROM_DEFAULT, 0, ret_why);
        CHECK(result == 0 || result == -ENOMEM); /* an invalid default is a bug */
        if (result != 0)
            return result;
    }
    return 0;
}

static enum config_origin origin_of(const struct config *config, const char *name)
{
    const struct config_option *option = config_find(name);
    CHECK(option != NULL);
    return config->origins[option - config_options];
}

/* Beside the records if they are in a directory. */
static int derive_control(struct config *config, struct text *ret_why)
{
    static const char scheme[] = "lmdb:", name[] = "/" CONFIG_CONTROL_NAME;
    config->control_is_default = config->control == NULL;
    if (!config->control_is_default)
        return 0;
    const struct config_option *option = config_find("control");
    if (strncmp(config->store, scheme, sizeof scheme - 1) != 0)
        return config_set(config, option, CONFIG_CONTROL_WITHOUT_STORE, CONFIG_FROM_DEFAULT, 0,
                          ret_why);
    const char *directory = config->store + sizeof scheme - 1;
    size_t size = strlen(directory) + sizeof name;
    config->control = malloc(size);
    if (config->control == NULL) {
        text_add(ret_why, "out of memory");
        return -ENOMEM;
    }
    struct text path;
    text_init(&path, config->control, (uint32_t)size);
    text_add(&path, directory);
    text_add(&path, name);
    return 0;
}

/* Named one by one: an option that is accepted and does nothing would be believed. */
static int check_role(struct config *config, struct text *ret_why)
{
    bool is_monitor = config->role == CONFIG_MONITOR;
    uint32_t refused = is_monitor ? CONFIG_NOT_OF_MONITOR : CONFIG_NOT_OF_SERVER;
    for (uint32_t i = 0; i < config_option_count; i++) {
        if (!(config_options[i].flags & refused) || config->origins[i] == CONFIG_FROM_DEFAULT)
            continue;
        text_add(ret_why, "--");
        text_add(ret_why, config_options[i].name);
        text_add(ret_why, is_monitor ? ": means nothing with --role monitor: "
                                     : ": only with --role monitor");
        text_add(ret_why, is_monitor ? config_options[i].why_not : "");
        return -EINVAL;
    }
    if (!is_monitor)
        return 0;
    if (config->rpcbind == CONFIG_RPCBIND_EMBEDDED)
        text_add(ret_why, "--rpcbind embedded: with --role monitor the kernel asks the system's "
                          "rpcbind, also while this process is down; use --rpcbind system");
    else if (config->store != NULL && store_url_is_shared(config->store))
        text_add(ret_why, "--store: with --role monitor the store is of this machine alone; use "
                          "lmdb:DIR");
    else
        return 0;
    return -EINVAL;
}

/* What the other role's options are when nobody can give them. */
static void derive_role(struct config *config)
{
    config->is_notify_after_given = origin_of(config, "notify-after") != CONFIG_FROM_DEFAULT;
    if (config->role != CONFIG_MONITOR)
        return;
    config->mon_from = CONFIG_MON_FROM_LOOPBACK;
    config->per_address_percent = 100; /* all registrations come from this machine */
    config->grace_s = 0;
    config->locks_max = config->locks_per_client_max = config->waiters_max = 0;
    if (origin_of(config, "max-bytes") == CONFIG_FROM_DEFAULT)
        config->bytes_max = CONFIG_BYTES_OF_MONITOR;
}

static int derive(struct config *config, struct text *ret_why)
{
    if (check_role(config, ret_why) != 0)
        return -EINVAL;
    if (config->no_rpcbind) {
        config->rpcbind = CONFIG_RPCBIND_OFF;
        config->origins[config_find("rpcbind") - config_options] = origin_of(config, "no-rpcbind");
    }
    if (origin_of(config, "nlm-port") == CONFIG_FROM_DEFAULT)
        config->nlm_port = config->port;
    if (origin_of(config, "nsm-port") == CONFIG_FROM_DEFAULT)
        config->nsm_port = config->port;
    if (origin_of(config, "grace") == CONFIG_FROM_DEFAULT)
        config->grace_s = config->recovery_window_s;
    derive_role(config);
    const char *store = config->role == CONFIG_MONITOR ? CONFIG_STORE_OF_MONITOR
                        : geteuid() == 0               ? CONFIG_STORE_OF_ROOT
                                                       : CONFIG_STORE_OF_OTHERS;
    int result = config->store != NULL ? 0
                                       : config_set(config, config_find("store"), store,
                                                    CONFIG_FROM_DEFAULT, 0, ret_why);
    if (result != 0)
        return result;
    if (config->standby && !store_url_is_shared(config->store)) {
        text_add(ret_why, "--standby: needs a store that two machines can reach; use --store "
                          "postgres:CONNINFO");
        return -EINVAL;
    }
    if (config_group_check(config, ret_why) != 0)
        return -EINVAL;
    return derive_control(config, ret_why);
}

/* One reading. `section` is the group whose section counts; NULL: none does. */
static int read_once(int argc, char *const *argv, const char *section, struct config *ret,
                     struct text *ret_why)
{
    struct config config = {0};
    struct arguments arguments = {.argc = argc, .argv = argv, .index = 1};
    const char *file = NULL;
    int result = look_ahead(&config, arguments, &file, ret_why);
    bool is_serving = !is_question(&config);
    if (result == 0)
        result = set_defaults(&config, ret_why);
    if (result == 0 && is_serving && file != NULL)
        result = config_file_read(&config, file, NULL, ret_why);
    if (result == 0 && is_serving && file != NULL && section != NULL)
        result = config_file_read(&config, file, section, ret_why);
    if (result == 0 && is_serving)
        result = set_from_arguments(&config, arguments, ret_why);
    if (result == 0 && section != NULL)
        memcpy(config.group, section, strlen(section) + 1);
    if (result == 0)
        result = derive(&config, ret_why);
    if (result != 0) {
        config_done(&config);
        return result;
    }
    *ret = config;
    return 0;
}

/* Which groups there are is known when everything but their sections was read. */
int config_read_group(int argc, char *const *argv, const char *group, struct config *ret,
                      struct text *ret_why)
{
    char only[sizeof ret->group];
    int result = group != NULL ? 0 : read_once(argc, argv, NULL, ret, ret_why);
    if (result != 0 || (group == NULL && ret->group_names.count != 1))
        return result;
    if (group == NULL) {
        memcpy(only, ret->group_names.at[0], sizeof only);
        config_done(ret);
        group = only;
    }
    return read_once(argc, argv, group, ret, ret_why);
}

int config_read(int argc, char *const *argv, struct config *ret, struct text *ret_why)
{
    return config_read_group(argc, argv, NULL, ret, ret_why);
}

void config_done(struct config *config)
{
    for (uint32_t i = 0; i < config_option_count; i++)
        config_value_clear(config, &config_options[i]);
}
