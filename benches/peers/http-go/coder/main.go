// A WebSocket at /ws that echoes: net/http and coder/websocket, as its documentation shows them.
package main

import (
	"net/http"
	"os"

	"github.com/coder/websocket"
)

func main() {
	http.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) {
		connection, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer connection.CloseNow()
		for {
			kind, message, err := connection.Read(r.Context())
			if err != nil || connection.Write(r.Context(), kind, message) != nil {
				return
			}
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
