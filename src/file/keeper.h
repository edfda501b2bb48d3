/*
 * keeper.h -- locks that programs see outlive the server (F-MIRROR): its end of the keeper.
 *
 * An open-file-description lock lasts as long as anybody has that description. So a second process,
 * the keeper, gets a copy of every descriptor that has locks; it does nothing with it. When the
 * server is killed, no program gets what a client still holds; the next one takes the descriptors
 * back, and with them the locks.
 *
 *      server                      keeper                      next server
 *        | KEEP id, file, fd ------> |
 *        | DROP id ----------------> |
 *        x                           | <------------------------- ASK |
 *                                    | HELD id, file, fd -----------> |   for each
 *                                    | END -------------------------> |
 *
 * A message is one packet of a unix socket. It is sent before anybody learns of a lock, and what is
 * in the socket is kept by the kernel when its sender dies. Where there is no keeper, or it does
 * not take a message, locks are as good as they are without: a start reports what it finds taken.
 *
 * keeper_keep and keeper_drop may be called from any thread, the others from the server's.
 */
#ifndef FILE_KEEPER_H
#define FILE_KEEPER_H

#include "file/handle.h"

enum keeper_kind { KEEPER_KEEP = 1, KEEPER_DROP, KEEPER_ASK, KEEPER_HELD, KEEPER_END };

struct keeper_message {
    uint32_t kind;
    uint32_t export_id;
    uint64_t id; /* of the descriptor, and of no other one that is kept */
    struct handle_object object;
};

/* One packet, with a descriptor or without (-1). False: it did not leave, within a second. */
bool keeper_send(int socket, const struct keeper_message *message, int fd);
/* The next packet; *ret_fd is -1, or the caller's. False: the other end is gone. */
bool keeper_receive(int socket, struct keeper_message *ret, int *ret_fd);

struct keeper;

/* Takes over a connection, and what the keeper has from before. NULL: no memory. */
struct keeper *keeper_new(int socket);
void keeper_free(struct keeper *keeper);
/* It does not answer, or has ended. */
bool keeper_is_lost(const struct keeper *keeper);

/* The descriptor of this file that an earlier server left, the caller's from now on; -1: none. */
int keeper_take(struct keeper *keeper, uint32_t export_id, const struct handle_object *object,
                uint64_t *ret_id);
/* What is left of them goes, but for exports that are wanted later. */
typedef bool (*keeper_wants_fn)(const void *context, uint32_t export_id);
void keeper_drop_rest(struct keeper *keeper, keeper_wants_fn wants, const void *context);

/* The keeper has this one, too, until it is dropped. 0: it does not; keeper may be NULL. */
uint64_t keeper_keep(struct keeper *keeper, int fd, uint32_t export_id,
                     const struct handle_object *object);
void keeper_drop(struct keeper *keeper, uint64_t id);
/* From now on nothing is dropped: the server stops, and its clients come back to the next one. */
void keeper_leave(struct keeper *keeper);

#endif
