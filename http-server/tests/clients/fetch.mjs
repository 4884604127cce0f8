// Node's fetch and its http2 module. Arguments: the address of a plain server, and of one with TLS.
import http2 from "node:http2";

process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
process.removeAllListeners("warning");
process.on("warning", () => {});
const same = (got, expected) => {
  if (got !== expected) throw new Error(`${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`);
};
const [plain, tls] = process.argv.slice(2);
for (const base of [`http://${plain}`, `https://${tls}`]) {
  same(await (await fetch(base + "/")).text(), "Hello from Rust");
  same((await (await fetch(base + "/json")).json()).message, "Hello from Rust");
  same(await (await fetch(base + "/zürich")).text(), "Hello, visitor! You've requested: /zürich");
  same((await (await fetch(base + "/t/text")).text()).length, 12000);
  const body = "x".repeat(300000);
  same(await (await fetch(base + "/t/echo", { method: "POST", body })).text(), body);
  const stream = new Blob([body]).stream();
  same(await (await fetch(base + "/t/count", { method: "POST", body: stream, duplex: "half" })).text(), "300000");
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => fetch(`${base}/n${n}`).then((a) => a.text())));
  answers.forEach((text, n) => same(text, `Hello, visitor! You've requested: /n${n}`));
  const session = http2.connect(base, { rejectUnauthorized: false });
  const get = (path) =>
    new Promise((resolve, reject) => {
      const request = session.request({ ":path": path });
      let text = "";
      request.setEncoding("utf8");
      request.on("data", (data) => (text += data)).on("end", () => resolve(text)).on("error", reject);
    });
  const many = await Promise.all(Array.from({ length: 500 }, (_, n) => get(`/n${n}`)));
  many.forEach((text, n) => same(text, `Hello, visitor! You've requested: /n${n}`));
  same((await get("/t/big")).length, 8 * 1024 * 1024);
  session.close();
}
console.log("ok");
process.exit(0);
