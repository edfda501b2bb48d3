/*
 * store_json.h -- a stored record as one line of JSON, and back.
 *
 *   {"kind": "lock", "slot": 3, "client_id": 18, "fh": "0102", "start": 0, "record": "0500..."}
 *
 * `record` is the record with its checksum, in hexadecimal: it is what is read back, and what makes
 * a copy exact. Everything between slot and record is for people and for jq. The last line proves
 * that it is (store/lines.h).
 */
#ifndef DAEMON_STORE_JSON_H
#define DAEMON_STORE_JSON_H

#include "base/text.h"
#include "store/digest.h"

#define STORE_JSON_LINE_MAX 32768

/* False: the record cannot be read; it is written all the same. */
bool store_json_put(char ret[static STORE_JSON_LINE_MAX], enum record_kind kind, uint32_t slot,
                    struct bytes value);

enum {
    STORE_JSON_END = 1, /* the last line; *ret_end is what it says */
    STORE_JSON_BROKEN, /* the last line of a copy that broke off; *ret_why is the reason it gives */
};

/* 0: a record. `buffer` has RECORD_VALUE_MAX bytes and keeps the value; one of a newer format is
 * refused. Or one of the above. With the cause in *ret_why: -EBADMSG, it is not JSON, perhaps a
 * part of a line; -EINVAL, it is not a line of ours. */
__attribute__((warn_unused_result)) int store_json_get(const char *line, uint8_t *buffer,
                                                       struct record_change *ret,
                                                       struct digest *ret_end,
                                                       struct text *ret_why);

#endif
