/*
 * postgres_hosts.c -- see postgres_hosts.h.
 *
 * host, hostaddr and port are lists of one length, but for a single port that is everybody's. A
 * name that stands for several addresses is one host.
 */
#include "store/postgres_hosts.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

static uint32_t count_items(const char *list)
{
    uint32_t count = 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* Where the item begins, and its length. */
static const char *find_item(const char *list, uint32_t index, size_t *ret_len)
{
    for (; index > 0; index--)
        list += strcspn(list, ",") + 1;
    *ret_len = strcspn(list, ",");
    return list;
}

static bool is_short(const char *list, uint32_t count, size_t size)
{
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        size_t len;
        (void)find_item(list, i, &len);
        if (len >= size)
            return false;
    }
    return true;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword != NULL; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val != NULL && options->val[0] != '\0' ? options->val : NULL;
    return NULL;
}

static int copy(const char *value, char **ret)
{
    *ret = value == NULL ? NULL : strdup(value);
    return value != NULL && *ret == NULL ? -ENOMEM : 0;
}

static int take_lists(struct postgres_hosts *hosts, const PQconninfoOption *options)
{
    const char *host = value_of(options, "host"), *hostaddr = value_of(options, "hostaddr");
    const char *port = value_of(options, "port");
    uint32_t count = count_items(hostaddr != NULL ? hostaddr : host), ports = count_items(port);
    bool is_fitting = (host == NULL || count_items(host) == count) &&
                      (ports == 1 || ports == count) && is_short(host, count, 256) &&
                      is_short(hostaddr, count, 64) && is_short(port, ports, 16);
    if (count == 1 || count > POSTGRES_HOSTS_MAX || !is_fitting)
        return 0;
    hosts->count = count;
    if (copy(host, &hosts->host) != 0 || copy(hostaddr, &hosts->hostaddr) != 0 ||
        copy(port, &hosts->port) != 0)
        return -ENOMEM;
    return 0;
}

int postgres_hosts_init(struct postgres_hosts *hosts, const char *conninfo)
{
    *hosts = (struct postgres_hosts){.count = 1};
    if (strchr(conninfo, '=') == NULL && strstr(conninfo, "://") == NULL)
        return 0;
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    int code = options == NULL ? 0 : take_lists(hosts, options);
    PQconninfoFree(options);
    return code;
}

void postgres_hosts_done(struct postgres_hosts *hosts)
{
    free(hosts->host);
    free(hosts->hostaddr);
    free(hosts->port);
    *hosts = (struct postgres_hosts){0};
}

static const char *put_item(const char *list, uint32_t index, char *ret)
{
    size_t len;
    if (list == NULL)
        return NULL;
    const char *item = find_item(list, count_items(list) == 1 ? 0 : index, &len);
    memcpy(ret, item, len);
    ret[len] = '\0';
    return ret;
}

void postgres_hosts_at(const struct postgres_hosts *hosts, uint32_t index,
                       struct postgres_host *ret)
{
    ret->host_value = put_item(hosts->host, index, ret->host);
    ret->hostaddr_value = put_item(hosts->hostaddr, index, ret->hostaddr);
    ret->port_value = put_item(hosts->port, index, ret->port);
}
