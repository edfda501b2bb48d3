/*
 * mutate.c -- plants a bug in the server's source, for run-mutants.
 *
 *   mutate SOURCE OUTPUT MUTANT     writes what changes of SOURCE below OUTPUT, and its names
 *   mutate --check SOURCE MUTANT... only says which mutants do not fit
 *
 * A mutant is a text file. Its first line is the rule that it breaks; then it says what to replace:
 *
 *   P1: no reply leaves before the batch it depends on is durable.
 *   in rpc_server_next
 *   - core_durable_txn(server->core)
 *   + UINT64_MAX
 *
 * The old code is found by its C tokens, so neither layout nor comments nor the lines around it
 * matter, and in the body of any function of that name, so its file does not either. It must be
 * there exactly once. "in grant:work" and "in rpc/client:work" choose between functions of one name
 * by their file. Replacements before the first "in" may be anywhere. Without "+" the old code is
 * removed; without "-" the new code goes where the function's body begins. "in" holds until the
 * next, which begins another replacement, as does "-" after "+".
 */
#include <ctype.h>
#include <err.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct token {
    const char *text;
    size_t len;
    bool is_directive; /* of the preprocessor */
};

struct code {
    struct token *tokens;
    size_t count;
};

struct source {
    const char *path; /* "/core/grace.c" */
    char *text;
    struct code code;
    bool is_changed;
};

/* Where code may be looked for: a file, or a function, whose name is a token before its body. */
struct scope {
    struct source *source;
    const struct token *name; /* NULL: of a file */
    size_t begin, end;
};

struct tree {
    glob_t files;
    struct source *sources;
    struct scope *scopes;
    size_t source_count, scope_count;
};

static void *resize(void *array, size_t count, size_t size)
{
    array = reallocarray(array, count, size);
    if (array == NULL)
        err(2, "out of memory");
    return array;
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 1);
    size_t max = 1;
    FILE *file = fopen(path, "r");
    if (file == NULL || (getdelim(&text, &max, '\0', file) < 0 && ferror(file)))
        err(2, "%s", path);
    fclose(file);
    return text;
}

/* ---- tokens ---- */

static const char *skip_blank(const char *at, bool *ret_new_line)
{
    for (;;) {
        if (*at == '\n')
            *ret_new_line = true;
        const char *end = at[0] == '/' && at[1] == '*' ? strstr(at + 2, "*/") : NULL;
        if (end != NULL)
            at = end + 2;
        else if (strncmp(at, "//", 2) == 0)
            at += strcspn(at, "\n");
        else if (strncmp(at, "\\\n", 2) == 0)
            at += 2;
        else if (isspace((unsigned char)*at))
            at++;
        else
            return at;
    }
}

static size_t token_len(const char *at)
{
    static const char *const punctuators[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
                                              "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
                                              "*=",  "/=",  "%=",  "&=", "|=", "^=", "##"};
    size_t len = 1;
    if (*at == '"' || *at == '\'') {
        while (at[len] != '\0' && at[len] != '\n' && at[len] != *at)
            len += at[len] == '\\' && at[len + 1] != '\0' ? 2 : 1;
        return len + (at[len] == *at);
    }
    if (isalnum((unsigned char)*at) || *at == '_') {
        bool is_number = isdigit((unsigned char)*at);
        while (isalnum((unsigned char)at[len]) || at[len] == '_' || (is_number && at[len] == '.'))
            len++;
        return len;
    }
    for (size_t i = 0; i < sizeof punctuators / sizeof *punctuators; i++)
        if (strncmp(at, punctuators[i], strlen(punctuators[i])) == 0)
            return strlen(punctuators[i]);
    return len;
}

static struct code tokenize(const char *text)
{
    struct code code = {resize(NULL, strlen(text) + 1, sizeof *code.tokens), 0};
    bool is_new_line = true, is_directive = false;
    for (text = skip_blank(text, &is_new_line); *text; text = skip_blank(text, &is_new_line)) {
        is_directive = is_new_line ? *text == '#' : is_directive;
        is_new_line = false;
        code.tokens[code.count] = (struct token){text, token_len(text), is_directive};
        text += code.tokens[code.count++].len;
    }
    return code;
}

