/*
 * intent_ring.c -- the file of the ring: made, mapped, and what earlier runs left in it; see
 * intent.h.
 *
 * Its blocks are allocated before it is mapped, also those of one that is there, which may be a
 * copy with holes: a disk that fills up does not fault a store into it. A file of another length,
 * format or key, or with a damaged head is made once more: there is nothing in it that could be
 * read. One that has another name, too, may be something else, and is not touched: the name is
 * taken from it.
 *
 * A start gives every entry of earlier runs the time by which its run was over, and waits until the
 * clock of the file systems is past it: whatever is made from then on is younger than that.
 */
#include "file/intent_parts.h"

#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FORMAT = 2, /* 1: an outcome had no status */
    FILE_LEN = INTENT_HEAD_LEN + INTENT_COUNT * INTENT_WORDS * 8,
    PATH_SIZE = 4200,
    FIRST_CLOCK_MS = 1,
    WAITS_MAX = 50, /* of a millisecond: more only if the clock is set back meanwhile */
};
#define MAGIC UINT64_C(0x686f6c64696e7431)

/* ---- the head ---- */

static uint64_t format_word(void)
{
    return (uint64_t)FORMAT << 32 | (uint64_t)INTENT_WORDS << 24 | INTENT_COUNT;
}

static uint64_t head_check(const struct intent_ring *ring)
{
    uint64_t words[2] = {MAGIC, format_word()};
    return mac_of(&ring->key, (struct bytes){(const uint8_t *)words, sizeof words});
}

static bool is_head_right(const struct intent_ring *ring)
{
    return atomic_load(&ring->head->magic) == MAGIC &&
           atomic_load(&ring->head->format) == format_word() &&
           atomic_load(&ring->head->check) == head_check(ring);
}

/* ---- what earlier runs left ---- */

static void add_to_index(struct intent_ring *ring, uint32_t place)
{
    const struct intent *intent = &ring->earlier[place];
    for (uint64_t at = intent->key;; at++) {
        uint32_t *found = &ring->index[at & (ring->index_len - 1)];
        if (*found != 0 && ring->earlier[*found - 1].key != intent->key)
            continue;
        if (*found == 0 || ring->earlier[*found - 1].number < intent->number)
            *found = place + 1;
        return;
    }
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void wait_until_after(uint64_t ns)
{
    static const struct timespec pause = {.tv_nsec = MS_NS};
    for (int i = 0; i < WAITS_MAX && intent_clock_ns() <= ns; i++)
        (void)nanosleep(&pause, NULL);
}

/* One more of earlier runs; the run that is over knows when. */
static void take_earlier(struct intent_ring *ring, uint32_t slot, struct intent *intent,
                         uint64_t now_ns)
{
    if (intent->over_ns == 0) {
        intent->over_ns = now_ns;
        atomic_store(&ring->entries[slot].words[INTENT_AT_OVER], now_ns);
    }
    if (intent->run >= ring->run)
        ring->run = intent->run + 1;
    if (intent->number >= atomic_load(&ring->next_number))
        atomic_store(&ring->next_number, intent->number + 1);
    if (intent->clock_ms > atomic_load(&ring->clock_ms))
        atomic_store(&ring->clock_ms, intent->clock_ms);
    ring->earlier[ring->earlier_count++] = *intent;
}

/* 0 or -ENOMEM. */
static int read_earlier(struct intent_ring *ring)
{
    struct intent intent;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < INTENT_COUNT; slot++)
        count += intent_read(ring, slot, &intent);
    if (count == 0)
        return 0;
    for (ring->index_len = 2; ring->index_len < 2 * count;)
        ring->index_len *= 2;
    ring->earlier = calloc(count, sizeof *ring->earlier);
    ring->index = calloc(ring->index_len, sizeof *ring->index);
    if (ring->earlier == NULL || ring->index == NULL)
        return -ENOMEM;
    uint64_t now_ns = wall_ns();
    for (uint32_t slot = 0; slot < INTENT_COUNT; slot++)
        if (intent_read(ring, slot, &intent))
            take_earlier(ring, slot, &intent, now_ns);
    for (uint32_t place = 0; place < ring->earlier_count; place++)
        add_to_index(ring, place);
    wait_until_after(now_ns);
    return 0;
}

/* ---- the file ---- */

/* Which boot of the machine this is; if it does not say, one of its own. */
static uint64_t boot_mark(const struct mac_key *key)
{
    uint8_t text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0)
        (void)close(fd);
    if (len > 0)
        return mac_of(key, (struct bytes){text, (uint32_t)len});
    uint64_t mark;
    CHECK(getrandom(&mark, sizeof mark, 0) == sizeof mark);
    return mark;
}

