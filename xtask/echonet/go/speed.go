// uecho-go: "speed device" is a light until its input ends, "speed controller ADDRESS REQUESTS" reads property 80 of
// object 029001 at that address so many times and prints: requests seconds lost.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/cybergarage/uecho-go/net/echonet"
)

const light = echonet.ObjectCode(0x029001)

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	if os.Args[1] == "device" {
		device()
		return
	}
	count, err := strconv.Atoi(os.Args[3])
	must(err)
	control(os.Args[2], count)
}

func device() {
	lamp, err := echonet.NewDevice(echonet.WithDeviceCode(light))
	must(err)
	must(lamp.SetPropertyData(0x80, []byte{0x30}))
	node := echonet.NewLocalNode(echonet.WithLocalNodeDevices(lamp))
	must(node.Start())
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	must(err)
}

// control asks one after the other: the library has one request under way at a time, behind a lock.
func control(address string, count int) {
	ctrl := echonet.NewController()
	must(ctrl.Start())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	must(ctrl.Search(ctx))
	node, found := ctrl.LookupNode(address)
	if !found {
		must(fmt.Errorf("not found: %s", address))
	}
	lost, start := 0, time.Now()
	for range count {
		answer, err := ctrl.PostMessage(context.Background(), node, echonet.NewMessage(
			echonet.WithMessageESV(echonet.ESVReadRequest), echonet.WithMessageDEOJ(light),
			echonet.WithMessageProperties(echonet.NewProperty(echonet.WithPropertyCode(0x80)))))
		if err != nil || len(answer.Properties()) != 1 {
			lost++
		}
	}
	fmt.Println(count-lost, time.Since(start).Seconds(), lost)
}
