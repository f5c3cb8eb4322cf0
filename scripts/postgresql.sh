#!/usr/bin/env bash
# Have PostgreSQL's server programs on this machine, for the tests that start one of their own: found,
# or installed with apt as root. Anything else is one sentence and exit 1; those tests then skip.
set -euo pipefail

found() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null
}

found && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "bittern: installing PostgreSQL for the tests" >&2
    apt-get update -qq </dev/null >&2 || true
    # Debian's package would start a server of its own, which nobody here needs.
    mkdir -p /etc/postgresql-common
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    apt-get install -y -qq --no-install-recommends postgresql </dev/null >&2 || true
    found && exit
fi
echo "bittern: PostgreSQL's server is needed for some tests: install it (on Debian and Ubuntu: sudo apt-get install postgresql)" >&2
exit 1
