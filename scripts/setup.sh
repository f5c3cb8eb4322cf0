#!/usr/bin/env bash
# Make the virtual environment $1 and install Bittern there, editable, with the extra $2 and the
# versions of constraints.txt. PYTHON=... chooses the interpreter. Any failure is one sentence.
set -euo pipefail
venv=$1 extra=$2

fail() {
    echo "bittern: $1" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local each
    for each in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        if new_enough "$each"; then
            echo "$each"
            return
        fi
    done
    fail "Python 3.11 or later is needed, and ${PYTHON:-python3} is not: install one, or say where it is with PYTHON=/path/to/python make ..."
}

make_venv() {
    local python package
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
            fail "$python cannot make virtual environments: install $package (on Debian and Ubuntu: sudo apt-get install $package)"
        fi
        echo "bittern: installing $package" >&2
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$package"; } \
            </dev/null >&2 || fail "$package could not be installed with apt-get: install it by hand"
    fi
    "$python" -m venv --clear "$venv" || fail "$python could not make the virtual environment $venv"
}

new_enough "$venv/bin/python" || make_venv
echo "bittern: installing into $venv (extra: $extra)" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt --editable ".[$extra]" </dev/null ||
    fail "the packages of constraints.txt could not be installed: see pip's message above"
