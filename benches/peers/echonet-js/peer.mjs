// npm echonet-lite:
//   npm-echonet-lite device                                  a light until it is killed
//   npm-echonet-lite published ADDRESS ITERATIONS SECONDS    the published benchmark, cut short after some seconds: 12
//                                                            properties of the node profile one by one, after a search
// A controller prints "begin" when it has found the device, and at the end: requests seconds lost. Then it waits for the end of
// its input, so that its CPU time can be read until then.
import EL from "echonet-lite";

const [LIGHT, CONTROLLER, PROFILE] = ["029001", "05ff01", "0ef001"];
const PROPERTIES = ["80", "82", "83", "8a", "9d", "9e", "9f", "d3", "d4", "d5", "d6", "d7"];
const OPTIONS = { v4: "", v6: "", ignoreMe: false, autoGetProperties: false, debugMode: false };

async function device() {
  const details = { [LIGHT]: { 80: [0x30], b0: [0x64] } };
  await EL.initialize([LIGHT], (rinfo, els) => {
    if (els?.DEOJ === LIGHT && els.ESV === EL.GET) EL.replyGetDetail(rinfo, els, details);
  }, 4, OPTIONS);
  console.log("ready");
}

async function published(address, iterations, limit) {
  let waiting = () => {};
  await EL.initialize([CONTROLLER], (rinfo, els) => {
    if (rinfo.address === address && els?.SEOJ === PROFILE && els.ESV === EL.GET_RES) waiting(els);
  }, 4, { ...OPTIONS, ignoreMe: true });
  const next = (epc, send) => new Promise((resolve) => {
    const patience = setTimeout(resolve, 1000, false);
    waiting = (els) => {
      if (!(epc in els.DETAILs)) return;
      clearTimeout(patience);
      resolve(true);
    };
    send();
  });
  if (!await next("d6", () => EL.sendOPC1(EL.EL_Multi, CONTROLLER, PROFILE, EL.GET, "d6", ""))) throw new Error(`not found: ${address}`);
  console.log("begin");
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  let asked = 0;
  let lost = 0;
  for (; asked < 12 * iterations && elapsed() < limit; asked++) {
    const epc = PROPERTIES[asked % 12];
    if (!await next(epc, () => EL.sendOPC1(address, CONTROLLER, PROFILE, EL.GET, epc, ""))) lost++;
  }
  console.log(asked - lost, elapsed(), lost);
  process.stdin.resume().on("end", () => process.exit());
}

const [role, address, iterations, seconds] = process.argv.slice(2);
await (role === "device" ? device() : published(address, Number(iterations), Number(seconds)));
