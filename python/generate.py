#!/usr/bin/env python3
"""python/generate.py INCLUDE: prints the module vknerf/_generated.py, made from the public headers in INCLUDE/vknerf.

The module has the structures for ctypes, enumerations, classes with the values of structures, prototypes of functions,
and functions with keyword arguments for the calls that take a struct vkn_job. Comments of the headers become
docstrings. Needs a C compiler, as the preprocessor, and pycparser.
"""
import os
import re
import subprocess
import sys
import tempfile

from pycparser import c_ast, c_parser

BASIC = {"void": "None", "char": "c_char", "float": "c_float", "double": "c_double", "_Bool": "c_bool", "bool": "c_bool",
         "size_t": "c_size_t", "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32",
         "int32_t": "c_int32", "uint64_t": "c_uint64", "int64_t": "c_int64", "int": "c_int", "unsigned int": "c_uint",
         "sig_atomic_t": "c_int", "uintptr_t": "c_size_t"}
# The system's headers are not parsed, except for the names of their types.
SYSTEM = {"stdbool.h": "#define bool _Bool", "stddef.h": "typedef unsigned long size_t;", "signal.h":
          "typedef int sig_atomic_t;", "stdint.h": "typedef unsigned char uint8_t; typedef unsigned short uint16_t; "
          "typedef unsigned int uint32_t; typedef unsigned long uint64_t; typedef int int32_t; typedef long int64_t; "
          "typedef unsigned long uintptr_t;\n#define UINT32_MAX 4294967295"}
# Adds the names of the enumerators of choices.h, and the values of macros that are numbers.
NAMES = r"""
#define GENERATE_NAMES(name, zero, zero_name, others) const char *const names_vkn_##name[] = {#zero_name, others(VKN_NAME)};
VKN_ENUMERATIONS(GENERATE_NAMES)
"""
# Python's names of calls, where they are not the C function's without vkn_, run_ and _json.
CALLS = {"eval": "evaluate"}
# What a call works on, the more important first: it may be given without its name.
SUBJECTS = ["run", "runs", "pictures", "scene", "device"]
# Calls that start the command line's program, which is not in the package.
PROGRAMS = {"vkn_certify"}
# Members that the package fills itself, and those with another name in Python.
HIDDEN = {"size", "stop", "callbacks", "given", "command", "command_count", "quiet"}
RENAMED = {"config": "settings"}


def preprocess(include):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SYSTEM.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return subprocess.run(["cc", "-E", "-P", "-nostdinc", "-I", folder, "-I", include, "-D__attribute__(x)=", "-"],
                              input="#include <vknerf/vknerf.h>\n" + NAMES, capture_output=True, text=True,
                              check=True).stdout


def read_headers(include):
    folder = os.path.join(include, "vknerf")
    texts = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts.append(file.read())
    return "\n".join(texts)


def find_comment(headers, declaration):
    """Returns the text of the comment in front of a declaration, which a regular expression finds."""
    found = re.search(r"/\*((?:(?!\*/).)*)\*/\n" + declaration, headers, re.S)
    return re.sub(r"\n \* ?", "\n", found[1]).strip() if found else ""


def find_body(headers, name):
    """Returns the members of a structure or an enumeration as the header declares them."""
    found = re.search(r"^(?:typedef )?(?:struct|enum) " + name + r" \{\n(.*?)^\}", headers, re.S | re.M)
    return re.sub(r"^    ", "", found[1], flags=re.M).rstrip() if found else ""


def docstring(text, indent):
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    return ("\n" + indent).join(['"""' + text.split("\n")[0]] + text.split("\n")[1:]).replace(indent + "\n", "\n") + '"""'


def class_name(name):
    return "".join(word.capitalize() for word in re.sub(r"^vkn_", "", name).split("_"))


