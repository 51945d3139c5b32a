"""A client of a FileServer with grpcio and only the reflected protocol.

usage: foreign_client.py HOST:PORT; prints a line for each scenario that has passed.
"""
import hashlib
import os
import sys
import threading
import time
import zlib

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ADDRESS = sys.argv[1]
ADMIN_PASSWORD = "correct horse battery staple"
MB = 1_000_000
CHUNK = 4 * MB
MESSAGE_MAX = 4 * 1024 * 1024
Code = grpc.StatusCode

# Reflection v1 and google.rpc.Status by hand: a few fields each, so that nothing has to be generated.


def fields(data):
    """Yields (number, value) of a message: bytes for length-delimited fields, integers for varints."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2, tag
            size = varint()
            yield tag >> 3, data[at : at + size]
            at += size


def text_field(number, text):
    data = text.encode()
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


class Protocol:
    """Message classes and methods of a server, from its reflection service."""

    def __init__(self, channel):
        self.channel = channel
        self.ask = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        self.pool = descriptor_pool.DescriptorPool()
        self.known = set()

    def answer(self, question):
        (answer,) = list(self.ask(iter([question]), timeout=10))
        return dict(fields(answer))

    def services(self):
        return [dict(fields(one))[1].decode() for number, one in fields(self.answer(text_field(7, ""))[6]) if number == 1]

    def learn(self, question):
        """Adds the files of an answer to the pool, asking for every file that they need."""
        protos = [descriptor_pb2.FileDescriptorProto.FromString(one) for _, one in fields(self.answer(question)[4])]
        waiting = {proto.name: proto for proto in protos}

        def add(proto):
            if proto.name in self.known:
                return
            self.known.add(proto.name)
            for dependency in proto.dependency:
                if dependency in waiting:
                    add(waiting[dependency])
                elif dependency not in self.known:
                    self.learn(text_field(3, dependency))
            self.pool.Add(proto)

        for proto in protos:
            add(proto)

    def message(self, name):
        descriptor = self.pool.FindMessageTypeByName(name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return message_factory.MessageFactory(self.pool).GetPrototype(descriptor)

    def methods(self, service):
        """Every method as a callable, its kind, request and response as the descriptor says."""
        self.learn(text_field(4, service))
        found = {}
        for method in self.pool.FindServiceByName(service).methods:
            proto = descriptor_pb2.MethodDescriptorProto()
            method.CopyToProto(proto)
            kind = "_".join("stream" if streams else "unary" for streams in (proto.client_streaming, proto.server_streaming))
            found[method.name] = getattr(self.channel, kind)(
                f"/{service}/{method.name}",
                request_serializer=self.message(method.input_type.full_name).SerializeToString,
                response_deserializer=self.message(method.output_type.full_name).FromString,
            )
        return found


channel = grpc.insecure_channel(ADDRESS)
protocol = Protocol(channel)
call = protocol.methods("grove.v1.FileServer")
m = lambda name, **values: protocol.message(f"grove.v1.{name}")(**values)


class User:
    """A signed-in user."""

    def __init__(self, email):
        reply = call["RegisterClient"](
            m("RegisterClientRequest", client_id="python", device_name="a test"),
            metadata=[("authorization", f"Bearer mock-jwt.{email}")],
        )
        assert reply.username == email and reply.session_token.startswith("sst_") and len(reply.session_token) == 47
        assert abs(reply.expires_at - time.time() - 12 * 3600) < 60
        self.metadata = [("authorization", f"Bearer {reply.session_token}")]
        self.email = email

    def run(self, method, request, **options):
        return call[method](request, metadata=self.metadata, **options)

    def upload(self, path, data, size=None, chunk=CHUNK, crc=True, **options):
        return self.run("UploadFile", upload_of(path, data, size, chunk, crc), **options)

    def download(self, path, **where):
        """Every byte of a file, each chunk checked against its checksum and its place."""
        replies = self.run("DownloadFile", m("DownloadRequest", path=path, **where))
        first = next(replies)
        assert first.WhichOneof("part") == "attr"
        parts, at = [], where.get("offset", 0)
        for reply in replies:
            part = reply.chunk
            assert part.offset == at and part.HasField("crc32") and part.crc32 == zlib.crc32(part.data), at
            assert len(part.data) <= CHUNK
            parts.append(part.data)
            at += len(part.data)
        return first.attr, b"".join(parts)

    def sizes(self, *folders):
        """Everything that a failed upload could have changed."""
        quota = self.run("GetQuota", m("GetQuotaRequest"))
        return (
            [(one.path, one.size, one.child_count) for one in (self.attr(path) for path in ("/", *folders))],
            [self.names(path) for path in ("/", *folders)],
            (quota.used_bytes, quota.live_bytes, quota.staging_bytes),
        )

    def attr(self, path):
        return self.run("GetAttr", m("GetAttrRequest", path=path))

    def names(self, path):
        return [entry.name for entry in self.run("ListDir", m("ListDirRequest", path=path)).entries]

    def make_folder(self, path):
        return self.run("CreateDirectory", m("CreateDirectoryRequest", path=path))


def upload_of(path, data, size=None, chunk=CHUNK, crc=True):
    """The messages of an upload; size None leaves it unknown."""
    known = {} if size is None else {"size": size, "size_known": True}
    yield m("UploadRequest", header={"path": path, **known})
    for at in range(0, len(data), chunk):
        part = data[at : at + chunk]
        sum = {"crc32": zlib.crc32(part)} if crc else {}
        yield m("UploadRequest", chunk={"offset": at, "data": part, **sum})


def set_quota(username, quota, metadata):
    return call["SetQuota"](m("SetQuotaRequest", username=username, quota_bytes=quota), metadata=metadata)


def password(text):
    return [("x-admin-password-hash", hashlib.sha256(text.encode()).hexdigest())]


def failure_of(run):
    try:
        run()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call should have failed")


def trailers(error):
    return dict(error.trailing_metadata())


def refused(run, code, reason):
    """Runs a call that must be refused, with the same reason in a plain trailer and google.rpc.ErrorInfo."""
    error = failure_of(run)
    assert error.code() == code, (error.code(), error.details())
    assert trailers(error).get("svc-reason") == reason, (trailers(error), error.details())
    status = list(fields(trailers(error)["grpc-status-details-bin"]))
    assert (1, code.value[0]) in status and (2, error.details().encode()) in status, status
    detail = dict(fields(dict(status)[3]))
    assert detail[1] == b"type.googleapis.com/google.rpc.ErrorInfo", detail
    info = list(fields(detail[2]))
    assert (1, reason.encode()) in info and (2, b"grove") in info, info
    error.info = {key.decode(): value.decode() for key, value in (dict(fields(one)).values() for n, one in info if n == 3)}
    return error


def settles(check):
    """Waits for the server's cleanup after its client has gone."""
    end = time.monotonic() + 10
    while not check() and time.monotonic() < end:
        time.sleep(0.02)
    assert check()


