/*
 * config_value.c -- the types of options; see config_value.h.
 *
 * Every type has a parser that either sets the whole field or leaves it alone and says what is
 * allowed, and a printer whose text the parser reads back. Numbers are plain digits: 10,000 and 1e4
 * mean different things to different people, and a limit that is off by a factor is found late.
 */
#include "daemon/config_value.h"

#include "base/check.h"
#include "wire/sockaddr.h"

#include <errno.h>
#include <stdlib.h>

/* A choice is stored through memcpy of an unsigned: enums of this program have that size. */
_Static_assert(sizeof(enum config_sync) == sizeof(unsigned), "enums are unsigned");
_Static_assert(sizeof(enum log_level) == sizeof(unsigned), "enums are unsigned");

static void *field_of(struct config *config, const struct config_option *option)
{
    return (char *)config + option->offset;
}

static const void *const_field_of(const struct config *config, const struct config_option *option)
{
    return (const char *)config + option->offset;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits up to `end`; false when there are none, anything else is among them, or it overflows. */
static bool parse_digits(const char *at, const char *end, uint64_t *ret)
{
    uint64_t value = 0;
    if (at == end)
        return false;
    for (; at < end; at++) {
        if (!is_digit(*at))
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    }
    *ret = value;
    return true;
}

/* The factor of a size's last letter; 0: not a unit. */
static uint64_t unit_of(char c)
{
    switch (c) {
    case 'K':
    case 'k':
        return UINT64_C(1) << 10;
    case 'M':
    case 'm':
        return UINT64_C(1) << 20;
    case 'G':
    case 'g':
        return UINT64_C(1) << 30;
    default:
        return 0;
    }
}

static void add_size(struct text *text, uint64_t value)
{
    static const char units[] = {'G', 'M', 'K'};
    for (uint32_t i = 0; i < sizeof units; i++) {
        uint64_t unit = unit_of(units[i]);
        if (value >= unit && value % unit == 0) {
            text_add_u64(text, value / unit);
            text_add_char(text, units[i]);
            return;
        }
    }
    text_add_u64(text, value);
}

static void add_range(struct text *text, const struct config_option *option)
{
    text_add(text, "; allowed: ");
    if (option->type == CONFIG_SIZE) {
        add_size(text, option->low);
        text_add(text, " to ");
        add_size(text, option->high);
        text_add(text, ", in bytes or with K, M or G");
        return;
    }
    text_add_u64(text, option->low);
    text_add(text, " to ");
    text_add_u64(text, option->high);
    text_add(text,
             option->type == CONFIG_SECONDS ? " seconds, in plain digits" : ", in plain digits");
}

static int parse_number(void *field, const struct config_option *option, const char *value,
                        struct text *ret_why)
{
    const char *end = value + strlen(value);
    uint64_t number, unit = 1;
    if (option->type == CONFIG_SIZE && end > value && unit_of(end[-1]) != 0)
        unit = unit_of(*--end);
    if (!parse_digits(value, end, &number)) {
        text_add(ret_why, "not a number");
        add_range(ret_why, option);
        return -EINVAL;
    }
    if (__builtin_mul_overflow(number, unit, &number) || number < option->low ||
        number > option->high) {
        text_add(ret_why, "out of range");
        add_range(ret_why, option);
        return -EINVAL;
    }
    if (option->type == CONFIG_SIZE)
        *(uint64_t *)field = number;
    else if (option->type == CONFIG_PORT)
        *(uint16_t *)field = (uint16_t)number;
    else
        *(uint32_t *)field = (uint32_t)number;
    return 0;
}

static int parse_flag(bool *field, const char *value, struct text *ret_why)
{
    static const char *const yes[] = {"on", "yes", "true"}, *const no[] = {"off", "no", "false"};
    for (uint32_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        bool is_yes = strcmp(value, yes[i]) == 0;
        if (is_yes || strcmp(value, no[i]) == 0) {
            *field = is_yes;
            return 0;
        }
    }
    text_add(ret_why, "not a switch; allowed: on, off");
    return -EINVAL;
}

static int refuse_choice(const struct config_option *option, struct text *ret_why)
{
    text_add(ret_why, option->cause != NULL ? option->cause : "no such choice");
    text_add(ret_why, "; allowed: ");
    for (uint32_t i = 0; option->choices[i] != NULL; i++) {
        text_add(ret_why, i > 0 ? ", " : "");
        text_add(ret_why, option->choices[i]);
    }
    return -EINVAL;
}

static int parse_choice(void *field, const struct config_option *option, const char *value,
                        struct text *ret_why)
{
    for (unsigned i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(value, option->choices[i]) == 0) {
            memcpy(field, &i, sizeof i);
            return 0;
        }
    }
    return refuse_choice(option, ret_why);
}

