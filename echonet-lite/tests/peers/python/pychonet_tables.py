"""What pychonet knows of classes, as lines: `name CLASS EPC NAME`, `codes CLASS EPC CODE,CODE,…`, `signed CLASS EPC SIZE`."""

import importlib
import inspect
import pkgutil
from unittest.mock import MagicMock

import pychonet
from pychonet.EchonetInstance import EchonetInstance
from pychonet.lib import epc_functions
from pychonet.lib.epc import EPC_CODE

for group, classes in EPC_CODE.items():
    for code, properties in classes.items():
        for epc, name in properties.items():
            print("name", f"{group:02X}{code:02X}", f"{epc:02X}", name, sep="\t")

for module in pkgutil.iter_modules(pychonet.__path__):
    for _, kind in inspect.getmembers(importlib.import_module(f"pychonet.{module.name}"), inspect.isclass):
        is_device = issubclass(kind, EchonetInstance) and kind is not EchonetInstance
        if not is_device or kind.__module__ != f"pychonet.{module.name}" or "EPC_FUNCTIONS" not in vars(kind):
            continue
        instance = kind("127.0.0.1", MagicMock())
        eoj = f"{instance._eojgc:02X}{instance._eojcc:02X}"
        for epc, how in kind.EPC_FUNCTIONS.items():
            function, *more = how if isinstance(how, list) else [how]
            if more and isinstance(more[0], dict):
                print("codes", eoj, f"{epc:02X}", ",".join(f"{code:X}" for code in more[0]), sep="\t")
            sizes = {epc_functions._signed_int: "signed", epc_functions._hh_mm: "time", epc_functions._yyyy_mm_dd: "date"}
            if function in sizes:
                print(sizes[function], eoj, f"{epc:02X}", "", sep="\t")
