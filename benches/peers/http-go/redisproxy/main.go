// GET /get?key=… from Redis: net/http and go-redis as their documentation shows them.
package main

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: os.Args[2]})
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "Hello from Go")
	})
	http.HandleFunc("GET /get", func(w http.ResponseWriter, r *http.Request) {
		value, err := client.Get(r.Context(), r.URL.Query().Get("key")).Result()
		switch {
		case errors.Is(err, redis.Nil):
			http.Error(w, "there is no such key", http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		default:
			io.WriteString(w, value)
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
