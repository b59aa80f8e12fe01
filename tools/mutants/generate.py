"""Generates random mutations of C and GLSL code from a seed."""
import bisect
import hashlib
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from changed import functions_of  # noqa: E402

SOURCES = re.compile(r"(src/.*\.[ch]|shaders/.*\.(comp|glsl|h))$")

TOKEN = re.compile(r"""
    (?P<blank>\s+|/\*.*?\*/|//[^\n]*)
  | (?P<directive>(?:(?<=\n)|\A)[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[a-zA-Z]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.VERBOSE | re.DOTALL)

KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else", "case", "goto", "break",
            "continue", "discard", "default", "struct", "enum", "union", "const", "static", "inline", "typedef",
            "layout", "void", "_Static_assert", "_Alignof", "offsetof", "BASE_COUNT", "defined"}
# Calls that are not mutated: their arguments are messages, or release builds do not execute them.
SKIPPED_CALLS = re.compile(r"(\w*_fail|fail|assert|static_assert|_Static_assert|base_log\w*|log_\w+|base_warn\w*|"
                           r"\w*printf|gpu_name)$")
# Calls that are not removed: only leak or race checkers, which not every test uses, would detect it.
RELEASES = re.compile(r"(\w*free\w*|\w*close\w*|\w*destroy\w*|\w*release\w*|va_end|pthread_mutex_\w+|cJSON_Delete)$")
SYMMETRIC = re.compile(r"(\w+_)?(f?min|f?max|dot|distance|hypot|alloc)[fl]?$", re.IGNORECASE)
LIMITS = re.compile(r"(\w+_)?(f?min|f?max|clamp)[fl]?$", re.IGNORECASE)
REVERSED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|[^\n])*")
SKIPPED_STATEMENTS = re.compile(r"\s*(layout|static_assert|_Static_assert|case|precision|struct|enum)\b")
OPENS, CLOSES = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


class Token:
    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)


def tokens_of(text):
    at, found = 0, []
    while at < len(text):
        # White space before a directive ends at the directive's line.
        match = TOKEN.match(text, at)
        if match.lastgroup == "blank" and "\n" in match[0] and not match[0].lstrip().startswith("/"):
            end = match.start() + match[0].rindex("\n") + 1
            directive = DIRECTIVE.match(text, end)
            if directive:
                at = directive.end()
                continue
        if match.lastgroup not in ("blank", "directive"):
            found.append(Token(match.lastgroup, match[0], at))
        at = match.end()
    return found


class Code:
    """A file's tokens with matched brackets, and its possible edits."""

    def __init__(self, text, is_shader):
        self.text, self.is_shader = text, is_shader
        self.tokens = tokens_of(text)
        self.match, self.skipped = {}, set()
        open_brackets = []
        for i, token in enumerate(self.tokens):
            if token.kind == "sign" and token.text in OPENS:
                open_brackets.append(i)
            elif token.kind == "sign" and token.text in CLOSES and open_brackets:
                begin = open_brackets.pop()
                self.match[begin], self.match[i] = i, begin
        for i, token in enumerate(self.tokens):
            if token.kind == "name" and SKIPPED_CALLS.match(token.text) and self.text_at(i + 1) == "(":
                self.skipped.update(range(i, self.match.get(i + 1, i) + 1))
        self.lines = [0] + [found.end() for found in re.finditer("\n", text)]
        self.bodies = {line for _, first, last in functions_of(text) for line in range(first, last + 1)}
        # For each token: the number of open braces, and whether it is inside other brackets.
        self.braces, self.bracketed = [], []
        braces, others = 0, [0]
        for token in self.tokens:
            braces -= token.text == "}"
            if token.text == "}" and len(others) > 1:
                others.pop()
            others[-1] -= token.text in (")", "]")
            self.braces.append(braces)
            self.bracketed.append(others[-1] > 0)
            braces += token.text == "{"
            if token.text == "{":
                others.append(0)
            others[-1] += token.text in ("(", "[")

    def text_at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def kind_at(self, i):
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def line_of(self, offset):
        return bisect.bisect_right(self.lines, offset)

    def in_function(self, i):
        return self.braces[i] > 0 and self.line_of(self.tokens[i].start) in self.bodies

    def ends_operand(self, i):
        """Whether the token can end the left operand of a binary operator."""
        return self.kind_at(i) in ("number", "text") or self.text_at(i) in (")", "]") or (
            self.kind_at(i) == "name" and self.text_at(i) not in KEYWORDS)

    def arguments(self, begin):
        """First and last token of each argument of the call with this opening bracket."""
        end, first, parts = self.match.get(begin), begin + 1, []
        if end is None:
            return []
        i = first
        while i <= end:
            if i == end or self.text_at(i) == ",":
                if i > first:
                    parts.append((first, i - 1))
                first = i + 1
            i = self.match[i] + 1 if i in self.match and i < end and self.text_at(i) in OPENS else i + 1
        return parts

    def words(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def may_swap(self, one, two):
        """Whether two arguments differ but may have the same type, judging by their text."""
        def kind_of(text):
            return ("text" if text[0] in "\"'" else "address" if text[0] == "&" else
                    "nothing" if text == "NULL" else "constant" if re.fullmatch(r"[A-Z][A-Z0-9_]+", text) else "value")
        return one != two and kind_of(one) == kind_of(two)

    def is_call(self, i):
        return (self.kind_at(i) == "name" and self.text_at(i) not in KEYWORDS and self.text_at(i + 1) == "(" and
                i + 1 in self.match and self.in_function(i) and
                not (self.kind_at(i - 1) == "name" and self.text_at(i - 1) not in ("return", "else", "case")))

    def declares(self, i):
        """Whether the bracket belongs to an array declaration: a type precedes the array's name."""
        while self.text_at(i - 1) == "]":
            i = self.match[i - 1]
        before = i - 2
        # The second and later arrays of a declaration follow a comma.
        line = self.text[self.lines[self.line_of(self.tokens[i].start) - 1]:self.tokens[i].start]
        return (self.kind_at(before) == "name" and self.text_at(before) not in KEYWORDS or
                self.text_at(before) in ("*", "}", "const") or
                bool(re.match(r"\s*(const |static |struct |unsigned )*\w+\s+\*?\w+(\[|,| =)", line)) and
                not self.bracketed[i] and not re.match(r"\s*return\b", line) and "=" not in line.rpartition(",")[2])

    def end_of_term(self, i, stops):
        """The last token of the operand that begins after token i and ends before one of `stops`."""
        j = i + 1
        while j < len(self.tokens):
            text = self.text_at(j)
            if text in OPENS and j in self.match:
                j = self.match[j] + 1
            elif text in stops and (text not in "+-" or self.ends_operand(j - 1)):
                break
            else:
                j += 1
        return j - 1

    # -- edits: (kind, first offset, end offset, new text)

    def sites(self):
        for i, token in enumerate(self.tokens):
            if i in self.skipped or not self.braces[i] and not (self.is_shader and token.kind == "number"):
                continue
            if SKIPPED_STATEMENTS.match(self.text, self.lines[self.line_of(token.start) - 1]):
                continue
            yield from self.sites_at(i, token)

    def sites_at(self, i, token):
        if token.kind == "number":
            if self.text_at(i - 1) == "[" and self.text_at(i + 1) == "]" and self.declares(i - 1):
                return  # a larger array is no mistake, a smaller one no small mistake
            for new in constants(token.text):
                yield "constant", token.start, token.end, new
        elif not self.in_function(i):
            return
        elif token.kind == "sign":
            yield from self.sites_of_sign(i, token)
        elif token.kind == "name":
            yield from self.sites_of_name(i, token)

    def sites_of_sign(self, i, token):
        binary = self.ends_operand(i - 1)
        if token.text in REVERSED and binary:
            yield "comparison", token.start, token.end, REVERSED[token.text]
        elif token.text in "+-" and len(token.text) == 1 and binary:
            yield "sign", token.start, token.end, "-" if token.text == "+" else "+"
            stops = set("+-;,)]}?:<>&|^") | {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "="}
            yield "term", token.start, self.tokens[self.end_of_term(i, stops)].end, ""
        elif token.text == "-" and not binary and self.text_at(i - 1) not in ("[", "case"):
            yield "sign", token.start, token.end, ""
        elif token.text in ("+=", "-="):
            yield "sign", token.start, token.end, "-=" if token.text == "+=" else "+="
        elif token.text in ("&&", "||"):
            stops = {";", ",", ")", "]", "}", "?", ":", "&&", "||"}
            yield "term", token.start, self.tokens[self.end_of_term(i, stops)].end, ""
        elif token.text == "[" and self.ends_operand(i - 1) and i in self.match and self.match[i] > i + 1:
            end = self.match[i]
            if not self.declares(i):
                yield "index", self.tokens[end].start, self.tokens[end].start, " + 1"
                if self.text_at(i + 1) not in ("0", "0u"):
                    yield "index", self.tokens[end].start, self.tokens[end].start, " - 1"

    def sites_of_name(self, i, token):
        if token.text == "if" and i + 1 in self.match:
            begin, end = self.tokens[i + 1], self.tokens[self.match[i + 1]]
            yield "condition", begin.end, end.start, f"!({self.text[begin.end:end.start]})"
        if self.is_call(i):
            parts = self.arguments(i + 1)
            if LIMITS.match(token.text) and len(parts) in (2, 3):
                for part in parts[:1] if len(parts) == 3 else parts:
                    yield "limit", token.start, self.tokens[self.match[i + 1]].end, f"({self.words(*part)})"
            if not SYMMETRIC.match(token.text):
                for one, two in zip(parts, parts[1:]):
                    if self.may_swap(self.words(*one), self.words(*two)):
                        between = self.text[self.tokens[one[1]].end:self.tokens[two[0]].start]
                        yield ("arguments", self.tokens[one[0]].start, self.tokens[two[1]].end,
                               self.words(*two) + between + self.words(*one))
        if (self.text_at(i - 1) in (";", "{", "}", ")", "else") and token.text not in KEYWORDS and
                not self.bracketed[i]):
            yield from self.statement(i, token)

    def statement(self, i, token):
        """Removes the statement that begins here, a call or an assignment."""
        if self.text_at(i - 1) == ")" and self.text_at(self.match.get(i - 1, 0) - 1) not in ("if", "for", "while"):
            return
        if self.kind_at(i + 1) == "name" or self.text_at(i + 1) in ("*", ":", ";") or RELEASES.match(token.text):
            return
        j = i
        while self.text_at(j) not in (";", "{", "}", ""):
            j = self.match[j] + 1 if self.text_at(j) in OPENS and j in self.match else j + 1
        if self.text_at(j) == ";":
            removed = self.text[token.start:self.tokens[j].end]
            # Compilers warn about an empty body without braces.
            nothing = "{}" if self.text_at(i - 1) in (")", "else") else ";"
            yield "statement", token.start, self.tokens[j].end, nothing + "\n" * removed.count("\n")


def constants(text):
    """Constants slightly larger and slightly smaller than the given one."""
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9.]+(?:[eE][-+]?\d+)?)([a-zA-Z]*)", text)
    if not found:
        return
    digits, suffix = found.groups()
    if digits[:2] in ("0x", "0X"):
        yield f"0x{int(digits, 16) ^ 1:x}{suffix}"
    elif digits.isdigit() and suffix.lower() != "f":
        value = int(digits, 8 if digits[0] == "0" and digits != "0" else 10)
        yield f"{value + 1}{suffix}"
        if value > 0:
            yield f"{value - 1}{suffix}"
    else:
        value = float(digits)
        for changed in (value * 1.1, value * 0.9) if value else (0.1,):
            digits = f"{changed:.9g}"
            yield digits + ("" if "." in digits or "e" in digits else ".0") + suffix


