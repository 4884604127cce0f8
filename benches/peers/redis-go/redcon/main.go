// What github.com/tidwall/redcon shows as its example: strings in one map behind a read-write lock. Its module has the library
// only, so the program is ours.
package main

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/tidwall/redcon"
)

var (
	lock  sync.RWMutex
	items = map[string][]byte{}
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: redcon PORT")
		os.Exit(2)
	}
	accept := func(redcon.Conn) bool { return true }
	if err := redcon.ListenAndServe("127.0.0.1:"+os.Args[1], answer, accept, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(conn redcon.Conn, command redcon.Command) {
	name := strings.ToLower(string(command.Args[0]))
	switch {
	case name == "ping":
		conn.WriteString("PONG")
	case name == "set" && len(command.Args) == 3:
		lock.Lock()
		items[string(command.Args[1])] = command.Args[2]
		lock.Unlock()
		conn.WriteString("OK")
	case name == "get" && len(command.Args) == 2:
		lock.RLock()
		value, found := items[string(command.Args[1])]
		lock.RUnlock()
		if found {
			conn.WriteBulk(value)
		} else {
			conn.WriteNull()
		}
	default:
		conn.WriteError("ERR unknown command, or a wrong number of arguments: " + name)
	}
}
