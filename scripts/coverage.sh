#!/usr/bin/env bash
# Print how many lines of src the tests run: all tests, or those that the arguments (pytest's) name.
#
#     scripts/coverage.sh
#     scripts/coverage.sh tests/core/test_bits.py
#
# Processes that tests start count too, Spark's Python workers among them; what is killed with
# SIGKILL takes its lines with it. Compiled code leaves no trace, so kernels and the functions that
# they call are not counted. The report is printed whatever tests fail.
set -euo pipefail
cd "$(dirname "$0")/.."
run=.venv/bin/python
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
export COVERAGE_FILE=$data/lines
JAVA_HOME=$(scripts/java.sh) && export JAVA_HOME || echo "bittern: TESTS WITH SPARK ARE SKIPPED" >&2

[ $# -gt 0 ] || set -- -n 2 --dist loadfile --no-loadscope-reorder
code=0
"$run" -m coverage run -m pytest "$@" || code=$?
"$run" -m coverage combine --quiet "$data"
"$run" -m coverage report
exit "$code"
