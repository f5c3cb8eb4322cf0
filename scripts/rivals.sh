#!/usr/bin/env bash
# Build the engines that benchmarks.rivals runs beside Bittern into the folder $1:
#   ruler/    event-ruler: jars by name and version (rival-jars.xml) through Maven, and Ruler.class
#   quamina   Quamina: a module by name and version (go.mod, go.sum) through Go's proxy
# The folder appears when all is there, with a hash of what it was made from; while that is the same
# nothing is done. What cannot be built is told in a sentence and left out. $2 is a Python: it gets
# the package of Hyperscan, of the version in constraints.txt.
set -uo pipefail
folder=$1 python=$2
here=$(cd "$(dirname "$0")" && pwd)
sources=$here/../benchmarks/rivals
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
made_from=$(cat "$here/rivals.sh" "$here/rival-jars.xml" "$sources"/ruler/* "$sources"/quamina/* | sha256sum)

[ "$(cat "$folder/made_from" 2>/dev/null)" = "$made_from" ] && exit 0
tell() { echo "bittern: $1" >&2; }

partial=$folder.partial
rm -rf "$partial"
mkdir -p "$partial/ruler"
partial=$(cd "$partial" && pwd)
complete=1

get_jars() {
    mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$here/rival-jars.xml" \
        "$plugin:copy-dependencies" -DincludeScope=runtime \
        -DoutputDirectory="$partial/ruler" </dev/null >"$partial/log" 2>&1
}
build_ruler() {
    command -v mvn >/dev/null && command -v javac >/dev/null || {
        tell "Maven and a JDK are needed to build event-ruler: install them (on Debian and Ubuntu: maven, default-jdk)"
        return 1
    }
    # A second time, since a download may break off; Maven keeps what it has.
    { get_jars || get_jars; } &&
        javac -cp "$partial/ruler/*" -d "$partial/ruler" "$sources/ruler/Ruler.java" >>"$partial/log" 2>&1
}
build_quamina() {
    command -v go >/dev/null || {
        tell "Go is needed to build Quamina: install it (on Debian and Ubuntu: golang-go)"
        return 1
    }
    (cd "$sources/quamina" && go build -mod=readonly -o "$partial/quamina" .) >"$partial/log" 2>&1
}

for each in ruler quamina; do
    tell "building $each"
    if ! "build_$each"; then
        tell "$each cannot be built and is left out"
        cat "$partial/log" >&2 2>/dev/null
        rm -rf "${partial:?}/$each"
        complete=
    fi
    rm -f "$partial/log"
done
"$python" -m pip install --quiet --constraint "$here/../constraints.txt" hyperscan ||
    { tell "Hyperscan has no package for this machine and is left out"; complete=; }
# What is not complete is tried again the next time.
[ -n "$complete" ] && echo "$made_from" >"$partial/made_from"
rm -rf "$folder"
mv "$partial" "$folder"
