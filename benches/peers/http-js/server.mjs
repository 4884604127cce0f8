// Node's http, and Bun.serve where Bun runs it; one process, as the published comparison had it. With the place of a Redis
// behind the port also GET /get?key=…, by the client of Bun or the package `redis`; both send what waits in one write.
// Bun's has a WebSocket at /ws, too, which echoes; Node's is in websocket.mjs.
const [port, place] = [Number(process.argv[2]), process.argv[3]];
const plain = "Hello from JavaScript";
const json = () => JSON.stringify({ message: plain });
const item = (n) => ({ id: n, name: `item ${n}`, price: (n * 37) % 1000, quantity: (n * 11) % 50, active: true, tags: ["fast", "new"] });
const items = JSON.stringify({ items: Array.from({ length: 100 }, (_, n) => item(n)) });
const greeting = (path) => `Hello, visitor! You've requested: ${path}`;

if (globalThis.Bun) {
  const redis = place && new Bun.RedisClient(`redis://${place}`);
  const get = async (key) => {
    const value = await redis.get(key);
    return value === null ? new Response("there is no such key", { status: 404 }) : new Response(value);
  };
  const compressed = { "content-type": "application/json", "content-encoding": "gzip" };
  const answers = {
    "/items": () => new Response(Bun.gzipSync(items), { headers: compressed }),
    "/": () => new Response(plain),
    "/json": () => new Response(json(), { headers: { "content-type": "application/json" } }),
    "/get": (url) => get(url.searchParams.get("key")),
  };
  const upload = async (body) => {
    let length = 0;
    for await (const piece of body) length += piece.length;
    return new Response(String(length));
  };
  const fetch = (request, server) => {
    const url = new URL(request.url);
    if (url.pathname === "/ws") return server.upgrade(request) ? undefined : new Response("no WebSocket", { status: 400 });
    if (url.pathname === "/upload") return upload(request.body);
    return answers[url.pathname]?.(url) ?? new Response(greeting(url.pathname));
  };
  const websocket = { message: (socket, message) => socket.send(message) };
  Bun.serve({ port, hostname: "127.0.0.1", fetch, websocket });
} else {
  const http = await import("node:http");
  const zlib = await import("node:zlib");
  const redis = place && (await import("redis")).createClient({ url: `redis://${place}` });
  await redis?.connect();
  const get = async (url, response) => {
    const value = await redis.get(new URL(url, "http://127.0.0.1").searchParams.get("key"));
    response.statusCode = value === null ? 404 : 200;
    response.end(value ?? "there is no such key");
  };
  const upload = (request, response) => {
    let length = 0;
    request.on("data", (piece) => (length += piece.length)).on("end", () => response.end(String(length)));
  };
  http
    .createServer((request, response) => {
      const url = request.url;
      if (url === "/upload") return upload(request, response);
      if (url === "/items") {
        response.setHeader("content-type", "application/json").setHeader("content-encoding", "gzip");
        return response.end(zlib.gzipSync(items));
      }
      response.setHeader("content-type", url === "/json" ? "application/json" : "text/plain");
      if (redis && url.startsWith("/get?")) get(url, response);
      else response.end(url === "/json" ? json() : url === "/" ? plain : greeting(url));
    })
    .listen(port, "127.0.0.1");
}
