// Go's net/http over HTTP/1.1 and HTTP/2. Arguments: the address of a plain server, and of one with TLS.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func same(got, expected string) {
	if got != expected {
		panic(fmt.Sprintf("%.100q instead of %.100q", got, expected))
	}
}

func talk(base string, major int, transport *http.Transport) {
	client := &http.Client{Transport: transport}
	get := func(path string) string {
		answer, err := client.Get(base + path)
		check(err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		check(err)
		if answer.ProtoMajor != major {
			panic(answer.Proto)
		}
		return string(body)
	}
	same(get("/"), "Hello from Rust")
	same(get("/json"), `{"message":"Hello from Rust"}`)
	same(get("/zürich"), "Hello, visitor! You've requested: /zürich")
	same(get("/t/stream"), "onetwo")
	same(get("/t/text"), strings.Repeat("hello world ", 1000))
	body := strings.Repeat("x", 300000)
	for _, reader := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
		answer, err := client.Post(base+"/t/echo", "text/plain", reader)
		check(err)
		echo, err := io.ReadAll(answer.Body)
		check(err)
		answer.Body.Close()
		same(string(echo), body)
	}
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			same(get(fmt.Sprintf("/n%d", n)), fmt.Sprintf("Hello, visitor! You've requested: /n%d", n))
		})
	}
	all.Wait()
}

func main() {
	insecure := &tls.Config{InsecureSkipVerify: true}
	var http1, http2, clear http.Protocols
	http1.SetHTTP1(true)
	http2.SetHTTP2(true)
	clear.SetUnencryptedHTTP2(true)
	talk("http://"+os.Args[1], 1, &http.Transport{})
	talk("http://"+os.Args[1], 2, &http.Transport{Protocols: &clear})
	talk("https://"+os.Args[2], 1, &http.Transport{TLSClientConfig: insecure, Protocols: &http1})
	talk("https://"+os.Args[2], 2, &http.Transport{TLSClientConfig: insecure, Protocols: &http2})
	fmt.Println("ok")
}
