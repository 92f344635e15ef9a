#!/usr/bin/env bash
# Installs the Debian packages of requirements/debian.txt that are missing; says what it does, does nothing when all are there.
set -euo pipefail
list="$(dirname "$0")/../requirements/debian.txt"

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

if ! command -v apt-get >/dev/null; then
    echo "setup: this is not a Debian system; install the equivalents of these packages by hand:"
    grep -v '^#' "$list" | sed 's/^/    /'
    exit 0
fi

alternatives=()
while IFS= read -r line; do
    found=
    for package in ${line//|/ }; do
        if installed "$package"; then found=yes; fi
    done
    [ -n "$found" ] || alternatives+=("$line")
done < <(grep -v -e '^#' -e '^$' "$list")
[ ${#alternatives[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" != 0 ]; then
    root=(sudo)
    command -v sudo >/dev/null || {
        echo "setup: these Debian packages are missing, and neither root nor sudo is at hand: ${alternatives[*]}" >&2
        exit 1
    }
fi
export DEBIAN_FRONTEND=noninteractive
echo "setup: apt-get update"
"${root[@]}" apt-get update -qq

missing=()
for line in "${alternatives[@]}"; do
    choice=
    for package in ${line//|/ }; do
        if [ -z "$choice" ] && [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then choice="$package"; fi
    done
    missing+=("${choice:-${line%% *}}")
done
echo "setup: apt-get install ${missing[*]}"
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
