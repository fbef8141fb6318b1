# Runs on a host, in /bin/sh, behind lines that set `program`, `folder`, `hash`, `size` and `attempt`:
# sees that the program is there, and becomes the agent. What it tells is in lines with a mark, for
# `Told` of staging.rs; there, and in docs, is what they mean.
set -f
say() { printf 'gridrpc: %s\n' "$*"; }
# fail KIND WHY...: WHY in one line.
fail() {
    say "failed $(printf '%s' "$*" | tr '\n' ' ')"
    exit 1
}
# expand PATH: with the home folder for a tilde.
expand() {
    case $1 in
        '~/'*) printf '%s' "${HOME:-}/${1#??}" ;;
        *) printf '%s' "$1" ;;
    esac
}
# check_owners PATH: sees that only this user and root can change what PATH is, as safe_path.rs does. PATH is absolute
# and has no links.
check_owners() {
    path=$1
    set -- "$path"
    while [ "$path" != / ]; do
        path=${path%/*}
        path=${path:-/}
        set -- "$path" "$@"
    done
    owners=$(LC_ALL=C stat -c '%u %g %a' -- "$@" 2>&1) || fail folder "$owners"
    me=$(id -u)
    printf '%s\n' "$owners" | {
        shared=
        while read -r uid gid mode; do
            case $uid in
                0 | "$me") ;;
                65534) [ -z "$shared" ] && ! root_is_mapped || fail owner "$uid 0$mode $1" ;;
                *) fail owner "$uid 0$mode $1" ;;
            esac
            shared=
            if [ $((0$mode & 2)) -ne 0 ] || { [ $((0$mode & 020)) -ne 0 ] && ! is_own_group "$gid"; }; then
                [ $# -gt 1 ] && [ $((0$mode & 01000)) -ne 0 ] || fail writable "$uid 0$mode $1"
                shared=yes
            fi
            shift
        done
        [ $# -eq 0 ] || fail folder "the owners of folders above it are not known"
    } || exit 1
}
is_own_group() { [ "$1" = 0 ] || { [ "$1" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ]; }; }
root_is_mapped() { read -r inside outside _ </proc/self/uid_map && [ "$inside $outside" = "0 0" ]; }

case $program$folder in '~/'*) [ -d "${HOME:-}" ] || fail home "${HOME:-}" ;; esac
say "client ${SSH_CONNECTION%% *}"
if [ -n "$program" ]; then
    program=$(expand "$program")
else
    if [ -n "$folder" ]; then
        folder=$(expand "$folder")
    elif [ -z "${XDG_CACHE_HOME%%/*}" ] && [ -n "${XDG_CACHE_HOME:-}" ]; then
        folder=$XDG_CACHE_HOME/gridrpc
    elif [ -d "${HOME:-}" ]; then
        folder=$HOME/.cache/gridrpc
    else
        fail home "${HOME:-}"
    fi
    say "folder $folder"
    if [ ! -d "$folder/$hash" ]; then
        why=$( (umask 077 && LC_ALL=C mkdir -p "$folder/$hash") 2>&1) || fail folder "$why"
    fi
    # Without links: what has been checked is what is run.
    place=$(CDPATH='' LC_ALL=C cd -P -- "$folder/$hash" 2>&1 && pwd -P) || fail folder "$place"
    program=$place/gridrpc
    if [ -e "$program" ]; then check_owners "$program"; else check_owners "$place"; fi
    if [ ! -x "$program" ] || [ "$(wc -c <"$program")" -ne "$size" ]; then
        # Hosts that share the folder may do this at once: each has a file of its own until it is whole.
        new=$program.$attempt
        trap 'rm -f "$new"' EXIT
        trap 'exit 1' HUP INT TERM
        why=$( (umask 077 && LC_ALL=C : >"$new") 2>&1) || fail folder "$why"
        say "absent $(uname -sm)"
        why=$( (LC_ALL=C head -c "$size" >"$new") 2>&1) || fail store "$why"
        [ "$(wc -c <"$new")" -eq "$size" ] || fail store "not all of it has arrived"
        why=$( (LC_ALL=C chmod 700 "$new") 2>&1) || fail store "$why"
        # Before it is in its place: there it is taken for good.
        why=$("$new" --version 2>&1 >/dev/null </dev/null) || fail run "$? $why"
        why=$( (LC_ALL=C mv -f "$new" "$program") 2>&1) || fail store "$why"
        trap - EXIT HUP INT TERM
    fi
fi
why=$("$program" --version 2>&1 >/dev/null </dev/null) || fail run "$? $program: $why"
say starts
exec "$program" agent
