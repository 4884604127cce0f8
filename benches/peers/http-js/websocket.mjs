// A WebSocket at /ws that echoes: Node and the package `ws`; one process.
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ port: Number(process.argv[2]), host: "127.0.0.1", path: "/ws" });
server.on("connection", (socket) => {
  socket.on("message", (message, binary) => socket.send(message, { binary }));
  socket.on("error", () => socket.terminate());
});