static int parse_text(char **field, const char *value, struct text *ret_why)
{
    if (value[0] == '\0') {
        text_add(ret_why, "the value is empty; leave the option out for its default");
        return -EINVAL;
    }
    char *copy = strdup(value);
    if (copy == NULL) {
        text_add(ret_why, "out of memory");
        return -ENOMEM;
    }
    free(*field);
    *field = copy;
    return 0;
}

/* Only the scheme is looked at; the store itself knows what may follow it. */
static int parse_store(char **field, const struct config_option *option, const char *value,
                       struct text *ret_why)
{
    for (uint32_t i = 0; option->choices[i] != NULL; i++) {
        size_t len = strlen(option->choices[i]);
        if (strncmp(value, option->choices[i], len) != 0)
            continue;
        if (value[len] == '\0' && strcmp(option->choices[i], "lmdb:") == 0) {
            text_add(ret_why, "the directory is missing; write lmdb:DIR");
            return -EINVAL;
        }
        return parse_text(field, value, ret_why);
    }
    return refuse_choice(option, ret_why);
}

static int parse_addresses(struct config_addresses *field, const char *value, struct text *ret_why)
{
    struct address address;
    if (!address_parse(bytes_of_text(value), &address)) {
        text_add(ret_why, "not an IPv4 or IPv6 address, like 192.0.2.1 or 2001:db8::1");
        return -EINVAL;
    }
    address = sockaddr_typed(&address);
    for (uint32_t i = 0; i < field->count; i++)
        if (address_equal(&field->at[i], &address))
            return 0;
    if (field->count == CONFIG_LISTEN_MAX) {
        text_add(ret_why, "too many addresses; allowed: ");
        text_add_u64(ret_why, CONFIG_LISTEN_MAX);
        return -EINVAL;
    }
    field->at[field->count++] = address;
    return 0;
}

static int parse_network(struct config_networks *field, const char *value, struct text *ret_why)
{
    if (field->count == CONFIG_ALLOW_MAX) {
        text_add(ret_why, "too many networks; allowed: ");
        text_add_u64(ret_why, CONFIG_ALLOW_MAX);
        return -EINVAL;
    }
    if (network_parse(value, &field->at[field->count]) != NETWORK_OK) {
        text_add(ret_why, "not an address or network, like 192.0.2.1, 192.0.2.0/24 or "
                          "2001:db8::/32");
        return -EINVAL;
    }
    field->count++;
    return 0;
}

static void add_network(struct text *text, const struct network *network)
{
    text_add_address(text, &network->address);
    if (network_is_address(network))
        return;
    text_add_char(text, '/');
    text_add_u64(text, network->prefix_len);
}

