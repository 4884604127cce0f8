// What people build on Redis, against a server: node applications.js PORT 2|3.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import { RedisStore } from "connect-redis";
import session from "express-session";
import { Redis } from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { createClient } from "redis";
import Redlock from "redlock";
import { run } from "./run.js";

const [port, protocol] = process.argv.slice(2).map(Number);
const connection = { port, protocol, maxRetriesPerRequest: null };
const r = new Redis(connection);

// A queue of jobs: each is done once, failing ones are tried again, delayed ones wait, parents wait for their children.
async function queue() {
  const jobs = 200;
  const queue = new Queue("work", { connection });
  const events = new QueueEvents("work", { connection });
  await events.waitUntilReady();
  const tries = new Map();
  const work = async (job) => {
    tries.set(job.name, (tries.get(job.name) ?? 0) + 1);
    if (job.data.fails > job.attemptsMade) throw new Error("as asked");
    await job.updateProgress(50);
    if (job.name === "parent") return Object.values(await job.getChildrenValues()).sort();
    return job.data.n * 2;
  };
  const workers = [1, 2].map(() => new Worker("work", work, { connection, concurrency: 5 }));
  const bulk = Array.from({ length: jobs }, (_, n) => ({ name: `job:${n}`, data: { n, fails: 0 } }));
  const added = await queue.addBulk(bulk);
  assert.deepEqual(await Promise.all(added.map((job) => job.waitUntilFinished(events, 20000))), added.map((_, n) => n * 2));
  assert.ok([...tries.values()].every((count) => count === 1), "a job was done twice");

  const again = await queue.add("again", { n: 1, fails: 2 }, { attempts: 3, backoff: { type: "fixed", delay: 10 } });
  assert.equal(await again.waitUntilFinished(events, 20000), 2);
  assert.equal(tries.get("again"), 3);
  const never = await queue.add("never", { fails: 9 }, { attempts: 2 });
  await assert.rejects(never.waitUntilFinished(events, 20000), /as asked/);
  const later = await queue.add("later", { n: 4, fails: 0 }, { delay: 100, priority: 3 });
  assert.equal(await later.waitUntilFinished(events, 20000), 8);

  const flow = new FlowProducer({ connection });
  const children = [1, 2, 3].map((n) => ({ name: `child:${n}`, queueName: "work", data: { n, fails: 0 } }));
  const tree = await flow.add({ name: "parent", queueName: "work", data: { fails: 0 }, children });
  assert.deepEqual(await tree.job.waitUntilFinished(events, 20000), [2, 4, 6]);
  await queue.upsertJobScheduler("tick", { every: 60000 }, { name: "tick", data: { n: 1, fails: 0 } });
  assert.equal((await queue.getJobSchedulers()).length, 1);
  const counts = await queue.getJobCounts("completed", "failed", "waiting", "active");
  assert.equal(counts.failed, 1);
  assert.ok(counts.completed >= jobs + 6, JSON.stringify(counts));
  await Promise.all(workers.map((worker) => worker.close()));
  await queue.obliterate({ force: true });
  assert.deepEqual(await r.keys("bull:work:*:*"), []);
  await Promise.all([queue.close(), events.close(), flow.close()]);
}

// A lock that only one has at a time, and that ends by itself.
async function lock() {
  const redlock = new Redlock([r], { retryCount: 200, retryDelay: 5, retryJitter: 5 });
  let inside = 0;
  let done = 0;
  const enter = async () => {
    const held = await redlock.lock("lock:account", 2000);
    inside += 1;
    assert.equal(inside, 1, "two have the lock");
    await held.extend(2000);
    await new Promise((resolve) => setTimeout(resolve, 2));
    inside -= 1;
    done += 1;
    await held.unlock();
  };
  await Promise.all(Array.from({ length: 10 }, enter));
  assert.equal(done, 10);
  const forgotten = await redlock.lock("lock:account", 50);
  await (await redlock.lock("lock:account", 1000)).unlock();
  await assert.rejects(forgotten.unlock());
}

