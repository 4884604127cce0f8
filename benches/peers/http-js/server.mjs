// Node's http, and Bun.serve where Bun runs it. One process, as the published comparison had it.
const port = Number(process.argv[2]);
const json = () => JSON.stringify({ message: "Hello from JavaScript" });
if (globalThis.Bun) {
  const answers = {
    "/": () => new Response("Hello from JavaScript"),
    "/json": () => new Response(json(), { headers: { "content-type": "application/json" } }),
  };
  Bun.serve({ port, hostname: "127.0.0.1", fetch: (request) => answers[new URL(request.url).pathname]() });
} else {
  const http = await import("node:http");
  http
    .createServer((request, response) => {
      const isJson = request.url === "/json";
      response.setHeader("content-type", isJson ? "application/json" : "text/plain");
      response.end(isJson ? json() : "Hello from JavaScript");
    })
    .listen(port, "127.0.0.1");
}
