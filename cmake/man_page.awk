# awk -v date=DATE -f man_page.awk README.md docs/runs.md PROGRAM > vknerf.1
# Makes the man page from the output of `vknerf help --man` (PROGRAM) and sections of the manual: description, exit
# codes, environment, files and examples. Missing headings are an error.

function escape(text) {
    gsub(/\\/, "\\e", text)
    return text
}

# Converts Markdown: links become their text and the page, code becomes bold.
function convert(text,    link, page, code) {
    text = escape(text)
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        link = substr(text, RSTART + 1, RLENGTH - 2)
        page = link
        sub(/\]\(.*/, "", link)
        sub(/.*\]\(/, "", page)
        sub(/#.*/, "", page)
        text = substr(text, 1, RSTART - 1) link " (" (page ? "docs/" page : "docs/runs.md") ")" substr(text, RSTART + RLENGTH)
    }
    while (match(text, /`[^`]*`/)) {
        code = substr(text, RSTART + 1, RLENGTH - 2)
        gsub(/-/, "\\-", code)
        text = substr(text, 1, RSTART - 1) "\\fB" code "\\fR" substr(text, RSTART + RLENGTH)
    }
    return text
}

# Escapes lines that begin with a point or an apostrophe, which troff would read as requests.
function line(text) {
    return (text ~ /^['.]/ ? "\\&" : "") text "\n"
}

function add(text) { sections[section] = sections[section] text }

function add_row(row,    cells) {
    gsub(/\\\|/, "\001", row)
    split(row, cells, / *\| */)
    gsub(/\001/, "|", cells[2])
    gsub(/\001/, "|", cells[3])
    add(".TP\n" line(convert(cells[2])) line(convert(cells[3])))
}

FNR == 1 { section = ""; files++ }
files == 3 && /^\.TH / { sub(/@DATE@/, date) }
files == 3 { program[++lines] = $0; next }

/^# / { section = files == 1 ? "DESCRIPTION" : "" }
/^##/ {
    section = ""
    if ($0 == "## Exit codes and JSON") section = "EXIT STATUS"
    if ($0 == "## Files of a run") section = "FILES"
    if ($0 == "## Environment") section = "ENVIRONMENT"
    if ($0 == "## Commands" && files == 2) section = "EXAMPLES"
}
section == "" || /^#/ { next }
section == "DESCRIPTION" && /^!/ { section = ""; next }
section == "EXAMPLES" {
    if (/^    /) add(line(substr(escape($0), 5)))
    else if (sections[section] != "") section = ""
    next
}
/^\|[-|]+$/ { in_table = 1; next }
/^\|/ { if (in_table) add_row($0); next }
{ in_table = 0 }
/^$/ { paragraph = sections[section] != ""; next }
{
    if (paragraph) add(".PP\n")
    paragraph = 0
    add(line(convert($0)))
}

END {
    for (at = split("DESCRIPTION,EXIT STATUS,ENVIRONMENT,FILES,EXAMPLES", wanted, ","); at > 0; at--)
        if (sections[wanted[at]] == "") {
            print "man_page.awk: README.md and docs/runs.md lack the section for " wanted[at] > "/dev/stderr"
            exit 1
        }
    for (at = 1; at <= lines; at++) {
        if (program[at] == ".SH COMMANDS")
            printf ".SH DESCRIPTION\n%s", sections["DESCRIPTION"]
        print program[at]
    }
    printf ".SH EXIT STATUS\n%s", sections["EXIT STATUS"]
    printf ".SH ENVIRONMENT\n%s", sections["ENVIRONMENT"]
    printf ".SH FILES\nIn the folder of a run:\n%s", sections["FILES"]
    gsub(/-/, "\\-", sections["EXAMPLES"])
    printf ".SH EXAMPLES\n.nf\n%s.fi\n", sections["EXAMPLES"]
    print ".SH SEE ALSO\nThe manual, in Markdown: docs/ in the folder share/doc/vknerf of the installation."
}
