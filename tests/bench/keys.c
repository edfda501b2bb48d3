/*
 * keys.c -- the registrations that the load generator has at a server; see keys.h.
 */
#include "bench/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *keys_name(uint32_t key, char text[static KEYS_NAME_MAX])
{
    snprintf(text, KEYS_NAME_MAX, "10.%u.%u.%u", key >> 16 & 255, key >> 8 & 255, key & 255);
    return text;
}

static bool reserve(struct keys *keys, uint32_t connections)
{
    *keys = (struct keys){.connections = connections};
    keys->parts = calloc(connections, sizeof(*keys->parts));
    return keys->parts != NULL;
}

bool keys_init(struct keys *keys, uint32_t connections, uint32_t registered)
{
    if (!reserve(keys, connections))
        return false;
    for (uint32_t i = 0; i < connections; i++) {
        struct keys_part *part = &keys->parts[i];
        part->live = calloc(registered / connections + 1, sizeof(*part->live));
        if (!part->live) {
            keys_done(keys);
            return false;
        }
        for (part->next = i; part->next < registered; part->next += connections)
            part->live[part->count++] = part->next;
    }
    return true;
}

static bool load_part(struct keys_part *part, FILE *file)
{
    uint32_t head[2];
    if (fread(head, sizeof(head), 1, file) != 1 || head[1] > 1000000)
        return false;
    part->live = calloc(head[1] + 1, sizeof(*part->live));
    if (!part->live || fread(part->live, sizeof(*part->live), head[1], file) != head[1])
        return false;
    part->next = head[0];
    part->count = head[1];
    return true;
}

bool keys_load(struct keys *keys, uint32_t connections, const char *path)
{
    FILE *file = fopen(path, "re");
    uint32_t stored;
    *keys = (struct keys){0}; /* what a refusal frees */
    if (!file)
        return false;
    bool is_whole = fread(&stored, sizeof(stored), 1, file) == 1 && stored == connections &&
                    reserve(keys, connections);
    for (uint32_t i = 0; is_whole && i < connections; i++)
        is_whole = load_part(&keys->parts[i], file);
    fclose(file);
    if (!is_whole)
        keys_done(keys);
    return is_whole;
}

bool keys_save(const struct keys *keys, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool is_whole = fwrite(&keys->connections, sizeof(keys->connections), 1, file) == 1;
    for (uint32_t i = 0; is_whole && i < keys->connections; i++) {
        const struct keys_part *part = &keys->parts[i];
        uint32_t head[2] = {part->next, part->count};
        is_whole = fwrite(head, sizeof(head), 1, file) == 1 &&
                   fwrite(part->live, sizeof(*part->live), part->count, file) == part->count;
    }
    return fclose(file) == 0 && is_whole;
}

void keys_done(struct keys *keys)
{
    for (uint32_t i = 0; keys->parts && i < keys->connections; i++)
        free(keys->parts[i].live);
    free(keys->parts);
    *keys = (struct keys){0};
}

void keys_replace(struct keys *keys, uint32_t connection, uint64_t random, uint32_t *ret_new,
                  uint32_t *ret_old)
{
    struct keys_part *part = &keys->parts[connection];
    uint32_t key = part->next, old = key;
    part->next += keys->connections;
    if (part->count > 0) {
        uint32_t index = (uint32_t)(random % part->count);
        old = part->live[index];
        part->live[index] = key;
    }
    *ret_new = key;
    *ret_old = old;
}
