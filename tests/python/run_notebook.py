#!/usr/bin/env python3
"""tests/python/run_notebook.py NOTEBOOK.ipynb ...: runs the cells of notebooks in order, without Jupyter.

An expression at the end of a cell is shown: its PNG file, which must be one, or its text. Prints seconds by notebook.
Fails if a cell raises an exception, or if the file has outputs.
"""
import ast
import json
import sys
import time


def show(value):
    """Returns what a notebook would show of a value, in words."""
    if hasattr(value, "_repr_png_"):
        png = value._repr_png_()
        assert png.startswith(b"\x89PNG\r\n") and png.rstrip().endswith(b"IEND\xaeB`\x82"), "not a PNG file"
        return f"a PNG file of {len(png)} bytes"
    return repr(value)


def run_cell(text, names, name):
    tree = ast.parse(text, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last:
        value = eval(compile(ast.Expression(last.value), name, "eval"), names)
        if value is not None:
            print(show(value))


def run(path):
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    assert notebook["nbformat"] == 4, f"{path}: nbformat {notebook['nbformat']}"
    names = {"__name__": "__main__"}
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert not cell["outputs"] and cell["execution_count"] is None, f"{path}: cell {index} has outputs"
            run_cell("".join(cell["source"]), names, f"{path}, cell {index}")


if __name__ == "__main__":
    for notebook in sys.argv[1:]:
        begin = time.monotonic()
        run(notebook)
        print(f"{notebook}: {time.monotonic() - begin:.1f} s")
