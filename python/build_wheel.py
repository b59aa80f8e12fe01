#!/usr/bin/env python3
"""python/build_wheel.py LIBRARY FOLDER: packs the Python package with a built library (libvknerf.so.0 or libvknerf.dll)
into FOLDER/vknerf-VERSION-py3-none-PLATFORM.whl, and prints its path.

On Linux the wheel contains the shared libraries that not every distribution has, under names of their own, so that no
other package's library takes their place. PLATFORM is manylinux_X_Y for the newest version X.Y of the C library that
one of the shared objects needs. Needs pycparser, a C compiler, binutils and patchelf.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)
# Libraries that manylinux allows a wheel to expect (PEP 600).
SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libz)\.so\.\d+$")
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
TIME = (1980, 1, 1, 0, 0, 0)  # equal files make equal wheels


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed(library):
    return re.findall(r"^ *NEEDED +(\S+)", output_of("objdump", "-p", library), re.M)


def find_libraries(library):
    """Returns the paths of all libraries that a library needs, by name, without those of every system."""
    found = dict(re.findall(r"^\s+(\S+) => (/\S+)", output_of("ldd", library), re.M))
    names, queue = {}, needed(library)
    while queue:
        name = queue.pop()
        if not SYSTEM.match(name) and name not in names:
            if name not in found:
                sys.exit(f"{library}: {name} is not installed")
            names[name] = found[name]
            queue += needed(found[name])
    return names


def add_libraries(library, folder):
    """Copies a library and those that it needs, so that they find each other in the folder."""
    others = find_libraries(library)
    names = {name: name.replace(".so", "-vknerf.so", 1) for name in others}
    shutil.copyfile(library, os.path.join(folder, os.path.basename(library)))
    for name, path in others.items():
        shutil.copyfile(path, os.path.join(folder, names[name]))
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        os.chmod(path, 0o755)
        changes = [["--replace-needed", name, names[name]] for name in needed(path) if name in names]
        changes += [["--set-soname", file], ["--set-rpath", "$ORIGIN"]]
        subprocess.run(["strip", "--strip-unneeded", path], check=True)
        for change in changes: # one at a time: patchelf 0.14 mixes up texts of several
            subprocess.run(["patchelf", *change, path], check=True)


def platform_of(folder):
    """Returns the platform on which all shared objects of a folder run."""
    versions, machine = [(2, 17)], None
    for file in os.listdir(folder):
        path = os.path.join(folder, file)
        if file.endswith(".dll"):
            return "win_amd64"
        with open(path, "rb") as content:
            machine = MACHINES[int.from_bytes(content.read(20)[18:20], "little")]
        text = output_of("objdump", "-p", path)
        versions += [tuple(map(int, version.split("."))) for version in re.findall(r"\bGLIBC_(\d+\.\d+)", text)]
        if "GLIBC_ABI_DT_RELR" in text:
            versions.append((2, 36))
    return "manylinux_{}_{}_{}".format(*max(versions), machine)


def add_package(folder):
    """Copies the package, with the module that is made from the headers, the bundled scene and the licences."""
    shutil.copytree(os.path.join(HERE, "vknerf"), folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(os.path.join(SOURCE, "assets", "demo"), os.path.join(folder, "demo"))
    generated = subprocess.run([sys.executable, os.path.join(HERE, "generate.py"), os.path.join(SOURCE, "include")],
                               capture_output=True, check=True).stdout
    with open(os.path.join(folder, "_generated.py"), "wb") as file:
        file.write(generated)


def version():
    with open(os.path.join(SOURCE, "include", "vknerf", "api.h"), encoding="utf-8") as header:
        return ".".join(re.findall(r"#define VKN_VERSION_\w+ +(\d+)", header.read()))


def metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as text:
        return (f"Metadata-Version: 2.1\nName: vknerf\nVersion: {version()}\n"
                "Summary: Neural radiance field training on any Vulkan device\nRequires-Python: >=3.9\n"
                f"Requires-Dist: numpy\nDescription-Content-Type: text/markdown\n\n{text.read()}")


def write_wheel(stage, folder, tag):
    """Packs all files of a folder, with their checksums."""
    information = f"vknerf-{version()}.dist-info"
    texts = {"METADATA": metadata(),
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: vknerf\nRoot-Is-Purelib: false\nTag: {tag}\n"}
    os.makedirs(os.path.join(stage, information))
    for name, text in texts.items():
        with open(os.path.join(stage, information, name), "w", encoding="utf-8") as file:
            file.write(text)
    shutil.copyfile(os.path.join(SOURCE, "cmake", "debian", "copyright"), os.path.join(stage, information, "LICENSES"))
    record = f"{information}/RECORD"
    wheel, lines = os.path.join(folder, f"vknerf-{version()}-{tag}.whl"), []
    with zipfile.ZipFile(wheel + ".new", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(os.path.join(place, file) for place, unused, files in os.walk(stage) for file in files):
            name = os.path.relpath(path, stage).replace(os.sep, "/")
            with open(path, "rb") as file:
                content = file.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo(record, TIME), "".join(lines) + f"{record},,\n", zipfile.ZIP_DEFLATED)
    os.replace(wheel + ".new", wheel)
    return wheel


def main(library, folder):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as stage:
        package = os.path.join(stage, "vknerf")
        add_package(package)
        libraries = os.path.join(package, "lib")
        os.makedirs(libraries)
        if library.endswith(".dll"):
            shutil.copy(library, libraries) # it contains what it needs
        else:
            add_libraries(library, libraries)
        print(write_wheel(stage, folder, f"py3-none-{platform_of(libraries)}"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