static struct mac_key own_key(const struct mac_key *key)
{
    return (struct mac_key){{mac_of(key, bytes_of_text("intents, first word")),
                             mac_of(key, bytes_of_text("intents, second word"))}};
}

/* Allocated, and mapped. 0 or -errno. */
static int map(struct intent_ring *ring, int fd)
{
    int code = posix_fallocate(fd, 0, FILE_LEN);
    if (code != 0)
        return -code;
    uint8_t *at = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    ring->head = (struct intent_head *)(void *)at;
    ring->entries = (struct intent_entry *)(void *)(at + INTENT_HEAD_LEN);
    return 0;
}

static void unmap(struct intent_ring *ring)
{
    if (ring->head != NULL)
        (void)munmap(ring->head, FILE_LEN);
    ring->head = NULL;
}

/* Empty, of its length, and mapped; the head is complete when its last word is. */
static int make(struct intent_ring *ring, int fd)
{
    int code = ftruncate(fd, 0) == 0 ? map(ring, fd) : -errno;
    if (code != 0)
        return code;
    atomic_store(&ring->head->magic, MAGIC);
    atomic_store(&ring->head->format, format_word());
    atomic_store(&ring->head->check, head_check(ring));
    return 0;
}

static int take_content(struct intent_ring *ring, int fd, off_t size, const char **ret_replaced)
{
    int code = size == FILE_LEN ? map(ring, fd) : 0;
    if (code != 0)
        return code;
    if (ring->head != NULL && is_head_right(ring)) {
        atomic_store(&ring->clock_ms, max_u64(atomic_load(&ring->head->clock_ms), FIRST_CLOCK_MS));
        return read_earlier(ring);
    }
    unmap(ring);
    if (size != 0)
        *ret_replaced = " was damaged or of another version or key, and is empty now";
    return make(ring, fd);
}

/* The file of this name; one that has other names loses this one. -errno: there can be none. */
static int open_own(const char *path, off_t *ret_size, const char **ret_replaced)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct stat st;
    int fd = open(path, flags, 0600);
    if (fd < 0)
        return -errno;
    int code = fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EEXIST;
    if (code == 0 && st.st_nlink == 1) {
        *ret_size = st.st_size;
        return fd;
    }
    (void)close(fd);
    if (code != 0)
        return code;
    *ret_size = 0;
    *ret_replaced = " was a hard link to another file, which is left alone, and is empty now";
    fd = unlink(path) == 0 ? open(path, flags | O_EXCL, 0600) : -1;
    return fd < 0 ? -errno : fd;
}

/* *ret_replaced: what there was before, if it was something else. */
static int take_file(struct intent_ring *ring, const char *path, const char **ret_replaced)
{
    off_t size = 0;
    int fd = open_own(path, &size, ret_replaced);
    if (fd < 0)
        return fd;
    int code = take_content(ring, fd, size, ret_replaced);
    (void)close(fd); /* the mapping stays */
    return code;
}

static void say(struct text *note, const char *before, const char *path, const char *after, int err)
{
    text_add(note, before);
    text_add(note, path);
    text_add(note, after);
    text_add(note, err != 0 ? strerror(err) : "");
}

struct intent_ring *intent_ring_open(const char *directory, const struct mac_key *key,
                                     struct text *ret_note)
{
    char path[PATH_SIZE];
    struct text text;
    text_init(&text, path, sizeof path);
    text_add(&text, directory);
    text_add(&text, "/" INTENT_FILE);
    struct intent_ring *ring = calloc(1, sizeof *ring);
    const char *replaced = NULL;
    int code = -ENOMEM;
    if (ring != NULL) {
        *ring = (struct intent_ring){
            .key = own_key(key), .run = 1, .next_number = 1, .clock_ms = FIRST_CLOCK_MS};
        ring->boot = boot_mark(&ring->key);
        code = take_file(ring, path, &replaced);
    }
    if (code != 0) {
        say(ret_note, "calls that clients repeat after a restart will be executed again: ", path,
            " cannot be made or used: ", -code);
        intent_ring_close(ring);
        return NULL;
    }
    ring->first_number = atomic_load(&ring->next_number);
    if (replaced != NULL)
        say(ret_note, "", path, replaced, 0);
    return ring;
}

void intent_ring_close(struct intent_ring *ring)
{
    if (ring == NULL)
        return;
    unmap(ring);
    free(ring->earlier);
    free(ring->index);
    free(ring);
}

const struct mac_key *intent_ring_key(const struct intent_ring *ring)
{
    return &ring->key;
}

void intent_ring_tick(struct intent_ring *ring, uint32_t ms)
{
    uint64_t clock_ms = atomic_fetch_add(&ring->clock_ms, ms) + ms;
    atomic_store(&ring->head->clock_ms, clock_ms);
}
