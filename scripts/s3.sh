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
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

fail() {
    echo "bittern: $1" >&2
    exit 1
}

installed=$("$python" -c 'from importlib import metadata; print(metadata.version("pyspark"))' 2>/dev/null) ||
    fail "$python has no pyspark: install bittern[spark] there first"
wanted=$(sed -n 's:.*<pyspark\.version>\(.*\)</pyspark\.version>.*:\1:p' "$jars")
[ "$installed" = "$wanted" ] ||
    fail "$jars has the connector for pyspark $wanted, and $installed is installed: change the versions there together"

cmp -s "$jars" "$folder/s3-jars.xml" && cmp -s "$server" "$folder/s3-server.txt" && exit
command -v mvn >/dev/null ||
    fail "Maven is needed to get the jars for S3: install it (on Debian and Ubuntu: sudo apt-get install maven)"
JAVA_HOME=$("$here/java.sh")
export JAVA_HOME

echo "bittern: getting Spark's connector for S3 and a server of its protocol into $folder" >&2
partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial"
get_jars() {
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$jars" \
        "$plugin:copy-dependencies" -DincludeScope=runtime \
        -DoutputDirectory="$(realpath "$partial")/connector" </dev/null >"$partial/log" 2>&1
}
get_server() {
    "$python" -m pip install --quiet --no-deps --target "$partial/server" \
        --requirement "$server" </dev/null >"$partial/log" 2>&1
}
# A second time, since a download may break off; Maven keeps what it has.
get_jars || get_jars || {
    cat "$partial/log" >&2
    fail "Maven could not get the jars for S3: see its message above"
}
get_server || get_server || {
    cat "$partial/log" >&2
    fail "pip could not get the server for S3: see its message above"
}
# Spark has these itself, some in other versions.
rm -f "$partial"/connector/{commons-,httpc,netty-[bcrht],slf4j-}*.jar "$partial/log"
cp "$jars" "$server" "$partial"
rm -rf "$folder"
mv "$partial" "$folder"
