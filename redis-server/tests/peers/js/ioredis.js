// ioredis against a server: node ioredis.js PORT 2|3.
import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { run } from "./run.js";

const [port, protocol] = process.argv.slice(2).map(Number);
const options = { port, protocol, maxRetriesPerRequest: 1 };
const r = new Redis(options);

async function strings() {
  assert.equal(await r.set("s", "v", "EX", 100), "OK");
  assert.equal(await r.set("s", "w", "NX"), null);
  assert.equal(await r.get("s"), "v");
  assert.equal(await r.mset({ a: 1, b: 2 }), "OK");
  assert.deepEqual(await r.mget("a", "none", "b"), ["1", null, "2"]);
  assert.equal(await r.incrby("a", 41), 42);
  assert.deepEqual(await r.getBuffer("a"), Buffer.from("42"));
}

async function collections() {
  assert.equal(await r.hset("h", { a: 1, b: 2 }), 2);
  assert.deepEqual({ ...(await r.hgetall("h")) }, { a: "1", b: "2" });
  assert.equal(await r.rpush("l", 1, 2, 3), 3);
  assert.deepEqual(await r.lrange("l", 0, -1), ["1", "2", "3"]);
  assert.equal(await r.sadd("set", "a", "b"), 2);
  assert.deepEqual([...(await r.smembers("set"))].sort(), ["a", "b"]);
  assert.equal(await r.zadd("z", 1, "a", 2.5, "b"), 2);
  assert.equal(Number(await r.zscore("z", "b")), 2.5);
  assert.deepEqual(await r.zrange("z", 0, -1), ["a", "b"]);
}

async function blocking() {
  const other = r.duplicate();
  const popped = other.blpop("later", 10);
  await r.rpush("later", "x");
  assert.deepEqual(await popped, ["later", "x"]);
  assert.equal(await other.blpop("empty", 0.05), null);
  other.disconnect();
}

async function pipelines() {
  const pipeline = r.pipeline();
  for (let number = 0; number < 1000; number++) pipeline.set(`p:${number}`, number);
  const replies = await pipeline.exec();
  assert.equal(replies.filter(([error, reply]) => error === null && reply === "OK").length, 1000);
  assert.deepEqual(await r.multi().incr("n").get("n").exec(), [[null, 1], [null, "1"]]);
  const other = r.duplicate();
  await other.watch("n");
  await r.incr("n");
  assert.equal(await other.multi().incr("n").exec(), null);
  other.disconnect();
}

async function pubsub() {
  const subscriber = r.duplicate();
  const message = new Promise((resolve) => subscriber.on("pmessage", (...parts) => resolve(parts)));
  await subscriber.psubscribe("n*");
  assert.equal(await r.publish("news", "hello"), 1);
  assert.deepEqual(await message, ["n*", "news", "hello"]);
  subscriber.disconnect();
}

async function scans() {
  const found = new Set();
  for await (const keys of r.scanStream({ match: "p:*", count: 50 })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 1000);
  await assert.rejects(r.call("NOSUCH"), /unknown command/);
}

await r.flushall();
await run([strings, collections, blocking, pipelines, pubsub, scans], protocol);
