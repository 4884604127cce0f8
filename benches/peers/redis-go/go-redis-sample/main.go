// The sample server of github.com/cybergarage/go-redis (examples/go-redisd: a sync.Map, an answer at a time) on the port that
// it is told: its own program has 6379 only.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/cybergarage/go-redis/examples/go-redisd/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go-redis-sample PORT")
		os.Exit(2)
	}
	port, err := strconv.Atoi(os.Args[1])
	if err == nil {
		sample := server.NewServer()
		sample.SetPort(port)
		err = sample.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}
