/*
 * group.c -- see group.h. Letters are compared one by one: a locale has no say in it.
 */
#include "store/group.h"

#include <stddef.h>
#include <string.h>

bool store_group_is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz";
    static const char others[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t len = strlen(name);
    return len >= 1 && len <= STORE_GROUP_NAME_MAX && strspn(name, first) >= 1 &&
           strspn(name, others) == len;
}
