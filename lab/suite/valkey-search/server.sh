#!/bin/sh
# server.sh FILE OPTIONS…: our server, started as valkey-server with the modules search and json, on loopback addresses.
# Without the lines that load modules, and without the settings of valkey-search.
grep -v -E '^(loadmodule|cluster-databases|search\.)' "$1" > "$1.ours"
file=$1.ours
shift
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
    --search.*)
        shift 2
        count=$((count - 2))
        ;;
    --loadmodule)
        shift
        count=$((count - 1))
        while [ "$count" -gt 0 ]; do
            case $1 in --*) break ;; esac
            shift
            count=$((count - 1))
        done
        ;;
    *)
        set -- "$@" "$1"
        shift
        count=$((count - 1))
        ;;
    esac
done
exec "$SEARCH_SERVER" "$file" "$@" --bind 127.0.0.1 --compatibility valkey-9 --drain-timeout 0 --loadmodule redisearch.so DEFAULT_DIALECT 2
