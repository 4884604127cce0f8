// Go's net/http as its documentation shows it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

type message struct {
	Message string `json:"message"`
}

func main() {
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
