"""pychonet: `pychonet_controller.py controller ADDRESS` asks the air conditioner at that address and prints what it
learned. The library has no device side."""

import asyncio
import sys

from pychonet.echonetapiclient import ECHONETAPIClient
from pychonet.lib.const import GET, SETC
from pychonet.lib.udpserver import UDPServer

HOST = sys.argv[2]
EOJ = (0x01, 0x30, 0x01)


def listed(codes):
    return " ".join(f"{code:02x}" for code in sorted(codes))


async def main():
    server = UDPServer()
    server.run("0.0.0.0", 3610, loop=asyncio.get_event_loop())
    client = ECHONETAPIClient(server=server)
    client.configure(message_timeout=50, logger=lambda *_: None)
    found = asyncio.Event()

    async def discovered(host):
        if host == HOST:
            found.set()

    client.configure(discover_callback=discovered)
    await client.discover()
    await asyncio.wait_for(found.wait(), 5)
    await client.discover(HOST)
    instances = client.state[HOST]["instances"]
    print("found", *(f"{g:02x}{c:02x}{i:02x}" for g in instances for c in instances[g] for i in instances[g][c]))
    assert await client.getAllPropertyMaps(HOST, *EOJ)
    values = instances[EOJ[0]][EOJ[1]][EOJ[2]]
    for code in (0x9D, 0x9E, 0x9F):
        print(f"map {code:02x}:", listed(values[code]))

    async def get(code):
        done = await client.echonetMessage(HOST, *EOJ, GET, [{"EPC": code}])
        print(f"get {code:02x}: {'done' if done else 'refused'} [{values.get(code, b'').hex()}]")

    async def set_(code, data):
        done = await client.echonetMessage(HOST, *EOJ, SETC, [{"EPC": code, "PDC": 1, "EDT": data}])
        print(f"set {code:02x}: {'done' if done else 'refused'}")

    await get(0xB0)
    heard = asyncio.Event()

    async def update(is_push):
        if is_push and values.get(0xB0) == b"\x43":
            heard.set()

    client.register_async_receive_callbacks(HOST, *EOJ, update)
    await set_(0xB0, 0x43)
    await get(0xB0)
    await get(0xC0)
    # It asks for and writes only what the maps name; the node shall be asked all the same.
    values[0x9F], values[0x9E] = [0xEF], [0xBB]
    await get(0xEF)
    await set_(0xBB, 0x20)
    await asyncio.wait_for(heard.wait(), 2)
    print("notified: true")
    server.close()


asyncio.run(main())
