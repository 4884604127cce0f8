module peers

go 1.24

require (
	github.com/coder/websocket v1.8.15
	github.com/gobwas/ws v1.5.0
	github.com/redis/go-redis/v9 v9.17.2
	github.com/redis/rueidis v1.0.79
	github.com/valyala/fasthttp v1.68.0
)
