// echonet-lite: "echonet-lite.js controller ADDRESS" asks the air conditioner at that address and prints what it learned,
// "echonet-lite.js device" is an air conditioner until its input ends.
import { setTimeout as sleep } from "node:timers/promises";
import EL from "echonet-lite";

const [role, address] = process.argv.slice(2);
const CONDITIONER = "013001";
const OPTIONS = { v4: "", v6: "", ignoreMe: true, autoGetProperties: false, debugMode: false };

// Codes of a map as the library hands it out: its count and the codes, in the first form always.
function listed(map) {
  return map.match(/../g).slice(1).sort().join(" ");
}

async function until(what, holds) {
  for (let tries = 0; tries < 150; tries++) {
    const value = holds();
    if (value) return value;
    await sleep(20);
  }
  throw new Error(`waited in vain: ${what}`);
}

async function control() {
  const answers = [];
  let notified = false;
  await EL.initialize(["05ff01"], (_, els) => {
    if (els?.SEOJ !== CONDITIONER) return;
    if (els.ESV === EL.INF) notified ||= els.DETAILs.b0 === "43";
    else answers.push(els);
  }, 4, OPTIONS);
  EL.search();
  const found = await until("discovery", () => EL.facilities[address]?.["0ef001"]?.d6);
  console.log("found", found.slice(2).match(/.{6}/g).join(" "));
  const ask = async (esv, epc, edt) => {
    answers.length = 0;
    EL.sendOPC1(address, "05ff01", CONDITIONER, esv, epc, edt);
    return (await until(`answer to ${esv} ${epc}`, () => answers[0]));
  };
  for (const epc of ["9d", "9e", "9f"]) console.log(`map ${epc}:`, listed((await ask(EL.GET, epc, "")).DETAILs[epc]));
  const line = async (name, esv, epc, edt) => {
    const { ESV, DETAILs } = await ask(esv, epc, edt);
    console.log(`${name} ${epc}: ${ESV} [${DETAILs[epc]}]`);
  };
  await line("get", EL.GET, "b0", "");
  await line("set", EL.SETC, "b0", "43");
  await line("get", EL.GET, "b0", "");
  await line("get", EL.GET, "c0", "");
  await line("get", EL.GET, "ef", "");
  await line("set", EL.SETC, "bb", "20");
  console.log("notified:", await until("notification", () => notified));
  EL.release();
}

async function device() {
  const values = { 80: [0x30], 81: [0x08], 82: [0, 0, 0x52, 0], 88: [0x42], "8a": [0, 0, 0x77], b0: [0x42], b3: [0x14], c0: [0x41] };
  // Both forms of a map; the library leaves it to the device's author.
  const readable = [..."80 81 82 88 8a 9d 9e 9f a0 b0 b3 b4 ba bb be c0 c1 cf".split(" ")];
  for (const epc of readable) values[epc] ??= [0x41];
  values["9d"] = [4, 0x80, 0x81, 0x88, 0xb0];
  values["9e"] = [4, 0x80, 0x81, 0xb0, 0xb3];
  values["9f"] = [readable.length, ...new Array(16).fill(0)];
  for (const epc of readable) values["9f"][1 + (parseInt(epc, 16) & 0x0f)] |= 1 << ((parseInt(epc, 16) >> 4) - 8);
  const details = { [CONDITIONER]: values };
  await EL.initialize([CONDITIONER], (rinfo, els) => {
    if (els?.DEOJ !== CONDITIONER) return;
    if (els.ESV === EL.GET) EL.replyGetDetail(rinfo, els, details);
    if (els.ESV === EL.SETI || els.ESV === EL.SETC) EL.replySetDetail(rinfo, els, details);
  }, 4, OPTIONS);
  console.log("ready:", readable.join(" "));
  process.stdin.resume().on("end", () => EL.release());
}

await (role === "device" ? device() : control());
