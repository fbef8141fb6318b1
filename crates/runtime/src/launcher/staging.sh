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

say "client ${SSH_CONNECTION%% *}"
if [ -n "$program" ]; then
    program=$(expand "$program")
else
    if [ -n "$folder" ]; then
        folder=$(expand "$folder")
    elif [ -n "${XDG_CACHE_HOME:-}" ]; then
        folder=$XDG_CACHE_HOME/gridrpc
    elif [ -d "${HOME:-}" ]; then
        folder=$HOME/.cache/gridrpc
    else
        fail home "${HOME:-}"
    fi
    say "folder $folder"
    program=$folder/$hash/gridrpc
    if [ ! -x "$program" ]; then
        # Hosts that share the folder may do this at once: each has a file of its own until it is whole.
        new=$program.$attempt
        trap 'rm -f "$new"' EXIT
        trap 'exit 1' HUP INT TERM
        why=$( (umask 077 && LC_ALL=C mkdir -p "$folder/$hash" && : >"$new") 2>&1) || fail folder "$why"
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
