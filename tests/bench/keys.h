/*
 * keys.h -- the registrations that the load generator has at a server.
 *
 * A key is a number; as mon_name it is written as an address in 10/8, because rpc.statd takes only
 * names that resolve. Keys belong to connections: connection c of C has c, c + C, c + 2C and so on.
 * Each replaces a random one of its keys by its next one, so that the count stays and removals
 * hit the whole table. What is registered outlives the generator in a file: the next round goes on
 * where this one ended.
 */
#ifndef BENCH_KEYS_H
#define BENCH_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#define KEYS_NAME_MAX 16

struct keys {
    uint32_t connections;
    struct keys_part {
        uint32_t next;  /* the key that comes next */
        uint32_t count; /* of live */
        uint32_t *live;
    } * parts;
};

/* The first `registered` keys are there. False: no memory. */
bool keys_init(struct keys *keys, uint32_t connections, uint32_t registered);
/* As the last round left them in the file; false: there is no such file, or it is of another shape.
 */
bool keys_load(struct keys *keys, uint32_t connections, const char *path);
bool keys_save(const struct keys *keys, const char *path);
void keys_done(struct keys *keys);

/* The next key of a connection, and the one that goes for it: itself if it has no others. */
void keys_replace(struct keys *keys, uint32_t connection, uint64_t random, uint32_t *ret_new,
                  uint32_t *ret_old);
const char *keys_name(uint32_t key, char text[static KEYS_NAME_MAX]);

#endif
