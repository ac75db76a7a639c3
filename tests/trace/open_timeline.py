#!/usr/bin/env python3
"""Opens HTML timelines in headless Chromium and fails if one does not draw.

    open_timeline.py [--screenshots FOLDER] [--fragment F] [--chromium PROGRAM] FILE...

A page must set data-rendered (it has drawn all its blocks), must not set data-error, must write
nothing to the console and must not ask for anything from outside. With --screenshots a PNG per file
is written into FOLDER. --fragment is the part of the address behind '#': 'block=12&theme=dark'.
Exit status: 0 all drew, 1 one did not, 2 no Chromium or no such file.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TIMEOUT_S = 180


def chromium(program, arguments):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--no-first-run", "--disable-extensions", "--disable-background-networking",
             "--disable-component-update", "--disable-dev-shm-usage",
             # Whatever a page asks for outside goes to a closed port: it fails and is reported.
             "--proxy-server=127.0.0.1:9", "--enable-logging=stderr", "--log-level=0",
             f"--user-data-dir={profile}", "--virtual-time-budget=15000", *arguments],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def faults_of(dom, log, num_bytes):
    """What is wrong with a page, as sentences."""
    faults = [line.strip() for line in log.splitlines() if re.search(r":CONSOLE[:(]", line)]
    root = re.search(r"<html[^>]*>", dom)
    attributes = root.group(0) if root else ""
    error = re.search(r'data-error="([^"]*)"', attributes)
    if error:
        faults.append(f"the script failed: {error.group(1)}")
    rendered = re.search(r'data-rendered="(\d+)"', attributes)
    if not rendered:
        faults.append(f"data-rendered is missing ({num_bytes} bytes of page were read)")
    return faults, int(rendered.group(1)) if rendered else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--fragment", default="", metavar="F")
    parser.add_argument("--size", default="1440,1500", metavar="W,H")
    parser.add_argument("--chromium", default=shutil.which("chromium"), metavar="PROGRAM")
    options = parser.parse_args()
    if not options.chromium:
        print("open_timeline: chromium is not installed", file=sys.stderr)
        return 2
    status = 0
    for file in options.files:
        if not file.is_file():
            print(f"open_timeline: no file {file}", file=sys.stderr)
            return 2
        address = file.resolve().as_uri() + ("#" + options.fragment if options.fragment else "")
        page = chromium(options.chromium, ["--dump-dom", address])
        faults, num_blocks = faults_of(page.stdout, page.stderr, len(page.stdout))
        if options.screenshots:
            options.screenshots.mkdir(parents=True, exist_ok=True)
            picture = options.screenshots / (file.stem + ".png")
            picture.unlink(missing_ok=True)
            chromium(options.chromium, [f"--screenshot={picture.resolve()}",
                                        f"--window-size={options.size}", address])
            if not picture.is_file() or picture.stat().st_size < 1000:
                faults.append(f"no screenshot {picture}")
        for fault in faults:
            print(f"{file}: {fault}", file=sys.stderr)
            status = 1
        if not faults:
            print(f"{file}: drew {num_blocks} blocks")
    return status


if __name__ == "__main__":
    sys.exit(main())
