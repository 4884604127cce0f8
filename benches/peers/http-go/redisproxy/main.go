// GET /get?key=… from Redis: net/http and go-redis as their documentation shows them. Behind the place of Redis the size of the
// pool of connections can stand; go-redis' own is ten for each processor.
package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

func main() {
	options := &redis.Options{Addr: os.Args[2]}
	if len(os.Args) > 3 {
		size, err := strconv.Atoi(os.Args[3])
		if err != nil {
			panic(err)
		}
		options.PoolSize = size
	}
	client := redis.NewClient(options)
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
