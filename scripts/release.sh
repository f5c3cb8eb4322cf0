#!/usr/bin/env bash
# What a release needs, up to the step that a person has to take: scripts/release.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "bittern: $1" >&2
    exit 1
}

version=${1:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "say which version: scripts/release.sh 1.2.3"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
grep -qx "version = \"$version\"" pyproject.toml || fail "pyproject.toml has another version"
grep -qx "__version__ = \"$version\"" src/bittern/__init__.py ||
    fail "src/bittern/__init__.py has another version"
grep -q "^## $version (20..-..-..)$" CHANGELOG.md ||
    fail "CHANGELOG.md has no heading '## $version (date)'"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || fail "v$version is there already"

.ci/run || fail "the checks have failed"
make test-spark-versions || fail "the tests on other versions of Spark have failed"
make dist

cat <<TEXT

All that a machine can check is done. What is left is yours:

  1. Read the changelog once as a stranger would.
  2. git tag --annotate v$version --message "Bittern $version" && git push --follow-tags
  3. .venv/bin/python -m twine upload dist/*
  4. Begin the next version: pyproject.toml, src/bittern/__init__.py, CHANGELOG.md.
TEXT
