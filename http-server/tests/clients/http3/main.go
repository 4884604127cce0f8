// quic-go's client of HTTP/3. Arguments: the address of a server with TLS, and its certificate.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const requests = 10000

var (
	ctx    context.Context
	base   string
	config *tls.Config
)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func same(found, expected any) {
	if found != expected {
		log.Panicf("%.200v instead of %.200v", found, expected)
	}
}

// A client that has one connection, and tells which.
type peer struct {
	http.Client
	conn  atomic.Pointer[quic.Conn]
	dials atomic.Int32
}

func newPeer() *peer {
	var p peer
	p.Transport = &http3.Transport{
		TLSClientConfig:    config,
		DisableCompression: true,
		Dial: func(ctx context.Context, addr string, tlsConfig *tls.Config, quicConfig *quic.Config) (*quic.Conn, error) {
			// A transport of its own has ids for connections, without which there is no other path.
			transport := &quic.Transport{Conn: must(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))}
			conn, err := transport.Dial(ctx, must(net.ResolveUDPAddr("udp4", addr)), tlsConfig, quicConfig)
			p.conn.Store(conn)
			p.dials.Add(1)
			return conn, err
		},
	}
	return &p
}

func (p *peer) ask(method, path string, body []byte, fields ...string) (*http.Response, string) {
	request := must(http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body)))
	for at := 0; at < len(fields); at += 2 {
		request.Header.Set(fields[at], fields[at+1])
	}
	answer := must(p.Do(request))
	defer answer.Body.Close()
	return answer, string(must(io.ReadAll(answer.Body)))
}

func (p *peer) get(path string) string {
	answer, text := p.ask("GET", path, nil)
	same(answer.StatusCode, 200)
	same(answer.Proto, "HTTP/3.0")
	return text
}

func many(p *peer) {
	var left atomic.Int32
	left.Store(requests)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				same(p.get("/ann"), "Hello, visitor! You've requested: /ann")
			}
		})
	}
	group.Wait()
	same(p.dials.Load(), int32(1))
}

func bodies(p *peer) {
	_, text := p.ask("POST", "/t/echo", []byte("hello"))
	same(text, "hello")
	long := []byte(strings.Repeat("x", 8<<20))
	_, text = p.ask("POST", "/t/count", long)
	same(text, "8388608")
	_, text = p.ask("POST", "/t/mirror", long)
	same(len(text), len(long))
	same(len(p.get("/t/big")), 8<<20)
	same(p.get("/t/stream"), "onetwo")
	answer, text := p.ask("HEAD", "/t/big", nil)
	same(answer.ContentLength, int64(8<<20))
	same(text, "")
	answer, _ = p.ask("GET", "/t/nothing", nil)
	same(answer.StatusCode, 204)
	answer, _ = p.ask("GET", "/t/panic", nil)
	same(answer.StatusCode, 500)
	_, text = p.ask("GET", "/t/headers", nil, "Cookie", "a=1; b=2")
	same(strings.Contains(text, `"cookie": "a=1; b=2"`), true)
	// It breaks off, and the client sees that: in its body, or before its head, which a reset may overtake. Then it takes another
	// connection for the next request.
	broken, err := newPeer().Get(base + "/t/broken")
	if err == nil {
		_, err = io.ReadAll(broken.Body)
	}
	same(err != nil, true)
}

func limits(p *peer) {
	answer, _ := p.ask("GET", "/"+strings.Repeat("x", 9000), nil)
	same(answer.StatusCode, 414)
	answer, _ = p.ask("GET", "/", nil, "X-Long", strings.Repeat("x", 33000))
	same(answer.StatusCode, 431)
	request := must(http.NewRequestWithContext(ctx, "POST", base+"/t/count", strings.NewReader("x")))
	request.ContentLength = 65 << 20
	answer, err := newPeer().Do(request)
	// The answer may come before the client notices that the body is short, or behind it.
	if err == nil {
		same(answer.StatusCode, 413)
	}
	same(p.get("/"), "Hello from Rust")
	same(p.dials.Load(), int32(1))
}

// Requests that are given up: the connection goes on.
func cancels(p *peer) {
	for range 20 {
		short, cancel := context.WithCancel(ctx)
		answer := must(p.Do(must(http.NewRequestWithContext(short, "GET", base+"/t/endless", nil))))
		must(io.ReadFull(answer.Body, make([]byte, 100000)))
		cancel()
		answer.Body.Close()
	}
	same(p.get("/"), "Hello from Rust")
	same(p.dials.Load(), int32(1))
}

// The client goes on from another address, in the middle of an answer.
func migration(p *peer) {
	same(p.get("/t/client"), "Some(127.0.0.1) true")
	answer := must(p.Get(base + "/t/big"))
	must(io.ReadFull(answer.Body, make([]byte, 1<<20)))
	socket := must(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}))
	path := must(p.conn.Load().AddPath(&quic.Transport{Conn: socket}))
	check(path.Probe(ctx))
	check(path.Switch())
	same(len(must(io.ReadAll(answer.Body))), 7<<20)
	same(p.get("/t/client"), "Some(127.0.0.2) true")
	same(p.dials.Load(), int32(1))
}

func otherProtocol(addr string) {
	for _, names := range [][]string{{"h2"}, {"h3-29"}} {
		other := config.Clone()
		other.NextProtos = names
		_, err := quic.DialAddr(ctx, addr, other, nil)
		var failed *quic.TransportError
		same(errors.As(err, &failed), true)
		// no_application_protocol, as QUIC writes alerts.
		same(failed.ErrorCode, quic.TransportErrorCode(0x178))
	}
}

// A session that is taken up again sends nothing before its handshake.
func noEarlyData(addr string) {
	again := config.Clone()
	again.NextProtos = []string{"h3"}
	again.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for round := range 2 {
		conn := must(quic.DialAddrEarly(ctx, addr, again, nil))
		// The ticket comes before this answer.
		answer := must((&http3.Transport{}).NewClientConn(conn).RoundTrip(must(http.NewRequestWithContext(ctx, "GET", base, nil))))
		same(string(must(io.ReadAll(answer.Body))), "Hello from Rust")
		same(conn.ConnectionState().Used0RTT, false)
		same(conn.ConnectionState().TLS.DidResume, round == 1)
		check(conn.CloseWithError(0x100, ""))
	}
}

// Where HTTP/3 is, over TCP.
func alternative(port string) {
	for _, is2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: is2}
		client := http.Client{Transport: transport}
		answer := must(client.Get(base + "/"))
		text := must(io.ReadAll(answer.Body))
		same(string(text), "Hello from Rust")
		same(answer.ProtoMajor == 2, is2)
		same(answer.Header.Get("Alt-Svc"), `h3=":`+port+`"; ma=86400`)
	}
}

func main() {
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 110*time.Second)
	defer cancel()
	_, port, err := net.SplitHostPort(os.Args[1])
	check(err)
	addr := "localhost:" + port
	base = "https://" + addr
	roots := x509.NewCertPool()
	same(roots.AppendCertsFromPEM(must(os.ReadFile(os.Args[2]))), true)
	config = &tls.Config{RootCAs: roots}
	alternative(port)
	p := newPeer()
	many(p)
	bodies(p)
	limits(p)
	cancels(p)
	migration(p)
	otherProtocol(addr)
	noEarlyData(addr)
	fmt.Println("ok")
}
