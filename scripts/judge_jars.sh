#!/usr/bin/env bash
# Get other systems' own matchers, which tests of bittern.imports ask, into the folder $1: jars by
# name and version (judge-jars.xml) through Maven. The folder appears when all is there, with the
# list that it was made from; while that is the same nothing is done. Any failure is one sentence.
set -euo pipefail
folder=$1
list=$(dirname "$0")/judge-jars.xml
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

fail() {
    echo "bittern: $1" >&2
    exit 1
}

cmp -s "$list" "$folder/judge-jars.xml" && exit
command -v mvn >/dev/null ||
    fail "Maven is needed to get the jars of judges: install it (on Debian and Ubuntu: sudo apt-get install maven)"
JAVA_HOME=$("$(dirname "$0")/java.sh")
export JAVA_HOME

echo "bittern: getting other systems' matchers into $folder" >&2
partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial"
get() {
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$list" \
        "$plugin:copy-dependencies" -DincludeScope=runtime \
        -DoutputDirectory="$(realpath "$partial")" </dev/null >"$partial/log" 2>&1
}
# A second time, since a download may break off; Maven keeps what it has.
get || get || {
    cat "$partial/log" >&2
    fail "Maven could not get the jars of judges: see its message above"
}
rm "$partial/log"
cp "$list" "$partial"
rm -rf "$folder"
mv "$partial" "$folder"
