// Commands newer than Redis 7.0 through ioredis, whose package has no tests: node ioredis-newer.js PORT 2|3. What it has no function for is
// called by name.
import assert from "node:assert/strict";
import { Redis } from "ioredis";
import { run } from "./run.js";

const [port, protocol] = process.argv.slice(2).map(Number);
const r = new Redis({ port, protocol, maxRetriesPerRequest: 1 });

// Maps, which ioredis tells as arrays in both protocols: names and values alternate.
function pairs(reply) {
  const names = reply.filter((_, at) => at % 2 === 0);
  return Object.fromEntries(names.map((name, at) => [name, reply[at * 2 + 1]]));
}

async function fieldTimes() {
  await r.hset("h", { a: 1, b: 2 });
  const past = Math.floor(Date.now() / 1000) - 10;
  const future = past + 110;
  assert.deepEqual(await r.hexpire("h", 100, "FIELDS", 3, "a", "b", "none"), [1, 1, -2]);
  assert.deepEqual(await r.hexpire("h", 50, "GT", "FIELDS", 1, "a"), [0]);
  assert.deepEqual(await r.hexpire("h", 50, "LT", "FIELDS", 1, "a"), [1]);
  assert.deepEqual(await r.hpexpire("h", 100_000, "NX", "FIELDS", 1, "a"), [0]);
  assert.deepEqual(await r.hpexpire("h", 100_000, "XX", "FIELDS", 1, "a"), [1]);
  const [seconds, none] = await r.httl("h", "FIELDS", 2, "a", "none");
  assert.ok(seconds > 90 && seconds <= 100 && none === -2);
  const [milliseconds] = await r.hpttl("h", "FIELDS", 1, "a");
  assert.ok(milliseconds > 90_000 && milliseconds <= 100_000);
  assert.deepEqual(await r.hexpireat("h", future, "FIELDS", 1, "a"), [1]);
  assert.deepEqual(await r.hexpiretime("h", "FIELDS", 1, "a"), [future]);
  assert.deepEqual(await r.hpexpireat("h", future * 1000 + 7, "FIELDS", 1, "a"), [1]);
  assert.deepEqual(await r.hpexpiretime("h", "FIELDS", 1, "a"), [future * 1000 + 7]);
  assert.deepEqual(await r.hpersist("h", "FIELDS", 2, "a", "none"), [1, -2]);
  assert.deepEqual(await r.httl("h", "FIELDS", 1, "a"), [-1]);
  assert.deepEqual(await r.hexpireat("h", past, "FIELDS", 1, "b"), [2]);
  assert.deepEqual({ ...(await r.hgetall("h")) }, { a: "1" });
}

async function fieldsWithTimes() {
  assert.equal(await r.hsetex("x", "EX", 100, "FIELDS", 2, "a", "1", "b", "2"), 1);
  assert.equal(await r.hsetex("x", "FNX", "EX", 100, "FIELDS", 1, "a", "3"), 0);
  assert.equal(await r.hsetex("x", "FXX", "KEEPTTL", "FIELDS", 1, "a", "3"), 1);
  assert.deepEqual(await r.hgetex("x", "PERSIST", "FIELDS", 2, "a", "none"), ["3", null]);
  const [persistent, other] = await r.httl("x", "FIELDS", 2, "a", "b");
  assert.ok(persistent === -1 && other > 90);
  assert.deepEqual(await r.hgetex("x", "PX", 100_000, "FIELDS", 1, "a"), ["3"]);
  assert.ok((await r.hpttl("x", "FIELDS", 1, "a"))[0] > 90_000);
  assert.deepEqual(await r.hgetdel("x", "FIELDS", 3, "a", "b", "none"), ["3", "2", null]);
  assert.equal(await r.exists("x"), 0);
}

async function conditions() {
  await r.set("c", "v");
  assert.equal(await r.set("c", "w", "IFEQ", "x"), null);
  assert.equal(await r.set("c", "w", "IFEQ", "v"), "OK");
  assert.equal(await r.set("c", "v", "IFNE", "w"), null);
  assert.equal(await r.call("SET", "c", "v", "IFNE", "x", "GET"), "w");
  const digest = await r.call("DIGEST", "c");
  assert.match(digest, /^[0-9a-f]{16}$/);
  assert.equal(await r.set("c", "w", "IFDNE", digest), null);
  assert.equal(await r.set("c", "w", "IFDEQ", digest), "OK");
  assert.equal(await r.call("DELIFEQ", "c", "v"), 0);
  assert.equal(await r.call("DELIFEQ", "c", "w"), 1);
  await r.set("c", "v");
  assert.equal(await r.call("DELEX", "c", "IFDNE", digest), 0);
  assert.equal(await r.call("DELEX", "c", "IFEQ", "v"), 1);
  assert.equal(await r.call("DIGEST", "c"), null);
  assert.equal(await r.msetex(2, "m1", "1", "m2", "2", "EX", 100), 1);
  assert.equal(await r.msetex(2, "m1", "1", "m3", "3", "NX"), 0);
  assert.deepEqual(await r.mget("m1", "m2", "m3"), ["1", "2", null]);
  assert.ok((await r.ttl("m2")) > 90);
}

