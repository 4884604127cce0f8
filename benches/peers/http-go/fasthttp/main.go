// fasthttp as its documentation shows it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/valyala/fasthttp"
)

type message struct {
	Message string `json:"message"`
}

func main() {
	panic(fasthttp.ListenAndServe("127.0.0.1:"+os.Args[1], func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/":
			ctx.WriteString("Hello from Go")
		case "/json":
			ctx.SetContentType("application/json")
			json.NewEncoder(ctx).Encode(message{"Hello from Go"})
		default:
			fmt.Fprintf(ctx, "Hello, visitor! You've requested: %s", ctx.Path())
		}
	}))
}
