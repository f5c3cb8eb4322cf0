#!/usr/bin/env bash
# Build the packages into dist/, twice, and compare them: whoever builds the same commit gets the
# same bytes. Then install the wheel, and the source package, into empty environments below build/
# and use them from there. PYTHON=... chooses the interpreter. Any failure is one sentence.
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
for package in dist/*.whl dist/*.tar.gz; do
    place=$work/$(basename "$package" .tar.gz)
    "$python" -m venv "$place"
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt "$package" </dev/null || fail "$package could not be installed"
    (cd "$work" && "$place/bin/python" -c "$use" && "$place/bin/bittern" --version >/dev/null) ||
        fail "$package is installed, and does not work: see the message above"
done
echo "built twice, alike, and used: $(cd dist && echo *)"
