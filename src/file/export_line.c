/*
 * export_line.c -- see export_line.h.
 *
 *   line    = directory { client }
 *   client  = "-" options | name [ "(" options ")" ] | "(" options ")"
 *   options = option { "," option }
 *
 * A directory may stand in quotation marks, and \NNN is a byte in octal, as in exports(5). A dash
 * sets the options that later clients of the line start from. Parentheses on their own mean
 * everybody, and are taken only right behind the directory: behind a client they are the space
 * that made many a server writable for the world.
 */
#include "file/export_line.h"

#include "base/check.h"
#include "base/suggest.h"

#include <errno.h>
#include <stdlib.h>

struct parser {
    const char *at;
    struct text *why;
};

static int refuse(struct parser *parser, const char *what, const char *thing, const char *allowed)
{
    text_add(parser->why, what);
    if (thing != NULL) {
        text_add(parser->why, " '");
        text_add_escaped(parser->why, bytes_of_text(thing), 64);
        text_add(parser->why, "'");
    }
    text_add(parser->why, allowed);
    return -EINVAL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct parser *parser)
{
    while (is_blank(*parser->at))
        parser->at++;
}

/* One character of a directory; \NNN is one. 0: not a character that a path may have. */
static char take_char(struct parser *parser)
{
    const char *at = parser->at;
    if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
        at[3] >= '0' && at[3] <= '7') {
        parser->at += 4;
        return (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
    }
    parser->at++;
    return at[0];
}

static int parse_directory(struct parser *parser, char *ret)
{
    bool is_quoted = *parser->at == '"';
    size_t len = 0;
    if (is_quoted)
        parser->at++;
    while (*parser->at != 0 && (is_quoted ? *parser->at != '"' : !is_blank(*parser->at))) {
        char c = take_char(parser);
        if (c == 0)
            return refuse(parser, "a NUL in the directory", NULL, "");
        if (len == EXPORT_DIRECTORY_MAX)
            return refuse(parser, "the directory is longer than 1,023 bytes", NULL, "");
        ret[len++] = c;
    }
    if (is_quoted && *parser->at++ != '"')
        return refuse(parser, "a quotation mark that is not closed", NULL, "");
    while (len > 1 && ret[len - 1] == '/')
        len--;
    ret[len] = 0;
    if (ret[0] != '/')
        return refuse(parser, "the directory", ret, " is not absolute; it must begin with '/'");
    return 0;
}

/* ---- options ---- */

static const char *const option_names[] = {
    "ro",
    "rw",
    "root_squash",
    "no_root_squash",
    "all_squash",
    "secure",
    "insecure",
    "sync",
    "async",
    "anonuid",
    "anongid",
    "fsid",
    "no_subtree_check",
    "no_all_squash",
    "hide",
    "nocrossmnt",
    "no_wdelay",
    "nohide",
    "crossmnt",
    "subtree_check",
    "wdelay",
    "mountpoint",
    "mp",
    "sec",
    "refer",
    "replicas",
    "insecure_locks",
};

