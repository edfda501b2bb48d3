/*
 * record_mark.h -- RPC records in a TCP byte stream (RFC 5531 section 11).
 *
 * A record is one or more fragments, each behind a 4-byte mark: the top bit says "last", the rest
 * is the length. A record that lies whole in the bytes just read is returned as a view of them;
 * only a record that is split over reads or fragments is gathered in a buffer, which the owner
 * lends when asked. A record longer than the limit is refused when its mark is read, before
 * anything is stored: a mark of 1 GiB costs four bytes.
 */
#ifndef CODEC_RECORD_MARK_H
#define CODEC_RECORD_MARK_H

#include "base/bytes.h"

#define RECORD_MARK_LEN  4
#define RECORD_MARK_LAST UINT32_C(0x80000000)

/* The owner sets and takes back `buffer`, with its length; the other fields are record_mark.c's. */
struct record_reader {
    uint8_t *buffer; /* lent by the owner; NULL while none is needed */
    uint32_t buffer_len;
    uint32_t record_max;
    uint32_t gathered;      /* bytes of the record in the buffer */
    uint32_t fragment_left; /* bytes of the current fragment still to come */
    uint8_t mark[RECORD_MARK_LEN];
    uint8_t mark_len; /* bytes of the next mark already read */
    bool in_fragment; /* a mark was read; its fragment is not yet complete */
    bool last;        /* that fragment ends the record */
};

enum record_read {
    RECORD_READ_MORE,        /* the input is used up and ends inside a record or between two */
    RECORD_READ_WHOLE,       /* *ret_record is one whole record, valid until the next call */
    RECORD_READ_NEED_BUFFER, /* replace reader->buffer by one of record_reader_need, call again */
    RECORD_READ_TOO_LONG,    /* over record_max: the stream is lost, every further call says so */
};

/* A record may have record_max bytes, at least 1. */
void record_reader_init(struct record_reader *reader, uint32_t record_max);

/*
 * Takes bytes from the front of *input. A record of length zero is returned as an empty view. A
 * view lies in the input or in the buffer: both must stay as they are until it was dealt with.
 */
enum record_read record_reader_next(struct record_reader *reader, struct bytes *input,
                                    struct bytes *ret_record);

/* So many bytes the buffer must have: what the record says to have, if it says that. Peers that
 * begin a call and stop cost what they have announced, not the longest call there may be. */
uint32_t record_reader_need(const struct record_reader *reader);

/* Where the next bytes of a record belong that is being gathered, and at most how many: who reads
 * a long record can have it read right there. NULL: nothing is being gathered. */
uint8_t *record_reader_place(const struct record_reader *reader, uint32_t *ret_len);
/* What has been gathered of a record, and how many bytes make it whole. False: nothing has been, or
 * it is not known. */
bool record_reader_start(const struct record_reader *reader, struct bytes *ret_start,
                         uint32_t *ret_left);
/* So many were put there; they are no input any more. The next call says what that means. */
void record_reader_placed(struct record_reader *reader, uint32_t len);

/*
 * True while no part of a record is held: when the last one handed out was dealt with, the buffer
 * may be taken back.
 */
bool record_reader_is_empty(const struct record_reader *reader);

#endif
