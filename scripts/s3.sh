#!/usr/bin/env bash
# Get Spark's connector for S3 and a server of S3's protocol, which tests need, into the folder $1:
# jars by name and version (s3-jars.xml) through Maven, and the server's packages (s3-server.txt)
# with pip. $2 is a Python with the pyspark that is to use them. The folder appears when all is
# there, with the lists that it was made from; while those are the same nothing is done. Any failure
# is one sentence.
set -euo pipefail
folder=$1 python=$2
here=$(dirname "$0")
jars=$here/s3-jars.xml server=$here/s3-server.txt
. "$here/maven.sh"

check_pyspark "$jars" "$python" "the connector"
cmp -s "$jars" "$folder/s3-jars.xml" && cmp -s "$server" "$folder/s3-server.txt" && exit

echo "bittern: getting Spark's connector for S3 and a server of its protocol into $folder" >&2
partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial/connector"
get_jars "$jars" "$partial/connector" "Spark's connector for S3"
# Spark has these itself, some in other versions.
rm -f "$partial"/connector/{commons-,httpc,netty-[bcrht],slf4j-}*.jar
"$python" -m pip install --quiet --no-deps --target "$partial/server" --requirement "$server" \
    </dev/null >&2 || fail "pip could not get the server for S3: see its message above"
cp "$jars" "$server" "$partial"
rm -rf "$folder"
mv "$partial" "$folder"
