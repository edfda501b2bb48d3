/*
 * make_file_seeds.c -- writes the seeds of the fuzz corpora of the file service: arguments of NFS
 * and MOUNT from the wire vectors, whole and cut, handles, and lines of exports(5). make_seeds.c
 * says when; the files are kept in the repository.
 *
 * usage: make_file_seeds VECTOR-DIRECTORY CORPUS-DIRECTORY
 */
#include "fuzz.h"
#include "proto/mount.h"
#include "proto/nfs.h"
#include "vector.h"

#include <ctype.h>
#include <stdio.h>

static const char *corpus;

static void write_seed(const char *target, const char *part, const char *name, struct bytes data)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/seed-%s-%s", corpus, target, part, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data.at, 1, data.len, file) != data.len || fclose(file) != 0) {
        fprintf(stderr, "cannot write %s: make the directory first\n", path);
        exit(1);
    }
}

/* The number of the procedure that a file is named after, "nfs_mknod.txt", or -1. */
static int procedure_of(const struct program *program, const char *prefix, const char *file)
{
    const struct program_version *version = &program->versions[0];
    char wanted[64];
    for (uint32_t i = 0; i < version->procedure_count; i++) {
        snprintf(wanted, sizeof wanted, "%s%s.txt", prefix, version->procedures[i].name);
        for (char *at = wanted; *at; at++)
            *at = (char)tolower((unsigned char)*at);
        if (strcmp(wanted, file) == 0)
            return (int)i;
    }
    return -1;
}

static void args_seeds(const char *target, const struct program *program, int procedure,
                       const struct vector *vector)
{
    static uint8_t seed[1 << 16];
    char name[128];
    CHECK(vector->len < sizeof seed);
    seed[0] = (uint8_t)procedure;
    memcpy(seed + 1, vector->bytes, vector->len);
    for (uint32_t cut = 1; cut <= 2; cut++) {
        snprintf(name, sizeof name, "%s%s", vector->name, cut == 1 ? "" : "-cut");
        write_seed(target, program->versions[0].procedures[procedure].name, name,
                   (struct bytes){seed, 1 + (uint32_t)vector->len / cut});
    }
}

static enum vector_verdict seed_of_vector(const char *file, const struct vector *vector)
{
    int nfs = procedure_of(&nfs_program, "nfs_", file);
    int mount = procedure_of(&mount_program, "mount_", file);
    if (vector->kind != VECTOR_ARGS && vector->kind != VECTOR_GARBAGE)
        return VECTOR_GOOD;
    if (nfs >= 0)
        args_seeds("nfs", &nfs_program, nfs, vector);
    if (mount >= 0)
        args_seeds("mount", &mount_program, mount, vector);
    return VECTOR_GOOD;
}

static void export_seeds(void)
{
    static const char *const lines[] = {
        "/srv/files *(rw)",
        "/srv/files",
        "/srv/a 192.0.2.0/24(rw,no_root_squash,async) 2001:db8::/32(ro,all_squash) host.example",
        "/srv/b *(rw,secure,anonuid=1000,anongid=1000,fsid=7)",
        "\"/srv/with space\" *(ro) # a comment",
        "/srv/c\\040d 192.0.2.1(rw,insecure,root_squash,sync)",
        "/srv/e @staff(rw)",
        "/srv/f *(rw,crossmnt)",
        "/srv/g *(anonuid=4294967296)",
        "/srv/h 192.0.2.0/33(rw)",
        "relative *(rw)",
        "/srv/i *(rw",
        "# nothing",
        "",
    };
    char name[16];
    for (uint32_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(name, sizeof name, "%u", i);
        write_seed("export", "line", name, bytes_of_text(lines[i]));
    }
}

/* Handles of another server, and kernel handles of several lengths. */
static void handle_seeds(void)
{
    static const uint8_t foreign[] = {0, 1, 1, 8, 0,  0,  0,  0,  1,  2,  3,  4, 5,
                                      6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    uint8_t own[48] = {1, 0, 0xc0, 0xff, 0xee, 1, 0, 77};
    char name[16];
    write_seed("handle", "foreign", "25", (struct bytes){foreign, sizeof foreign});
    for (uint32_t i = 8; i < sizeof own; i++)
        own[i] = (uint8_t)i;
    for (uint32_t len = 8; len <= sizeof own; len += 8) {
        snprintf(name, sizeof name, "%u", len - 8);
        write_seed("handle", "own", name, (struct bytes){own, len});
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_file_seeds VECTOR-DIRECTORY CORPUS-DIRECTORY\n");
        return 2;
    }
    corpus = argv[2];
    export_seeds();
    handle_seeds();
    return vector_run_directory(argv[1], seed_of_vector, NULL);
}
