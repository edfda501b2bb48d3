/*
 * call_memory.c -- see call_memory.h.
 */
#include "file/call_memory.h"

#include "base/check.h"

#include <stdlib.h>

/* Bytes behind the call: small calls, listings and pages, reads and writes of clients' usual size,
 * and the largest. */
static const uint32_t class_len[CALL_SIZE_CLASSES] = {4096, 24576, 147456, NFS_DATA_MAX + 2 * 8192};
static const uint32_t class_kept_max[CALL_SIZE_CLASSES] = {1024, 256, 128, 64};

void call_memory_init(struct call_memory *memory, uint32_t calls_max, uint64_t bytes_max)
{
    *memory = (struct call_memory){.calls_max = calls_max, .bytes_max = bytes_max};
    for (int i = 0; i < CALL_SIZE_CLASSES; i++)
        list_init(&memory->kept[i]);
}

void call_memory_done(struct call_memory *memory)
{
    for (int i = 0; i < CALL_SIZE_CLASSES; i++) {
        struct list *head = &memory->kept[i];
        for (struct list *at = head->next, *next; at != head; at = next) {
            next = at->next;
            free(LIST_ELEMENT(at, struct call, link));
        }
        list_init(head);
    }
    while (memory->record_count > 0)
        free(memory->records[--memory->record_count].at);
}

/* Everything but the identity's list of groups, which its count describes. */
static void clear(struct call *call)
{
    memset(call, 0, offsetof(struct call, identity));
    size_t behind = offsetof(struct call, has_identity);
    memset((uint8_t *)call + behind, 0, sizeof *call - behind);
    call->identity.group_count = 0;
}

static struct call *take(struct call_memory *memory, uint32_t size_class)
{
    struct list *kept = &memory->kept[size_class];
    struct call *call;
    if (list_is_empty(kept)) {
        call = malloc(sizeof *call + class_len[size_class]);
        if (call == NULL)
            return NULL;
    } else {
        call = LIST_ELEMENT(kept->prev, struct call, link); /* the warmest */
        list_remove(&call->link);
        memory->kept_count[size_class]--;
    }
    clear(call);
    list_init(&call->link);
    call->memory = (uint8_t *)(call + 1);
    call->memory_len = class_len[size_class];
    call->size_class = size_class;
    memory->calls++;
    memory->bytes += class_len[size_class];
    return call;
}

struct call *call_memory_take(struct call_memory *memory, uint32_t payload_max, uint32_t args_len)
{
    uint32_t len = JOB_HEADROOM + NFS_HEAD_MAX + payload_max + 8 + args_len;
    uint32_t size_class = 0;
    while (size_class < CALL_SIZE_CLASSES && class_len[size_class] < len)
        size_class++;
    if (size_class == CALL_SIZE_CLASSES || memory->calls >= memory->calls_max ||
        memory->bytes + class_len[size_class] > memory->bytes_max)
        return NULL;
    struct call *call = take(memory, size_class);
    if (call != NULL)
        call->payload_max = payload_max;
    return call;
}

struct call *call_memory_take_spare(struct call_memory *memory)
{
    return take(memory, 0);
}

bool call_memory_keep(struct call_memory *memory, struct call *call, struct job_memory *lent)
{
    CHECK(call->record.at == NULL);
    if (memory->bytes + lent->len > memory->bytes_max)
        return false;
    memory->bytes += lent->len;
    call->memory_len += lent->len;
    call->record = (struct job_memory){.at = lent->at, .len = lent->len};
    uint32_t count = memory->record_count;
    if (count > 0 && memory->records[count - 1].len >= lent->len)
        *lent = memory->records[--memory->record_count];
    else
        *lent = (struct job_memory){0};
    return true;
}

static void give_back_record(struct call_memory *memory, const struct job_memory *record)
{
    if (record->at != NULL && memory->record_count < CALL_RECORDS_KEPT_MAX)
        memory->records[memory->record_count++] = *record;
    else
        free(record->at);
}

void call_memory_give_back(struct call_memory *memory, struct call *call)
{
    uint32_t size_class = call->size_class;
    CHECK(memory->calls > 0);
    CHECK(memory->bytes >= call->memory_len);
    memory->calls--;
    memory->bytes -= call->memory_len;
    give_back_record(memory, &call->record);
    if (memory->kept_count[size_class] == class_kept_max[size_class]) {
        free(call);
        return;
    }
    list_append(&memory->kept[size_class], &call->link);
    memory->kept_count[size_class]++;
}
