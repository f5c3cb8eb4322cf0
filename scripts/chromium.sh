#!/usr/bin/env bash
# Have Debian's Chromium and its driver on this machine, for the tests of the console: found, or
# installed with apt as root. Anything else is one sentence and exit 1; those tests then skip.
set -euo pipefail

found() {
    command -v chromium >/dev/null && command -v chromedriver >/dev/null
}

found && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "bittern: installing Chromium for the tests" >&2
    apt-get update -qq </dev/null >&2 || true
    apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core \
        </dev/null >&2 || true
    found && exit
fi
echo "bittern: Chromium and its driver are needed for some tests: install them (on Debian: sudo apt-get install chromium chromium-driver)" >&2
exit 1