// A limiter in Lua: so many points in so much time.
async function limiter() {
  const limiter = new RateLimiterRedis({ storeClient: r, points: 5, duration: 60, blockDuration: 60 });
  const asked = await Promise.allSettled(Array.from({ length: 20 }, () => limiter.consume("ann")));
  assert.equal(asked.filter(({ status }) => status === "fulfilled").length, 5);
  assert.equal((await limiter.consume("bob", 2)).remainingPoints, 3);
  // A bucket that fills again, as such scripts are written by hand.
  r.defineCommand("take", {
    numberOfKeys: 1,
    lua: `
      local size, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
      local time = redis.call('TIME')
      local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
      local state = redis.call('HMGET', KEYS[1], 'left', 'at')
      local left = tonumber(state[1]) or size
      left = math.min(size, left + (now - (tonumber(state[2]) or now)) * rate / 1000)
      if left < 1 then return {0, tostring(left)} end
      redis.call('HSET', KEYS[1], 'left', left - 1, 'at', now)
      redis.call('PEXPIRE', KEYS[1], math.ceil(size / rate * 1000))
      return {1, tostring(left - 1)}`,
  });
  const takes = await Promise.all(Array.from({ length: 30 }, () => r.take("bucket", 10, 0.001)));
  assert.equal(takes.filter(([taken]) => taken === 1).length, 10);
  assert.ok((await r.pttl("bucket")) > 9_000_000);
}

// Sessions of a web server, in express' middleware without a network.
async function sessions() {
  const client = await createClient({ url: `redis://127.0.0.1:${port}`, RESP: protocol }).connect();
  const store = new RedisStore({ client, prefix: "session:", ttl: 100 });
  const middleware = session({ store, secret: "s", resave: false, saveUninitialized: false });
  const visit = async (cookie) => {
    const request = Object.assign(new EventEmitter(), { headers: { cookie }, url: "/", originalUrl: "/", connection: {} });
    const headers = {};
    const response = Object.assign(new EventEmitter(), {
      getHeader: (name) => headers[name.toLowerCase()],
      setHeader: (name, value) => (headers[name.toLowerCase()] = value),
      writeHead: () => response,
      write: () => true,
      end: () => response.emit("ended"),
      _header: "",
      _implicitHeader: () => response.writeHead(200),
    });
    await new Promise((resolve, reject) => middleware(request, response, (error) => (error ? reject(error) : resolve())));
    request.session.visits = (request.session.visits ?? 0) + 1;
    const saved = new Promise((resolve, reject) => request.session.save((error) => (error ? reject(error) : resolve())));
    await saved;
    response.writeHead(200);
    return [request.session.visits, request.sessionID, String(headers["set-cookie"]).split(";")[0]];
  };
  const [first, id, cookie] = await visit(undefined);
  assert.equal(first, 1);
  assert.ok((await r.ttl(`session:${id}`)) > 90);
  assert.deepEqual((await visit(cookie)).slice(0, 2), [2, id]);
  const call = (name, ...args) =>
    new Promise((resolve, reject) => store[name](...args, (error, value) => (error ? reject(error) : resolve(value))));
  for (let n = 0; n < 50; n += 1) await call("set", `s${n}`, { n, cookie: {} });
  assert.equal(await call("length"), 51);
  assert.equal((await call("get", "s7")).n, 7);
  await call("touch", "s7", { cookie: { originalMaxAge: 5000, expires: new Date(Date.now() + 5000) } });
  assert.ok((await r.ttl("session:s7")) <= 5);
  await call("destroy", "s7");
  assert.equal(await call("get", "s7"), null);
  assert.equal((await call("all")).length, 50);
  await call("clear");
  assert.equal(await call("length"), 0);
  client.destroy();
}

await once(r, "ready");
await r.flushall();
await run([queue, lock, limiter, sessions], protocol);
