# What the scripts share; to be sourced by them.
# shellcheck shell=bash

say() { printf '%s\n' "$*"; }

# fail MESSAGE...: one line each, then the end.
fail() {
    printf 'error: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

# install_system_packages PACKAGE...: as root on Debian and its kin; otherwise says what to do. With a folder
# in COLLECT it only notes there what is missing, and ends the script.
install_system_packages() {
    if [[ -n ${COLLECT-} ]]; then
        printf '%s\n' "$@" >>"$COLLECT/packages"
        exit
    fi
    local command="apt-get install --no-install-recommends $*"
    command -v apt-get >/dev/null || fail "missing on this machine: $*" \
        "Install them with the system's package manager (these are Debian's names)."
    [[ $(id -u) == 0 ]] || fail "missing on this machine: $*" "Install them: sudo $command"
    say "installing $* ..."
    export DEBIAN_FRONTEND=noninteractive
    local log
    log=$(mktemp)
    for attempt in 1 2; do
        # Lists that are old name files which the mirrors have dropped.
        apt-get -q update </dev/null >"$log" 2>&1 || true
        if apt-get -q install -y --no-install-recommends "$@" </dev/null >>"$log" 2>&1; then
            rm -f "$log"
            return
        fi
        say "attempt $attempt failed"
    done
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "could not install $*" "Its messages stand above. By hand: $command"
}

# install_daemons SERVICES PACKAGE...: as install_system_packages, but the system starts none of the
# services, neither now nor when it boots.
install_daemons() {
    local services=$1
    shift
    if [[ -n ${COLLECT-} ]]; then
        # shellcheck disable=SC2086
        printf '%s\n' $services >>"$COLLECT/services"
        install_system_packages "$@"
    fi
    # Debian starts what it installs, unless this file forbids it.
    if [[ $(id -u) == 0 && ! -e /usr/sbin/policy-rc.d ]]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
    fi
    install_system_packages "$@"
    if command -v systemctl >/dev/null; then
        # shellcheck disable=SC2086
        [[ -z $services ]] || systemctl --quiet disable $services 2>/dev/null || true
    fi
}
