#!/usr/bin/env python3
"""Fails when the code uses what the table of modules in docs/architecture.md does not allow.

usage: layering.py ROOT [--table FILE]

Prints one line per finding, `file:line: what`, and exits with 1 if there is any.
"""
import argparse
import dataclasses
import pathlib
import re
import sys

# How an include path begins -> the library's name in the table.
LIBRARIES = {
    "fmt/": "fmt", "spdlog/": "spdlog", "nlohmann/": "nlohmann-json", "tl/": "tl-expected", "onnx/": "onnx",
    "google/protobuf/": "protobuf", "flatbuffers/": "flatbuffers", "CLI/": "CLI11", "sqlite3.h": "sqlite3",
    "libpq-fe.h": "libpq", "httplib.h": "cpp-httplib", "openssl/": "OpenSSL", "yaml-cpp/": "yaml-cpp",
    "Eigen/": "Eigen", "xgboost/": "XGBoost", "xnnpack.h": "XNNPACK", "pthreadpool.h": "XNNPACK",
    "dnnl": "oneDNN", "oneapi/": "oneDNN", "torch/": "libtorch", "ATen/": "libtorch", "c10/": "libtorch",
    "jpeglib.h": "libjpeg", "jerror.h": "libjpeg", "png.h": "libpng", "zlib.h": "zlib",
}
EVERYWHERE = {"fmt", "tl-expected", "nlohmann-json"}
IN_PUBLIC_HEADERS = {"tl/expected.hpp", "nlohmann/json_fwd.hpp"}
# Headers of the language and of the system: <vector>, <stdint.h>, <unistd.h>, <sys/wait.h>, ...
SYSTEM = re.compile(r"[a-z_0-9]+$|(sys|linux|asm|netinet|arpa)/|"
                    r"(arm_neon|assert|cpuid|cxxabi|dirent|dlfcn|endian|errno|execinfo|fcntl|float|getopt|glob|immintrin|inttypes|"
                    r"limits|link|locale|malloc|math|netdb|omp|poll|pthread|pwd|sched|signal|spawn|stdarg|stddef|stdint|stdio|stdlib|"
                    r"string|syslog|termios|time|ucontext|unistd|wait)\.h$")
