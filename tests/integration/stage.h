/*
 * stage.h -- a server and emulated clients around it, for the tests of the emulators.
 *
 * Every client gets an address that no other one had before it, every case files of its own, so
 * that cases do not meet. Clients of a case are freed with it. Half of them mount the server at
 * 127.0.0.1, the others at 127.0.0.2, and must be called back from there (R-BLK-3).
 */
#ifndef INTEGRATION_STAGE_H
#define INTEGRATION_STAGE_H

#include "harness.h"
#include "peer/emu_client.h"
#include "peer/emu_table.h"

/* How long something may take that is sure to come. */
#define STAGE_PATIENCE_MS 60000

/* Starts the server, which serves all addresses. False: it has said why. */
bool stage_open(const char *const *options);
void stage_close(void);
const struct harness_server *stage_server(void);

/* A new case: the clients of the one before are gone, and a fresh file is used. */
void stage_case(const char *name);
/* A client; callbacks only: it polls once in ten minutes unless told otherwise. Ends the test when
   it cannot be had. */
struct emu_host *stage_host(const char *kind, const char *name);
/* The same with a kind that the table does not have; it must outlive the case. */
struct emu_host *stage_host_of(const struct emu_kind *kind, const char *name);
/* Both hosts of a row that has two. */
void stage_pair(const char *row, struct emu_host *ret_pair[static EMU_TABLE_HOSTS_MAX]);

/* An exclusive request for the file of the case. */
struct emu_request stage_request(uint32_t svid, uint64_t offset, uint64_t len);

/* Demands a status (or negative errno) of what was done; true when it is the one. */
bool stage_demand(int got, int expected, const char *what);
/* The range is held by that owner, as seen by `judge`; and it is free. */
bool stage_demand_held(struct emu_host *judge, const struct emu_request *request,
                       const struct emu_host *holder, uint32_t svid);
bool stage_demand_free(struct emu_host *judge, const struct emu_request *request);
/* It is free, or will be soon: an offer that was refused stands while its callback is under way. */
bool stage_wait_free(struct emu_host *judge, const struct emu_request *request);
/* The waiter is granted by a callback or its own polls. */
bool stage_demand_granted(struct emu_host *host, uint32_t wait, const char *what);
/* Callbacks of both procedures so far; waits for at least so many. */
uint32_t stage_callbacks(const struct emu_host *host);
bool stage_wait_callbacks(struct emu_host *host, uint32_t count);
/* Prints them, for a message that needs them. */
void stage_print_callbacks(const struct emu_host *host);
/* The last one; NULL when there is none. Look at it while the server is quiet. */
const struct emu_record *stage_last_callback(const struct emu_host *host);

#endif
