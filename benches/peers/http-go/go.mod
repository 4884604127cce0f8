module peers

go 1.24

require (
	github.com/redis/go-redis/v9 v9.17.2
	github.com/valyala/fasthttp v1.68.0
)
