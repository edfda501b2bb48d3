/*
 * readers.c -- those who read over HTTP while others lock.
 *
 * usage: readers watch PORT SCRAPES STREAMS
 *        readers ask PORT PATH COUNT TEXT
 *        readers list PORT HELD LISTS
 *
 * watch: STREAMS readers of /api/v1/events stay connected, and /metrics is read SCRAPES times each
 * second, on connections that are kept. The times of the scrapes are fixed and do not wait for
 * answers; one for which all SCRAPERS connections are still busy is missed. It says when every
 * stream has had an event and the first scrape is there, and goes on until SIGTERM. A stream that
 * ends, or a scrape that is refused or incomplete, is wrong.
 *
 * ask: PATH is read COUNT times, one after the other; TEXT must be in each answer.
 *
 * list: the locks are read in pages of 1,000, from the first to the last, LISTS times, or until
 * SIGTERM. HELD locks are held all the time: a list that has fewer is wrong.
 *
 * The time of an answer ends with its last byte; what is looked for in it comes after that. Each
 * prints a line of numbers for the bench; exit 1 when an answer was wrong.
 */
#include "peer/dial.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRAPERS    8
#define STREAMS_MAX 100
#define SAMPLES_MAX 100000
#define TIMEOUT_S   30L
#define SECOND_NS   UINT64_C(1000000000)
#define TURN_MS     20
#define PAGE        "1000"

struct body {
    char *bytes; /* ends with NUL once something came */
    size_t len, size;
};

static volatile sig_atomic_t is_over;
static struct {
    uint32_t count;
    uint64_t at_ns[SAMPLES_MAX];
} samples;

static void on_signal(int signal)
{
    (void)signal;
    is_over = 1;
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "readers: %s: %s\n", what, why);
    return 1;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct body *body = context;
    size_t len = size * count;
    if (body->len + len + 1 > body->size) {
        size_t larger = 2 * (body->len + len + 1);
        char *bytes = realloc(body->bytes, larger);
        if (!bytes)
            return 0;
        body->bytes = bytes;
        body->size = larger;
    }
    memcpy(body->bytes + body->len, data, len);
    body->len += len;
    body->bytes[body->len] = '\0';
    return len;
}

