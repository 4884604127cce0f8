package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// A client behind a Sentinel, while primaries change, until there is a key `done`: peer sentinel PORT.
func sentinel(port string) {
	r := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "first", SentinelAddrs: []string{"127.0.0.1:" + port},
		DialTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second})
	defer r.Close()
	turn, kept, failed := 0, 0, 0
	later := func() {
		failed++
		time.Sleep(50 * time.Millisecond)
	}
	for {
		done, err := r.Exists(ctx, "done").Result()
		if err != nil {
			later()
			continue
		}
		if done == 1 {
			break
		}
		value, err := r.Get(ctx, "go").Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			later()
			continue
		}
		if value < kept || turn < value {
			fail("GET", fmt.Errorf("a replica had %d of %d, and there is %d", kept, turn, value))
		}
		turn++
		pipeline := r.Pipeline()
		pipeline.Set(ctx, "go", turn, 0)
		wait := pipeline.Do(ctx, "WAIT", 1, 1000)
		if _, err := pipeline.Exec(ctx); err != nil {
			later()
		} else if replicas, err := wait.Int(); err == nil && replicas >= 1 {
			kept = turn
		}
	}
	fmt.Printf("ok, %d turns, %d failed\n", turn, failed)
	os.Exit(0)
}