/* The rule for names in SM_MON (R-NSM-1): what we send, others must accept. */
static bool is_host_name(const char *value)
{
    size_t len = strlen(value);
    if (len == 0 || len > 255 || value[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++)
        if (value[i] <= ' ' || value[i] > '~' || value[i] == '/')
            return false;
    return true;
}

static int parse_name(struct config_names *field, const char *value, struct text *ret_why)
{
    if (!is_host_name(value)) {
        text_add(ret_why, "not a hostname; allowed: printable text without blanks and slashes");
        return -EINVAL;
    }
    if (field->count == CONFIG_NAME_MAX) {
        text_add(ret_why, "too many names; allowed: ");
        text_add_u64(ret_why, CONFIG_NAME_MAX);
        return -EINVAL;
    }
    char *copy = NULL;
    int err = parse_text(&copy, value, ret_why);
    if (err == 0)
        field->at[field->count++] = copy;
    return err;
}

/* LOW-HIGH. */
static int parse_ports(struct config_ports *field, const char *value, struct text *ret_why)
{
    const char *dash = strchr(value, '-');
    uint64_t low, high;
    if (dash == NULL || !parse_digits(value, dash, &low) ||
        !parse_digits(dash + 1, dash + strlen(dash), &high) || low < 1 || low > high ||
        high > UINT16_MAX) {
        text_add(ret_why, "not a port range, like 600-1023; allowed: 1 to 65535");
        return -EINVAL;
    }
    *field = (struct config_ports){(uint16_t)low, (uint16_t)high};
    return 0;
}

/* ADDR:PORT for IPv4, [ADDR]:PORT for IPv6. */
static bool split_endpoint(const char *value, struct config_endpoint *ret)
{
    const char *colon = strrchr(value, ':');
    uint64_t port;
    if (colon == NULL || !parse_digits(colon + 1, colon + strlen(colon), &port) ||
        port > UINT16_MAX)
        return false;
    bool has_brackets = value[0] == '[' && colon > value + 1 && colon[-1] == ']';
    const char *start = has_brackets ? value + 1 : value;
    const char *end = has_brackets ? colon - 1 : colon;
    struct bytes text = {(const uint8_t *)start, (uint32_t)(end - start)};
    /* A colon outside brackets would make it ambiguous where the port begins. */
    if (!has_brackets && memchr(start, ':', text.len) != NULL)
        return false;
    struct config_endpoint endpoint = {.is_on = true, .port = (uint16_t)port};
    if (!address_parse(text, &endpoint.address))
        return false;
    endpoint.address = sockaddr_typed(&endpoint.address);
    *ret = endpoint;
    return true;
}

static int parse_endpoint(struct config_endpoint *field, const char *value, struct text *ret_why)
{
    if (strcmp(value, "off") == 0) {
        *field = (struct config_endpoint){.is_on = false};
        return 0;
    }
    if (split_endpoint(value, field))
        return 0;
    text_add(ret_why, "not an IP address with a port, like 127.0.0.1:12080 or [::1]:12080, or off");
    return -EINVAL;
}

int config_value_parse(struct config *config, const struct config_option *option, const char *value,
                       struct text *ret_why)
{
    void *field = field_of(config, option);
    switch (option->type) {
    case CONFIG_FLAG:
        return parse_flag(field, value, ret_why);
    case CONFIG_NUMBER:
    case CONFIG_PORT:
    case CONFIG_SECONDS:
    case CONFIG_SIZE:
        return parse_number(field, option, value, ret_why);
    case CONFIG_CHOICE:
        return parse_choice(field, option, value, ret_why);
    case CONFIG_TEXT:
        return parse_text(field, value, ret_why);
    case CONFIG_STORE:
        return parse_store(field, option, value, ret_why);
    case CONFIG_ADDRESSES:
        return parse_addresses(field, value, ret_why);
    case CONFIG_NAMES:
        return parse_name(field, value, ret_why);
    case CONFIG_PORTS:
        return parse_ports(field, value, ret_why);
    case CONFIG_ENDPOINT:
        return parse_endpoint(field, value, ret_why);
    case CONFIG_SHARES:
        return config_share_parse(field, value, ret_why);
    case CONFIG_EXPORTS:
        return config_export_parse(field, value, ret_why);
    case CONFIG_NETWORKS:
        return parse_network(field, value, ret_why);
    case CONFIG_WINDOWS:
        return config_window_parse(field, value, ret_why);
    case CONFIG_GROUPS:
        return config_group_parse(field, value, ret_why);
    }
    UNREACHABLE();
}

uint32_t config_value_count(const struct config *config, const struct config_option *option)
{
    const void *field = const_field_of(config, option);
    if (option->type == CONFIG_ADDRESSES)
        return ((const struct config_addresses *)field)->count;
    if (option->type == CONFIG_NAMES)
        return ((const struct config_names *)field)->count;
    if (option->type == CONFIG_SHARES)
        return ((const struct config_shares *)field)->count;
    if (option->type == CONFIG_EXPORTS)
        return ((const struct config_exports *)field)->count;
    if (option->type == CONFIG_NETWORKS)
        return ((const struct config_networks *)field)->count;
    if (option->type == CONFIG_WINDOWS)
        return ((const struct config_windows *)field)->count;
    if (option->type == CONFIG_GROUPS)
        return ((const struct config_group_names *)field)->count;
    if (option->type == CONFIG_PORTS)
        return ((const struct config_ports *)field)->low != 0;
    bool is_text = option->type == CONFIG_TEXT || option->type == CONFIG_STORE;
    return !is_text || *(char *const *)field != NULL;
}

static void add_endpoint(struct text *text, const struct config_endpoint *endpoint)
{
    if (!endpoint->is_on) {
        text_add(text, "off");
        return;
    }
    bool has_brackets = endpoint->address.family == 6;
    text_add(text, has_brackets ? "[" : "");
    text_add_address(text, &endpoint->address);
    text_add(text, has_brackets ? "]:" : ":");
    text_add_u64(text, endpoint->port);
}

static void add_ports(struct text *text, const struct config_ports *ports)
{
    text_add_u64(text, ports->low);
    text_add_char(text, '-');
    text_add_u64(text, ports->high);
}

static void add_number(struct text *text, enum config_type type, const void *field)
{
    if (type == CONFIG_SIZE)
        add_size(text, *(const uint64_t *)field);
    else
        text_add_u64(text,
                     type == CONFIG_PORT ? *(const uint16_t *)field : *(const uint32_t *)field);
}

static void add_choice(struct text *text, const struct config_option *option, const void *field)
{
    unsigned choice;
    memcpy(&choice, field, sizeof choice);
    text_add(text, option->choices[choice]);
}

void config_value_add(struct text *text, const struct config *config,
                      const struct config_option *option, uint32_t index)
{
    CHECK(index < config_value_count(config, option));
    const void *field = const_field_of(config, option);
    switch (option->type) {
    case CONFIG_FLAG:
        text_add(text, *(const bool *)field ? "on" : "off");
        return;
    case CONFIG_NUMBER:
    case CONFIG_SECONDS:
    case CONFIG_PORT:
    case CONFIG_SIZE:
        add_number(text, option->type, field);
        return;
    case CONFIG_CHOICE:
        add_choice(text, option, field);
        return;
    case CONFIG_TEXT:
    case CONFIG_STORE:
        text_add(text, *(char *const *)field);
        return;
    case CONFIG_ADDRESSES:
        text_add_address(text, &((const struct config_addresses *)field)->at[index]);
        return;
    case CONFIG_NAMES:
        text_add(text, ((const struct config_names *)field)->at[index]);
        return;
    case CONFIG_PORTS:
        add_ports(text, field);
        return;
    case CONFIG_ENDPOINT:
        add_endpoint(text, field);
        return;
    case CONFIG_SHARES:
        config_share_add_text(text, &((const struct config_shares *)field)->at[index]);
        return;
    case CONFIG_EXPORTS:
        text_add(text, ((const struct config_exports *)field)->at[index]);
        return;
    case CONFIG_WINDOWS:
        config_window_add_text(text, &((const struct config_windows *)field)->at[index]);
        return;
    case CONFIG_GROUPS:
        text_add(text, ((const struct config_group_names *)field)->at[index]);
        return;
    case CONFIG_NETWORKS:
        add_network(text, &((const struct config_networks *)field)->at[index]);
        return;
    }
    UNREACHABLE();
}

void config_value_clear(struct config *config, const struct config_option *option)
{
    void *field = field_of(config, option);
    if (option->type == CONFIG_ADDRESSES)
        ((struct config_addresses *)field)->count = 0;
    if (option->type == CONFIG_SHARES)
        ((struct config_shares *)field)->count = 0;
    if (option->type == CONFIG_NETWORKS)
        ((struct config_networks *)field)->count = 0;
    if (option->type == CONFIG_GROUPS)
        ((struct config_group_names *)field)->count = 0;
    if (option->type == CONFIG_WINDOWS)
        *(struct config_windows *)field = (struct config_windows){0};
    if (option->type == CONFIG_EXPORTS)
        config_export_clear(field);
    if (option->type == CONFIG_NAMES) {
        struct config_names *names = field;
        while (names->count > 0)
            free(names->at[--names->count]);
    }
    if (option->type == CONFIG_TEXT || option->type == CONFIG_STORE) {
        free(*(char **)field);
        *(char **)field = NULL;
    }
}
