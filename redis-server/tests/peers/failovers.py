#!/usr/bin/env python3
"""Failovers by genuine Sentinels, judged by histories.

A primary, a replica (or more) and three Sentinels; writers that count a write only when WAIT has said that all replicas have it: of
two, a Sentinel may promote the one that has less. In each round the primary
is killed, stopped or cut off (each server has a network namespace then; that needs root and `ip`), and comes back when another has
taken its place. Printed is how long nothing could be written. Afterwards a checker looks at what every writer was told:

- a register that one writer counts up must hold what was acknowledged last, or what was tried later;
- a list must have every element that was acknowledged, once, in order, and none that nobody has pushed.

    failovers.py --server target/release/redis-server --rounds 10            # all three faults
    failovers.py --server /usr/bin/redis-server --fault kill --rounds 10     # the genuine server
    failovers.py --server … --fault kill --rounds 3 --broken                 # acknowledged writes are lost on purpose: it must fail
    failovers.py --test                                                      # the checker alone
"""

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

DOWN_AFTER = 1000  # milliseconds
PATIENCE = 30  # seconds for anything that must come


class Refused(Exception):
    """An error reply."""


class Client:
    """A connection that answers within a second or is over."""

    def __init__(self, host, port, timeout=1.0):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"+":
            return text.decode()
        count = int(text)
        if count < 0:
            return None
        if kind == b"*":
            return [self.reply() for _ in range(count)]
        return self.file.read(count + 2)[:-2].decode()

    def close(self):
        self.socket.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Network:
    """Loopback, or a bridge with a namespace for each server."""

    def __init__(self, is_split):
        self.is_split = is_split
        self.name = f"fo{os.getpid() % 10000}"
        self.count = 0
        if is_split:
            run("ip", "link", "add", self.name, "type", "bridge")
            run("ip", "addr", "add", "10.213.77.1/24", "dev", self.name)
            run("ip", "link", "set", self.name, "up")

    def place(self):
        """An address, and what a command is started with to have it."""
        if not self.is_split:
            return "127.0.0.1", []
        self.count += 1
        space, inside, outside = f"{self.name}n{self.count}", f"{self.name}i{self.count}", f"{self.name}o{self.count}"
        host = f"10.213.77.{self.count + 1}"
        run("ip", "netns", "add", space)
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside)
        run("ip", "link", "set", inside, "netns", space)
        run("ip", "link", "set", outside, "master", self.name, "up")
        for words in [("addr", "add", host + "/24", "dev", inside), ("link", "set", inside, "up"), ("link", "set", "lo", "up")]:
            run("ip", "netns", "exec", space, "ip", *words)
        return host, ["ip", "netns", "exec", space]

    def cut(self, host, is_down):
        number = int(host.rsplit(".", 1)[1]) - 1
        run("ip", "link", "set", f"{self.name}o{number}", "down" if is_down else "up")

    def close(self):
        for number in range(1, self.count + 1):
            subprocess.run(["ip", "netns", "del", f"{self.name}n{number}"], check=False)
        if self.is_split:
            subprocess.run(["ip", "link", "del", self.name], check=False)


class Server:
    """A process in a folder of its own."""

    def __init__(self, root, name, host, prefix, command):
        self.folder = os.path.join(root, name)
        os.makedirs(self.folder)
        self.host, self.port = host, free_port()
        self.command = prefix + [word.replace("PORT", str(self.port)) for word in command]
        self.start()

    def start(self):
        log = open(os.path.join(self.folder, "log"), "a")
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, *words):
        client = Client(self.host, self.port)
        try:
            return client.ask(*words)
        finally:
            client.close()

    def info(self):
        text = self.ask("INFO", "replication")
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


def until(what, holds, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        try:
            found = holds()
            if found:
                return found
        except (OSError, Refused, ConnectionError):
            pass
        if time.monotonic() > end:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.02)