class Types:
    """Turns C types into expressions of ctypes."""

    def __init__(self):
        self.structures, self.enumerations, self.typedefs = {}, {}, {}

    def is_const(self, node):
        return "const" in getattr(node, "quals", [])

    def named(self, node):
        """Returns the kind ("basic", "struct", "opaque", "enum", "function") and the name of a type without pointers."""
        kind = node.type
        if isinstance(kind, c_ast.Enum):
            return "enum", kind.name
        if isinstance(kind, c_ast.Struct):
            return ("struct" if kind.name in self.structures else "opaque"), kind.name
        name = " ".join(kind.names)
        if name in BASIC:
            return "basic", name
        target = self.typedefs[name]
        if isinstance(target, c_ast.FuncDecl):
            return "function", name
        return self.named(target)

    def expression(self, node, parameter=False, result=False):
        if isinstance(node, c_ast.ArrayDecl):
            if parameter:
                return self.pointer(node.type, parameter, result)
            return f"{self.expression(node.type)} * {node.dim.value}"
        if isinstance(node, c_ast.PtrDecl):
            return self.pointer(node.type, parameter, result)
        if isinstance(node, c_ast.FuncDecl):
            return self.function(node)
        kind, name = self.named(node)
        return {"basic": lambda: BASIC[name], "enum": lambda: "c_int", "struct": lambda: name,
                "opaque": lambda: "None", "function": lambda: self.function(self.typedefs[name])}[kind]()

    def pointer(self, node, parameter, result):
        if isinstance(node, c_ast.FuncDecl):
            return self.function(node)
        if isinstance(node, c_ast.TypeDecl):
            kind, name = self.named(node)
            if kind == "function":
                return self.function(self.typedefs[name])
            if kind == "opaque" or name == "void":
                return "c_void_p"
            if name == "char":
                # The caller frees texts that are not constant, so their address must stay known.
                return "c_void_p" if result and not self.is_const(node) else "c_char_p"
        inner = self.expression(node, False, parameter)
        return f"POINTER({inner})"

    def function(self, node):
        arguments = [self.expression(argument.type, True) for argument in node.args.params] if node.args else []
        if arguments == ["None"]:
            arguments = []
        return f"CFUNCTYPE({', '.join([self.expression(node.type, True, True), *arguments])})"


