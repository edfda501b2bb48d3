/*
 * record_mark.c -- the record reader of record_mark.h (RFC 5531 section 11).
 *
 *                 4 bytes of mark             length reached, more fragments follow
 *   ---> MARK ------------------> FRAGMENT -------------------------------------> MARK
 *          |                         | length reached, last fragment
 *          | too long                v
 *          v                       (record handed out, back to MARK)
 *        (the mark stays in place: every further call says TOO_LONG again)
 *
 * Always true:
 *  (1) gathered + fragment_left <= record_max: the test is made when the mark is read, so the
 *      buffer can never be overrun, whatever the marks say.
 *  (2) While gathered is 0 nothing of the record was copied: its bytes, if they are all here and in
 *      one fragment, are handed out where they lie.
 *  (3) The buffer is asked for only when there is a byte to put into it. A peer that opens
 *      connections and sends marks alone makes its owner lend nothing.
 *  (4) MORE means that the input is used up; the other results may leave some of it.
 *  (5) Another buffer is asked for only while nothing is in the one that is there: that of a record
 *      in several fragments has room for any.
 *
 * An empty fragment that is not the last is legal and adds nothing; it costs its sender four bytes
 * each time and us no memory.
 */
#include "codec/record_mark.h"

#include "base/check.h"
#include "base/minmax.h"

void record_reader_init(struct record_reader *reader, uint32_t record_max)
{
    CHECK(record_max > 0);
    CHECK(record_max < RECORD_MARK_LAST);
    *reader = (struct record_reader){.record_max = record_max};
}

static struct bytes take_front(struct bytes *input, uint32_t len)
{
    CHECK(len <= input->len);
    struct bytes front = {input->at, len};
    if (len > 0)
        input->at += len;
    input->len -= len;
    return front;
}

/* The mark of the next fragment: WHOLE here means that it is complete and was accepted. */
static enum record_read read_mark(struct record_reader *reader, struct bytes *input)
{
    uint32_t missing = (uint32_t)(RECORD_MARK_LEN - reader->mark_len);
    struct bytes part = take_front(input, min_u32(missing, input->len));
    if (part.len > 0)
        memcpy(reader->mark + reader->mark_len, part.at, part.len);
    reader->mark_len = (uint8_t)(reader->mark_len + part.len);
    if (reader->mark_len < RECORD_MARK_LEN)
        return RECORD_READ_MORE;

    uint32_t mark = load_be32(reader->mark), len = mark & ~RECORD_MARK_LAST;
    if (len > reader->record_max - reader->gathered)
        return RECORD_READ_TOO_LONG;
    reader->mark_len = 0;
    reader->in_fragment = true;
    reader->fragment_left = len;
    reader->last = (mark & RECORD_MARK_LAST) != 0;
    return RECORD_READ_WHOLE;
}

static enum record_read hand_out(struct record_reader *reader, struct bytes record,
                                 struct bytes *ret_record)
{
    reader->in_fragment = false;
    reader->fragment_left = 0;
    reader->gathered = 0;
    *ret_record = record;
    return RECORD_READ_WHOLE;
}

uint32_t record_reader_need(const struct record_reader *reader)
{
    CHECK(reader->gathered == 0);
    return reader->last ? reader->fragment_left : reader->record_max;
}

/* Nearly every record: one fragment, all of it here, nothing before it. Whatever else there is goes
 * the long way. */
static bool take_whole(const struct record_reader *reader, struct bytes *input,
                       struct bytes *ret_record)
{
    if (!record_reader_is_empty(reader) || input->len < RECORD_MARK_LEN)
        return false;
    uint32_t mark = load_be32(input->at), len = mark & ~RECORD_MARK_LAST;
    if (mark == len || len > reader->record_max || len > input->len - RECORD_MARK_LEN)
        return false;
    (void)take_front(input, RECORD_MARK_LEN);
    *ret_record = take_front(input, len);
    return true;
}

enum record_read record_reader_next(struct record_reader *reader, struct bytes *input,
                                    struct bytes *ret_record)
{
    if (take_whole(reader, input, ret_record))
        return RECORD_READ_WHOLE;
    for (;;) {
        if (!reader->in_fragment) {
            enum record_read mark = read_mark(reader, input);
            if (mark != RECORD_READ_WHOLE)
                return mark;
        }
        if (reader->gathered == 0 && reader->last && input->len >= reader->fragment_left)
            return hand_out(reader, take_front(input, reader->fragment_left), ret_record);

        if (reader->fragment_left > 0) {
            if (input->len == 0)
                return RECORD_READ_MORE;
            if (reader->gathered == 0 &&
                (reader->buffer == NULL || reader->buffer_len < record_reader_need(reader)))
                return RECORD_READ_NEED_BUFFER;
            struct bytes part = take_front(input, min_u32(reader->fragment_left, input->len));
            memcpy(reader->buffer + reader->gathered, part.at, part.len);
            reader->gathered += part.len;
            reader->fragment_left -= part.len;
            if (reader->fragment_left > 0)
                return RECORD_READ_MORE;
        }
        if (reader->last)
            return hand_out(reader, (struct bytes){reader->buffer, reader->gathered}, ret_record);
        reader->in_fragment = false;
    }
}

uint8_t *record_reader_place(const struct record_reader *reader, uint32_t *ret_len)
{
    if (!reader->in_fragment || reader->gathered == 0 || reader->fragment_left == 0)
        return NULL;
    *ret_len = reader->fragment_left;
    return reader->buffer + reader->gathered;
}

bool record_reader_start(const struct record_reader *reader, struct bytes *ret_start,
                         uint32_t *ret_left)
{
    if (!reader->in_fragment || !reader->last || reader->gathered == 0)
        return false;
    *ret_start = (struct bytes){reader->buffer, reader->gathered};
    *ret_left = reader->fragment_left;
    return true;
}

void record_reader_placed(struct record_reader *reader, uint32_t len)
{
    CHECK(reader->in_fragment && reader->gathered > 0);
    CHECK(len <= reader->fragment_left);
    reader->gathered += len;
    reader->fragment_left -= len;
}

bool record_reader_is_empty(const struct record_reader *reader)
{
    return reader->gathered == 0 && reader->mark_len == 0 && !reader->in_fragment;
}