alice = User("alice@example.com")
data = os.urandom(10 * MB) * 10


def discovery():
    services = protocol.services()
    for service in ("grove.v1.FileServer", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"):
        assert service in services, services
    unknown = protocol.answer(text_field(4, "grove.v1.Nothing"))
    assert 7 in unknown and dict(fields(unknown[7]))[1] == Code.NOT_FOUND.value[0], unknown
    # Refusals carry messages that no service names; reflection returns them too.
    protocol.learn(text_field(4, "google.rpc.ErrorInfo"))
    protocol.learn(text_field(4, "grpc.health.v1.Health"))
    # A server answers a method of a later version as unknown.
    later = channel.unary_unary("/grove.v1.FileServer/InventedTomorrow")
    assert failure_of(lambda: later(b"")).code() == Code.UNIMPLEMENTED


def health():
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
    for service in ("", "grove.v1.FileServer"):
        assert check(text_field(1, service)) == b"\x08\x01"
        stream = watch(text_field(1, service))
        assert next(stream) == b"\x08\x01"
        stream.cancel()
    assert failure_of(lambda: check(text_field(1, "grove.v1.Nothing"))).code() == Code.NOT_FOUND
    stream = watch(text_field(1, "grove.v1.Nothing"))
    assert next(stream) == b"\x08\x03"
    stream.cancel()


def transfers():
    """100 MB up and down, with and without checksums, size known and unknown."""
    alice.make_folder("/docs")
    checksum = zlib.crc32(data)
    for name, crc, size in (("/docs/a", True, len(data)), ("/docs/b", False, None)):
        reply = alice.upload(name, data, size=size, crc=crc)
        assert reply.bytes_written == len(data) == reply.attr.size and reply.attr.crc32 == checksum
        attr, got = alice.download(name)
        assert got == data and attr.crc32 == checksum and attr.size == len(data)
    assert alice.attr("/").size == alice.attr("/docs").size == 2 * len(data)
    for offset, length in ((0, 1), (3_999_999, 2), (12_345_678, 9_876_543), (len(data) - 1, 0), (len(data), 0)):
        _, got = alice.download("/docs/a", offset=offset, length=length)
        assert got == data[offset : offset + length if length else None], (offset, length)
    alice.run("DeleteFile", m("DeleteFileRequest", path="/docs/b"))
    assert alice.attr("/").size == len(data)


def message_sizes():
    """Payloads of 1 byte to 4 MiB are all accepted, independent of the server's chunks."""
    for chunk, size in ((MESSAGE_MAX, 30 * MB), (65_536, 10 * MB), (4 * MB - 1, 9 * MB), (1, 300), (CHUNK, 0)):
        for known in (size, None):
            reply = alice.upload("/docs/c", data[:size], size=known, chunk=chunk)
            assert reply.attr.crc32 == zlib.crc32(data[:size]) and reply.attr.size == size, (chunk, size)
            assert alice.download("/docs/c")[1] == data[:size]


def with_quota(email, quota):
    """A new user with an own quota, a folder and 1,000 bytes in it."""
    user = User(email)
    assert set_quota(email, quota, password(ADMIN_PASSWORD)).success
    user.make_folder("/in")
    user.upload("/in/first", data[:1000])
    return user


def exceeded(run, **wanted):
    error = refused(run, Code.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    assert error.details() == "storage quota exceeded"
    for name, value in wanted.items():
        assert trailers(error)[f"svc-{name}-bytes"] == str(value), (trailers(error), wanted)
        assert error.info[name] == str(value), (error.info, wanted)
    return error


def quota_with_known_size():
    """The whole size is claimed before the first byte."""
    bob = with_quota("bob@example.com", 9 * MB)
    before = bob.sizes("/in")
    room = 9 * MB - 1000
    exceeded(lambda: bob.upload("/in/much", data, size=room + 1), used=1000, quota=9 * MB)
    release = threading.Event()

    def header_only():
        yield m("UploadRequest", header={"path": "/in/much", "size": room + 1, "size_known": True})
        release.wait(20)

    exceeded(lambda: bob.run("UploadFile", header_only(), timeout=15))
    release.set()
    assert bob.sizes("/in") == before
    reply = bob.upload("/in/all", data[:room], size=room)
    assert reply.quota_used == reply.quota_limit == 9 * MB
    # Full to the last byte: no creation succeeds, not even of empty files (T2).
    exceeded(lambda: bob.upload("/in/empty", b"", size=0), used=9 * MB)
    exceeded(lambda: bob.make_folder("/in/folder"), used=9 * MB)
    exceeded(lambda: bob.run("CreateFile", m("CreateFileRequest", path="/in/file")), used=9 * MB)


def quota_with_unknown_size():
    """A breach in the middle leaves folder, root, quota and listing as before."""
    carol = with_quota("carol@example.com", 9 * MB)
    before = carol.sizes("/in")
    room = 9 * MB - 1000
    for chunk in (CHUNK, 65_536, 1 * MB):
        exceeded(lambda: carol.upload("/in/much", data[: room + 1], chunk=chunk), quota=9 * MB)
        assert carol.sizes("/in") == before, (carol.sizes("/in"), before)
    assert refused(lambda: carol.attr("/in/much"), Code.NOT_FOUND, "NO_SUCH_PATH")
    # A breach while a file is replaced leaves the old one.
    exceeded(lambda: carol.upload("/in/first", data[: room + 1]))
    assert carol.download("/in/first")[1] == data[:1000] and carol.sizes("/in") == before
    assert carol.upload("/in/all", data[:room]).quota_used == 9 * MB
    assert carol.attr("/").size == carol.attr("/in").size == 9 * MB


def setting_quotas():
    """By password and by identity; other callers get the specified text."""
    text = "permission denied: only cluster administrators can modify quotas"
    admin = User("admin@example.com")
    quota = lambda: alice.run("GetQuota", m("GetQuotaRequest"))
    assert (quota().quota_bytes, quota().source) == (16 * 1024**3, "default")
    for metadata, wanted in ((password(ADMIN_PASSWORD), 5 * 1024**3), (admin.metadata, 2**64 - 1)):
        reply = set_quota(alice.email, wanted, metadata)
        assert reply.success and reply.error == ""
        assert (quota().quota_bytes, quota().source) == (wanted, "explicit")
    for metadata in (alice.metadata, password("wrong"), [], [("x-admin-password-hash", ADMIN_PASSWORD)]):
        reply = set_quota(alice.email, 1, metadata)
        assert not reply.success and reply.error == text, reply
    assert quota().quota_bytes == 2**64 - 1
    assert set_quota(alice.email, 0, admin.metadata).success
    assert (quota().quota_bytes, quota().source) == (16 * 1024**3, "default")
    assert not set_quota("nobody@example.com", 1, admin.metadata).success


def slowly(path, seconds=15):
    """An upload that does not end by itself."""
    yield from upload_of(path, data[: 3 * CHUNK])
    time.sleep(seconds)


def deadlines():
    before = alice.sizes("/docs")
    error = failure_of(lambda: alice.run("UploadFile", slowly("/docs/late", 2), timeout=1))
    assert error.code() == Code.DEADLINE_EXCEEDED, error
    settles(lambda: alice.sizes("/docs") == before)
    replies = alice.run("DownloadFile", m("DownloadRequest", path="/docs/a"), timeout=0.5)
    next(replies)
    time.sleep(0.6)
    assert failure_of(lambda: list(replies)).code() == Code.DEADLINE_EXCEEDED
    assert alice.download("/docs/a")[1] == data


def cancellation():
    before = alice.sizes("/docs")
    upload = call["UploadFile"].future(slowly("/docs/broken", 1), metadata=alice.metadata)
    settles(lambda: alice.run("GetQuota", m("GetQuotaRequest")).used_bytes >= 0)
    time.sleep(0.3)
    upload.cancel()
    settles(lambda: alice.sizes("/docs") == before)
    for _ in range(20):
        replies = alice.run("DownloadFile", m("DownloadRequest", path="/docs/a"))
        next(replies)
        next(replies)
        replies.cancel()
    assert alice.download("/docs/a")[1] == data


def errors():
    """Refusals that a program of another language must distinguish."""
    refused(lambda: alice.attr("/none"), Code.NOT_FOUND, "NO_SUCH_PATH")
    refused(lambda: alice.attr("none"), Code.INVALID_ARGUMENT, "BAD_ARGUMENT")
    refused(lambda: alice.make_folder("/docs"), Code.ALREADY_EXISTS, "PATH_EXISTS")
    refused(lambda: alice.make_folder("/docs/\u0007"), Code.INVALID_ARGUMENT, "BAD_NAME")
    refused(lambda: alice.run("DeleteFile", m("DeleteFileRequest", path="/docs")), Code.FAILED_PRECONDITION, "NOT_EMPTY")
    refused(lambda: alice.run("GetAttr", m("GetAttrRequest", root="bob@example.com", path="/")), Code.PERMISSION_DENIED, "NOT_SHARED")
    refused(lambda: call["GetAttr"](m("GetAttrRequest", path="/")), Code.UNAUTHENTICATED, "SESSION_MISSING")
    # A message above the server's own limit is no quota: it has no reason.
    error = failure_of(lambda: alice.run("CreateFile", m("CreateFileRequest", path="/big", data=bytes(9 * MB))))
    assert error.code() == Code.RESOURCE_EXHAUSTED and "svc-reason" not in trailers(error), error


def sign_out():
    assert alice.run("EndSession", m("EndSessionRequest")).ended == 1
    refused(lambda: alice.attr("/"), Code.UNAUTHENTICATED, "SESSION_UNKNOWN")


for scenario in (
    discovery,
    health,
    transfers,
    message_sizes,
    quota_with_known_size,
    quota_with_unknown_size,
    setting_quotas,
    deadlines,
    cancellation,
    errors,
    sign_out,
):
    scenario()
    print("passed", scenario.__name__, flush=True)
channel.close()
