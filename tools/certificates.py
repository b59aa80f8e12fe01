#!/usr/bin/env python3
"""tools/certificates.py CERTIFICATE.json ... [--page PAGE]
    Adds certificates of vknerf certify to the table of tested devices in docs/gpus.md (or PAGE). A later certificate of
    a device and driver replaces an earlier one. Refuses files whose content was changed (member sha256) and incomplete
    certificates."""
import hashlib
import json
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs/gpus.md")
HEAD = re.compile(r"^\| device \| driver \|.*\n\|[-|]+\|\n", re.MULTILINE)


def die(text):
    sys.exit(f"certificates.py: {text}")


def read(path):
    """Returns a certificate, after its checks."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        certificate = json.loads(text)
        signed = text[:text.rindex(',\n\t"sha256"')] + "\n}"
    except (OSError, ValueError) as error:
        die(f"{path}: {error}")
    if hashlib.sha256(signed.encode()).hexdigest() != certificate["sha256"]:
        die(f"{path}: was changed: its content does not have its sha256")
    if not certificate["complete"]:
        die(f"{path}: is not complete: some parts did not run")
    return certificate


def psnr_of(certificate, name):
    for part in certificate["parts"]:
        for test in part["tests"]:
            if part["part"] == "trainings" and test["test"] == name and "psnr" in test:
                return f"{test['psnr']:.2f}"
    return "–"


def row(certificate):
    device = certificate["device"]
    shares = [figure["error"] / figure["tolerance"] for part in certificate["parts"] for test in part["tests"]
              for figure in test.get("figures", []) if figure["tolerance"] > 0]
    off = ", ".join(entry["feature"] for entry in certificate["switched_off"])
    cells = [device["name"], device["driver"], certificate["date"][:10], certificate["commit"],
             f"{certificate['tests']:.0f}", f"{certificate['failed']:.0f}" + (f" ({off} off)" if off else ""),
             f"{100 * max(shares, default=0):.0f} %",
             " / ".join(psnr_of(certificate, name) for name in ("fp32", "fp16", "coopmat"))]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def key(line):
    return tuple(cell.strip() for cell in line.split("|")[1:3])


def main(arguments):
    page = PAGE
    if "--page" in arguments:
        at = arguments.index("--page")
        if at + 1 == len(arguments):
            die("--page: PAGE is missing")
        page = arguments[at + 1]
        del arguments[at:at + 2]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    with open(page, encoding="utf-8") as file:
        text = file.read()
    head = HEAD.search(text)
    if not head:
        die(f"{page}: has no table of devices")
    end = head.end()
    while text.startswith("|", end):
        end = text.index("\n", end) + 1
    rows = {key(line): line for line in text[head.end():end].splitlines()}
    for line in map(row, map(read, arguments)):
        rows[key(line)] = line
    with open(page, "w", encoding="utf-8") as file:
        file.write(text[:head.end()] + "".join(rows[name] + "\n" for name in sorted(rows)) + text[end:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