class Generator:
    def __init__(self, include):
        self.headers = read_headers(include)
        self.types = Types()
        self.names, self.functions, self.calls, self.values = {}, {}, [], {}
        for node in c_parser.CParser().parse(preprocess(include)).ext:
            self.collect(node)

    def collect(self, node):
        if isinstance(node, c_ast.Typedef):
            self.types.typedefs[node.name] = node.type
            self.collect(node.type)
        elif isinstance(node, c_ast.TypeDecl):
            self.collect(node.type)
        elif isinstance(node, c_ast.Struct) and node.decls:
            self.types.structures[node.name] = node
        elif isinstance(node, c_ast.Enum) and node.values:
            self.types.enumerations[node.name] = node
        elif isinstance(node, c_ast.Decl):
            if isinstance(node.type, c_ast.FuncDecl):
                self.functions[node.name] = node.type
            elif node.name and node.name.startswith("names_"):
                self.names[node.name[6:]] = [item.value.strip('"') for item in node.init.exprs]
            else:
                self.collect(node.type)

    # ---- values of structures ----------------------------------------------------------------------------

    def value_of(self, member, members):
        """Returns annotation and default of a member in a class of values; None: the member has no such form."""
        node = member.type
        if isinstance(node, c_ast.ArrayDecl) and isinstance(node.type, c_ast.TypeDecl):
            kind, name = self.types.named(node.type)
            if name == "char":
                return "str", '""'
            if kind == "basic":
                number = "float" if name in ("float", "double") else "int"
                return f"Sequence[{number}]", f"(0,) * {node.dim.value}"
            return None
        if isinstance(node, c_ast.TypeDecl):
            kind, name = self.types.named(node)
            if kind == "enum":
                return f"{class_name(name)} | str | int", f"{class_name(name)}(0)"
            return {"float": ("float", "0.0"), "double": ("float", "0.0"), "bool": ("bool", "False"),
                    "_Bool": ("bool", "False"), **{integer: ("int", "0") for integer in BASIC if "int" in integer or
                                                   integer == "size_t"}}.get(name)
        if not isinstance(node, c_ast.PtrDecl):
            return None
        # A pointer: a text, a structure, an array of texts or structures with its count.
        target, count = node.type, self.count_of(member, members)
        if isinstance(target, c_ast.PtrDecl) and count:
            target = target.type
        elif isinstance(target, c_ast.PtrDecl):
            return None
        if not isinstance(target, c_ast.TypeDecl):
            return None
        kind, name = self.types.named(target)
        if name == "char":
            return ("Sequence[str]", "()") if count else ("str | os.PathLike[str] | None", "None")
        if kind == "struct" and name in self.values:
            value = class_name(name)
            return (f"Sequence[{value}]", "()") if count else (f"{value} | None", "None")
        return None

    def count_of(self, member, members):
        """Returns the name of the member with the number of elements of an array; None: the member is no array."""
        node = member.type
        if not isinstance(node, c_ast.PtrDecl) or self.types.expression(node) == "c_char_p":
            return None
        names = {re.sub(plural, singular, member.name) + "_count"
                 for plural, singular in (("$", ""), ("s$", ""), ("es$", ""), ("ies$", "y"))}
        if isinstance(node.type, c_ast.TypeDecl) and self.types.named(node.type)[0] == "struct":
            names.add("count")
        return next((other.name for other in members if other.name in names), None)

    def find_values(self):
        """Chooses the structures all of whose members have values in Python."""
        for name, structure in self.types.structures.items():
            fields, counts = {}, {}
            for member in structure.decls:
                counts.update({self.count_of(member, structure.decls): member.name})
            for member in structure.decls:
                if member.name == "size" or member.name in counts:
                    continue
                fields[member.name] = self.value_of(member, structure.decls)
            if all(fields.values()) and fields and not name.endswith("_params"):
                self.values[name] = fields

    # ---- output ------------------------------------------------------------------------------------------

    def print_enumeration(self, name, enumeration):
        members = [member.name for member in enumeration.values.enumerators]
        prefix = re.sub(r"[^_]*$", "", os.path.commonprefix(members))
        while any(re.match(r"\d", member[len(prefix):]) for member in members):
            prefix = re.sub(r"[^_]*_$", "", prefix)
        documentation = find_comment(self.headers, rf"(?:typedef )?enum {name} \{{")
        names = self.names.get(name) or [member[len(prefix):].lower() for member in members]
        print(f"\n\nclass {class_name(name)}(Choice):")
        print("    " + docstring("\n\n".join(filter(None, (
            documentation, find_body(self.headers, name) or "Values: " + ", ".join(names) + "."))), "    "))
        value = -1
        for member, text in zip(enumeration.values.enumerators, names):
            value = int(member.value.value, 0) if member.value else value + 1
            print(f'    {member.name[len(prefix):]} = {value}, "{text}"')

    def print_structure(self, name, structure):
        print(f"\n\nclass {name}(Structure):")
        print("    " + docstring(f"struct {name} of the headers.", "    "))
        print(f"\n\n{name}._enumerations_ = {{{', '.join(self.enumerations_of(structure))}}}")
        counts = {member.name: self.count_of(member, structure.decls) for member in structure.decls
                  if isinstance(member.type, c_ast.PtrDecl)}
        print(f"{name}._counts_ = {dict((key, value) for key, value in counts.items() if value)}")

    def enumerations_of(self, structure):
        for member in structure.decls:
            if isinstance(member.type, c_ast.TypeDecl) and self.types.named(member.type)[0] == "enum":
                yield f'"{member.name}": {class_name(self.types.named(member.type)[1])}'

    def print_value(self, name):
        print("\n\n@dataclass(eq=False)")
        print(f"class {class_name(name)}(Value):")
        text = find_comment(self.headers, rf"(?:typedef )?struct {name} \{{")
        print("    " + docstring(f"{text}\n\n{find_body(self.headers, name)}".strip() + "\n", "    "))
        for field, (annotation, default) in self.values[name].items():
            if annotation.startswith("Sequence") or default.startswith("("):
                default = f"field(default_factory=lambda: {default})"
            annotation = re.sub(r" \| str \| int$", "", annotation).replace("str | os.PathLike[str] | None", "str | None")
            print(f"    {field}: {annotation} = {default}")
        print(f"\n\n{name}._value_ = {class_name(name)}")

    def arguments_of(self, name):
        """Yields name, annotation and default of the keyword arguments that fill a structure of parameters."""
        members = self.types.structures[name].decls
        names = {member.name for member in members}
        counts = {self.count_of(member, members) for member in members}
        for member in members:
            if member.name in HIDDEN or member.name in counts or self.inner(member):
                continue
            if isinstance(member.type, c_ast.PtrDecl) and self.types.expression(member.type) == "c_void_p":
                if self.types.named(member.type.type)[1] == "vkn_config":
                    yield RENAMED[member.name], "Settings", "None"
                continue
            value = self.value_of(member, members)
            if value and "has_" + member.name in names:
                yield member.name, value[0] + " | None", "None"
            elif value and not (member.name.startswith("has_") and member.name[4:] in names):
                yield member.name, *value
        for member in members:
            if self.inner(member):
                yield from self.arguments_of(self.inner(member))

    def inner(self, member):
        """Returns the name of the structure of parameters to which a member points, else None."""
        if member.name not in HIDDEN and isinstance(member.type, c_ast.PtrDecl):
            if isinstance(member.type.type, c_ast.TypeDecl):
                kind, name = self.types.named(member.type.type)
                return name if kind == "struct" and (name.endswith("_params") or name == "vkn_job") else None
        return None

    def print_call(self, function):
        """Prints a function with keyword arguments for a call with a structure of parameters and one result."""
        node = self.functions[function]
        params, result = (argument.type for argument in node.args.params)
        structure = self.types.named(params.type)[1]
        arguments = list(self.arguments_of(structure))
        first = min((argument for argument in arguments if argument[0] in SUBJECTS),
                    key=lambda argument: SUBJECTS.index(argument[0]))
        arguments.remove(first)
        target = result.type
        while isinstance(target, c_ast.PtrDecl):
            target = target.type
        name = self.types.named(target)[1]
        returned = class_name(name)
        if name == "char":
            returned = "Any" if node.args.params[1].name == "json" else "str"
        short = re.sub(r"^vkn_(run_)?|_json$", "", function)
        python = CALLS.get(short, short)
        print(f"\n\ndef {python}(")
        for index, (argument, annotation, default) in enumerate([first, *arguments]):
            print(f"    {argument}: {annotation} = {default},")
            if index == 0:
                print("    *,")
        if "callbacks" in [member.name for member in self.types.structures[structure].decls]:
            print("    report: Report = None,")
        print("    progress: Progress = None,")
        print(f") -> {returned}:")
        bodies = "\n\n".join(f"struct {name}:\n{find_body(self.headers, name)}" for name in self.nested(structure))
        text = find_comment(self.headers, rf"VKN_API vkn_status {function}\(")
        print("    " + docstring(f"{text}\n\nArguments are the members of the structures of parameters, `settings` is "
                                 f"`config`:\n\n{bodies}\n", "    "))
        print("    arguments = dict(locals())")
        if returned == "Any":
            print(f'    return json.loads(run_job("{function}", {structure}, arguments))')
        else:
            print(f'    return cast({returned}, run_job("{function}", {structure}, arguments))')
        return python

    def nested(self, structure):
        yield structure
        for member in self.types.structures[structure].decls:
            if self.inner(member):
                yield from self.nested(self.inner(member))

    def is_call(self, function):
        """Whether a function takes parameters and returns a text or a structure."""
        node = self.functions[function]
        parameters = node.args.params
        if function in PROGRAMS or len(parameters) != 2 or parameters[0].name != "params" or self.types.expression(node.type) != "c_int":
            return False
        return self.types.expression(parameters[1].type) != "POINTER(c_void_p)" or parameters[1].name in ("json", "file")

    def print_module(self):
        self.find_values()
        print('"""Structures, enumerations and functions of vknerf\'s public headers, made by python/generate.py."""')
        print("from __future__ import annotations\n\nimport json\nimport os\nfrom collections.abc import Sequence")
        print("from ctypes import CFUNCTYPE, POINTER")
        print("from ctypes import " + ", ".join(sorted({*BASIC.values(), "c_char_p", "c_void_p"} - {"None"})))
        print("from dataclasses import dataclass, field\nfrom typing import Any, cast\n")
        print("from ._base import Choice, Structure, Value\nfrom ._calls import Progress, Report, Settings, run_job")
        for name, enumeration in self.types.enumerations.items():
            self.print_enumeration(name, enumeration)
        for name, structure in self.types.structures.items():
            self.print_structure(name, structure)
        print("\n")
        for name, structure in self.types.structures.items():
            print(f"{name}._fields_ = [")
            for member in structure.decls:
                print(f'    ("{member.name}", {self.types.expression(member.type)}),')
            print("]")
        for name in self.values:
            self.print_value(name)
        print("\n\n# Name: type of the result, types of the arguments.")
        print("FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {")
        for name, node in self.functions.items():
            arguments = [self.types.expression(argument.type, True) for argument in node.args.params]
            arguments = [argument for argument in arguments if argument != "None"]
            print(f'    "{name}": ({self.types.expression(node.type, True, True)}, [{", ".join(arguments)}]),')
        print("}")
        version = re.findall(r"#define VKN_VERSION_\w+ (\d+)", self.headers)
        print(f'\nVERSION = "{".".join(version)}"')
        calls = [self.print_call(function) for function in self.functions if self.is_call(function)]
        public = [*map(class_name, self.types.enumerations), *map(class_name, self.values), *calls]
        print(f"\n\n__all__ = {sorted(public)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Generator(sys.argv[1]).print_module()
