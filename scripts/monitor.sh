#!/usr/bin/env bash
# Build Lucene's Monitor behind an HTTP server into the folder $1, for benchmarks.serve: jars by name
# and version (monitor-jars.xml) through Maven, and Front.class. The folder appears when all is
# there, with a hash of what it was made from. Any failure is one sentence, and exit 1.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source=$here/../benchmarks/serve/monitor/Front.java
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
made_from=$(cat "$here/monitor.sh" "$here/monitor-jars.xml" "$source" | sha256sum)

fail() {
    echo "bittern: $1" >&2
    exit 1
}

[ "$(cat "$folder/made_from" 2>/dev/null)" = "$made_from" ] && exit
command -v mvn >/dev/null && command -v javac >/dev/null ||
    fail "Maven and a JDK are needed for Lucene's Monitor: install them (on Debian and Ubuntu: maven, default-jdk)"

echo "bittern: building Lucene's Monitor into $folder" >&2
partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial"
get() {
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$here/monitor-jars.xml" \
        "$plugin:copy-dependencies" -DincludeScope=runtime \
        -DoutputDirectory="$(realpath "$partial")" </dev/null >"$partial/log" 2>&1
}
# A second time, since a download may break off; Maven keeps what it has.
{ get || get; } && javac -cp "$partial/*" -d "$partial" "$source" >>"$partial/log" 2>&1 || {
    cat "$partial/log" >&2
    fail "Lucene's Monitor cannot be built: see the message above"
}
rm "$partial/log"
echo "$made_from" >"$partial/made_from"
rm -rf "$folder"
mv "$partial" "$folder"
