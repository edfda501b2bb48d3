/*
 * journal.c -- see journal.h.
 */
#include "file/journal.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool journal_is_there(dev_t device)
{
    char path[64], link[PATH_MAX], task[PATH_MAX + 64], text = 0;
    (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(device), minor(device));
    ssize_t len = readlink(path, link, sizeof link - 1);
    if (len < 0)
        return false;
    link[len] = 0;
    const char *slash = strrchr(link, '/');
    /* The process that commits; "<none>" without a journal, no such file without the driver. */
    (void)snprintf(task, sizeof task, "/sys/fs/ext4/%s/journal_task",
                   slash == NULL ? link : slash + 1);
    int fd = open(task, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_there = read(fd, &text, 1) == 1 && isdigit((unsigned char)text);
    (void)close(fd);
    return is_there;
}
