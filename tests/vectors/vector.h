/*
 * vector.h -- wire vectors: bytes and what they mean, in text files that people read.
 *
 * A file holds vectors, each a group of lines; blank lines separate them:
 *
 *   # Where the bytes come from, and what they show.
 *   name: typical
 *   kind: args
 *   text: mon_name="srv" state=5
 *   more: stamp=7 gids=0,4            what is on the wire and not in the text (optional)
 *   oracle: none, because ...         or "decode, because ..." (optional; default both ways)
 *   hex: 00000003 73727600
 *        00000005
 *
 * Kinds:
 *   args        arguments of the procedure that the file is named after, or a stored record of that
 *               kind; text is what they mean
 *   garbage     arguments that must be refused
 *   result      its result; text is what is encoded
 *   bad_result  a result that must be refused when somebody else sends it
 *   call        a whole call, header and arguments
 *   refused     a message that gets no further than its header; text says what is made of it
 *   reply       a whole reply, header and result
 *
 * Text is fields `key=value` in a fixed order with one space between them. A value is a number, a
 * word, or a quoted string in which every byte but printable ASCII, quote and backslash is \xNN.
 *
 * This reader is shared by the runner, which decodes with src/codec, and by the oracle, which must
 * not: it uses nothing of src.
 */
#ifndef VECTORS_VECTOR_H
#define VECTORS_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vector_kind {
    VECTOR_ARGS,
    VECTOR_GARBAGE,
    VECTOR_RESULT,
    VECTOR_BAD_RESULT,
    VECTOR_CALL,
    VECTOR_REFUSED,
    VECTOR_REPLY,
};

enum vector_oracle { VECTOR_BOTH_WAYS, VECTOR_DECODE_ONLY, VECTOR_NO_ORACLE };

enum { VECTOR_TEXT_MAX = 8192, VECTOR_BYTES_MAX = 4096, VECTOR_NAME_MAX = 64 };

struct vector {
    char name[VECTOR_NAME_MAX];
    char text[VECTOR_TEXT_MAX];
    char more[VECTOR_TEXT_MAX];
    uint8_t bytes[VECTOR_BYTES_MAX];
    size_t len;
    enum vector_kind kind;
    enum vector_oracle oracle;
};

/* NOT_ASKED is neither passed nor failed: it gets a comment line and is not counted. */
enum vector_verdict { VECTOR_BAD, VECTOR_GOOD, VECTOR_NOT_ASKED };

/* Called for each vector of a file. On VECTOR_BAD it has printed why. */
typedef enum vector_verdict (*vector_fn)(const char *file, const struct vector *vector);

/*
 * Every vector of every *.txt file of a directory, in the order of the names: prints one TAP line
 * for each and the plan at the end. A file that cannot be read, or holds nothing, is a failure.
 * Returns the exit status of the program. `at_end`, if not NULL, is one more test.
 */
int vector_run_directory(const char *directory, vector_fn check, bool (*at_end)(void));

/* A diagnostic line of TAP. */
__attribute__((format(printf, 1, 2))) void vector_say(const char *format, ...);

/*
 * The fields of a text. A number or a string that is not there, or is no number or string, ends the
 * program: the vector file is wrong, and no result of it would mean anything.
 */
uint32_t vector_number(const char *text, const char *key);
/* The bytes of a quoted string, at most `size`; the length is returned. */
size_t vector_string(const char *text, const char *key, uint8_t *ret_bytes, size_t size);
/* True when the field is there and is this word. */
bool vector_is(const char *text, const char *key, const char *word);
/* What is behind `key=`, or NULL. */
const char *vector_field(const char *text, const char *key);
/* Hex digits, blanks between bytes skipped, at most `size` bytes; SIZE_MAX when it is not hex. */
size_t vector_hex(const char *text, uint8_t *ret_bytes, size_t size);

#endif
