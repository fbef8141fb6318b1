#!/bin/sh
# A launcher for gridrpc (docs/launchers.md): starts agents through ssh, or on this machine for the
# host `localhost`. `gridrpc` has to be installed on the hosts; GRIDRPC names another program.
program=${GRIDRPC:-gridrpc}
folder=$(mktemp -d) || exit

# agent NUMBER HOST: runs an agent, whose ticket is this function's standard input, until it ends.
agent() {
    mkfifo "$folder/$1"
    while read -r line; do printf 'said %s %s\n' "$1" "$line"; done <"$folder/$1" &
    if [ "$2" = localhost ]; then
        set -- "$1" "$program" agent
    else
        set -- "$1" ssh -T -o BatchMode=yes -o ServerAliveInterval=15 "$2" "exec $program agent"
    fi
    number=$1
    shift
    "$@" >/dev/null 2>"$folder/$number"
    status=$?
    wait
    rm "$folder/$number" "$folder/in$number" "$folder/holder$number"
    echo "ended $number with status $status"
}

# start NUMBER HOST TICKET: the pipe stays open behind the ticket until the agent is to end.
start() {
    mkfifo "$folder/in$1"
    agent "$1" "$2" <"$folder/in$1" &
    { echo "$3"; exec sleep 2147483647; } >"$folder/in$1" &
    echo $! >"$folder/holder$1"
    echo "started $1"
}

# stop NUMBER: an agent ends when its standard input does.
stop() { [ -e "$folder/holder$1" ] && kill "$(cat "$folder/holder$1")" 2>/dev/null; }

read -r hello
[ "$hello" = 'gridrpc-launcher 1' ] || { echo "not spoken here: $hello" >&2; exit 1; }
while read -r word number host ticket; do
    case $word in
        start) start "$number" "$host" "$ticket" ;;
        stop) stop "$number" ;;
        end) break ;;
    esac
done
# The end of the input is the client's end.
for holder in "$folder"/holder*; do [ -e "$holder" ] && kill "$(cat "$holder")" 2>/dev/null; done
wait
rm -r "$folder"
