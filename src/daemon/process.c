/*
 * process.c -- see process.h.
 */
#include "daemon/process.h"

#include "base/units.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_usec * 1000;
}

static void read_memory(struct admin_process *ret)
{
    unsigned long long virtual_pages, resident_pages;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return;
    if (fscanf(file, "%llu %llu", &virtual_pages, &resident_pages) == 2) {
        ret->virtual_bytes = virtual_pages * page;
        ret->resident_bytes = resident_pages * page;
    }
    (void)fclose(file);
}

/* Linux 6.2 and later has the number as the size of the directory; others make us count. */
static uint64_t count_fds(void)
{
    static const char path[] = "/proc/self/fd";
    struct stat st;
    if (stat(path, &st) == 0 && st.st_size > 0)
        return (uint64_t)st.st_size;
    DIR *directory = opendir(path);
    uint64_t count = 0;
    if (directory == NULL)
        return 0;
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count < 3 ? 0 : count - 3; /* ".", "..", and its own */
}

void process_read(struct admin_process *ret)
{
    struct rusage usage;
    struct rlimit limit;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        ret->cpu_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        ret->max_fds = limit.rlim_cur;
    ret->open_fds = count_fds();
    read_memory(ret);
}