static int parse_number(struct parser *parser, const char *option, const char *value, uint32_t *ret)
{
    uint64_t number = 0;
    const char *at = value;
    for (; *at >= '0' && *at <= '9' && number <= UINT32_MAX; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    if (at == value || *at != 0 || number > UINT32_MAX)
        return refuse(parser, option, value, " is not a number; allowed: 0 to 4294967295");
    *ret = (uint32_t)number;
    return 0;
}

/* UINT32_MAX is (uid_t)-1: nobody can be that. */
static int parse_id(struct parser *parser, const char *option, const char *value, uint32_t *ret)
{
    int code = parse_number(parser, option, value, ret);
    if (code == 0 && *ret == UINT32_MAX)
        return refuse(parser, option, value, " is no id to the kernel; allowed: 0 to 4294967294");
    return code;
}

static int parse_value(struct parser *parser, const char *option, const char *value,
                       struct export_rights *rights)
{
    if (strcmp(option, "anonuid") == 0)
        return parse_id(parser, "anonuid", value, &rights->anonymous_uid);
    if (strcmp(option, "anongid") == 0)
        return parse_id(parser, "anongid", value, &rights->anonymous_gid);
    if (strcmp(option, "fsid") == 0) {
        rights->has_fsid = true;
        if (strcmp(value, "root") == 0)
            return rights->fsid = 0, 0;
        return parse_number(parser, "fsid", value, &rights->fsid);
    }
    if (strcmp(option, "sec") == 0 && strcmp(value, "sys") == 0)
        return 0;
    if (strcmp(option, "sec") == 0)
        return refuse(parser, "sec", value, ": only sys is served");
    return refuse(parser, "option", option, " takes no value");
}

static int refuse_option(struct parser *parser, const char *option)
{
    if (strcmp(option, "nohide") == 0 || strcmp(option, "crossmnt") == 0)
        return refuse(parser, "option", option,
                      ": a file system that is mounted inside needs an export of its own");
    if (strcmp(option, "subtree_check") == 0)
        return refuse(parser, "option", option,
                      ": handles of files that are renamed would break; leave it out");
    struct suggest suggest;
    suggest_init(&suggest, option);
    for (size_t i = 0; i < sizeof option_names / sizeof option_names[0]; i++)
        suggest_offer(&suggest, option_names[i]);
    (void)refuse(parser, "option", option, " is not served");
    if (suggest.best != NULL && strcmp(suggest.best, option) != 0) {
        text_add(parser->why, "; did you mean ");
        text_add(parser->why, suggest.best);
        text_add(parser->why, "?");
    }
    return -EINVAL;
}

static int parse_word(struct parser *parser, const char *option, struct export_rights *rights)
{
    const struct {
        const char *name;
        bool *field;
        bool value;
    } switches[] = {
        {"ro", &rights->is_writable, false},  {"rw", &rights->is_writable, true},
        {"secure", &rights->is_secure, true}, {"insecure", &rights->is_secure, false},
        {"sync", &rights->is_async, false},   {"async", &rights->is_async, true},
    };
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (strcmp(option, switches[i].name) == 0)
            return *switches[i].field = switches[i].value, 0;
    if (strcmp(option, "root_squash") == 0)
        rights->squash = EXPORT_SQUASH_ROOT;
    else if (strcmp(option, "no_root_squash") == 0)
        rights->squash = EXPORT_SQUASH_NONE;
    else if (strcmp(option, "all_squash") == 0)
        rights->squash = EXPORT_SQUASH_ALL;
    else if (strcmp(option, "no_all_squash") == 0)
        rights->squash = rights->squash == EXPORT_SQUASH_ALL ? EXPORT_SQUASH_ROOT : rights->squash;
    else if (strcmp(option, "no_subtree_check") != 0 && strcmp(option, "hide") != 0 &&
             strcmp(option, "nocrossmnt") != 0)
        return refuse_option(parser, option);
    return 0; /* the last three are what is always done */
}

/* Options up to `end`, or to a blank when that is 0. */
static int parse_options(struct parser *parser, char end, struct export_rights *rights)
{
    for (;;) {
        char option[64];
        size_t len = 0;
        const char *at = parser->at;
        while (*at != 0 && *at != ',' && *at != end && !is_blank(*at) && len + 1 < sizeof option)
            option[len++] = *at++;
        option[len] = 0;
        parser->at = at;
        if (len + 1 == sizeof option)
            return refuse(parser, "option", option, " is too long");
        char *value = strchr(option, '=');
        if (value != NULL)
            *value++ = 0;
        int code = value != NULL ? parse_value(parser, option, value, rights)
                   : len == 0    ? 0
                                 : parse_word(parser, option, rights);
        if (code != 0)
            return code;
        if (*parser->at != ',')
            break;
        parser->at++;
    }
    if (end == 0)
        return 0;
    if (*parser->at != end)
        return refuse(parser, "a parenthesis that is not closed", NULL,
                      "; there are no spaces among options");
    parser->at++;
    return 0;
}

/* ---- clients ---- */

static bool is_host_name(const char *name)
{
    for (const char *at = name; *at != 0; at++) {
        char c = *at;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return name[0] != '-' && name[0] != '.';
}

static int parse_network(struct parser *parser, struct export_client *client)
{
    client->kind = EXPORT_NETWORK;
    switch (network_parse(client->name, &client->network)) {
    case NETWORK_OK:
        return 0;
    case NETWORK_BAD_ADDRESS:
        return refuse(parser, "client", client->name, ": not an address in front of '/'");
    case NETWORK_BAD_LENGTH:
        return refuse(parser, "client", client->name, ": not a length or netmask behind '/'");
    }
    UNREACHABLE();
}

static int parse_client_name(struct parser *parser, struct export_client *client)
{
    const char *name = client->name;
    if (name[0] == 0 || strcmp(name, "*") == 0) {
        client->kind = EXPORT_EVERYBODY;
        memcpy(client->name, "*", 2);
        return 0;
    }
    if (name[0] == '@')
        return refuse(parser, "netgroup", name,
                      " is not served; list its addresses, networks or hostnames");
    struct address address;
    if (strchr(name, '/') != NULL || address_parse(bytes_of_text(name), &address))
        return parse_network(parser, client);
    client->kind = EXPORT_HOST;
    if (strchr(name, '*') != NULL || strchr(name, '?') != NULL || strchr(name, '[') != NULL)
        return refuse(parser, "client", name,
                      ": patterns of hostnames are not served; use a network");
    if (!is_host_name(name))
        return refuse(parser, "client", name, ": not '*', an address, a network or a hostname");
    return 0;
}

static int parse_client(struct parser *parser, struct export_rights *defaults, bool is_first,
                        struct export_client *ret)
{
    size_t len = 0;
    ret->rights = *defaults;
    for (; *parser->at != 0 && *parser->at != '(' && !is_blank(*parser->at); parser->at++) {
        if (len == EXPORT_NAME_MAX)
            return refuse(parser, "the name of a client is longer than 255 bytes", NULL, "");
        ret->name[len++] = *parser->at;
    }
    ret->name[len] = 0;
    if (len == 0 && !is_first)
        return refuse(parser, "a space in front of '('", NULL,
                      ": these options would hold for everybody; write '*(...)' if that is meant");
    int code = parse_client_name(parser, ret);
    if (code != 0 || *parser->at != '(')
        return code;
    parser->at++;
    code = parse_options(parser, ')', &ret->rights);
    if (code == 0 && *parser->at != 0 && !is_blank(*parser->at))
        return refuse(parser, "no space behind ')'", NULL, "");
    return code;
}

static int add_client(struct parser *parser, struct export_line *line,
                      const struct export_client *client)
{
    if (line->client_count == EXPORT_CLIENTS_MAX)
        return refuse(parser, "more than 256 clients in one line", NULL, "; use networks");
    struct export_client *grown =
        realloc(line->clients, (line->client_count + 1) * sizeof *line->clients);
    if (grown == NULL)
        return -ENOMEM;
    line->clients = grown;
    line->clients[line->client_count++] = *client;
    return 0;
}

static int parse_clients(struct parser *parser, struct export_line *line)
{
    struct export_rights defaults = {.anonymous_uid = EXPORT_ANONYMOUS,
                                     .anonymous_gid = EXPORT_ANONYMOUS};
    int code = 0;
    for (skip_blanks(parser); code == 0 && *parser->at != 0 && *parser->at != '#';
         skip_blanks(parser)) {
        struct export_client client = {0};
        if (*parser->at == '-') {
            parser->at++;
            code = parse_options(parser, 0, &defaults);
            continue;
        }
        code = parse_client(parser, &defaults, line->client_count == 0, &client);
        if (code == 0)
            code = add_client(parser, line, &client);
    }
    if (code == 0 && line->client_count == 0) {
        struct export_client everybody = {
            .kind = EXPORT_EVERYBODY, .name = "*", .rights = defaults};
        code = add_client(parser, line, &everybody);
    }
    return code;
}

int export_line_parse(const char *text, struct export_line *ret, struct text *ret_why)
{
    struct parser parser = {.at = text, .why = ret_why};
    struct export_line line = {0};
    skip_blanks(&parser);
    if (*parser.at == 0 || *parser.at == '#')
        return -ENOENT;
    int code = parse_directory(&parser, line.directory);
    if (code == 0)
        code = parse_clients(&parser, &line);
    if (code != 0) {
        export_line_done(&line);
        return code;
    }
    *ret = line;
    return 0;
}

void export_line_done(struct export_line *line)
{
    free(line->clients);
    line->clients = NULL;
    line->client_count = 0;
}

void export_line_add_rights(struct text *text, const struct export_rights *rights)
{
    static const char *const squashes[] = {
        [EXPORT_SQUASH_ROOT] = "root_squash",
        [EXPORT_SQUASH_NONE] = "no_root_squash",
        [EXPORT_SQUASH_ALL] = "all_squash",
    };
    text_add(text, rights->is_writable ? "rw," : "ro,");
    text_add(text, squashes[rights->squash]);
    text_add(text, rights->is_async ? ",async" : ",sync");
    text_add(text, rights->is_secure ? ",secure" : ",insecure");
    if (rights->anonymous_uid != EXPORT_ANONYMOUS) {
        text_add(text, ",anonuid=");
        text_add_u64(text, rights->anonymous_uid);
    }
    if (rights->anonymous_gid != EXPORT_ANONYMOUS) {
        text_add(text, ",anongid=");
        text_add_u64(text, rights->anonymous_gid);
    }
    if (rights->has_fsid) {
        text_add(text, ",fsid=");
        text_add_u64(text, rights->fsid);
    }
}
