// A client on @grpc/grpc-js: every kind of call over cleartext and TLS. Arguments: address, TLS address, certificate.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const { helloworld } = grpc.loadPackageDefinition(loader.loadSync('helloworld.proto', { keepCase: true }));

async function messages(stream) {
  const found = [];
  for await (const { message } of stream) found.push(message);
  return found;
}

async function check(address, credentials, options) {
  const greeter = new helloworld.Greeter(address, credentials, options);
  const deadline = () => ({ deadline: Date.now() + 60_000 });
  const sayHello = promisify(greeter.sayHello.bind(greeter));
  assert.equal((await sayHello({ name: 'Ann' })).message, 'Hello Ann');
  const long = 'n'.repeat(1_000_000);
  assert.equal((await sayHello({ name: long })).message, `Hello ${long}`);

  const many = await messages(greeter.sayHelloManyTimes({ name: 'Ann', count: 10_000 }, deadline()));
  assert.equal(many.filter((message) => message === 'Hello Ann').length, 10_000);
  const toAll = new Promise((resolve, reject) => {
    const call = greeter.sayHelloToAll(deadline(), (error, reply) => (error ? reject(error) : resolve(reply)));
    for (const name of ['Ann', 'Bob']) call.write({ name });
    call.end();
  });
  assert.equal((await toAll).message, 'Hello Ann, Bob');
  const toEach = greeter.sayHelloToEach(deadline());
  for (const name of ['Ann', 'Bob']) toEach.write({ name });
  toEach.end();
  assert.deepEqual(await messages(toEach), ['Hello Ann', 'Hello Bob']);

  const slow = greeter.sayHelloManyTimes({ name: 'Ann', count: 10, pause_ms: 30_000 }, { deadline: Date.now() + 200 });
  await assert.rejects(messages(slow), { code: grpc.status.DEADLINE_EXCEEDED });
  const unknown = (callback) =>
    greeter.makeUnaryRequest('/helloworld.Greeter/Nothing', (bytes) => bytes, (bytes) => bytes, Buffer.alloc(0), callback);
  await assert.rejects(promisify(unknown)(), { code: grpc.status.UNIMPLEMENTED });
  greeter.close();
}

const [plain, tls, certificate] = process.argv.slice(2);
await check(plain, grpc.credentials.createInsecure());
const named = { 'grpc.ssl_target_name_override': 'localhost', 'grpc.default_authority': 'localhost' };
await check(tls, grpc.credentials.createSsl(readFileSync(certificate)), named);
console.log('ok');
