// grpc-js' greeter as its documentation shows it, with a stream of replies beside it.
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const place = process.argv[3];
const definition = fileURLToPath(new URL("helloworld.proto", import.meta.url));
const { helloworld } = grpc.loadPackageDefinition(loadSync(definition));
const server = new grpc.Server();
server.addService(helloworld.Greeter.service, {
  sayHello: (call, callback) => callback(null, { message: `Hello ${call.request.name}` }),
  sayHelloManyTimes: async (call) => {
    for (let left = call.request.count; left > 0; left--) {
      // What the client has not taken yet is not piled up.
      while (!call.write({ message: `Hello ${call.request.name}` }) && call.writableNeedDrain) await setImmediate();
    }
    call.end();
  },
});
server.bindAsync(place, grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
