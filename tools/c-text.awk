# c-text.awk -- C text without its comments, line by line, so that rules meet code and not prose.
#
# code(line) returns the line with comments removed and, in the text of string literals, every
# character but the quotes replaced by a blank when blank_strings is set. It remembers between
# lines whether a comment is open; file_begins() forgets it. Character constants with a quote in
# them are handled; trigraphs and comments continued by a backslash are not, nobody writes those.

function file_begins()
{
    in_comment = 0
}

function code(line,    out, i, n, c, two, quote)
{
    out = ""
    n = length(line)
    quote = ""
    for (i = 1; i <= n; i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (quote != "") {
            if (c == "\\") {
                out = out (blank_strings ? "  " : two)
                i++
            } else {
                out = out (c == quote || !blank_strings ? c : " ")
                if (c == quote)
                    quote = ""
            }
        } else if (two == "/*") {
            in_comment = 1
            i++
        } else if (two == "//") {
            break
        } else {
            if (c == "\"" || c == "'")
                quote = c
            out = out c
        }
    }
    return out
}
