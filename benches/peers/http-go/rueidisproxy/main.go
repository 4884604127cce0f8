// GET /get?key=… from Redis: net/http and rueidis, which sends what all ask over one connection, as their documentation shows them.
package main

import (
	"io"
	"net/http"
	"os"

	"github.com/redis/rueidis"
)

func main() {
	// One connection; by default as many as there are processors, up to four.
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{os.Args[2]}, PipelineMultiplex: -1})
	if err != nil {
		panic(err)
	}
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "Hello from Go")
	})
	http.HandleFunc("GET /get", func(w http.ResponseWriter, r *http.Request) {
		value, err := client.Do(r.Context(), client.B().Get().Key(r.URL.Query().Get("key")).Build()).ToString()
		switch {
		case rueidis.IsRedisNil(err):
			http.Error(w, "there is no such key", http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		default:
			io.WriteString(w, value)
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
