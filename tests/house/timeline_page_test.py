#!/usr/bin/env python3
"""Opens the timeline that example 01 writes in headless Chromium: it draws, and needs no network.

usage: timeline_page_test.py EXAMPLE OUTPUT_FOLDER   leaves timeline.html and timeline.png there.
Status 77 (skipped) when there is no Chromium.
"""
import os
import re
import shutil
import subprocess
import sys

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')


def browse(browser, profile, page, *options):
    return subprocess.run(
        [browser, '--headless', '--no-sandbox', '--disable-gpu', '--window-size=1400,900',
         f'--user-data-dir={profile}', '--host-resolver-rules=MAP * ~NOTFOUND',
         '--virtual-time-budget=3000', '--enable-logging=stderr', *options, 'file://' + page],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)


def problems(html, dom, log, screenshot):
    """Sentences about what is wrong with the page; empty when it is right."""
    if re.search(r'(?:src|href)\s*=\s*["\']?(?:https?:)?//', html):
        yield 'the page loads something from the network'
    console = [line for line in log.splitlines() if 'CONSOLE' in line and
               re.search(r'error|Uncaught|Refused', line, re.IGNORECASE)]
    if console:
        yield 'the page reports errors: ' + '; '.join(console)
    if dom.count('<rect') < 4:
        yield f'the drawn page has {dom.count("<rect")} rectangles; a timeline has one per tile'
    if not re.search(r'<title>[^<]+</title>', dom):
        yield 'the page has no title'
    if not os.path.isfile(screenshot) or os.path.getsize(screenshot) < 4096:
        yield 'the screenshot is missing or blank'


def main():
    example, output = sys.argv[1], os.path.abspath(sys.argv[2])
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        print('skipped: no Chromium is installed')
        return 77
    os.makedirs(output, exist_ok=True)
    page, screenshot = os.path.join(output, 'timeline.html'), os.path.join(output, 'timeline.png')
    for path in (page, screenshot):
        if os.path.exists(path):
            os.remove(path)
    subprocess.run([example, '--device', 'cpu', '--timeline', page], check=True, cwd=output)
    profile = os.path.join(output, 'profile')
    drawn = browse(browser, profile, page, '--dump-dom')
    browse(browser, profile, page, f'--screenshot={screenshot}')
    with open(page, encoding='utf-8') as file:
        found = list(problems(file.read(), drawn.stdout, drawn.stderr, screenshot))
    print('\n'.join(found) if found else f'{page} draws; screenshot in {screenshot}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