CODE = {".h", ".hpp", ".cc", ".cpp", ".in"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


@dataclasses.dataclass
class Module:
    line: int
    here: bool
    uses: list
    libraries: set


class Layering:
    def __init__(self, root, table):
        self.root = root
        self.table = table
        self.findings = []
        self.files = 0
        self.modules = self.read_table()

    def find(self, path, line, what):
        name = path.relative_to(self.root) if path.is_relative_to(self.root) else path.name
        self.findings.append((str(name), line, what))

    def read_table(self):
        """The rows of the table whose header begins with `module`."""
        modules, columns = {}, None
        for number, text in enumerate(self.table.read_text(encoding="utf-8").splitlines(), 1):
            cells = [c.strip() for c in text.strip().strip("|").split("|")] if text.startswith("|") else []
            if cells and cells[0] == "module":
                columns = {name: cells.index(name) for name in ("here", "may use", "third party")}
            elif not cells:
                columns = None
            elif columns and not set(cells[0]) <= set("-: "):
                here, uses, libraries = (cells[columns[name]] for name in ("here", "may use", "third party"))
                modules[cells[0].strip("`")] = Module(number, here == "yes", names(uses), set(names(libraries)))
        if not modules:
            self.find(self.table, 1, "has no table of modules")
        return modules

    def check_table(self):
        above = []
        for name, module in self.modules.items():
            for used in module.uses:
                if used not in above:
                    self.find(self.table, module.line, f"{name} uses {used}, which is no row above it")
            for library in sorted(module.libraries - set(LIBRARIES.values())):
                self.find(self.table, module.line, f"{name} names the library {library}, which layering.py does not know")
            above.append(name)

    def check_folders(self):
        for parent in ("src", "include/fleetfit"):
            folders = sorted(p for p in (self.root / parent).glob("*") if p.is_dir())
            for folder in folders:
                if folder.name not in self.modules:
                    self.find(folder, 1, f"module {folder.name} has no row in the table")
                    continue
                if not self.modules[folder.name].here:
                    self.find(folder, 1, f"module {folder.name} exists, but its row does not say that it is here")
                for path in sorted(folder.rglob("*")):
                    if path.suffix in CODE:
                        self.check_includes(path, folder.name, public=parent != "src")
                    elif path.name == "CMakeLists.txt":
                        self.check_cmake(path, folder.name)

    def check_elsewhere(self):
        """Beside the modules the only rule is that nothing but src/train knows libtorch."""
        for folder in ("agent", "runtimes", "fuzz", "bench", "python", "examples"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in CODE:
                    for number, _, included in includes(path):
                        if library_of(included) == "libtorch":
                            self.find(path, number, f"includes {included}: libtorch is for src/train alone")

    def check_includes(self, path, module, public):
        self.files += 1
        for number, quote, included in includes(path):
            what = self.fault(path, module, public, quote, included)
            if what:
                self.find(path, number, what)

    def fault(self, path, module, public, quote, included):
        """What is wrong with this include, or None."""
        library = library_of(included)
        if library == "libtorch" and (public or module != "train"):
            return f"includes {included}: libtorch is for src/train alone"

        if included.startswith("fleetfit/"):
            return self.fault_of_use(module, included.split("/")[1])

        owner = self.owner_of_private_header(path, quote, included)
        if owner and owner != module:
            return f"includes {included}, a private header of {owner}"
        if public:
            if SYSTEM.match(included) or included in IN_PUBLIC_HEADERS:
                return None
            return f"public header includes {included}, which is neither standard nor fleetfit's"
        if library:
            if library in EVERYWHERE or library in self.modules[module].libraries:
                return None
            return f"includes {included}: the row of {module} does not name {library}"
        if quote == "<" and not SYSTEM.match(included):
            return f"includes {included}, whose library layering.py does not know"
        return None

    def fault_of_use(self, module, used):
        if used == module or used not in self.modules and used.endswith(".h"):
            return None
        if used not in self.modules[module].uses:
            return f"{module} may not use {used}"
        return None

    def owner_of_private_header(self, path, quote, included):
        """The module in whose folder of src/ an include points, or None."""
        if quote == "<":
            return None
        parts = included.removeprefix("src/").split("/")
        if len(parts) > 1 and parts[0] in self.modules:
            return parts[0]
        target = (path.parent / included).resolve()
        source = (self.root / "src").resolve()
        return target.relative_to(source).parts[0] if target.is_relative_to(source) else None

    def check_cmake(self, path, module):
        allowed = {module, *self.modules[module].uses}
        keywords = {"SOURCES", "USES", "LIBRARIES"}
        keyword = None
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for word in re.findall(r"[^\s()\"]+|\)", text.split("#")[0]):
                if word in keywords or word == ")":
                    keyword = word
                    continue
                used = word.removeprefix("fleetfit_")
                named = keyword == "USES" or (word != used and used in self.modules)
                if named and used not in allowed:
                    self.find(path, number, f"CMake: {module} may not use {used}")


def names(cell):
    """The names in a cell of the table; a dash is none."""
    return [name.strip() for name in cell.split(",") if name.strip() not in ("", "–")]


def includes(path):
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        match = INCLUDE.match(text)
        if match:
            yield number, match[1], match[2]


def library_of(included):
    return next((library for prefix, library in LIBRARIES.items() if included.startswith(prefix)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path, help="default: ROOT/docs/architecture.md")
    args = parser.parse_args()

    layering = Layering(args.root, args.table or args.root / "docs/architecture.md")
    layering.check_table()
    layering.check_folders()
    layering.check_elsewhere()
    if not layering.files and not layering.findings:
        layering.find(args.root, 1, "has no file to look at")
    for path, line, what in layering.findings:
        print(f"{path}:{line}: {what}")
    return 1 if layering.findings else 0


if __name__ == "__main__":
    sys.exit(main())
