// node-redis against a server: node node-redis.js PORT 2|3.
import assert from "node:assert/strict";
import { WatchError, createClient } from "redis";
import { run } from "./run.js";

const [port, protocol] = process.argv.slice(2).map(Number);
const r = createClient({ url: `redis://127.0.0.1:${port}`, RESP: protocol });
r.on("error", (error) => {
  console.log(`connection (RESP${protocol}): ${error.stack}`);
  process.exit(1);
});

async function strings() {
  assert.equal(await r.set("s", "v", { EX: 100 }), "OK");
  assert.equal(await r.set("s", "w", { NX: true }), null);
  assert.equal(await r.get("s"), "v");
  assert.equal(await r.mSet({ a: "1", b: "2" }), "OK");
  assert.deepEqual(await r.mGet(["a", "none", "b"]), ["1", null, "2"]);
  assert.equal(await r.incrBy("a", 41), 42);
}

async function collections() {
  assert.equal(await r.hSet("h", { a: 1, b: 2 }), 2);
  assert.deepEqual({ ...(await r.hGetAll("h")) }, { a: "1", b: "2" });
  assert.equal(await r.rPush("l", ["1", "2", "3"]), 3);
  assert.deepEqual(await r.lRange("l", 0, -1), ["1", "2", "3"]);
  assert.equal(await r.sAdd("set", ["a", "b"]), 2);
  assert.deepEqual([...(await r.sMembers("set"))].sort(), ["a", "b"]);
  assert.equal(await r.zAdd("z", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]), 2);
  assert.equal(await r.zScore("z", "b"), 2.5);
  const scored = await r.zRangeWithScores("z", 0, -1);
  assert.deepEqual(scored.map(({ value, score }) => [value, score]), [["a", 1], ["b", 2.5]]);
}

async function blocking() {
  const other = await r.duplicate().connect();
  const popped = other.blPop("later", 10);
  await r.rPush("later", "x");
  assert.deepEqual({ ...(await popped) }, { key: "later", element: "x" });
  assert.equal(await other.blPop("empty", 0.05), null);
  other.destroy();
}

async function pipelines() {
  const replies = await Promise.all(Array.from({ length: 1000 }, (_, number) => r.set(`p:${number}`, String(number))));
  assert.equal(replies.length, 1000);
  assert.deepEqual(await r.multi().incr("n").get("n").exec(), [1, "1"]);
  const other = await r.duplicate().connect();
  await other.watch("n");
  await r.incr("n");
  await assert.rejects(other.multi().incr("n").exec(), WatchError);
  other.destroy();
}

async function pubsub() {
  const subscriber = await r.duplicate().connect();
  const parts = new Promise((resolve) => subscriber.pSubscribe("n*", (message, channel) => resolve([channel, message])));
  for (;;) {
    if ((await r.publish("news", "hello")) === 1) break;
  }
  assert.deepEqual(await parts, ["news", "hello"]);
  subscriber.destroy();
}

async function scans() {
  const found = new Set();
  for await (const keys of r.scanIterator({ MATCH: "p:*", COUNT: 50 })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 1000);
  await assert.rejects(r.sendCommand(["NOSUCH"]), /unknown command/);
}

// A cache in the client, which the server tells of changes: RESP3 only.
async function caching() {
  const clientSideCache = { ttl: 0, maxEntries: 0, evictPolicy: "LRU" };
  const cached = await createClient({ url: `redis://127.0.0.1:${port}`, RESP: 3, clientSideCache }).connect();
  const gets = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await r.info("commandstats"))?.[1] ?? 0);
  await r.set("cached", "1");
  const before = await gets();
  for (let n = 0; n < 10; n += 1) assert.equal(await cached.get("cached"), "1");
  assert.equal((await gets()) - before, 1);
  await r.set("cached", "2");
  while ((await cached.get("cached")) !== "2") await new Promise((resolve) => setTimeout(resolve, 1));
  await r.flushAll();
  while ((await cached.get("cached")) !== null) await new Promise((resolve) => setTimeout(resolve, 1));
  cached.destroy();
}

await r.connect();
await r.flushAll();
await run([strings, collections, blocking, pipelines, pubsub, scans, caching], protocol);
