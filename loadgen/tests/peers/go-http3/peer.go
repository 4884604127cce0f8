// quic-go's server of HTTP/3. Prints its address, then its certificate; ends with its standard input, and says then how many
// requests it has answered.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go/http3"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func certificate() tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der := must(x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func main() {
	var requests atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.WriteString(w, "hello")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("content-length", r.Header.Get("content-length"))
		io.Copy(w, r.Body)
	})
	// One answer in 50 is late.
	mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%50 == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		io.WriteString(w, "hello")
	})
	certificate := certificate()
	socket := must(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	server := &http3.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go func() { log.Fatal(server.Serve(socket)) }()
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
	pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	io.Copy(io.Discard, os.Stdin)
	fmt.Println(requests.Load())
}
