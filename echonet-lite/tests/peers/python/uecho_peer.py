"""uecho: `uecho_peer.py controller ADDRESS` asks the air conditioner at that address and prints what it learned,
`uecho_peer.py device` is an air conditioner until its input ends."""

import sys
import threading
import time

from uecho import Controller, Device
from uecho.esv import ESV
from uecho.local_node import LocalNode
from uecho.message import Message
from uecho.property import Property

AIR_CONDITIONER = 0x013001


def listed(codes):
    return " ".join(f"{code:02x}" for code in sorted(codes))


class Listening(Controller):
    """A controller that remembers which notifications it heard: its own listeners are not told of them."""

    def __init__(self):
        super().__init__()
        self.heard = threading.Event()

    def message_received(self, message):
        heard = [(prop.code, bytes(prop.data)) for prop in message.properties]
        if message.ESV == ESV.NOTIFICATION and message.SEOJ == AIR_CONDITIONER and (0xB0, b"\x43") in heard:
            self.heard.set()
        super().message_received(message)


def control(address):
    controller = Listening()
    assert controller.start()
    for _ in range(100):
        if controller.get_node(address):
            break
        time.sleep(0.02)
    node = controller.get_node(address)
    print("found", *(f"{obj.code:06x}" for obj in node.objects if obj.group_code != 0x0E))
    conditioner = node.get_object(AIR_CONDITIONER)

    def ask(esv, code, data=b""):
        answer = conditioner.post_message(esv, [(code, data)])
        return f"{answer.ESV:02x} [{bytes(answer.properties[0].data).hex()}]"

    for code in (0x9D, 0x9E, 0x9F):
        answer = conditioner.post_message(ESV.READ_REQUEST, [(code, b"")])
        codes = Property(code, answer.properties[0].data).property_map_codes
        print(f"map {code:02x}:", listed(code for code in codes if code))
    print("get b0:", ask(ESV.READ_REQUEST, 0xB0))
    print("set b0:", ask(ESV.WRITE_REQUEST_RESPONSE_REQUIRED, 0xB0, b"\x43"))
    print("get b0:", ask(ESV.READ_REQUEST, 0xB0))
    print("get c0:", ask(ESV.READ_REQUEST, 0xC0))
    print("get ef:", ask(ESV.READ_REQUEST, 0xEF))
    print("set bb:", ask(ESV.WRITE_REQUEST_RESPONSE_REQUIRED, 0xBB, b"\x20"))
    print("notified:", str(controller.heard.wait(2)).lower())
    sys.stdout.flush()
    controller.stop()


class AirConditioner(Device):
    """The library's air conditioner with values in a few properties; it takes what is written and tells of it."""

    def __init__(self):
        super().__init__(AIR_CONDITIONER)
        for code, data in ((0x80, 0x30), (0x81, 0x08), (0xB0, 0x42), (0xB3, 0x14), (0xC0, 0x41)):
            assert self.set_property_data(code, bytes([data]))

    def property_write_requested(self, prop, data):
        if not super().property_write_requested(prop, data):
            return False
        message = Message()
        message.ESV, message.SEOJ, message.DEOJ = ESV.NOTIFICATION, AIR_CONDITIONER, 0x0EF001
        message.add_property((prop.code, data))
        return self.node.announce_message(message)


def device():
    node = LocalNode()
    conditioner = AirConditioner()
    assert node.add_object(conditioner)
    assert node.start()
    print("ready:", listed(prop.code for prop in conditioner.properties if prop.is_read_enabled()), flush=True)
    sys.stdin.read()
    node.stop()


if sys.argv[1] == "device":
    device()
else:
    control(sys.argv[2])
