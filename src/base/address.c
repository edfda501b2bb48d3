/*
 * address.c -- normalising, printing and parsing host addresses; see address.h.
 *
 * inet_ntop and inet_pton depend on their arguments alone, so they are allowed in the pure zone.
 */
#include "base/address.h"

#include "base/check.h"

#include <arpa/inet.h>

static const uint8_t v4_mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

struct address address_v4(const uint8_t bytes[static 4])
{
    struct address address = {.family = 4};
    memcpy(address.bytes, bytes, 4);
    return address;
}

struct address address_v6(const uint8_t bytes[static 16], const char *zone)
{
    if (memcmp(bytes, v4_mapped_prefix, sizeof v4_mapped_prefix) == 0)
        return address_v4(bytes + 12);
    struct address address = {.family = 6};
    memcpy(address.bytes, bytes, 16);
    if (zone != NULL && address_is_link_local(&address)) {
        size_t len = strlen(zone);
        CHECK(len <= ADDRESS_ZONE_LEN_MAX);
        memcpy(address.zone, zone, len);
    }
    return address;
}

/* What Linux takes for the name of an interface, and can be shown. */
bool address_is_zone(struct bytes zone)
{
    if (zone.len == 0 || zone.len > ADDRESS_ZONE_LEN_MAX)
        return false;
    for (uint32_t i = 0; i < zone.len; i++) {
        uint8_t c = zone.at[i];
        if (c <= ' ' || c > '~' || c == '/' || c == ':' || c == '%' || c == '"' || c == '\\')
            return false;
    }
    return true;
}

struct address address_without_zone(const struct address *address)
{
    struct address bare = *address;
    memset(bare.zone, 0, sizeof bare.zone);
    return bare;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool address_is_link_local(const struct address *address)
{
    return address->family == 6 && address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
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
    return address->family == 6 && address->bytes[0] != 0xff &&
           (address->zone[0] != '\0' || !address_is_link_local(address));
}

/* A list has an address in every row, and the C library writes one by way of printf. */
static void put_ipv4(const uint8_t bytes[4], char *at)
{
    for (uint32_t i = 0; i < 4; i++) {
        if (bytes[i] >= 100)
            *at++ = (char)('0' + bytes[i] / 100);
        if (bytes[i] >= 10)
            *at++ = (char)('0' + bytes[i] / 10 % 10);
        *at++ = (char)('0' + bytes[i] % 10);
        *at++ = i < 3 ? '.' : '\0';
    }
}

void address_text(const struct address *address, char ret_text[static ADDRESS_TEXT_MAX])
{
    if (address->family == 4) {
        put_ipv4(address->bytes, ret_text);
    } else if (address->family == 0 ||
               inet_ntop(AF_INET6, address->bytes, ret_text, ADDRESS_TEXT_MAX) == NULL) {
        memcpy(ret_text, "none", 5);
        return;
    }
    if (address->zone[0] == '\0')
        return;
    size_t at = strlen(ret_text);
    ret_text[at++] = '%';
    for (const char *c = address->zone; *c != '\0'; c++)
        ret_text[at++] = *c;
    ret_text[at] = '\0';
}

bool address_parse(struct bytes text, struct address *ret)
{
    char buffer[ADDRESS_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof buffer || memchr(text.at, '\0', text.len) != NULL)
        return false;
    memcpy(buffer, text.at, text.len);
    buffer[text.len] = '\0';

    const char *zone = NULL;
    char *percent = strchr(buffer, '%');
    if (percent != NULL) {
        zone = percent + 1;
        if (!address_is_zone(bytes_of_text(zone)))
            return false;
        *percent = '\0';
    }
    uint8_t bytes[16];
    if (percent == NULL && inet_pton(AF_INET, buffer, bytes) == 1) {
        *ret = address_v4(bytes);
        return true;
    }
    if (inet_pton(AF_INET6, buffer, bytes) == 1) {
        *ret = address_v6(bytes, zone);
        return true;
    }
    return false;
}
