#!/usr/bin/env bash
# Get other systems' own matchers, which tests of bittern.imports ask, into the folder $1: jars by
# name and version (judge-jars.xml) through Maven. The folder appears when all is there, with the
# list that it was made from; while that is the same nothing is done. Any failure is one sentence.
set -euo pipefail
folder=$1
list=$(dirname "$0")/judge-jars.xml
. "$(dirname "$0")/maven.sh"

cmp -s "$list" "$folder/judge-jars.xml" && exit

echo "bittern: getting other systems' matchers into $folder" >&2
partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial"
get_jars "$list" "$partial" judges
cp "$list" "$partial"
rm -rf "$folder"
mv "$partial" "$folder"
