"""What doxygen reads of a public header: the same text, with our plain comments where it expects its own.

A comment in front of declarations documents all of them up to the next blank line or comment; one behind a member or
an enumerator, and what follows it, that one. In <vknerf/choices.h> the lists of names become the enumerations that
they are for the compiler.
"""
import re
import sys


def comment(text, marker="/**"):
    return marker + text[2:]


def is_heading(line):
    return re.match(r"/\* ?-{3,}", line) is not None


def outside(lines):
    """Each line, with whether it begins outside of braces and comments."""
    depth, inside = 0, False
    for line in lines:
        yield line, depth == 0 and not inside
        code = re.sub(r"/\*.*?\*/", "", line)
        if not inside:
            depth += code.split("/*")[0].count("{") - code.split("/*")[0].count("}")
        inside = "/*" in code.split("*/")[-1] if "/*" in code or "*/" in code else inside


def paragraphs(lines):
    """Runs of lines without a blank one between them, outside of braces."""
    run = []
    for line, top in outside(lines):
        if line.strip() or not top:
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run


SIZE = "    size_t size; /* sizeof the structure, or 0 for its first version's; see vknerf/api.h */"


def one_each(lines):
    """`double a, b; /* ... */` as two declarations with the same comment."""
    lines = iter(lines)
    for line in lines:
        if re.fullmatch(r"    size_t size;( */\*.*)?", line):
            line = SIZE
        several = re.fullmatch(r"( +)((?:const )?(?:struct |enum )?\w+ )(\*?\w+(?:\[\w+\])?(?:, \*?\w+(?:\[\w+\])?)+);(.*)", line)
        if not several:
            yield line
            continue
        indent, kind, names, words = several.groups()
        words = [words]
        while "/*" in words[0] and "*/" not in words[-1]:
            words.append(next(lines))
        for name in names.split(", "):
            yield f"{indent}{kind}{name};{words[0]}"
            yield from words[1:]


def document_members(lines):
    """Members and enumerators: comments behind one are its own, those in front of some are theirs who have none."""
    written, above, inside, own_line = [], [], False, False
    for line in one_each(lines):
        begins = not inside and "/*" in line
        if begins:
            before = line.split("/*")[0]
            own_line = not before.strip()
            line = before + comment(line[len(before):], "/**" if own_line else "/**<")
            above = [] if own_line else above
        elif not inside and line.rstrip().endswith(";") and line.startswith(" ") and above and written[-1] != above[-1]:
            written += above
        if own_line and (begins or inside):
            above.append(line)
        inside = (begins or inside) and "*/" not in line
        written.append(line)
    return written


def split_declarations(lines):
    """Each comment with what follows it."""
    parts = [[]]
    for line, top in outside(lines):
        if line.startswith("/*") and top and parts[-1]:
            parts.append([])
        parts[-1].append(line)
    return [part for part in parts if part]


def document(lines):
    if not lines[0].startswith("/*") or is_heading(lines[0]):
        return document_members(lines)
    end = next(i for i, line in enumerate(lines) if "*/" in line) + 1
    head, rest = [comment(lines[0]), *lines[1:end]], document_members(lines[end:])
    if not rest:
        return lines
    # A declaration may go on in a line of its own; a structure ends with its brace.
    if sum(line.rstrip().endswith(";") and (top or line.startswith("}")) for line, top in outside(rest)) > 1:
        return [*head, "/**@{*/", *rest, "/**@}*/"]
    return head + rest


def header(lines):
    start = next(i for i, line in enumerate(lines) if re.match(r"/\* vknerf", line))
    end = next(i for i in range(start, len(lines)) if "*/" in lines[i]) + 1
    yield "/** @file\n *" + lines[start][2:].split(":", 1)[1]
    yield from lines[start + 1:end]
    for run in paragraphs(lines[end:]):
        for part in split_declarations(run):
            yield from document(part)
        yield ""


def choices(text):
    """Enumerations of lists X(ENUMERATOR, name), with the comments in front of these."""
    lists = {}
    pattern = r"((?:/\*(?:(?!\*/).)*\*/\n)?)#define (VKN_[A-Z_]+)\(X\)((?:[^\n]*\\\n)+[^\n]*\n)"
    for words, name, body in re.findall(pattern, text, re.S):
        lists[name] = words, re.findall(r"X\((\w+), (\w+)\)", body)
    yield "/** @file\n * What settings that are one of several things can be. */"
    for name, zero, zero_name, others in re.findall(r"X\((\w+), (\w+), (\w+), (\w+)\)", text):
        words, members = lists[others]
        words = words.strip()[2:-2].strip() or f"See the setting `{name}` or the like of vkn_config_help()."
        yield f"/** {words} */\nenum vkn_{name} {{\n    {zero}, /**< \"{zero_name}\" */"
        yield from (f"    {member}, /**< \"{text}\" */" for member, text in members)
        yield "};"


def page(text):
    """Links to other pages of the manual are no part of the reference; what they are called is."""
    return re.sub(r"\[([^]]+)\]\((?!https?:|#)[^)]*\)", r"\1", text)


def main(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".md"):
        print(page(text), end="")
    elif path.endswith("choices.h"):
        print("\n".join(choices(text)))
    else:
        print("\n".join(header(text.split("\n"))))


if __name__ == "__main__":
    main(sys.argv[1])
