"""Calls the control plane of a MetaServer with Python's grpcio and a given certificate.

usage: control_caller.py HOST:PORT CA_FILE, then on standard input a line for each call:
NAME METHOD NODE_ID CERT KEY, with - for no certificate; prints NAME METHOD CODE REASON.
"""
import sys

import grpc

ADDRESS, CA_FILE = sys.argv[1], sys.argv[2]


def text(number, value):
    data = value.encode()
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def request(method, node_id):
    if method == "RegisterFileServer":
        fields = {1: node_id, 3: "n.example.com:50051", 10: "instance", 11: "data"}
        return b"".join(text(number, value) for number, value in fields.items())
    if method == "Heartbeat":
        return text(1, node_id) + b"\x10\x01"
    if method == "ClaimRoot":
        return text(1, "u@example.com") + text(2, node_id) + b"\x18\x01"
    if method in ("RootShare", "RootUnshare"):
        return text(1, "u@example.com") + text(2, "/") + text(3, "v@example.com") + text(4, node_id) + b"\x28\x01\x30\x01"
    return text(1, node_id)


def read(path):
    with open(path, "rb") as file:
        return file.read()


for line in sys.stdin:
    name, method, node_id, cert, key = line.split()
    shown = {} if cert == "-" else {"private_key": read(key), "certificate_chain": read(cert)}
    credentials = grpc.ssl_channel_credentials(root_certificates=read(CA_FILE), **shown)
    with grpc.secure_channel(ADDRESS, credentials) as channel:
        call = channel.unary_unary(f"/grove.v1.MetaServer/{method}")
        try:
            call(request(method, node_id), timeout=20)
            print(name, method, "OK", "-", flush=True)
        except grpc.RpcError as error:
            reason = dict(error.trailing_metadata() or ()).get("svc-reason", "-")
            print(name, method, error.code().name, reason, flush=True)
