/*
 * nlm_vectors.c -- codec/nlm_xdr.c and the table of proto/nlm.c against the vectors of NLM.
 *
 * Arguments are read by the codec, whose text is compared, and by the procedure's row of the table,
 * which must accept and refuse the same bytes: a row with another procedure's decoder does not.
 * Results are written by the row. What we send as arguments of a call of our own (GRANTED and the
 * results of messages) is written by the codec and must be the bytes that it reads.
 */
#include "nlm_vectors.h"

#include "codec_check.h"
#include "nlm_ours.h"
#include "proto/nlm.h"

enum { VERSION_MAX = 4 };

/* What a vector is taken for. */
struct subject {
    const struct nlm_body_row *row;
    const struct procedure *procedure; /* NULL: the table has none */
    uint32_t version;
};

static bool has_args[NLM_BODY_PROCEDURES][VERSION_MAX + 1];
static bool has_result[NLM_BODY_PROCEDURES][VERSION_MAX + 1];

/* The row of the table, or NULL when this version does not have the procedure. */
static const struct procedure *procedure_of(uint32_t version, uint32_t number)
{
    for (uint32_t i = 0; i < nlm_program.version_count; i++) {
        const struct program_version *v = &nlm_program.versions[i];
        if (v->number == version && number < v->procedure_count &&
            v->procedures[number].name != NULL)
            return &v->procedures[number];
    }
    return NULL;
}

static bool decode(const void *what, struct bytes data, struct text *text)
{
    const struct subject *subject = what;
    static struct nlm_body body;
    static char printed[NLM_BODY_TEXT_MAX];
    struct request request;
    struct xdr_in in = xdr_in_of(data);
    bool good = nlm_ours_get(subject->version, subject->row->args, data, &body);
    bool table_good = subject->procedure->decode(&in, subject->version, &request);
    if (table_good != good)
        text_add(text, "the procedure table does not agree: ");
    if (good) {
        nlm_body_print(subject->row->args, &body, false, printed);
        text_add(text, printed);
    }
    return good || table_good;
}

static void encode_args(struct xdr_out *out, const void *what, const char *text)
{
    const struct subject *subject = what;
    static struct nlm_body body;
    nlm_body_parse(subject->row->args, text, text, &body);
    nlm_ours_put(subject->version, subject->row->args, out, &body);
}

static void encode_result(struct xdr_out *out, const void *what, const char *text)
{
    const struct subject *subject = what;
    static struct nlm_body body;
    /* What a message encodes is a call later on; the reply is void. */
    if (subject->procedure->encode == NULL || (subject->procedure->flags & PROCEDURE_MESSAGE) != 0)
        return;
    nlm_body_parse(subject->row->result, text, text, &body);
    struct response response = {
        .status = (enum lock_status)body.stat,
        .cookie = {body.cookie.at, body.cookie.len},
        .holder = {.exclusive = body.exclusive != 0,
                   .svid = body.svid,
                   .oh = {body.oh.at, body.oh.len},
                   .start = body.offset,
                   .end = body.len != 0 ? body.offset + body.len - 1 : UINT64_MAX},
    };
    subject->procedure->encode(out, subject->version, &response);
}

bool nlm_vectors_owns(const char *file)
{
    return strncmp(file, "nlm_", 4) == 0;
}

static bool is_right(const struct subject *subject, const struct vector *vector)
{
    size_t index = (size_t)(subject->row - nlm_body_rows);
    /* A TEST_RES that is denied has its holder elsewhere than in its text. */
    bool we_send = subject->row->args == NLM_SHAPE_TESTARGS || subject->row->args == NLM_SHAPE_RES;
    switch (vector->kind) {
    case VECTOR_ARGS:
        has_args[index][subject->version] = true;
        return codec_check_decode(decode, subject, vector, true) &&
               (!we_send || vector->oracle == VECTOR_DECODE_ONLY ||
                codec_check_encode(encode_args, subject, vector));
    case VECTOR_GARBAGE:
        return codec_check_decode(decode, subject, vector, false);
    case VECTOR_RESULT:
        has_result[index][subject->version] = true;
        return codec_check_encode(encode_result, subject, vector);
    case VECTOR_BAD_RESULT:
    case VECTOR_CALL:
    case VECTOR_REFUSED:
    case VECTOR_REPLY:
        break;
    }
    vector_say("NLM has args, garbage and result");
    return false;
}

bool nlm_vectors_check(const char *file, const struct vector *vector)
{
    const struct nlm_body_row *row = nlm_body_row_of_file(file);
    uint32_t versions[NLM_BODY_VERSIONS];
    unsigned count = nlm_body_versions(vector->more, versions);
    if (row == NULL || count == 0) {
        vector_say("name it nlm_<procedure>.txt, and its versions, such as 'more: vers=1,3'");
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        struct subject subject = {row, procedure_of(versions[i], row->number), versions[i]};
        if (subject.procedure == NULL || !is_right(&subject, vector)) {
            vector_say("in version %u%s", versions[i],
                       subject.procedure == NULL ? ", which does not have the procedure" : "");
            return false;
        }
    }
    return true;
}

/* The vectors of one procedure of one version. */
static bool is_complete(uint32_t version, uint32_t number, const char *name)
{
    for (unsigned i = 0; i < NLM_BODY_PROCEDURES; i++) {
        if (nlm_body_rows[i].number != number || strcmp(nlm_body_rows[i].name, name) != 0)
            continue;
        if (has_args[i][version] && has_result[i][version])
            return true;
        vector_say("NLM version %u: %s has no vector for its %s", version, name,
                   has_args[i][version] ? "result" : "arguments");
        return false;
    }
    vector_say("NLM version %u: %s is not in nlm_body.c", version, name);
    return false;
}

bool nlm_vectors_are_complete(void)
{
    bool good = true;
    for (uint32_t i = 0; i < nlm_program.version_count; i++) {
        const struct program_version *v = &nlm_program.versions[i];
        for (uint32_t number = 0; number < v->procedure_count; number++)
            if (v->procedures[number].name != NULL &&
                !is_complete(v->number, number, v->procedures[number].name))
                good = false;
    }
    return good;
}
