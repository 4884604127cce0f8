// Go's net/http as its documentation shows it.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

type message struct {
	Message string `json:"message"`
}

// The same nine kilobytes of JSON as its neighbours'.
func items() string {
	all := make([]string, 100)
	for n := range all {
		all[n] = fmt.Sprintf(`{"id":%d,"name":"item %d","price":%d,"quantity":%d,"active":true,"tags":["fast","new"]}`, n, n, n*37%1000, n*11%50)
	}
	return `{"items":[` + strings.Join(all, ",") + "]}"
}

func main() {
	items := items()
	writers := sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
	http.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			io.WriteString(w, items)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		writer := writers.Get().(*gzip.Writer)
		writer.Reset(w)
		io.WriteString(writer, items)
		writer.Close()
		writers.Put(writer)
	})
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "Hello from Go")
	})
	http.HandleFunc("GET /json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(message{"Hello from Go"})
	})
	http.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		length, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, length)
	})
	http.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello, visitor! You've requested: %s", r.URL.Path)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
