// A page on connect-web: the calls that a browser can make, by gRPC-Web and by Connect, of a server elsewhere. The query tells
// where: `?plain=ADDRESS&tls=ADDRESS`.
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web';
import { Greeter } from './helloworld_pb.js';

function same(got, wanted) {
  if (got !== wanted) throw new Error(`${got} instead of ${wanted}`);
}

async function messages(stream) {
  const found = [];
  for await (const { message } of stream) found.push(message);
  return found;
}

async function failure(call) {
  return call.then(() => 'the call succeeded', (error) => Code[ConnectError.from(error).code]);
}

async function check(transport) {
  const greeter = createClient(Greeter, transport);
  same((await greeter.sayHello({ name: 'Ann' })).message, 'Hello Ann');
  const name = 'n'.repeat(1_000_000);
  same((await greeter.sayHello({ name })).message, `Hello ${name}`);
  const many = await messages(greeter.sayHelloManyTimes({ name: 'Ann', count: 1000 }));
  same(many.filter((message) => message === 'Hello Ann').length, 1000);
  const slow = greeter.sayHelloManyTimes({ name: 'Ann', count: 10, pauseMs: 30_000 }, { timeoutMs: 500 });
  same(await failure(messages(slow)), 'DeadlineExceeded');
  same(await failure(messages(greeter.sayHelloManyTimes({ name: 'Ann', count: 10_000_000 }))), 'InvalidArgument');
}

try {
  const servers = new URLSearchParams(location.search);
  for (const baseUrl of [`http://${servers.get('plain')}`, `https://${servers.get('tls')}`]) {
    for (const create of [createGrpcWebTransport, createConnectTransport]) await check(create({ baseUrl }));
  }
  document.title = 'ok';
} catch (error) {
  document.title = `failed: ${error}`;
}
// The page's picture, and so its load, is held back until then.
await fetch('/done');
