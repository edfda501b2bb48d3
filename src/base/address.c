/*
 * address.c -- normalising, printing and parsing host addresses; see address.h.
 *
 * inet_ntop and inet_pton depend on their arguments alone, so they are allowed in the pure zone.
 */
#include "base/address.h"

#include <arpa/inet.h>

static const uint8_t v4_mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

struct address address_v4(const uint8_t bytes[static 4])
{
    struct address address = {.family = 4};
    memcpy(address.bytes, bytes, 4);
    return address;
}

struct address address_v6(const uint8_t bytes[static 16], uint32_t scope)
{
    if (memcmp(bytes, v4_mapped_prefix, sizeof v4_mapped_prefix) == 0)
        return address_v4(bytes + 12);
    struct address address = {.family = 6};
    memcpy(address.bytes, bytes, 16);
    if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80)
        address.scope = scope;
    return address;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool address_is_loopback(const struct address *address)
{
    static const uint8_t v6_loopback[16] = {[15] = 1};
    if (address->family == 4)
        return address->bytes[0] == 127;
    return address->family == 6 && memcmp(address->bytes, v6_loopback, 16) == 0;
}

bool address_is_host(const struct address *address)
{
    static const struct address none = {0};
    if (memcmp(address->bytes, none.bytes, sizeof none.bytes) == 0)
        return false;
    if (address->family == 4) /* 0/8, 224/4 and beyond */
        return address->bytes[0] != 0 && address->bytes[0] < 224;
    return address->family == 6 && address->bytes[0] != 0xff;
}

void address_text(const struct address *address, char ret_text[static ADDRESS_TEXT_MAX])
{
    int family = address->family == 4 ? AF_INET : AF_INET6;
    if (address->family == 0 ||
        inet_ntop(family, address->bytes, ret_text, ADDRESS_TEXT_MAX) == NULL) {
        memcpy(ret_text, "none", 5);
        return;
    }
    if (address->scope == 0)
        return;
    char digits[10];
    size_t count = 0;
    for (uint32_t rest = address->scope; rest > 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    size_t at = strlen(ret_text);
    ret_text[at++] = '%';
    while (count > 0)
        ret_text[at++] = digits[--count];
    ret_text[at] = '\0';
}

static bool parse_scope(const char *digits, uint32_t *ret)
{
    uint64_t value = 0;
    if (*digits == '\0')
        return false;
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9')
            return false;
        value = value * 10 + (uint64_t)(*digits - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *ret = (uint32_t)value;
    return true;
}

bool address_parse(struct bytes text, struct address *ret)
{
    char buffer[ADDRESS_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof buffer || memchr(text.at, '\0', text.len) != NULL)
        return false;
    memcpy(buffer, text.at, text.len);
    buffer[text.len] = '\0';

    uint32_t scope = 0;
    char *percent = strchr(buffer, '%');
    if (percent != NULL) {
        if (!parse_scope(percent + 1, &scope))
            return false;
        *percent = '\0';
    }
    uint8_t bytes[16];
    if (percent == NULL && inet_pton(AF_INET, buffer, bytes) == 1) {
        *ret = address_v4(bytes);
        return true;
    }
    if (inet_pton(AF_INET6, buffer, bytes) == 1) {
        *ret = address_v6(bytes, scope);
        return true;
    }
    return false;
}
