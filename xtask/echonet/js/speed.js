// npm echonet-lite: a light until its input ends.
import EL from "echonet-lite";

const LIGHT = "029001";
const details = { [LIGHT]: { 80: [0x30], b0: [0x64] } };
const options = { v4: "", v6: "", ignoreMe: false, autoGetProperties: false, debugMode: false };
await EL.initialize([LIGHT], (rinfo, els) => {
  if (els?.DEOJ === LIGHT && els.ESV === EL.GET) EL.replyGetDetail(rinfo, els, details);
}, 4, options);
console.log("ready");
process.stdin.resume().on("end", () => process.exit());
