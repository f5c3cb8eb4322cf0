#!/usr/bin/env bash
# Print the home of a Java that Spark runs on (17 or later): JAVA_HOME, the one on the path, one in
# the usual places; as root with apt-get, install one. Anything else is one sentence and exit 1.
set -euo pipefail

# The home that a java command tells of itself, if it is new enough.
home_of() {
    local told version
    told=$("$1" -XshowSettings:properties -version 2>&1 </dev/null) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = \(1\.\)\{0,1\}//p' <<<"$told")
    [ "${version:-0}" -ge 17 ] && sed -n 's/^ *java\.home = //p' <<<"$told"
}

find_java() {
    local each
    for each in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
        /usr/lib/jvm/*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        if [ -x "$each" ] && home_of "$each"; then
            return
        fi
    done
    return 1
}

find_java && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "bittern: installing Java for Spark" >&2
    apt-get update -qq </dev/null >&2 || true
    for package in openjdk-17-jre-headless openjdk-21-jre-headless; do
        apt-get install -y -qq --no-install-recommends "$package" </dev/null >&2 || continue
        find_java && exit
    done
fi
echo "bittern: Java 17 or later is needed for Spark: install one (on Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2
exit 1
