/*
 * recovery_scene.h -- one server that is killed and started again, among fake hosts, and what a
 * bystander sees of its grace.
 *
 * Times are measured from readiness, as the bystander notices it: at most a few milliseconds late.
 */
#ifndef INTEGRATION_RECOVERY_SCENE_H
#define INTEGRATION_RECOVERY_SCENE_H

#include "lock_call.h"
#include "recovery_hosts.h"

#define RECOVERY_SCENE_MS          UINT64_C(1000000)
#define RECOVERY_SCENE_PATIENCE_MS 60000
/* An address that holds nothing. */
#define RECOVERY_SCENE_BYSTANDER UINT32_C(0x7f090001) /* 127.9.0.1 */

/* A network namespace, the harness, the hosts. False: say `skipped`; the reason is printed. */
bool recovery_scene_open(const char *name, uint32_t hosts_max);
/* Kills what still runs, and the verdict. */
int recovery_scene_close(void);

/* The server; its options are NULL-terminated and hold until they are replaced. */
struct harness_server *recovery_scene_server(void);
void recovery_scene_options(const char *const *options);
/* An empty store of another name from now on. */
void recovery_scene_store(const char *name);
bool recovery_scene_start(void);
/* Ends the server with the signal, and starts it. */
bool recovery_scene_restart(int signal);
/* When the last start was ready, on the clock of dial_now_ns. */
uint64_t recovery_scene_ready_ns(void);
uint64_t recovery_scene_since_ready_ms(void);
/* We hear late that it is ready: by how much at most. What lasts for so long since then may seem
 * shorter by this. */
uint64_t recovery_scene_slack_ms(void);

/* A host with this name and address, not UDP only. */
uint32_t recovery_scene_host(uint32_t address, const char *name);

/* An exclusive LOCK of one client, with the state that hosts have at first. */
struct lock_call recovery_scene_lock(const char *name, uint32_t svid, uint32_t file,
                                     uint64_t offset, uint64_t len);
/* The same as a reclaim, in the way of Linux: it does not wait and tells no state. */
struct lock_call recovery_scene_reclaim(struct lock_call call);

/* One call over TCP from this address; true when this is its status. */
bool recovery_scene_demand(uint32_t source, struct lock_call call, int expected, const char *what);
/* Sends it until that is the answer. False, and said: it never is. */
bool recovery_scene_await(uint32_t source, struct lock_call call, int expected, const char *what);
/* Is grace on, as a stranger's TEST is told? */
bool recovery_scene_is_in_grace(void);
/* Waits for its end. How long after readiness that was seen, in ms. */
uint64_t recovery_scene_await_end(void);

/* How many log lines have this text by now; waits for one, for so many. A line may come a little
   later than what it is about. */
bool recovery_scene_await_log(const char *text);
bool recovery_scene_await_lines(const char *text, uint32_t count);
uint32_t recovery_scene_log_count(const char *text);
/* Waits until the host has heard of the server's state; and of so many GRANTED. */
bool recovery_scene_await_told(uint32_t host);
bool recovery_scene_await_grants(uint32_t host, uint32_t count);

#endif
