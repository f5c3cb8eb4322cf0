#!/usr/bin/env bash
# Get Spark's Kafka connector and a Kafka broker, which tests need, into the folder $1: jars by name
# and version (kafka-jars.xml) through Maven. $2 is a Python with the pyspark that is to use them.
# The folder appears when all is there, with the list that it was made from; while that is the same
# nothing is done. Any failure is one sentence.
set -euo pipefail
folder=$1 python=$2
list=$(dirname "$0")/kafka-jars.xml
. "$(dirname "$0")/maven.sh"

check_pyspark "$list" "$python" "the Kafka connector"
cmp -s "$list" "$folder/kafka-jars.xml" && exit

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
for each in connector broker; do
    mkdir "$partial/$each"
    get_jars "$list" "$partial/$each" "Kafka's $each" --activate-profiles "$each"
done
cp "$list" "$partial"
rm -rf "$folder"
mv "$partial" "$folder"
