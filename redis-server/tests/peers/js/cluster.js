// ioredis' cluster client, while slots move and primaries change, until there is a key `done`: node cluster.js PORT.
import assert from "node:assert/strict";
import { Cluster } from "ioredis";

const r = new Cluster([{ host: "127.0.0.1", port: Number(process.argv[2]) }], { maxRedirections: 64 });
const names = Array.from({ length: 100 }, (_, number) => `js:${number}`);
const values = new Map(names.map((name) => [name, null]));
let turn = 0;
while ((await r.exists("done")) === 0) {
  turn += 1;
  for (const name of names) {
    assert.equal(await r.get(name), values.get(name));
    values.set(name, `${name} ${turn}`);
    assert.equal(await r.set(name, values.get(name)), "OK");
  }
  assert.equal(await r.mset("{js}a", turn, "{js}b", -turn), "OK");
  assert.deepEqual(await r.mget("{js}a", "{js}b"), [`${turn}`, `${-turn}`]);
  assert.deepEqual(await Promise.all(names.map((name) => r.get(name))), [...values.values()]);
}
for (const name of names) {
  assert.equal(await r.get(name), values.get(name));
}
console.log(`ok, ${turn} turns`);
process.exit(0);
