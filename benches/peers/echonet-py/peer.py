"""uecho for Python:

uecho-py device                                    a light until it is killed
uecho-py published ADDRESS ITERATIONS SECONDS      the published benchmark, cut short after some seconds: 12 properties of the
                                                   node profile one by one, after a search by multicast

A controller prints "begin" when it has found the device, and at the end: requests seconds lost. Then it waits for the end of its
input, so that its CPU time can be read until then.
"""

import sys
import threading
import time

from uecho import Controller, Device
from uecho.esv import ESV
from uecho.local_node import LocalNode

LIGHT, PROFILE = 0x029001, 0x0EF001
PROPERTIES = (0x80, 0x82, 0x83, 0x8A, 0x9D, 0x9E, 0x9F, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7)


def device():
    node, light = LocalNode(), Device(LIGHT)
    assert light.set_property_data(0x80, b"\x30")
    assert node.add_object(light)
    assert node.start()
    print("ready", flush=True)
    threading.Event().wait()


def published(address, iterations, limit):
    # Starting searches.
    controller = Controller()
    assert controller.start()
    # The library's table of nodes must not be looked at while it grows.
    time.sleep(0.5)
    node = controller.get_node(address)
    assert node, f"not found: {address}"
    profile = node.get_object(PROFILE)
    print("begin", flush=True)
    asked, lost, start = 0, 0, time.monotonic()
    while asked < 12 * iterations and time.monotonic() - start < limit:
        code = PROPERTIES[asked % 12]
        answer = profile.post_message(ESV.READ_REQUEST, [(code, b"")])
        if answer is None or answer.properties[0].code != code:
            lost += 1
        asked += 1
    print(asked - lost, time.monotonic() - start, lost, flush=True)
    sys.stdin.read()
    controller.stop()


if sys.argv[1] == "device":
    device()
else:
    published(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
