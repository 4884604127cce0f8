// Beside other people's tests, which connect to port 6379 of this machine: the server has the port that SEARCH_SUITE_PORT names, and
// a connection to another machine is refused.
const net = require('node:net')

const connect = net.Socket.prototype.connect

net.Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0]
  if (options !== null && typeof options === 'object' && options.path === undefined) {
    if (!['127.0.0.1', '::1', 'localhost', undefined].includes(options.host)) {
      throw new Error(`no loopback address: ${options.host}`)
    }
    if (Number(options.port) === 6379) {
      Object.assign(options, { host: '127.0.0.1', port: Number(process.env.SEARCH_SUITE_PORT) })
    }
  }
  return connect.apply(this, args)
}
