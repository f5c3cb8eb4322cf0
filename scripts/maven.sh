# What the scripts that get jars share; they source it. Any failure is one sentence.

fail() {
    echo "bittern: $1" >&2
    exit 1
}

# Is the pyspark of the Python $2 the one that the list $1 has $3 for?
check_pyspark() {
    local installed wanted
    installed=$("$2" -c 'from importlib import metadata; print(metadata.version("pyspark"))' 2>/dev/null) ||
        fail "$2 has no pyspark: install bittern[spark] there first"
    wanted=$(sed -n 's:.*<pyspark\.version>\(.*\)</pyspark\.version>.*:\1:p' "$1")
    [ "$installed" = "$wanted" ] ||
        fail "$1 has $3 for pyspark $wanted, and $installed is installed: change the versions there together"
}

# Put the jars of the list $1 into the folder $2, with further arguments of Maven's, for $3: twice,
# since a download may break off; Maven keeps what it has.
get_jars() {
    local list=$1 folder=$2 what=$3
    shift 3
    command -v mvn >/dev/null ||
        fail "Maven is needed to get the jars of $what: install it (on Debian and Ubuntu: sudo apt-get install maven)"
    JAVA_HOME=$("$(dirname "$list")/java.sh")
    export JAVA_HOME
    local log=$folder.log command
    command=(mvn --batch-mode --quiet --strict-checksums -Dstyle.color=never --file "$list" "$@"
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
        -DincludeScope=runtime "-DoutputDirectory=$(realpath "$folder")")
    "${command[@]}" </dev/null >"$log" 2>&1 || "${command[@]}" </dev/null >"$log" 2>&1 || {
        cat "$log" >&2
        fail "Maven could not get the jars of $what: see its message above"
    }
    rm "$log"
}
