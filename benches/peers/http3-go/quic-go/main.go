// quic-go's server of HTTP/3 as its documentation shows it, with a certificate of its own.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
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
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der := must(x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "Hello from Go")
	})
	mux.HandleFunc("GET /64k", func(w http.ResponseWriter, _ *http.Request) {
		w.Write(body)
	})
	server := &http3.Server{
		Addr:      "127.0.0.1:" + os.Args[1],
		Handler:   mux,
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate()}}),
	}
	log.Fatal(server.ListenAndServe())
}

var body = make([]byte, 64<<10)
