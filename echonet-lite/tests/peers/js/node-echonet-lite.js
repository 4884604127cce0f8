// node-echonet-lite: "node-echonet-lite.js controller ADDRESS" asks the air conditioner at that address and prints what
// it learned. The library has no device side.
import { setTimeout as sleep } from "node:timers/promises";
import EchonetLite from "node-echonet-lite";

const address = process.argv[3];
const CONDITIONER = [0x01, 0x30, 0x01];
const el = new EchonetLite({ type: "lan" });
const call = (method, ...args) =>
  new Promise((resolve, reject) => el[method](...args, (error, result) => (error ? reject(error) : resolve(result))));
const ESV = { Get_Res: "72", Set_Res: "71", Get_SNA: "52", SetC_SNA: "51" };
const hex = (number) => number.toString(16).padStart(2, "0");

// Codes and answers travel as objects; `hex` of the property's buffer is what came over the wire.
async function line(name, epc, ...edt) {
  const result = await call(`${name}PropertyValue`, address, CONDITIONER, epc, ...edt);
  const { esv, prop } = result.message;
  console.log(`${name} ${hex(epc)}: ${ESV[esv]} [${prop[0].buffer?.toString("hex") ?? ""}]`);
}

await call("init");
let notified = false;
el.on("notify", ({ message }) => {
  notified ||= message.esv === "INF" && message.prop[0].epc === 0xb0 && message.prop[0].buffer.toString("hex") === "43";
});
const found = await new Promise((resolve) => {
  el.startDiscovery((error, result) => !error && result?.device.address === address && resolve(result.device.eoj));
});
el.stopDiscovery();
console.log("found", found.map((eoj) => eoj.map(hex).join("")).join(" "));
const maps = (await call("getPropertyMaps", address, CONDITIONER)).message.data;
for (const [epc, name] of [["9d", "inf"], ["9e", "set"], ["9f", "get"]]) {
  console.log(`map ${epc}:`, maps[name].sort((a, b) => a - b).map(hex).join(" "));
}
await line("get", 0xb0);
await line("set", 0xb0, { mode: 3 });
await line("get", 0xb0);
await line("get", 0xc0);
await line("get", 0xef);
await line("set", 0xbb, Buffer.from([0x20]));
for (let tries = 0; !notified && tries < 100; tries++) await sleep(20);
console.log("notified:", notified);
el.close();