static CURL *new_reader(uint32_t port, const char *path, curl_write_callback on_data, void *context)
{
    char url[256];
    CURL *reader = curl_easy_init();
    if (!reader)
        return NULL;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, path);
    curl_easy_setopt(reader, CURLOPT_URL, url);
    curl_easy_setopt(reader, CURLOPT_PROXY, "");
    curl_easy_setopt(reader, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(reader, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(reader, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(reader, CURLOPT_WRITEDATA, context);
    return reader;
}

/* ---- ask and list ---- */

static int compare_times(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static void print_times(const char *name, uint64_t rows, uint64_t took_ns)
{
    qsort(samples.at_ns, samples.count, sizeof(samples.at_ns[0]), compare_times);
    uint32_t last = samples.count > 0 ? samples.count - 1 : 0;
    printf("%s answers=%u rows=%" PRIu64 " took_ns=%" PRIu64 " p50_ns=%" PRIu64 " p99_ns=%" PRIu64
           " max_ns=%" PRIu64 "\n",
           name, samples.count, rows, took_ns, samples.at_ns[last / 2],
           samples.at_ns[(uint32_t)((uint64_t)last * 99 / 100)], samples.at_ns[last]);
}

/* One whole answer, and its time among the samples. NULL, or why there is none. */
static const char *get(CURL *reader, struct body *body)
{
    body->len = 0;
    uint64_t start_ns = dial_now_ns();
    CURLcode code = curl_easy_perform(reader);
    uint64_t took_ns = dial_now_ns() - start_ns;
    if (code != CURLE_OK)
        return curl_easy_strerror(code);
    if (body->len == 0)
        return "the answer is empty";
    if (samples.count < SAMPLES_MAX)
        samples.at_ns[samples.count++] = took_ns;
    return NULL;
}

static int ask(uint32_t port, const char *path, uint32_t count, const char *text)
{
    struct body body = {0};
    CURL *reader = new_reader(port, path, on_body, &body);
    const char *why = reader ? NULL : "no memory";
    uint64_t took_ns = 0;
    if (reader)
        curl_easy_setopt(reader, CURLOPT_TIMEOUT, TIMEOUT_S);
    for (uint32_t i = 0; i < count && !why; i++) {
        uint64_t start_ns = dial_now_ns();
        why = get(reader, &body);
        took_ns += dial_now_ns() - start_ns;
        if (!why && !strstr(body.bytes, text))
            why = "the answer has not the text that it must have";
    }
    curl_easy_cleanup(reader);
    free(body.bytes);
    if (why)
        return fail(path, why);
    print_times("ask", 0, took_ns);
    return 0;
}

static uint64_t count_rows(const char *text)
{
    static const char key[] = "\"offset\":"; /* each lock has one */
    uint64_t count = 0;
    for (const char *at = strstr(text, key); at; at = strstr(at + sizeof(key) - 1, key))
        count++;
    return count;
}

/* The cursor of the next page; empty behind the last one. False: the page does not end as it must.
 */
static bool read_cursor(const struct body *body, char ret[static 32])
{
    size_t tail_len = body->len < 64 ? body->len : 64;
    const char *at = strstr(body->bytes + body->len - tail_len, "],\"next\":");
    ret[0] = '\0';
    return at && (strncmp(at, "],\"next\":null}", 14) == 0 ||
                  sscanf(at, "],\"next\":\"%31[0-9]\"}", ret) == 1);
}

/* One list from the first page to the last, unless it is over before. */
static const char *read_list(CURL *reader, struct body *body, uint32_t port, uint32_t held,
                             uint64_t *rows)
{
    char url[256], cursor[32] = "0";
    uint64_t rows_before = *rows;
    while (cursor[0] != '\0' && !is_over) {
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/api/v1/locks?limit=" PAGE "&cursor=%s",
                 port, cursor);
        curl_easy_setopt(reader, CURLOPT_URL, url);
        const char *why = get(reader, body);
        if (why)
            return why;
        if (!read_cursor(body, cursor))
            return "a page does not end with the place of the next one";
        *rows += count_rows(body->bytes);
        if (samples.count == 1) {
            printf("list begun\n");
            fflush(stdout);
        }
    }
    return cursor[0] == '\0' && *rows - rows_before < held ? "locks are missing in the list" : NULL;
}

static int list(uint32_t port, uint32_t held, uint32_t lists)
{
    struct body body = {0};
    CURL *reader = new_reader(port, "/", on_body, &body);
    const char *why = reader ? NULL : "no memory";
    uint64_t rows = 0, start_ns = dial_now_ns();
    if (reader)
        curl_easy_setopt(reader, CURLOPT_TIMEOUT, TIMEOUT_S);
    for (uint32_t i = 0; i < lists && !is_over && !why; i++)
        why = read_list(reader, &body, port, held, &rows);
    uint64_t took_ns = dial_now_ns() - start_ns;
    curl_easy_cleanup(reader);
    free(body.bytes);
    if (why)
        return fail("/api/v1/locks", why);
    print_times("list", rows, took_ns);
    return 0;
}

/* ---- watch ---- */

struct scraper {
    CURL *reader;
    struct body body;
    bool is_busy;
};

struct stream {
    CURL *reader;
    uint64_t events;
    bool is_at_begin; /* of a line */
};

static struct {
    CURLM *multi;
    struct scraper scrapers[SCRAPERS];
    struct stream streams[STREAMS_MAX];
    uint32_t streams_count;
    uint64_t period_ns, next_ns, start_ns, scrapes, missed;
    bool has_begun;
    const char *why;
} watching;

/* An event ends with an empty line, wherever the stream was cut. */
static size_t on_events(char *data, size_t size, size_t count, void *context)
{
    struct stream *stream = context;
    for (size_t i = 0; i < size * count; i++) {
        bool is_end = data[i] == '\n';
        stream->events += is_end && stream->is_at_begin;
        stream->is_at_begin = is_end;
    }
    return size * count;
}

static bool open_watch(uint32_t port)
{
    curl_multi_setopt(watching.multi, CURLMOPT_MAXCONNECTS, (long)(SCRAPERS + STREAMS_MAX));
    for (uint32_t i = 0; i < watching.streams_count; i++) {
        struct stream *stream = &watching.streams[i];
        stream->reader = new_reader(port, "/api/v1/events", on_events, stream);
        if (!stream->reader || curl_multi_add_handle(watching.multi, stream->reader) != CURLM_OK)
            return false;
    }
    for (uint32_t i = 0; i < SCRAPERS; i++) {
        struct scraper *scraper = &watching.scrapers[i];
        scraper->reader = new_reader(port, "/metrics", on_body, &scraper->body);
        if (!scraper->reader)
            return false;
        curl_easy_setopt(scraper->reader, CURLOPT_PRIVATE, scraper);
        curl_easy_setopt(scraper->reader, CURLOPT_TIMEOUT, TIMEOUT_S);
    }
    return true;
}

static void begin_scrapes(uint64_t now_ns)
{
    for (; watching.next_ns <= now_ns; watching.next_ns += watching.period_ns) {
        uint32_t i = 0;
        while (i < SCRAPERS && watching.scrapers[i].is_busy)
            i++;
        if (i == SCRAPERS) {
            watching.missed++;
            continue;
        }
        watching.scrapers[i].is_busy = true;
        watching.scrapers[i].body.len = 0;
        curl_multi_add_handle(watching.multi, watching.scrapers[i].reader);
    }
}

static void end_scrapes(void)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(watching.multi, &left)) != NULL) {
        struct scraper *scraper = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&scraper);
        if (code != CURLE_OK)
            watching.why = curl_easy_strerror(code);
        else if (!scraper)
            watching.why = "a stream of events ended";
        else if (scraper->body.len == 0 || !strstr(scraper->body.bytes, "nlm_locks_held"))
            watching.why = "the metrics have no number of locks";
        curl_multi_remove_handle(watching.multi, message->easy_handle);
        if (scraper)
            scraper->is_busy = false;
        watching.scrapes++;
    }
}

