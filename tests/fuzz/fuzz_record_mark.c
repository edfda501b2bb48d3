/*
 * fuzz_record_mark.c -- a byte stream in any pieces gives the records that a reader of the whole
 * stream sees, and is refused at the same place.
 *
 * Input: record_max - 1 (2 bytes), number of piece sizes (1 byte), the sizes (used in turn), then
 * the stream.
 */
#include "codec/record_mark.h"
#include "fuzz.h"

enum { STREAM_MAX = 1 << 14 };

/* What the stream holds, read in one go: the records one after the other, with their lengths. */
struct model {
    uint8_t bytes[STREAM_MAX];
    uint32_t ends[STREAM_MAX / RECORD_MARK_LEN + 1];
    uint32_t record_count;
    bool too_long;
};

static void read_whole(struct model *model, struct bytes stream, uint32_t record_max)
{
    uint32_t at = 0, total = 0, start = 0;
    model->record_count = 0;
    model->too_long = false;
    while (stream.len - at >= RECORD_MARK_LEN) {
        uint32_t mark = load_be32(stream.at + at), len = mark & ~RECORD_MARK_LAST;
        at += RECORD_MARK_LEN;
        if (total - start + (uint64_t)len > record_max) {
            model->too_long = true;
            return;
        }
        if (len > stream.len - at)
            return;
        if (len > 0)
            memcpy(model->bytes + total, stream.at + at, len);
        at += len;
        total += len;
        if (mark & RECORD_MARK_LAST) {
            model->ends[model->record_count++] = total;
            start = total;
        }
    }
}

static void check_record(const struct model *model, uint32_t index, struct bytes record)
{
    CHECK(index < model->record_count);
    uint32_t start = index > 0 ? model->ends[index - 1] : 0;
    CHECK(bytes_equal(record, (struct bytes){model->bytes + start, model->ends[index] - start}));
}

/* Feeds one piece. False: the reader says that the stream is lost. */
static bool feed(struct record_reader *reader, struct bytes piece, const struct model *model,
                 uint32_t *count)
{
    uint8_t *copy = fuzz_copy(piece);
    struct bytes input = {copy, piece.len}, record;
    bool more = true, lost = false;
    while (more && !lost) {
        switch (record_reader_next(reader, &input, &record)) {
        case RECORD_READ_MORE:
            CHECK(input.len == 0);
            more = false;
            break;
        case RECORD_READ_WHOLE:
            check_record(model, (*count)++, record);
            /* A buffer that is not needed may be taken back at any time. */
            CHECK(record_reader_is_empty(reader));
            if (*count % 2 == 0) {
                free(reader->buffer);
                reader->buffer = NULL;
            }
            break;
        case RECORD_READ_NEED_BUFFER:
            CHECK(input.len > 0);
            free(reader->buffer);
            reader->buffer_len = record_reader_need(reader);
            reader->buffer = malloc(reader->buffer_len);
            CHECK(reader->buffer != NULL);
            break;
        case RECORD_READ_TOO_LONG:
            CHECK(record_reader_next(reader, &input, &record) == RECORD_READ_TOO_LONG);
            lost = true;
            break;
        }
    }
    free(copy);
    return !lost;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct model model;
    struct fuzz fuzz = {data, size};
    uint32_t record_max = fuzz_u16(&fuzz) + 1;
    struct bytes sizes = fuzz_slice(&fuzz, fuzz_u8(&fuzz) % 16);
    struct bytes stream = fuzz_slice(&fuzz, STREAM_MAX);
    read_whole(&model, stream, record_max);

    struct record_reader reader;
    record_reader_init(&reader, record_max);
    uint32_t count = 0;
    bool lost = false;
    struct fuzz rest = {stream.at, stream.len};
    for (uint32_t turn = 0; rest.left > 0 && !lost; turn++) {
        size_t piece_len = sizes.len > 0 ? (size_t)sizes.at[turn % sizes.len] + 1 : rest.left;
        lost = !feed(&reader, fuzz_slice(&rest, piece_len), &model, &count);
    }
    CHECK(lost == model.too_long);
    CHECK(count == model.record_count);
    free(reader.buffer);
    return 0;
}