static bool is_text(const struct token *token, const char *text, size_t len)
{
    return token->len == len && memcmp(token->text, text, len) == 0;
}

static bool is_at(const struct code *code, size_t at, char punctuator)
{
    return at < code->count && is_text(&code->tokens[at], &punctuator, 1);
}

/* The bracket that closes the one at `at`; the end of the file if none does. */
static size_t closing(const struct code *code, size_t at, char open, char close)
{
    size_t depth = 0;
    for (; at < code->count; at++) {
        if (code->tokens[at].is_directive)
            continue;
        depth += is_at(code, at, open);
        if (is_at(code, at, close) && --depth == 0)
            return at;
    }
    return code->count;
}

/* ---- the source ---- */

static void add_scope(struct tree *tree, struct scope scope)
{
    tree->scopes = resize(tree->scopes, tree->scope_count + 1, sizeof scope);
    tree->scopes[tree->scope_count++] = scope;
}

/* A function is a name, parentheses and braces, outside of braces. */
static void find_scopes(struct tree *tree, struct source *source)
{
    const struct code *code = &source->code;
    add_scope(tree, (struct scope){source, NULL, 0, code->count});
    for (size_t at = 0; at < code->count; at++) {
        const struct token *name = &code->tokens[at];
        size_t body = at;
        if (name->is_directive)
            continue;
        if ((isalpha((unsigned char)*name->text) || *name->text == '_') && is_at(code, at + 1, '('))
            body = closing(code, at + 1, '(', ')') + 1;
        if (!is_at(code, body, '{'))
            continue;
        at = closing(code, body, '{', '}');
        if (name != &code->tokens[body])
            add_scope(tree, (struct scope){source, name, body + 1, at});
    }
}

static void find_all_scopes(struct tree *tree)
{
    tree->scope_count = 0;
    for (size_t i = 0; i < tree->source_count; i++)
        find_scopes(tree, &tree->sources[i]);
}

static void read_tree(struct tree *tree, const char *root)
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/*/*.[ch]", root);
    if (glob(pattern, 0, NULL, &tree->files) != 0)
        errx(2, "%s: has no directory with source", root);
    tree->source_count = tree->files.gl_pathc;
    tree->sources = resize(NULL, tree->files.gl_pathc, sizeof *tree->sources);
    for (size_t i = 0; i < tree->files.gl_pathc; i++) {
        char *path = tree->files.gl_pathv[i], *text = read_text(path);
        tree->sources[i] = (struct source){path + strlen(root), text, tokenize(text), false};
    }
    find_all_scopes(tree);
}

/* ---- a mutant ---- */

/* `where` is NULL for anywhere, or what stands behind "in". */
static bool is_scope(const struct scope *scope, const char *where)
{
    if (where == NULL || scope->name == NULL)
        return where == NULL && scope->name == NULL;
    const char *colon = strchr(where, ':'), *name = colon ? colon + 1 : where;
    char file[256];
    snprintf(file, sizeof file, "/%.*s.", colon ? (int)(colon - where) : 0, where);
    if (colon != NULL && strstr(scope->source->path, file) == NULL)
        return false;
    return is_text(scope->name, name, strlen(name));
}

static bool is_code_at(const struct token *tokens, const struct code *code)
{
    for (size_t i = 0; i < code->count; i++)
        if (!is_text(&tokens[i], code->tokens[i].text, code->tokens[i].len))
            return false;
    return true;
}

