"""A plugin of pytest, beside other people's tests: a connection to another machine is refused."""

import ipaddress
import socket

connect, connect_ex = socket.socket.connect, socket.socket.connect_ex


def check(sock, address):
    if sock.family == socket.AF_UNIX:
        return
    resolved = socket.getaddrinfo(address[0], None)[0][4][0]
    if not ipaddress.ip_address(resolved).is_loopback:
        raise ConnectionRefusedError(f"no loopback address: {address}")


def checked(method):
    def checking(sock, address):
        check(sock, address)
        return method(sock, address)

    return checking


socket.socket.connect = checked(connect)
socket.socket.connect_ex = checked(connect_ex)
