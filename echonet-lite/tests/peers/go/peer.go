// uecho-go: "peer controller ADDRESS" asks the air conditioner at that address and prints what it learned,
// "peer device" is an air conditioner until its input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/cybergarage/uecho-go/net/echonet"
	"github.com/cybergarage/uecho-go/net/echonet/protocol"
)

const airConditioner = echonet.ObjectCode(0x013001)

func main() {
	if os.Args[1] == "device" {
		device()
	} else {
		control(os.Args[2])
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// notices remembers the notifications that a controller hears.
type notices struct {
	sync.Mutex
	seen map[string]bool
}

func (n *notices) ControllerNewNodeFound(echonet.Node) {}

func (n *notices) ControllerMessageReceived(msg *protocol.Message) {
	if msg.ESV() != protocol.ESVNotification {
		return
	}
	n.Lock()
	defer n.Unlock()
	for _, property := range msg.Properties() {
		n.seen[fmt.Sprintf("%06x %02x=%x", uint(msg.SEOJ()), uint(property.Code()), property.Data())] = true
	}
}

func (n *notices) heard(what string) bool {
	for range 100 {
		n.Lock()
		seen := n.seen[what]
		n.Unlock()
		if seen {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func control(address string) {
	ctrl := echonet.NewController()
	listener := &notices{seen: map[string]bool{}}
	ctrl.SetListener(listener)
	must(ctrl.Start())
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	must(ctrl.Search(ctx))
	node, found := ctrl.LookupNode(address)
	if !found {
		must(fmt.Errorf("not found: %s among %v", address, ctrl.Nodes()))
	}
	for _, object := range node.Objects() {
		if object.Code() == airConditioner {
			fmt.Println("found 013001")
		}
	}
	for _, code := range []echonet.PropertyCode{0x9D, 0x9E, 0x9F} {
		fmt.Printf("map %02x: %s\n", code, propertyMap(ctrl, node, code))
	}
	fmt.Println("get b0:", ask(ctrl, node, echonet.ESVReadRequest, 0xB0, nil))
	fmt.Println("set b0:", ask(ctrl, node, echonet.ESVWriteRequestResponseRequired, 0xB0, []byte{0x43}))
	fmt.Println("get b0:", ask(ctrl, node, echonet.ESVReadRequest, 0xB0, nil))
	fmt.Println("get c0:", ask(ctrl, node, echonet.ESVReadRequest, 0xC0, nil))
	fmt.Println("get ef:", ask(ctrl, node, echonet.ESVReadRequest, 0xEF, nil))
	fmt.Println("set bb:", ask(ctrl, node, echonet.ESVWriteRequestResponseRequired, 0xBB, []byte{0x20}))
	fmt.Println("notified:", listener.heard("013001 b0=43"))
	must(ctrl.Stop())
}

func request(ctrl echonet.Controller, node echonet.Node, esv protocol.ESV, code echonet.PropertyCode, data []byte) echonet.Message {
	property := echonet.NewProperty(echonet.WithPropertyCode(code), echonet.WithPropertyData(data))
	answer, err := ctrl.PostMessage(context.Background(), node, echonet.NewMessage(
		echonet.WithMessageESV(esv), echonet.WithMessageDEOJ(airConditioner), echonet.WithMessageProperties(property)))
	must(err)
	return answer
}

func ask(ctrl echonet.Controller, node echonet.Node, esv protocol.ESV, code echonet.PropertyCode, data []byte) string {
	answer := request(ctrl, node, esv, code, data)
	value := []byte{}
	if len(answer.Properties()) > 0 {
		value = answer.Properties()[0].Data()
	}
	return fmt.Sprintf("%02x [%x]", uint(answer.ESV()), value)
}

// propertyMap has the library decode a map, in either form.
func propertyMap(ctrl echonet.Controller, node echonet.Node, code echonet.PropertyCode) string {
	answer := request(ctrl, node, echonet.ESVReadRequest, code, nil)
	codes, err := answer.Properties()[0].PropertyMapData()
	must(err)
	return listed(codes)
}

func listed(codes []echonet.PropertyCode) string {
	sort.Slice(codes, func(i, j int) bool { return codes[i] < codes[j] })
	words := []string{}
	for _, code := range codes {
		words = append(words, fmt.Sprintf("%02x", uint(code)))
	}
	return strings.Join(words, " ")
}

// device is the library's air conditioner with values in a few properties; it takes what is written to them.
func device() {
	var conditioner echonet.Device
	taken := func(object echonet.Object, esv protocol.ESV, property protocol.Property) error {
		if !esv.IsWriteRequest() {
			return nil
		}
		return object.SetPropertyData(property.Code(), property.Data())
	}
	conditioner, err := echonet.NewDevice(echonet.WithDeviceCode(airConditioner), echonet.WithDeviceRequestHandler(taken))
	must(err)
	for code, data := range map[echonet.PropertyCode][]byte{0x80: {0x30}, 0x81: {0x08}, 0xB0: {0x42}, 0xB3: {0x14}, 0xC0: {0x41}} {
		must(conditioner.SetPropertyData(code, data))
	}
	codes := []echonet.PropertyCode{}
	for _, property := range conditioner.Properties() {
		if property.IsReadable() {
			codes = append(codes, property.Code())
		}
	}
	node := echonet.NewLocalNode(echonet.WithLocalNodeDevices(conditioner))
	must(node.Start())
	fmt.Println("ready:", listed(codes))
	_, err = io.Copy(io.Discard, os.Stdin)
	must(err)
	must(node.Stop())
}
