#!/usr/bin/env bash
# Build the packages into dist/, twice, and compare them: whoever builds the same commit gets the
# same bytes. Then install the wheel into an empty environment below build/, and in its place the
# source package, and use both. PYTHON=... chooses the interpreter. Any failure is one sentence.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
work=$(realpath -m build/packages)

fail() {
    echo "bittern: $1" >&2
    exit 1
}

# Archives have the times of files in them: let all of them be that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$work" dist
mkdir -p "$work/first" "$work/second" dist
for each in first second; do
    git archive --prefix="$each-source/" HEAD | tar -x -C "$work"
    "$python" -m build --outdir "$work/$each" "$work/$each-source" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; fail "the packages could not be built: see the message above"; }
done
# The archive of sources still has the time at which it was made, and users of this machine.
for archive in "$work"/*/*.tar.gz; do
    tar -x -z -C "$(dirname "$archive")" -f "$archive"
    (cd "$(dirname "$archive")" && name=$(basename "$archive" .tar.gz) &&
        tar -c --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$name" |
        gzip --no-name --best >"$archive" && rm -r "$name")
done
for package in "$work"/first/*; do
    cmp "$package" "$work/second/$(basename "$package")" ||
        fail "two builds of $(basename "$package") differ"
    cp "$package" dist
done
"$python" -m twine check --strict dist/* >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "an index would not show the README: see the message above"; }

use='
import importlib.resources, pathlib, sys
import bittern
assert pathlib.Path(bittern.__file__).is_relative_to(sys.prefix), bittern.__file__
index = bittern.Index.build({"s1": "model = '"'iphone5s'"' AND price <= 580"})
found = bittern.Matcher(index).match([{"model": "iphone5s", "price": 550}]).to_pylist()
assert found == [["s1"]], found
files = importlib.resources.files("bittern")
for needed in ("py.typed", "service/console/static/console.css", "service/console/templates"):
    assert (files / needed).exists(), needed
'
"$python" -m venv "$work/empty"
install() {
    "$work/empty/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt "$@" </dev/null || fail "$* could not be installed"
    (cd "$work" && empty/bin/python -c "$use" && empty/bin/bittern --version >/dev/null) ||
        fail "$* is installed, and does not work: see the message above"
}
install dist/*.whl
install --force-reinstall --no-deps dist/*.tar.gz
echo "built twice, alike, and used: $(cd dist && echo *)"