async function numbersAndBits() {
  assert.deepEqual(await r.increx("n"), [1, 1]);
  assert.deepEqual(await r.increx("n", "BYINT", 10, "UBOUND", 5), [1, 0]);
  assert.deepEqual(await r.increx("n", "BYINT", 10, "UBOUND", 5, "SATURATE", "EX", 100), [5, 4]);
  assert.deepEqual((await r.increx("n", "BYFLOAT", 0.5)).map(Number), [5.5, 0.5]);
  await r.mset("b1", "\x0f", "b2", "\x03", "b3", "\x05");
  for (const [operation, byte] of [["DIFF", 0x08], ["DIFF1", 0x00], ["ANDOR", 0x07], ["ONE", 0x08]]) {
    assert.equal(await r.bitop(operation, "bits", "b1", "b2", "b3"), 1);
    assert.deepEqual([operation, ...(await r.getBuffer("bits"))], [operation, byte]);
  }
}

async function streams() {
  for (const id of ["1-0", "2-0", "3-0", "4-0"]) await r.xadd("s", id, "f", "v");
  await r.xgroup("CREATE", "s", "g", "0");
  await r.xreadgroup("GROUP", "g", "ann", "COUNT", 3, "STREAMS", "s", ">");
  assert.deepEqual(await r.xdelex("s", "ACKED", "IDS", 2, "1-0", "9-0"), [2, -1]);
  assert.deepEqual(await r.call("XACKDEL", "s", "g", "DELREF", "IDS", 2, "1-0", "9-0"), [1, -1]);
  assert.deepEqual(await r.xdelex("s", "KEEPREF", "IDS", 1, "2-0"), [1]);
  assert.deepEqual((await r.xpending("s", "g"))[0], 2);
  assert.equal(await r.call("XTRIM", "s", "MAXLEN", "=", 1, "DELREF"), 1);
  assert.deepEqual((await r.xpending("s", "g"))[0], 1);
  await r.xadd("t", "1-0", "f", "v");
  await r.xgroup("CREATE", "t", "g", "0");
  await r.xreadgroup("GROUP", "g", "ann", "STREAMS", "t", ">");
  const [[, [[id, fields, , deliveries]]]] = await r.xreadgroup("GROUP", "g", "bob", "CLAIM", 0, "STREAMS", "t", ">");
  assert.deepEqual([id, fields, deliveries], ["1-0", ["f", "v"], 1]);
}

async function messagesOnce() {
  const id = await r.xadd("once", "IDMP", "shop", "1", "*", "f", "v");
  assert.equal(await r.xadd("once", "IDMP", "shop", "1", "*", "f", "v"), id);
  const other = await r.xadd("once", "IDMPAUTO", "shop", "*", "f", "v");
  assert.equal(await r.xadd("once", "IDMPAUTO", "shop", "*", "f", "v"), other);
  const info = pairs(await r.xinfo("STREAM", "once"));
  assert.deepEqual([info["iids-added"], info["iids-duplicates"]], [2, 2]);
  assert.equal(await r.call("XCFGSET", "once", "IDMP-DURATION", 300, "IDMP-MAXSIZE", 1000), "OK");
  assert.equal(pairs(await r.xinfo("STREAM", "once"))["idmp-maxsize"], 1000);
}

async function clients() {
  assert.equal(await r.client("SETINFO", "LIB-NAME", "peer"), "OK");
  assert.equal(await r.client("SETINFO", "LIB-VER", "1.2"), "OK");
  assert.match(await r.client("INFO"), / lib-name=peer lib-ver=1.2/);
  const other = r.duplicate({ connectionName: "other" });
  const otherId = await other.client("ID");
  const listed = await r.call("CLIENT", "LIST", "NAME", "other", "TYPE", "normal", "SKIPME", "yes");
  assert.match(listed, new RegExp(`^id=${otherId} [^\n]*\n$`));
  const closed = new Promise((resolve) => other.on("close", resolve));
  assert.equal(await r.client("KILL", "MAXAGE", 1000, "ID", otherId), 0);
  assert.equal(await r.client("KILL", "ID", otherId, "USER", "default"), 1);
  await closed;
  other.disconnect();
}

async function places() {
  await r.geoadd("geo", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania", 2.3522, 48.8566, "Paris");
  const sicily = [12, 36, 16, 36, 16, 39, 12, 39];
  assert.deepEqual(await r.call("GEOSEARCH", "geo", "BYPOLYGON", 4, ...sicily, "ASC"), ["Palermo", "Catania"]);
}

async function watching() {
  assert.equal(await r.call("HOTKEYS", "START", "METRICS", 2, "CPU", "NET"), "OK");
  for (let time = 0; time < 10; time++) await r.set("hot", time);
  assert.equal(await r.call("HOTKEYS", "STOP"), "OK");
  const [hot] = await r.call("HOTKEYS", "GET");
  assert.deepEqual(pairs(pairs(hot)["by-net-bytes"]), { hot: 340 });
  assert.equal(await r.call("HOTKEYS", "RESET"), "OK");

  await r.config("SET", "latency-monitor-threshold", 1);
  await r.call("DEBUG", "SLEEP", "0.01");
  const latest = await r.latency("LATEST");
  assert.ok(latest.some(([event]) => event === "command"));
  assert.ok((await r.latency("HISTORY", "command")).length > 0);
  assert.equal(await r.latency("RESET", "command"), 1);
  await r.config("SET", "latency-monitor-threshold", 0);
}

await r.flushall();
const tests = [fieldTimes, fieldsWithTimes, conditions, numbersAndBits, streams, messagesOnce, clients, places, watching];
await run(tests, protocol);
