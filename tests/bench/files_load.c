/*
 * files_load.c -- see files_load.h.
 */
#include "bench/files_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <inttypes.h>
#include <string.h>

#define TREE_MS  120000
#define DRAIN_MS 20000

bool files_load_start_server(struct peers_server *server, const char *directory,
                             const char *options, const char *local_locks)
{
    char line[700], port[16];
    snprintf(line, sizeof(line), "%s *(%s,no_root_squash)", directory, options);
    snprintf(port, sizeof(port), "%u", FILES_LOAD_PORT);
    const char *const more[] = {
        "--export",  line, "--nfs-port", port, local_locks == NULL ? NULL : "--local-locks",
        local_locks, NULL};
    return peers_start_holdfastd(server, "files-store", 1000, more);
}

bool files_load_run_tree(const char *const words[], char *ret, size_t size)
{
    struct process process = {0};
    const char *arguments[PROCESS_ARGUMENTS_MAX] = {peers_tool("tree")};
    for (int i = 0; words[i]; i++)
        arguments[i + 1] = words[i];
    if (!process_start(&process, arguments) || process_wait_end(&process, TREE_MS) != 0 ||
        !process_last_line(&process, "tree ", ret, size))
        return peers_fail("%s", process_last_words(&process));
    return true;
}

bool files_load_prepare(const struct files_load_target *target, uint32_t connections,
                        uint32_t in_flight, uint32_t size)
{
    char numbers[5][16], handles[600], line[128];
    const uint32_t values[5] = {target->nfs_port, target->mount_port, connections, in_flight, size};
    for (int i = 0; i < 5; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%u", values[i]);
    snprintf(handles, sizeof(handles), "%s", peers_path(target->handles));
    const char *const words[] = {"prepare",         numbers[0], numbers[1],
                                 target->directory, handles,    numbers[2],
                                 numbers[3],        numbers[4], NULL};
    return files_load_run_tree(words, line, sizeof(line));
}

bool files_load_begin(const struct files_load_target *target, const struct files_load *load,
                      struct process *ret)
{
    char port[16], handles[600], options[5][32];
    snprintf(port, sizeof(port), "%u", target->nfs_port);
    snprintf(handles, sizeof(handles), "%s", peers_path(target->handles));
    snprintf(options[0], sizeof(options[0]), "connections=%u", load->connections);
    snprintf(options[1], sizeof(options[1]), "in_flight=%u", load->in_flight);
    snprintf(options[2], sizeof(options[2]), "milliseconds=%u", load->milliseconds);
    snprintf(options[3], sizeof(options[3]), "drain=%u", DRAIN_MS);
    snprintf(options[4], sizeof(options[4]), "size=%u", load->size ? load->size : 8192);
    const char *arguments[] = {peers_tool("files"), load->kind, port,       handles,    options[0],
                               options[1],          options[2], options[3], options[4], NULL};
    return process_start(ret, arguments) || peers_fail("%s", process_last_words(ret));
}

bool files_load_end(struct process *process, struct report_sample *ret, uint64_t *ret_answered)
{
    char line[256];
    uint64_t answered, wrong, missing, counted, window_ns, p50_ns, p99_ns, max_ns;
    int code = process_wait_end(process, TREE_MS);
    if (!process_last_line(process, "traffic answered=", line, sizeof(line)) || code != 0 ||
        sscanf(line,
               "traffic answered=%" SCNu64 " wrong=%" SCNu64 " missing=%" SCNu64 " counted=%" SCNu64
               " window_ns=%" SCNu64 " p50_ns=%" SCNu64 " p99_ns=%" SCNu64 " max_ns=%" SCNu64,
               &answered, &wrong, &missing, &counted, &window_ns, &p50_ns, &p99_ns, &max_ns) != 8)
        return peers_fail("%s", process_last_words(process));
    *ret = (struct report_sample){
        .rate = window_ns > 0 ? (double)counted * 1e9 / (double)window_ns : 0,
        .p50_us = (double)p50_ns / 1e3,
        .p99_us = (double)p99_ns / 1e3,
        .max_us = (double)max_ns / 1e3,
    };
    *ret_answered = answered;
    return true;
}

bool files_load_measure(const struct files_load_target *target, const struct files_load *load,
                        struct report_sample *ret)
{
    struct process process = {0};
    uint64_t before_ns = process_cpu_ns(target->process), answered;
    if (!files_load_begin(target, load, &process) || !files_load_end(&process, ret, &answered))
        return false;
    uint64_t after_ns = process_cpu_ns(target->process);
    /* Threads that end take their time with them: then nothing is known. */
    if (answered > 0 && after_ns > before_ns)
        ret->cpu_us = (double)(after_ns - before_ns) / 1e3 / (double)answered;
    return true;
}

bool files_load_make_lockable(const struct files_load_target *target, uint32_t count,
                              const char *handles)
{
    struct process process = {0};
    char path[700], port[16], number[16], file[600];
    snprintf(port, sizeof(port), "%u", (unsigned)target->nfs_port);
    snprintf(number, sizeof(number), "%u", count);
    snprintf(file, sizeof(file), "%s", peers_path(handles));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/f%u", target->directory, i);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0 || close(fd) != 0)
            return peers_fail("cannot make %s", path);
    }
    const char *arguments[] = {
        peers_tool("handles"), port, port, target->directory, number, file, NULL};
    return (process_start(&process, arguments) && process_wait_end(&process, 60000) == 0) ||
           peers_fail("no handles to lock: %s", process_last_words(&process));
}
