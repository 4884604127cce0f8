package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// The cluster client, while slots move and primaries change, until there is a key `done`: peer cluster PORT.
func cluster(port string) {
	r := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}, MaxRedirects: 16})
	defer r.Close()
	names := make([]string, 100)
	values := map[string]string{}
	for number := range names {
		names[number] = fmt.Sprintf("go:%d", number)
	}
	turn := 0
	for must[int64]("EXISTS")(r.Exists(ctx, "done").Result()) == 0 {
		turn++
		for _, name := range names {
			if turn > 1 {
				check(name, must[string]("GET")(r.Get(ctx, name).Result()), values[name])
			}
			values[name] = fmt.Sprintf("%s %d", name, turn)
			check(name, must[string]("SET")(r.Set(ctx, name, values[name], 0).Result()), "OK")
		}
		text := strconv.Itoa(turn)
		must[string]("MSET")(r.MSet(ctx, "{go}a", text, "{go}b", "-"+text).Result())
		check("MGET", must[[]any]("MGET")(r.MGet(ctx, "{go}a", "{go}b").Result()), []any{text, "-" + text})
		pipeline := r.Pipeline()
		replies := make([]*redis.StringCmd, len(names))
		for at, name := range names {
			replies[at] = pipeline.Get(ctx, name)
		}
		must[[]redis.Cmder]("pipeline")(pipeline.Exec(ctx))
		for at, name := range names {
			check(name, replies[at].Val(), values[name])
		}
	}
	for _, name := range names {
		check(name, must[string]("GET")(r.Get(ctx, name).Result()), values[name])
	}
	fmt.Printf("ok, %d turns\n", turn)
	os.Exit(0)
}
