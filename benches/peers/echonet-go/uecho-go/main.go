// uecho-go:
//
//	uecho-go device                                    a light until it is killed
//	uecho-go controller ADDRESS REQUESTS               reads property 80 of object 029001 there so often
//	uecho-go published ADDRESS ITERATIONS SECONDS      the published benchmark, cut short after some seconds: 12 properties of
//	                                                   the node profile one by one, after a search by multicast
//
// A controller prints "begin" when it has found the device, and at the end: requests seconds lost. Then it waits for the end of its
// input, so that its CPU time can be read until then.
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

const (
	light   = echonet.ObjectCode(0x029001)
	profile = echonet.ObjectCode(0x0EF001)
)

var properties = []echonet.PropertyCode{0x80, 0x82, 0x83, 0x8A, 0x9D, 0x9E, 0x9F, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func main() {
	words := os.Args[1:]
	switch {
	case len(words) == 1 && words[0] == "device":
		device()
	case len(words) == 3 && words[0] == "controller":
		ctrl, node := found(words[1])
		count(number(words[2]), time.Hour, func(int) bool { return ask(ctrl, node, light, 0x80) })
	case len(words) == 4 && words[0] == "published":
		ctrl, node := found(words[1])
		limit := time.Duration(number(words[3])) * time.Second
		count(12*number(words[2]), limit, func(i int) bool { return ask(ctrl, node, profile, properties[i%12]) })
	default:
		must(fmt.Errorf("unknown command: %v", words))
	}
}

func device() {
	lamp, err := echonet.NewDevice(echonet.WithDeviceCode(light))
	must(err)
	must(lamp.SetPropertyData(0x80, []byte{0x30}))
	node := echonet.NewLocalNode(echonet.WithLocalNodeDevices(lamp))
	must(node.Start())
	fmt.Println("ready")
	select {}
}

func found(address string) (echonet.Controller, echonet.Node) {
	ctrl := echonet.NewController()
	must(ctrl.Start())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	must(ctrl.Search(ctx))
	node, found := ctrl.LookupNode(address)
	if !found {
		must(fmt.Errorf("not found: %s", address))
	}
	return ctrl, node
}

// ask waits for the answer: the library has one request under way at a time, behind a lock.
func ask(ctrl echonet.Controller, node echonet.Node, object echonet.ObjectCode, code echonet.PropertyCode) bool {
	answer, err := ctrl.PostMessage(context.Background(), node, echonet.NewMessage(
		echonet.WithMessageESV(echonet.ESVReadRequest), echonet.WithMessageDEOJ(object),
		echonet.WithMessageProperties(echonet.NewProperty(echonet.WithPropertyCode(code)))))
	return err == nil && len(answer.Properties()) == 1 && answer.Properties()[0].Code() == code
}

func count(requests int, limit time.Duration, answered func(int) bool) {
	fmt.Println("begin")
	asked, lost, start := 0, 0, time.Now()
	for ; asked < requests && time.Since(start) < limit; asked++ {
		if !answered(asked) {
			lost++
		}
	}
	fmt.Println(asked-lost, time.Since(start).Seconds(), lost)
	_, err := io.Copy(io.Discard, os.Stdin)
	must(err)
}
