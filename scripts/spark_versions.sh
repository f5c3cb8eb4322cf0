#!/usr/bin/env bash
# Try Bittern on other versions of Spark: for each, an environment of its own below the folder $1,
# with the lowest versions of everything else that pyproject.toml allows, and the jars of Delta and
# Iceberg for it; there the smoke tests of tests/spark/test_spark_versions.py and the tests of tables
# run. Further arguments are versions (3.5 4.0 ...); without any, all of scripts/spark-versions.txt.
# TESTS=... chooses other tests. What is there is used again. Any failure is one sentence.
set -euo pipefail
folder=$(realpath -m "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
list=$here/spark-versions.txt
read -ra wanted <<<"$*"
[ ${#wanted[@]} -gt 0 ] || mapfile -t wanted < <(sed -n 's/^\([0-9.]*\) .*/\1/p' "$list")
read -ra tests <<<"${TESTS:-tests/spark/test_spark_versions.py tests/spark/test_tables.py}"

fail() {
    echo "bittern: $1" >&2
    exit 1
}

# What pyproject.toml needs at least, as exact versions; of pyspark the one of $1.
lowest() {
    "$python" - "$1" <<'PYTHON'
import re
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
for need in [*project["dependencies"], *extras["catalog"], *extras["spark"]]:
    name, least = re.match(r"([\w.-]+)(?:\[[\w,]+\])?(?:>=([\w.]+))?", need).groups()
    if name != "bittern":
        print(f"{name}=={sys.argv[1] if name == 'pyspark' else least}")
for line in open("constraints.txt", encoding="utf-8"):
    if re.match(r"(pytest|hypothesis|iniconfig|pluggy|sortedcontainers)==", line):
        print(line.strip())
PYTHON
}

environment() {
    local place=$1 pyspark=$2
    python=$place/venv/bin/python
    [ -x "$python" ] || {
        "${PYTHON:-python3.11}" -m venv "$place/venv" || fail "no Python 3.11 to make $place/venv with"
    }
    lowest "$pyspark" >"$place/wanted"
    cmp -s "$place/wanted" "$place/installed" && return
    echo "bittern: installing pyspark $pyspark and the lowest of all others into $place" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --requirement "$place/wanted" \
        pytest hypothesis --editable . </dev/null >&2 ||
        fail "the environment of Spark $pyspark could not be installed: see pip's message above"
    mv "$place/wanted" "$place/installed"
}

# The jars that are named, if Maven has them; a table format without them is tested nowhere.
jars() {
    local place=$1 each
    shift
    [ "$*" = "$(cat "$place/jars/list" 2>/dev/null)" ] && return
    rm -rf "$place/jars"
    mkdir -p "$place/jars"
    for each in "$@"; do
        mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never \
            org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="$each" \
            -DoutputDirectory="$place/jars" </dev/null >"$place/log" 2>&1 || {
            cat "$place/log" >&2
            fail "Maven could not get $each: see its message above"
        }
    done
    echo "$*" >"$place/jars/list"
}

JAVA_HOME=$("$here/java.sh")
export JAVA_HOME
ran=() failed=()
for version in "${wanted[@]}"; do
    line=$(grep "^$version " "$list") || fail "$list has no Spark $version"
    read -r _ pyspark artifacts <<<"$line"
    mkdir -p "$folder/$version"
    environment "$folder/$version" "$pyspark"
    read -ra artifacts <<<"$artifacts"
    jars "$folder/$version" ${artifacts[@]+"${artifacts[@]}"}
    echo "bittern: Spark $pyspark, with the lowest versions of everything else" >&2
    # Kernels apart from those of other versions of Numba; warnings of old packages are not ours.
    if NUMBA_CACHE_DIR=$folder/kernels BITTERN_TABLE_JARS=$folder/$version/jars \
        "$python" -m pytest -q -p no:cacheprovider -W default "${tests[@]}"; then
        ran+=("$pyspark")
    else
        failed+=("$pyspark")
    fi
done
echo "bittern: passed on Spark ${ran[*]-none}${failed[*]+; FAILED on ${failed[*]}}" >&2
[ ${#failed[@]} = 0 ]
