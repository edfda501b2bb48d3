/*
 * config_share.c -- see config_share.h.
 *
 * Two shares cannot have the same name, because it is what limits and counters are shown under, nor
 * the same prefix, because the longest match must be one share.
 */
#include "daemon/config_share.h"

#include "base/hex.h"

#include <errno.h>

#define DEFAULT_NAME "default"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* The name, up to the equals sign. */
static bool parse_name(const char *value, size_t len, struct config_share *share)
{
    if (len == 0 || len > CONFIG_SHARE_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_name_char(value[i]))
            return false;
    memcpy(share->name, value, len);
    return true;
}

static const char *find_fault(const struct config_shares *shares, const char *value,
                              struct config_share *share)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL)
        return "not NAME=HEXPREFIX; for example home=01000601";
    if (!parse_name(value, (size_t)(equals - value), share))
        return "not a name; allowed: 1 to 63 letters, digits, '-', '_' and '.'";
    if (!hex_parse(equals + 1, share->prefix, CONFIG_SHARE_PREFIX_MAX, &share->prefix_len))
        return "not a file handle prefix; allowed: 1 to 64 bytes, two hex digits each";
    if (strcmp(share->name, DEFAULT_NAME) == 0)
        return "this name is reserved for files in no other share; choose another";
    for (uint32_t i = 0; i < shares->count; i++) {
        const struct config_share *other = &shares->at[i];
        if (strcmp(other->name, share->name) == 0)
            return "this share is already defined; a share has one prefix";
        if (other->prefix_len == share->prefix_len &&
            memcmp(other->prefix, share->prefix, share->prefix_len) == 0)
            return "another share has the same prefix";
    }
    if (shares->count == CONFIG_SHARE_MAX)
        return "too many shares; allowed: 63";
    return NULL;
}
_Static_assert(CONFIG_SHARE_MAX == 63, "the sentence above says so");

int config_share_parse(struct config_shares *shares, const char *value, struct text *ret_why)
{
    struct config_share share = {0};
    const char *fault = find_fault(shares, value, &share);
    if (fault != NULL) {
        text_add(ret_why, fault);
        return -EINVAL;
    }
    shares->at[shares->count++] = share;
    return 0;
}

void config_share_add_text(struct text *text, const struct config_share *share)
{
    text_add(text, share->name);
    text_add_char(text, '=');
    text_add_hex(text, (struct bytes){share->prefix, share->prefix_len});
}

uint32_t config_share_list(const struct config_shares *shares, struct file_set *ret)
{
    ret[0] = (struct file_set){.name = bytes_of_text(DEFAULT_NAME)};
    for (uint32_t i = 0; i < shares->count; i++)
        ret[i + 1] = (struct file_set){
            .name = bytes_of_text(shares->at[i].name),
            .prefix = {shares->at[i].prefix, shares->at[i].prefix_len},
        };
    return shares->count + 1;
}