/* From when all of it is there on, scrapes count. */
static void begin_count(uint64_t now_ns)
{
    for (uint32_t i = 0; i < watching.streams_count; i++)
        if (watching.streams[i].events == 0)
            return;
    if (watching.scrapes == 0)
        return;
    watching.has_begun = true;
    watching.start_ns = now_ns;
    watching.scrapes = watching.missed = 0;
    printf("watch begun\n");
    fflush(stdout);
}

static int watch(uint32_t port, uint32_t scrapes, uint32_t streams)
{
    watching.multi = curl_multi_init();
    watching.streams_count = streams;
    watching.period_ns = SECOND_NS / scrapes;
    if (!watching.multi || !open_watch(port))
        return fail("watch", "no memory");
    watching.next_ns = dial_now_ns();
    while (!is_over && !watching.why) {
        uint64_t now_ns = dial_now_ns();
        int running;
        begin_scrapes(now_ns);
        curl_multi_perform(watching.multi, &running);
        end_scrapes();
        if (!watching.has_begun)
            begin_count(now_ns);
        now_ns = dial_now_ns();
        uint64_t left_ns = watching.next_ns > now_ns ? watching.next_ns - now_ns : 0;
        int left_ms = (int)(left_ns / 1000000) + 1;
        curl_multi_poll(watching.multi, NULL, 0, left_ms < TURN_MS ? left_ms : TURN_MS, NULL);
    }
    if (watching.why)
        return fail("watch", watching.why);
    uint64_t events = 0;
    for (uint32_t i = 0; i < streams; i++)
        events += watching.streams[i].events;
    printf("watch scrapes=%" PRIu64 " missed=%" PRIu64 " events=%" PRIu64 " took_ns=%" PRIu64 "\n",
           watching.scrapes, watching.missed, events, dial_now_ns() - watching.start_ns);
    return 0;
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int count, char **arguments)
{
    const char *kind = count >= 5 ? arguments[1] : "";
    uint32_t port = count >= 5 ? number(arguments[2]) : 0;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (strcmp(kind, "watch") == 0 && count == 5 && number(arguments[3]) > 0 &&
        number(arguments[4]) <= STREAMS_MAX)
        return watch(port, number(arguments[3]), number(arguments[4]));
    if (strcmp(kind, "ask") == 0 && count == 6)
        return ask(port, arguments[3], number(arguments[4]), arguments[5]);
    if (strcmp(kind, "list") == 0 && count == 5)
        return list(port, number(arguments[3]), number(arguments[4]));
    fprintf(stderr, "usage: readers watch PORT SCRAPES STREAMS\n"
                    "       readers ask PORT PATH COUNT TEXT\n"
                    "       readers list PORT HELD LISTS\n");
    return 2;
}