class Cluster:
    def __init__(self, program, root, network, replicas):
        self.network = network
        # Where "any address" can be bound, servers are told to be reached there.
        common = [program, "--port", "PORT", "--protected-mode", "no", "--save", "", "--repl-diskless-sync-delay", "0",
                  "--repl-timeout", "10", "--enable-debug-command", "yes"]
        self.servers = []
        self.replicas = replicas
        for number in range(1 + replicas):
            host, prefix = network.place()
            # A file that Sentinel can have rewritten.
            more = ["--bind", host] if number == 0 else ["--bind", host, "--replicaof", *self.address_of(0)]
            self.servers.append(Server(root, f"server{number}", host, prefix, common + more))
            until("it answers", lambda: self.servers[-1].ask("PING"))
        self.sentinels = [self.sentinel(root, number) for number in range(3)]

    def address_of(self, number):
        return [self.servers[number].host, str(self.servers[number].port)]

    def sentinel(self, root, number):
        host, prefix = ("10.213.77.1", []) if self.network.is_split else ("127.0.0.1", [])
        path = os.path.join(root, f"sentinel{number}.conf")
        port = free_port()
        text = f"port {port}\nbind {host}\ndir {root}\nprotected-mode no\n"
        text += f"sentinel monitor first {' '.join(self.address_of(0))} 2\n"
        text += f"sentinel down-after-milliseconds first {DOWN_AFTER}\nsentinel failover-timeout first 6000\n"
        text += "sentinel parallel-syncs first 2\n"
        with open(path, "w") as file:
            file.write(text)
        sentinel = Server(root, f"sentinel{number}", host, prefix, ["/usr/bin/redis-server", path, "--sentinel"])
        sentinel.port = port
        return sentinel

    def primary(self):
        """The server that the Sentinels name."""
        host, port = self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "first")
        return next(server for server in self.servers if (server.host, str(server.port)) == (host, port))

    def is_settled(self):
        primary = self.primary()
        if primary.info().get("role") != "master":
            return False
        for server in self.servers:
            if server is not primary:
                info = server.info()
                if info.get("master_link_status") != "up" or info.get("master_port") != str(primary.port):
                    return False
        for sentinel in self.sentinels:
            state = sentinel.ask("SENTINEL", "MASTER", "first")
            state = dict(zip(state[::2], state[1::2]))
            if state["flags"] != "master" or state["num-slaves"] != str(self.replicas) or state["num-other-sentinels"] != "2":
                return False
            if state["port"] != str(primary.port):
                return False
            for replica in sentinel.ask("SENTINEL", "REPLICAS", "first"):
                replica = dict(zip(replica[::2], replica[1::2]))
                if replica["flags"] != "slave" or replica["master-link-status"] != "ok":
                    return False
        return True

    def end(self):
        for server in self.sentinels + self.servers:
            server.end()


