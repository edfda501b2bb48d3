/*
 * process.h -- the servers and tools that the bench starts, and what they cost.
 *
 * Everything is started without a shell, prints into a log file of its own, and dies with the
 * bench. Every wait has an end.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_ARGUMENTS_MAX 40

struct process {
    pid_t pid; /* 0: none */
    char log[512];
};

/* Where the logs go. */
void process_set_directory(const char *directory);

/* arguments[0] is the program, looked up in the path; NULL at the end. False: it cannot be run. */
bool process_start(struct process *process, const char *const arguments[]);
/* Waits at most 10 s, then kills it. The exit code, 128 + signal, or -1 when there was none. */
int process_stop(struct process *process, int signal);
bool process_is_alive(const struct process *process);

/* The last line of its log that begins with `begin`. False: there is none. */
bool process_last_line(const struct process *process, const char *begin, char *ret, size_t size);
/* The last one that contains `part`. */
bool process_find_line(const struct process *process, const char *part, char *ret, size_t size);
/* Waits for such a line. False: it ended without one, or the time was over. */
bool process_wait_line(const struct process *process, const char *begin, uint32_t timeout_ms,
                       char *ret, size_t size);
/* Waits until the port on 127.0.0.1 takes TCP connections. False: as above. */
bool process_wait_port(const struct process *process, uint16_t port, uint32_t timeout_ms);
/* Waits for its end. The exit code as above; -1: it did not end in time and was killed. */
int process_wait_end(struct process *process, uint32_t timeout_ms);
/* Its last words, for a message; valid until the next call. */
const char *process_last_words(const struct process *process);

/*
 * On which processors it may run: the last one, all but the last one, or any. Without it, a
 * scheduler puts a server now beside its client and now on top of it, and rates of one round mean
 * little. With NULL it is the bench itself, and with it what is started next. A machine with one
 * processor is left alone.
 */
enum process_place { PROCESS_ANYWHERE, PROCESS_LAST, PROCESS_NOT_LAST };
void process_place(const struct process *process, enum process_place place);

/* CPU time that all its threads used so far. */
uint64_t process_cpu_ns(const struct process *process);

/* Memory that it has in use, in KiB; 0: not known. */
uint64_t process_resident_kib(const struct process *process);
/* The same without pages of files, such as a store's. */
uint64_t process_own_kib(const struct process *process);

bool process_is_installed(const char *program);
void process_pause_ms(uint32_t pause_ms);
uint64_t process_now_ns(void);

#endif
