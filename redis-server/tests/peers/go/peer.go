// go-redis against a server: peer PORT 2|3, peer cluster PORT, and peer sentinel PORT.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func check(what string, actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		fail(what, fmt.Errorf("expected %#v, got %#v", expected, actual))
	}
}

func must[T any](what string) func(T, error) T {
	return func(value T, err error) T {
		if err != nil {
			fail(what, err)
		}
		return value
	}
}

func fail(what string, err error) {
	fmt.Printf("%s (RESP%s): %v\n", what, os.Args[2], err)
	os.Exit(1)
}

func main() {
	switch os.Args[1] {
	case "cluster":
		cluster(os.Args[2])
	case "sentinel":
		sentinel(os.Args[2])
	}
	protocol, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail("arguments", err)
	}
	r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
	defer r.Close()
	must[string]("FLUSHALL")(r.FlushAll(ctx).Result())
	strings(r)
	collections(r)
	blocking(r)
	pipelines(r)
	pubsub(r)
	scans(r)
	fmt.Println("ok")
}

func strings(r *redis.Client) {
	check("SET", must[string]("SET")(r.Set(ctx, "s", "v", time.Minute).Result()), "OK")
	check("SETNX", must[bool]("SETNX")(r.SetNX(ctx, "s", "w", 0).Result()), false)
	check("GET", must[string]("GET")(r.Get(ctx, "s").Result()), "v")
	if _, err := r.Get(ctx, "none").Result(); !errors.Is(err, redis.Nil) {
		fail("GET of nothing", err)
	}
	must[string]("MSET")(r.MSet(ctx, "a", 1, "b", 2).Result())
	check("MGET", must[[]any]("MGET")(r.MGet(ctx, "a", "none", "b").Result()), []any{"1", nil, "2"})
	check("INCRBY", must[int64]("INCRBY")(r.IncrBy(ctx, "a", 41).Result()), int64(42))
	check("INCRBYFLOAT", must[float64]("INCRBYFLOAT")(r.IncrByFloat(ctx, "f", 1.5).Result()), 1.5)
}

func collections(r *redis.Client) {
	check("HSET", must[int64]("HSET")(r.HSet(ctx, "h", "a", "1", "b", "2").Result()), int64(2))
	check("HGETALL", must[map[string]string]("HGETALL")(r.HGetAll(ctx, "h").Result()), map[string]string{"a": "1", "b": "2"})
	check("RPUSH", must[int64]("RPUSH")(r.RPush(ctx, "l", 1, 2, 3).Result()), int64(3))
	check("LRANGE", must[[]string]("LRANGE")(r.LRange(ctx, "l", 0, -1).Result()), []string{"1", "2", "3"})
	check("SADD", must[int64]("SADD")(r.SAdd(ctx, "set", "a", "b").Result()), int64(2))
	members := must[[]string]("SMEMBERS")(r.SMembers(ctx, "set").Result())
	sort.Strings(members)
	check("SMEMBERS", members, []string{"a", "b"})
	check("SISMEMBER", must[bool]("SISMEMBER")(r.SIsMember(ctx, "set", "a").Result()), true)
	must[int64]("ZADD")(r.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}).Result())
	scored := must[[]redis.Z]("ZRANGE")(r.ZRangeWithScores(ctx, "z", 0, -1).Result())
	check("ZRANGE", scored, []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}})
	check("ZSCORE", must[float64]("ZSCORE")(r.ZScore(ctx, "z", "b").Result()), 2.5)
	popped := must[[]redis.Z]("ZPOPMAX")(r.ZPopMax(ctx, "z", 1).Result())
	check("ZPOPMAX", popped, []redis.Z{{Score: 2.5, Member: "b"}})
}

func blocking(r *redis.Client) {
	if _, err := r.BLPop(ctx, time.Second, "empty").Result(); !errors.Is(err, redis.Nil) {
		fail("BLPOP of nothing", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { r.RPush(ctx, "later", "x") })
	check("BLPOP", must[[]string]("BLPOP")(r.BLPop(ctx, 10*time.Second, "later").Result()), []string{"later", "x"})
	time.AfterFunc(50*time.Millisecond, func() { r.ZAdd(ctx, "zlater", redis.Z{Score: 7, Member: "m"}) })
	popped := must[*redis.ZWithKey]("BZPOPMIN")(r.BZPopMin(ctx, 10*time.Second, "zlater").Result())
	check("BZPOPMIN", *popped, redis.ZWithKey{Z: redis.Z{Score: 7, Member: "m"}, Key: "zlater"})
}

func pipelines(r *redis.Client) {
	replies := must[[]redis.Cmder]("pipeline")(r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := 0; number < 1000; number++ {
			pipe.Set(ctx, "p:"+strconv.Itoa(number), number, 0)
		}
		return nil
	}))
	check("pipeline", len(replies), 1000)
	increment := func(tx *redis.Tx) error {
		value, err := tx.Get(ctx, "p:1").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			return pipe.Set(ctx, "p:1", value+1, 0).Err()
		})
		return err
	}
	if err := r.Watch(ctx, increment, "p:1"); err != nil {
		fail("WATCH", err)
	}
	check("WATCH", must[string]("GET")(r.Get(ctx, "p:1").Result()), "2")
	r.Set(ctx, "p:1", "5", 0)
	err := r.Watch(ctx, func(tx *redis.Tx) error {
		r.Set(ctx, "p:1", "6", 0)
		return increment(tx)
	}, "p:1")
	if !errors.Is(err, redis.TxFailedErr) {
		fail("WATCH of a key that changes", err)
	}
}

func pubsub(r *redis.Client) {
	subscription := r.PSubscribe(ctx, "n*")
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		fail("PSUBSCRIBE", err)
	}
	check("PUBLISH", must[int64]("PUBLISH")(r.Publish(ctx, "news", "hello").Result()), int64(1))
	message := must[*redis.Message]("message")(subscription.ReceiveMessage(ctx))
	check("message", []string{message.Pattern, message.Channel, message.Payload}, []string{"n*", "news", "hello"})
}

func scans(r *redis.Client) {
	found := map[string]bool{}
	iterator := r.Scan(ctx, 0, "p:*", 50).Iterator()
	for iterator.Next(ctx) {
		found[iterator.Val()] = true
	}
	if err := iterator.Err(); err != nil {
		fail("SCAN", err)
	}
	check("SCAN", len(found), 1000)
	check("TYPE", must[string]("TYPE")(r.Type(ctx, "h").Result()), "hash")
	check("RENAME", must[string]("RENAME")(r.Rename(ctx, "h", "h2").Result()), "OK")
	check("EXPIRE", must[bool]("EXPIRE")(r.ExpireNX(ctx, "h2", time.Minute).Result()), true)
	check("CONFIG", must[map[string]string]("CONFIG")(r.ConfigGet(ctx, "maxmemory").Result()), map[string]string{"maxmemory": "0"})
	must[string]("INFO")(r.Info(ctx, "server").Result())
	must[map[string]*redis.CommandInfo]("COMMAND")(r.Command(ctx).Result())
}
