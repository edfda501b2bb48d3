/*
 * export_line.h -- one line of exports(5): a directory, and which clients may do what with it.
 *
 *     /srv/files  192.168.1.0/24(rw)  backup.example.org(ro,no_root_squash)
 *
 * Parsing is text only: nothing is resolved or opened here. What is not known is refused by its
 * name, never ignored: an option that a server ignores is a promise that it breaks.
 */
#ifndef FILE_EXPORT_LINE_H
#define FILE_EXPORT_LINE_H

#include "base/network.h"
#include "base/text.h"

enum {
    EXPORT_DIRECTORY_MAX = 1023, /* MNTPATHLEN of MOUNT, less one */
    EXPORT_NAME_MAX = 255,
    EXPORT_CLIENTS_MAX = 256, /* of one line */
    EXPORT_ANONYMOUS = 65534,
};

enum export_squash { EXPORT_SQUASH_ROOT, EXPORT_SQUASH_NONE, EXPORT_SQUASH_ALL };

struct export_rights {
    bool is_writable, is_secure, is_async;
    enum export_squash squash;
    uint32_t anonymous_uid, anonymous_gid;
    bool has_fsid;
    uint32_t fsid;
};

enum export_client_kind { EXPORT_EVERYBODY, EXPORT_NETWORK, EXPORT_HOST };

struct export_client {
    enum export_client_kind kind;
    struct network network;         /* EXPORT_NETWORK, also of one address */
    char name[EXPORT_NAME_MAX + 1]; /* as it was written */
    struct export_rights rights;
};

struct export_line {
    char directory[EXPORT_DIRECTORY_MAX + 1]; /* absolute, as it was written */
    uint32_t client_count;                    /* at least 1 */
    struct export_client *clients;            /* owned */
};

/*
 * 0, or -EINVAL (-ENOMEM) with the cause and what is allowed in *ret_why; nothing is then owned. A
 * line that is empty or a comment is -ENOENT.
 */
__attribute__((warn_unused_result)) int export_line_parse(const char *line, struct export_line *ret,
                                                          struct text *ret_why);
void export_line_done(struct export_line *line);

/* The rights as options, for people: "rw,root_squash,sync". */
void export_line_add_rights(struct text *text, const struct export_rights *rights);

#endif
