"""clang-tidy over the files of a build.

    python3 -m tidy [--paths] BUILD [FILE...]

With --paths Clang's static analyser follows the paths through each function instead: PATHS has its checks.

BUILD is a folder with a compile_commands.json, whatever its compiler and its sanitizers: only where headers are
found and what is defined is taken from there. Without files, all that BUILD compiles below ROOMS are looked at.

Most of the time goes to headers, and most of that to those of the system. So the files of a folder are looked at as
one, as in a unity build, and so are the folders of a row of TOGETHER. Files that cannot be compiled together, because
they keep the same name to themselves, are looked at in two halves, and so on.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOMS = ("src", "simnet", "evaluation", "tools", "bench")
TESTS = ROOT / "evaluation" / "tests"  # below a room, and tests all the same
TOGETHER = (
    ("src/base", "src/inet", "src/coding", "src/host", "src/host/fake", "src/ackshim"),
    ("src/scheduler/path", "src/scheduler/rate", "src/scheduler/recovery", "src/scheduler/rate/rivals",
     "src/scheduler/recovery/rivals"),
    ("src/tunnel/wire", "src/tunnel/queue", "src/tunnel/order", "src/tunnel/stream", "src/tunnel/subflow"),
    ("src/tunnel", "src/tunnel/fec", "src/tunnel/session", "src/tunnel/api", "src/tunnel/peer", "src/tunnel/forward"),
    ("src/gateway/config", "src/gateway/dtls"),
    ("src/gateway/log", "src/gateway/network", "src/gateway/uplinks", "src/gateway/state", "src/gateway/proxy"),
    ("simnet", "simnet/link", "simnet/tcp"),
)
PATHS = ",".join(["-*", *(f"clang-analyzer-{kind}*"
                          for kind in ("core", "cplusplus", "nullability", "security", "unix"))])
OURS = f"^{re.escape(str(ROOT))}/({'|'.join(ROOMS)}|tests)/"
UNITY_INCLUDE = re.compile(r'^#include "(.*)"$', re.MULTILINE)
FINDING = re.compile(r"^(?=\S+:\d+:\d+: (?:warning|error): )", re.MULTILINE)


def flags(command):
    """Of a compiler's command, what says how a file is to be read."""
    words, kept = iter(shlex.split(command)), ["-std=c++20"]
    for word in words:
        if word in ("-I", "-isystem", "-D"):
            kept.append(word + next(words))
        elif word.startswith(("-I", "-isystem", "-D")):
            kept.append(word)
    return tuple(kept)


def sources(build):
    """{source: flags} of all that the build compiles; a unity source stands for those that it includes."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"])
        unity = "/Unity/unity_" in str(path)
        files = UNITY_INCLUDE.findall(path.read_text(encoding="utf-8")) if unity else [path]
        for file in files:
            found.setdefault(pathlib.Path(os.path.normpath(file)), flags(entry["command"]))
    return found


def units(wanted):
    """[(files, flags)]: what is looked at as one."""
    rows = {folder: row[0] for row in TOGETHER for folder in row}
    found = {}
    for file, how in wanted.items():
        folder = str(file.parent.relative_to(ROOT))
        files, flags = found.setdefault(rows.get(folder, folder), ([], {}))
        files.append(file)
        flags.update(dict.fromkeys(how))
    return list(found.values())


def look(files, how, folder, checks=()):
    """What clang-tidy finds in the files, as text; empty when there is nothing."""
    unit = folder / (re.sub(r"\W", "_", str(files[0].relative_to(ROOT))) + f"_{len(files)}.cc")
    # <linux/if.h> leaves out what <net/if.h> has, but only when it comes later.
    lines = ["#include <net/if.h>"]
    for number, file in enumerate(files):  # several may be programs
        lines += ["#undef main", f"#define main main_{number}", f'#include "{file}"']
    unit.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *checks,
                           f"--header-filter={OURS}", unit, "--", *how],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return ""
    if "clang-diagnostic-error" in done.stdout and len(files) > 1:
        half = len(files) // 2
        return look(files[:half], how, folder, checks) + look(files[half:], how, folder, checks)
    return done.stdout or f"clang-tidy failed for {', '.join(map(str, files))}:\n{done.stderr}"


def main():
    words = sys.argv[1:]
    checks = []
    if "--paths" in words:  # what is looked at as one is included, and of that the analyser takes only what it is told
        checks = [f"--checks={PATHS}", "--extra-arg=-Xclang", "--extra-arg=-analyzer-opt-analyze-headers"]
    build, *names = [word for word in words if word != "--paths"]
    known = sources(pathlib.Path(build))
    if names:
        chosen = [pathlib.Path(os.path.abspath(name)) for name in names]
    else:
        chosen = [file for file in known if any(file.is_relative_to(ROOT / room) for room in ROOMS)
                  and not file.is_relative_to(TESTS)]
    unknown = [str(file) for file in chosen if file not in known]
    if unknown:
        sys.exit(f"{build} does not compile {', '.join(unknown)}")
    if not chosen:
        sys.exit(f"{build} compiles nothing of the project: nothing was looked at")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda unit: look(*unit, pathlib.Path(folder), checks),
                              units({file: known[file] for file in chosen})))
    # A header is looked at with each folder that includes it.
    findings = dict.fromkeys(text for text in FINDING.split("".join(found)) if text)
    if findings:
        sys.exit("".join(findings) + f"{len(findings)} findings")
    print(f"{len(chosen)} files, nothing found")


if __name__ == "__main__":
    main()
