/*
 * store_json.h -- a stored record as one line of JSON, and back.
 *
 *   {"kind": "lock", "slot": 3, "client_id": 18, "fh": "0102", "start": 0, "record": "0500..."}
 *
 * `record` is the record with its checksum, in hexadecimal: it is what is read back, and what makes
 * a copy exact. Everything between slot and record is for people and for jq.
 */
#ifndef DAEMON_STORE_JSON_H
#define DAEMON_STORE_JSON_H

#include "base/text.h"
#include "store/record.h"

#define STORE_JSON_LINE_MAX 32768

/* False: the record cannot be read; it is written all the same. */
bool store_json_put(char ret[static STORE_JSON_LINE_MAX], enum record_kind kind, uint32_t slot,
                    struct bytes value);

/* 0, or -EINVAL with the cause in *ret_why. `buffer` has RECORD_VALUE_MAX bytes and keeps the
 * value; a record of a newer format is refused. */
__attribute__((warn_unused_result)) int
store_json_get(const char *line, uint8_t *buffer, struct record_change *ret, struct text *ret_why);

#endif
