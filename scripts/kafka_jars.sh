#!/usr/bin/env bash
# Get Spark's Kafka connector and a Kafka broker, which tests need, into the folder $1: jars by name
# and version (kafka-jars.xml) through Maven. $2 is a Python with the pyspark that is to use them.
# The folder appears when all is there, with the list that it was made from; while that is the same
# nothing is done. Any failure is one sentence.
set -euo pipefail
folder=$1 python=$2
list=$(dirname "$0")/kafka-jars.xml
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

fail() {
    echo "bittern: $1" >&2
    exit 1
}

installed=$("$python" -c 'from importlib import metadata; print(metadata.version("pyspark"))' 2>/dev/null) ||
    fail "$python has no pyspark: install bittern[spark] there first"
wanted=$(sed -n 's:.*<pyspark\.version>\(.*\)</pyspark\.version>.*:\1:p' "$list")
[ "$installed" = "$wanted" ] ||
    fail "$list has the Kafka connector for pyspark $wanted, and $installed is installed: change the versions there together"

cmp -s "$list" "$folder/kafka-jars.xml" && exit

JAVA_HOME=$("$(dirname "$0")/java.sh")
export JAVA_HOME
if ! command -v mvn >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        fail "Maven is needed to get Kafka's jars: install it (on Debian and Ubuntu: sudo apt-get install maven)"
    fi
    echo "bittern: installing Maven" >&2
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends maven; } \
        </dev/null >&2 || fail "maven could not be installed with apt-get: install it by hand"
fi

echo "bittern: getting Spark's Kafka connector and a Kafka broker into $folder" >&2
partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial"
get() {
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$list" \
        --activate-profiles "$1" "$plugin:copy-dependencies" -DincludeScope=runtime \
        -DoutputDirectory="$(realpath "$partial")/$1" </dev/null >"$partial/log" 2>&1
}
for each in connector broker; do
    # A second time, since a download may break off; Maven keeps what it has.
    get "$each" || get "$each" || {
        cat "$partial/log" >&2
        fail "Maven could not get the jars of Kafka's $each: see its message above"
    }
done
rm "$partial/log"
cp "$list" "$partial"
rm -rf "$folder"
mv "$partial" "$folder"
