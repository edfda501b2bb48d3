/*
 * nfs_vectors.c -- codec/nfs_args.c, nfs_results.c and mount_xdr.c against the vectors of NFS and
 * MOUNT.
 *
 * Arguments are read and printed, results written from their text (nfs_text.c). The names of the
 * procedures are those of the tables of proto/.
 */
#include "nfs_vectors.h"

#include "codec_check.h"
#include "nfs_text.h"
#include "proto/mount.h"
#include "proto/nfs.h"

#include <ctype.h>

enum { PROCEDURES_MAX = 32 };

struct subject {
    const struct program *program;
    uint32_t number;
};

static bool has_args[2][PROCEDURES_MAX], has_result[2][PROCEDURES_MAX];

static bool *seen(bool table[2][PROCEDURES_MAX], const struct subject *subject)
{
    return &table[subject->program == &mount_program][subject->number];
}

bool nfs_vectors_own(const char *file)
{
    return strncmp(file, "nfs_", 4) == 0 || strncmp(file, "mount_", 6) == 0;
}

/* nfs_readdirplus.txt names READDIRPLUS of NFS. */
static bool find_subject(const char *file, struct subject *ret)
{
    char name[32] = "";
    const char *start = strchr(file, '_') + 1;
    for (size_t i = 0; i + 1 < sizeof name && start[i] != '.' && start[i] != '\0'; i++)
        name[i] = (char)toupper((unsigned char)start[i]);
    ret->program = file[0] == 'm' ? &mount_program : &nfs_program;
    const struct program_version *version = &ret->program->versions[0];
    for (ret->number = 0; ret->number < version->procedure_count; ret->number++)
        if (strcmp(version->procedures[ret->number].name, name) == 0)
            return true;
    return false;
}

static bool decode(const void *what, struct bytes data, struct text *text)
{
    const struct subject *subject = what;
    struct xdr_in in = xdr_in_of(data);
    if (subject->program == &mount_program) {
        struct bytes path;
        if (!mount_xdr_get_args(&in, (enum mount_procedure)subject->number, &path))
            return false;
        nfs_text_add_mount_args(text, (enum mount_procedure)subject->number, path);
        return true;
    }
    struct nfs_args args;
    if (!nfs_args_get(&in, (enum nfs_procedure)subject->number, &args))
        return false;
    nfs_text_add_args(text, (enum nfs_procedure)subject->number, &args);
    return true;
}

static void encode(struct xdr_out *out, const void *what, const char *text)
{
    const struct subject *subject = what;
    if (subject->program == &mount_program)
        nfs_text_put_mount_result(out, (enum mount_procedure)subject->number, text);
    else
        nfs_text_put_result(out, (enum nfs_procedure)subject->number, text);
}

bool nfs_vectors_check(const char *file, const struct vector *vector)
{
    struct subject subject;
    if (!find_subject(file, &subject)) {
        vector_say("name it nfs_<procedure>.txt or mount_<procedure>.txt");
        return false;
    }
    switch (vector->kind) {
    case VECTOR_ARGS:
        *seen(has_args, &subject) = true;
        return codec_check_decode(decode, &subject, vector, true);
    case VECTOR_GARBAGE:
        return codec_check_decode(decode, &subject, vector, false);
    case VECTOR_RESULT:
        *seen(has_result, &subject) = true;
        return codec_check_encode(encode, &subject, vector);
    case VECTOR_BAD_RESULT:
    case VECTOR_CALL:
    case VECTOR_REFUSED:
    case VECTOR_REPLY:
        break;
    }
    vector_say("NFS and MOUNT have args, garbage and result");
    return false;
}

bool nfs_vectors_are_complete(void)
{
    static const struct program *const programs[] = {&nfs_program, &mount_program};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        const struct program_version *version = &programs[i]->versions[0];
        for (uint32_t j = 0; j < version->procedure_count; j++) {
            struct subject subject = {programs[i], j};
            if (*seen(has_args, &subject) && *seen(has_result, &subject))
                continue;
            vector_say("%s: %s has no vector for its %s", programs[i]->name,
                       version->procedures[j].name,
                       *seen(has_args, &subject) ? "result" : "arguments");
            good = false;
        }
    }
    return good;
}
