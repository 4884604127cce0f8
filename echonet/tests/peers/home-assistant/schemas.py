"""Validates the descriptions of a file by the schemas of Home Assistant, while another thread imports platforms. Prints how
many entities differ from those of one thread: as they are described, and without the defaults that they state.
"""

import importlib
import json
import sys
import threading
import time

PLATFORMS = "homeassistant.components.mqtt."
# Platforms that no description has, imported again and again.
IMPORTED = ("lawn_mower", "notify", "scene", "siren", "valve")
# Seconds of the trial; without the defaults, it ends at the first difference.
TRIAL = 5
PATIENCE = 60
# Seconds after which the interpreter changes to another thread: the shorter, the more often it does so within a schema.
sys.setswitchinterval(1e-5)


def entities(descriptions):
    """The schema and the configuration of each entity: the parts of the device are in each."""
    for description in descriptions:
        shared = {key: value for key, value in description.items() if key != "components"}
        for component in description["components"].values():
            platform = importlib.import_module(PLATFORMS + component["platform"])
            own = {key: value for key, value in component.items() if key != "platform"}
            yield platform.DISCOVERY_SCHEMA, json.dumps({**shared, **own})


def without_defaults(descriptions):
    for description in json.loads(json.dumps(descriptions)):
        description["device"].pop("connections")
        for topic in description["availability"]:
            topic.pop("payload_available")
            topic.pop("payload_not_available")
        yield description


def validated(schema, text):
    try:
        return schema(json.loads(text))
    except Exception as error:
        return repr(error)


def differences(descriptions, seconds, most):
    """Validates all entities again and again, until the time is over or so many differ."""
    others = [importlib.import_module(PLATFORMS + name) for name in IMPORTED]
    alone = [(schema, text, validated(schema, text)) for schema, text in entities(descriptions)]
    ended = threading.Event()

    def import_others():
        while not ended.is_set():
            for other in others:
                importlib.reload(other)

    thread = threading.Thread(target=import_others)
    thread.start()
    end = time.monotonic() + seconds
    count = wrong = 0
    while time.monotonic() < end and wrong < most:
        schema, text, result = alone[count % len(alone)]
        count += 1
        wrong += validated(schema, text) != result
    ended.set()
    thread.join()
    return {"validated": count, "differ": wrong}


with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
stated = differences(given, TRIAL, 1)
left_out = differences(list(without_defaults(given)), PATIENCE, 1)
print(json.dumps({"stated": stated, "left_out": left_out}))