/* Finds the one place of the old code, or where the function begins if there is none. */
static bool place(const struct tree *tree, const char *where, const char *text, const char *mutant,
                  struct scope *ret)
{
    struct code old = tokenize(text);
    size_t scope_count = 0, found = 0;
    for (size_t i = 0; i < tree->scope_count; i++) {
        const struct scope *scope = &tree->scopes[i];
        if (!is_scope(scope, where))
            continue;
        scope_count++;
        size_t end = old.count ? scope->end : scope->begin;
        for (size_t at = scope->begin; at + old.count <= end; at++)
            if (is_code_at(scope->source->code.tokens + at, &old) && found++ == 0)
                *ret = (struct scope){scope->source, scope->name, at, at + old.count};
    }
    free(old.tokens);
    if (scope_count == 0)
        warnx("%s: there is no function %s", mutant, where);
    else if (found == 0)
        warnx("%s: %s does not have this code: %s", mutant, where ? where : "the source", text);
    else if (found > 1)
        warnx("%s: the code is there %zu times: %s", mutant, found, text);
    return found == 1;
}

static void replace(struct tree *tree, const struct scope *place, const char *new)
{
    struct source *source = place->source;
    const struct token *begin = &source->code.tokens[place->begin];
    const struct token *end = &source->code.tokens[place->end];
    int kept = (int)(begin->text - source->text);
    char *text = NULL;
    if (asprintf(&text, "%.*s %s %s", kept, source->text, new, end[-1].text + end[-1].len) < 0)
        err(2, "out of memory");
    free(source->text);
    free(source->code.tokens);
    *source = (struct source){source->path, text, tokenize(text), true};
    find_all_scopes(tree);
}

/* The lines that begin with `mark` as one, without it; `line` goes on behind them. */
static const char *take_side(char **line, char mark)
{
    char *begin = *line, *end = begin;
    for (; *end == mark; end = strchr(end, '\n') + 1) {
        *end = ' ';
        if (end > begin)
            end[-1] = ' ';
    }
    if (end == begin)
        return "";
    end[-1] = '\0';
    *line = end;
    return begin + strspn(begin, " ");
}

/* Makes the replacements, or only finds their places. */
static bool mutate(struct tree *tree, const char *mutant, bool is_check)
{
    char *text = read_text(mutant), *line = text + strcspn(text, "\n");
    const char *where = NULL;
    bool is_good = *line++ == '\n' && *line != '\0' && text[strlen(text) - 1] == '\n';
    if (!is_good)
        warnx("%s: is not a rule and lines that say how to break it", mutant);
    while (is_good && *line != '\0') {
        struct scope found = {0};
        if (strncmp(line, "in ", 3) == 0) {
            where = line + 3;
            line = strchr(line, '\n');
            *line++ = '\0';
            continue;
        }
        const char *old = take_side(&line, '-'), *new = take_side(&line, '+');
        is_good = *old != '\0' || (*new != '\0' && where != NULL);
        if (!is_good)
            warnx("%s: \"in\" or \"-\" is missing before: %s", mutant, line);
        else if ((is_good = place(tree, where, old, mutant, &found)) && !is_check)
            replace(tree, &found, new);
    }
    free(text);
    return is_good;
}

static void write_changed(const struct source *source, const char *output)
{
    char name[4096];
    snprintf(name, sizeof name, "%s%s", output, source->path);
    char *slash = strrchr(name, '/');
    *slash = '\0';
    (void)mkdir(name, 0777); /* fopen says if that failed */
    *slash = '/';
    FILE *file = fopen(name, "w");
    if (file == NULL || fputs(source->text, file) < 0 || fclose(file) != 0)
        err(2, "%s", name);
    puts(source->path + 1);
}

int main(int argc, char **argv)
{
    static struct tree tree;
    bool is_check = argc > 1 && strcmp(argv[1], "--check") == 0, is_good = true;
    if (argc < 4 || (!is_check && argc != 4))
        errx(2, "usage: mutate SOURCE OUTPUT MUTANT | mutate --check SOURCE MUTANT...");
    read_tree(&tree, argv[is_check ? 2 : 1]);
    for (int i = 3; i < argc; i++)
        is_good &= mutate(&tree, argv[i], is_check);
    for (size_t i = 0; i < tree.source_count && is_good; i++)
        if (tree.sources[i].is_changed)
            write_changed(&tree.sources[i], argv[2]);
    return is_good ? 0 : 1;
}