class Writer(threading.Thread):
    """Counts a register up and pushes to a list, wherever the primary is."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster, self.number = cluster, number
        self.tried, self.kept_register, self.kept = 0, 0, []
        self.stop = threading.Event()

    def run(self):
        client = None
        while not self.stop.is_set():
            try:
                if client is None:
                    primary = self.cluster.primary()
                    client = Client(primary.host, primary.port)
                self.tried += 1
                client.ask("SET", f"register:{self.number}", self.tried)
                wanted = self.cluster.replicas
                if client.ask("WAIT", wanted, 500) >= wanted:
                    self.kept_register = self.tried
                client.ask("RPUSH", f"list:{self.number}", self.tried)
                if client.ask("WAIT", wanted, 500) >= wanted:
                    self.kept.append(self.tried)
            except (OSError, Refused, ConnectionError, StopIteration):
                client = None
                time.sleep(0.02)


def check(tried, kept_register, kept, register, elements):
    """What is wrong with what is there, of all that a writer was told."""
    faults = []
    if not kept_register <= register <= tried:
        faults.append(f"the register holds {register}: {kept_register} was acknowledged, {tried} tried last")
    if lost := sorted(set(kept) - set(elements)):
        faults.append(f"{len(lost)} acknowledged elements are lost: {lost[:5]}")
    if len(set(elements)) != len(elements):
        faults.append("elements are there twice")
    if elements != sorted(elements):
        faults.append("elements are not in order")
    if any(not 0 < element <= tried for element in elements):
        faults.append("there are elements that nobody has pushed")
    return faults


def test():
    """The checker finds what it must find."""
    good = (9, 7, [1, 3, 7], 8, [1, 2, 3, 7, 9])
    assert check(*good) == []
    for bad in [
        (9, 7, [1, 3, 7], 6, [1, 3, 7]),
        (9, 7, [1, 3, 7], 10, [1, 3, 7]),
        (9, 7, [1, 3, 7], 8, [1, 7]),
        (9, 7, [1, 3, 7], 8, [1, 3, 3, 7]),
        (9, 7, [1, 3, 7], 8, [3, 1, 7]),
        (9, 7, [1, 3, 7], 8, [1, 3, 7, 11]),
    ]:
        assert check(*bad), bad


def strike(cluster, fault, broken):
    """Takes the primary away, and brings it back. Seconds until something could be written."""
    old = cluster.primary()
    began = time.monotonic()
    if fault == "kill":
        old.process.kill()
        old.process.wait()
    elif fault == "stop":
        old.process.send_signal(signal.SIGSTOP)
    else:
        cluster.network.cut(old.host, True)

    def writable():
        primary = cluster.primary()
        return primary is not old and primary.ask("SET", "probe", "1") and primary

    new = until("another primary", writable)
    took = time.monotonic() - began
    if broken:
        new.ask("LPOP", "list:0")
    if fault == "kill":
        old.start()
    elif fault == "stop":
        old.process.send_signal(signal.SIGCONT)
    else:
        cluster.network.cut(old.host, False)
    until("all are settled", cluster.is_settled, 60)
    return took


def measure(program, fault, rounds, broken, replicas):
    root = tempfile.mkdtemp(prefix="failovers-")
    network = Network(fault == "cut")
    cluster = None
    times, faults = [], []
    try:
        cluster = Cluster(program, root, network, replicas)
        until("all are settled", cluster.is_settled, 60)
        writers = [Writer(cluster, number) for number in range(2)]
        for writer in writers:
            writer.start()
        for _ in range(rounds):
            time.sleep(0.5)
            times.append(strike(cluster, fault, broken))
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join(10)
        primary = cluster.primary()
        kept = 0
        for writer in writers:
            register = int(primary.ask("GET", f"register:{writer.number}") or 0)
            elements = [int(text) for text in primary.ask("LRANGE", f"list:{writer.number}", 0, -1)]
            kept += len(writer.kept)
            faults += check(writer.tried, writer.kept_register, writer.kept, register, elements)
        digests = {server.ask("DEBUG", "DIGEST") for server in cluster.servers}
        if len(digests) != 1 and not broken:
            faults.append("the servers differ in the end")
    finally:
        if cluster:
            cluster.end()
        network.close()
        shutil.rmtree(root, ignore_errors=True)
    print(f"{os.path.basename(program)}, {fault}: {rounds} failovers, writable again after median "
          f"{statistics.median(times):.2f} s, longest {max(times):.2f} s; {kept} acknowledged pushes, "
          f"{len(faults)} violations", flush=True)
    for fault_found in faults:
        print("  " + fault_found)
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", default=[], help="a server; several are measured in turns")
    parser.add_argument("--fault", choices=["kill", "stop", "cut"], action="append")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--broken", action="store_true", help="lose what was acknowledged, on purpose")
    parser.add_argument("--test", action="store_true", help="only try the checker")
    options = parser.parse_args()
    test()
    if options.test:
        print("the checker finds what it must find")
        return
    good = True
    for fault in options.fault or ["kill", "stop", "cut"]:
        if fault == "cut" and (os.geteuid() != 0 or not shutil.which("ip")):
            print("skipped: cuts need root and ip")
            continue
        for program in options.server:
            good &= measure(os.path.abspath(program), fault, options.rounds, options.broken, options.replicas)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