def lines_with_sites(names, root, lines_since):
    """Path, line, text and edits of each line that has any, in an order that only depends on the files."""
    for path in sorted(name for name in names if SOURCES.match(name)):
        wanted = lines_since.get(path) if lines_since is not None else None
        if lines_since is not None and not wanted:
            continue
        with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
            text = file.read()
        code = Code(text, path.startswith("shaders/"))
        by_line = {}
        for site in code.sites():
            by_line.setdefault(code.line_of(site[1]), []).append(site)
        for line, sites in sorted(by_line.items()):
            if wanted is None or line in wanted:
                yield path, line, text, sites


def mutations_of(names, root, count, seed, lines_since=None):
    """Chooses a line, then one of its kinds of edit, then an edit, each with equal probability. A larger count begins
    with the same mutations."""
    lines = list(lines_with_sites(names, root, lines_since))
    chosen = random.Random(seed)
    chosen.shuffle(lines)
    mutations = []
    for number, (path, line, text, sites) in enumerate(lines[:count], 1):
        kind = chosen.choice(sorted({site[0] for site in sites}))
        _, start, end, new = chosen.choice([site for site in sites if site[0] == kind])
        mutated = text[:start] + new + text[end:]
        mark = hashlib.sha256(f"{path}\0{mutated}".encode()).hexdigest()[:6]
        mutations.append({"id": f"R{seed}-{number:03d}-{mark}", "path": path, "line": line, "text": text,
                          "mutated": mutated, "what": difference(path, line, text, start, end, new)})
    return mutations


def difference(path, line, text, start, end, new):
    """Location and edit in one line, marked with [- -] and {+ +} as in git's word-diff."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    edit = (f"[-{text[start:end]}-]" if end > start else "") + (f"{{+{new}+}}" if new.strip(" \n;{}") else "")
    line_text = text[first:start] + edit + text[end:last if last >= 0 else len(text)]
    return f"{path}:{line}: " + re.sub(r"\s+", " ", line_text).strip()
