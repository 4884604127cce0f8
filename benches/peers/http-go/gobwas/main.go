// A WebSocket at /ws that echoes: net/http and gobwas/ws, as its documentation shows them.
package main

import (
	"net/http"
	"os"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

func main() {
	http.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) {
		connection, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			return
		}
		defer connection.Close()
		for {
			message, kind, err := wsutil.ReadClientData(connection)
			if err != nil || wsutil.WriteServerMessage(connection, kind, message) != nil {
				return
			}
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
