// Honest clients on @grpc/grpc-js at their fastest. Arguments: address, seconds of each row; or `serve`: its own server.
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const { helloworld } = grpc.loadPackageDefinition(loader.loadSync('helloworld.proto', { keepCase: true }));
const hello = ({ request }) => ({ message: `Hello ${request.name}` });

async function pingPong(greeter, isOver) {
  const stream = greeter.sayHelloToEach();
  stream.write({ name: 'Ann' });
  let count = 0;
  for await (const _ of stream) {
    count++;
    if (isOver()) stream.end();
    else stream.write({ name: 'Ann' });
  }
  return count;
}

async function many(isOver, call) {
  let count = 0;
  const one = async () => {
    while (!isOver()) {
      const answers = await call();
      count += answers;
    }
  };
  await Promise.all(Array.from({ length: 50 }, one));
  return count;
}

// Node ends a session after a thousand frames of streams that it has reset itself, also one with grpc-js' own server. So cancelled calls
// get a new connection from time to time.
const CALLS = 500;
function renewed() {
  let [greeter, calls] = [null, 0];
  return () => {
    if (calls++ % CALLS === 0) {
      const options = { 'grpc.keepalive_time_ms': 100, 'grpc.use_local_subchannel_pool': 1 };
      greeter = new helloworld.Greeter(address, grpc.credentials.createInsecure(), options);
    }
    return greeter;
  };
}

function unary(greeter, cancels) {
  return new Promise((resolve, reject) => {
    const call = greeter.sayHello({ name: 'Ann' }, (error) => {
      if (error && !(cancels && error.code === grpc.status.CANCELLED)) reject(error);
      else resolve(error ? 0 : 1);
    });
    if (cancels) setImmediate(() => call.cancel());
  });
}

function left(greeter) {
  return new Promise((resolve, reject) => {
    const stream = greeter.sayHelloManyTimes({ name: 'Ann', count: 1000 });
    stream.once('data', () => {
      stream.cancel();
      resolve(1);
    });
    stream.on('error', (error) => error.code === grpc.status.CANCELLED || reject(error));
  });
}

const rows = {
  'ping-pong on a stream': pingPong,
  'short calls': (greeter, isOver) => many(isOver, () => unary(greeter, false)),
  'every second call cancelled': (_, isOver) => {
    const greeter = renewed();
    return many(isOver, () => unary(greeter(), Math.random() < 0.5));
  },
  'streams left behind their first answer': (_, isOver) => {
    const greeter = renewed();
    return many(isOver, () => left(greeter()));
  },
};

const [address, seconds] = process.argv.slice(2);
if (address === 'serve') {
  const server = new grpc.Server();
  server.addService(helloworld.Greeter.service, {
    sayHello: (call, callback) => callback(null, hello(call)),
    sayHelloManyTimes: (call) => {
      for (let left = call.request.count; left > 0; left--) call.write(hello(call));
      call.end();
    },
    sayHelloToEach: (call) => {
      call.on('data', (request) => call.write(hello({ request })));
      call.on('end', () => call.end());
    },
  });
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    console.log(`127.0.0.1:${port}`);
  });
} else {
  for (const [name, run] of Object.entries(rows)) {
    // The least time between pings.
    const greeter = new helloworld.Greeter(address, grpc.credentials.createInsecure(), { 'grpc.keepalive_time_ms': 100 });
    const end = Date.now() + 1000 * Number(seconds);
    console.log(`${name}\t${await run(greeter, () => Date.now() >= end)}`);
    greeter.close();
  }
}
