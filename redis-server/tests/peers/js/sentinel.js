// ioredis behind a Sentinel, while primaries change, until there is a key `done`: node sentinel.js PORT.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

const r = new Redis({
  sentinels: [{ host: "127.0.0.1", port: Number(process.argv[2]) }],
  name: "first",
  commandTimeout: 2000,
  maxRetriesPerRequest: 1,
  reconnectOnError: (error) => error.message.startsWith("READONLY"),
});
// Whoever waits for a reply is told, too.
r.on("error", () => {});
let [turn, kept, failed] = [0, 0, 0];
const or_later = async (work) => {
  try {
    return await work();
  } catch {
    failed += 1;
    await sleep(50);
  }
};
for (;;) {
  const found = await or_later(() => r.mget("done", "js"));
  if (!found) {
    continue;
  }
  const [done, value] = found;
  if (done) {
    break;
  }
  assert(kept <= value && value <= turn, `a replica had ${kept} of ${turn}, and there is ${value}`);
  turn += 1;
  const replies = await or_later(() => r.pipeline().set("js", turn).wait(1, 1000).exec());
  if (replies && !replies[0][0] && replies[1][1] >= 1) {
    kept = turn;
  }
}
console.log(`ok, ${turn} turns, ${failed} failed`);
process.exit(0);
