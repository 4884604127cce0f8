# What stands in front of every session's commands. Told on descriptor 3: `begin N`, `end N CODE`,
# `ended N CODE`, `silent N` and `gone N` of servers, `over`.
report() { echo "$*" >&3; }

# A machine with one interface, whose cable is plugged into itself.
(
    set -e
    ip link set lo up
    ip link add eth0 type veth peer name cable
    # IPv6 on both ends would hear itself.
    ip link set eth0 addrgenmode none
    ip link set cable addrgenmode none
    ip address add 192.0.2.2/24 dev eth0
    ip link set cable up
    ip link set eth0 up
    ip route add default dev eth0
) || { report network; exit 1; }

# Sockets that wait for somebody: TCP that listens (0A, proc(5)), and all UDP.
listeners() {
    awk '$4 == "0A" { print $2, $10 } FILENAME ~ /udp/ && FNR > 1 { print $2, $10 }' /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | sort
}

# Ends the server in the foreground, as Ctrl-C would; it has to be there still.
end_server() {
    [[ -n ${server-} ]] || return 0
    kill "$server" 2>/dev/null || report gone "$server_of"
    wait "$server"
    server=
}

# Until the process $1 of command $2 has a socket that $3 does not name, or has ended.
await_socket() {
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        if ! kill -0 "$1" 2>/dev/null; then
            wait "$1"
            report ended "$2" "$?"
            return
        fi
        if [[ $(comm -13 <(echo "$3") <(listeners) | wc -l) -gt 0 ]]; then
            settle
            report end "$2" 0
            return
        fi
        sleep 0.1
    done
    report silent "$2"
}

# Until no more sockets come.
settle() {
    local before=none now tries
    for ((tries = 0; tries < 50; tries++)); do
        sleep 0.4
        now=$(listeners)
        [[ $now != "$before" ]] || return 0
        before=$now
    done
}

# Until the process $1 of command $2 has printed something to $3, or has ended.
await_output() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        if ! kill -0 "$1" 2>/dev/null; then
            wait "$1"
            report end "$2" "$?"
            return
        fi
        [[ ! -s $3 ]] || break
        sleep 0.1
    done
    report end "$2" 0
}

