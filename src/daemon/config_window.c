/*
 * config_window.c -- see config_window.h.
 */
#include "daemon/config_window.h"

#include "base/units.h"

#include <errno.h>

/* All digits, and not more than a day. */
static bool parse_seconds(const char *text, uint32_t *ret)
{
    uint32_t seconds = 0;
    if (text[0] == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        seconds = seconds * 10 + (uint32_t)(*text - '0');
        if (seconds > CONFIG_WINDOW_S_MAX)
            return false;
    }
    *ret = seconds;
    return true;
}

static const char *find_fault(const struct config_windows *windows, const char *value,
                              struct config_window *window)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL)
        return "not PROTOCOL=S; for example smb=300";
    struct bytes protocol = {(const uint8_t *)value, (uint32_t)(equals - value)};
    if (!record_is_protocol(protocol))
        return "not a protocol name; allowed: 1 to 16 of a-z, 0-9 and -";
    if (!tracking_is_protocol(protocol))
        return "lock clients and registrations have --grace and --recovery-window; this option is "
               "for tracked clients";
    if (!parse_seconds(equals + 1, &window->seconds))
        return "not a number of seconds; allowed: 0 to 86400, in plain digits";
    memcpy(window->protocol, protocol.at, protocol.len);
    for (uint32_t i = 0; i < windows->count; i++)
        if (strcmp(windows->at[i].protocol, window->protocol) == 0)
            return "this protocol already has a window; it has one";
    if (windows->count == CONFIG_WINDOW_MAX)
        return "too many windows; allowed: 16";
    return NULL;
}
_Static_assert(CONFIG_WINDOW_MAX == 16 && CONFIG_WINDOW_S_MAX == 86400, "the sentences say so");

int config_window_parse(struct config_windows *windows, const char *value, struct text *ret_why)
{
    struct config_window window = {0};
    const char *fault = find_fault(windows, value, &window);
    if (fault != NULL) {
        text_add(ret_why, fault);
        return -EINVAL;
    }
    windows->at[windows->count++] = window;
    return 0;
}

void config_window_add_text(struct text *text, const struct config_window *window)
{
    text_add(text, window->protocol);
    text_add_char(text, '=');
    text_add_u64(text, window->seconds);
}

uint32_t config_window_list(const struct config_windows *windows, struct core_window *ret)
{
    for (uint32_t i = 0; i < windows->count; i++)
        ret[i] = (struct core_window){.protocol = bytes_of_text(windows->at[i].protocol),
                                      .ns = windows->at[i].seconds * SECOND_NS};
    return windows->count;
}
