"""Calls the room's server with grpcio and only the reflected protocol. usage: echo_client.py PORT"""
import sys
import threading
import time
import zlib

import grpc

import messages

PORT = int(sys.argv[1])
channel = grpc.insecure_channel(f"127.0.0.1:{PORT}")
types = messages.classes(messages.reflect(channel))
Request, Response = types["EchoRequest"], types["EchoResponse"]
HEADERS = (("x-text", "a value, with commas"), ("x-bytes-bin", bytes([0, 255, 1, 254])))


def method(kind, name, request, response):
    make = getattr(channel, kind)
    return make(
        f"/{messages.SERVICE}/{name}",
        request_serializer=request.SerializeToString,
        response_deserializer=response.FromString,
    )


unary = method("unary_unary", "Unary", Request, Response)
expand = method("unary_stream", "Expand", Request, Response)
collect = method("stream_unary", "Collect", Request, Response)
converse = method("stream_stream", "Converse", Request, Response)
upload = method("stream_unary", "Upload", types["UploadRequest"], types["UploadResponse"])
download = method("unary_stream", "Download", types["DownloadRequest"], types["DownloadResponse"])


def failure_of(run):
    try:
        run()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call should have failed")


def held(*requests):
    """Requests that do not end by themselves."""
    yield from requests
    time.sleep(3)


def four_kinds():
    assert unary(Request(text="grüße", data=b"\x00\x01")).data == b"\x00\x01"
    assert [r.count for r in expand(Request(count=50))] == list(range(50))
    assert collect(iter([Request(text=t) for t in "abc"])).text == "a,b,c"
    assert [r.text for r in converse(iter([Request(text=t) for t in "abc"]))] == ["a", "b", "c"]


def metadata():
    reply, call = unary.with_call(Request(text="m"), metadata=HEADERS)
    for got in (dict(call.initial_metadata()), dict(call.trailing_metadata())):
        for name, value in HEADERS:
            assert got[name] == value, (name, got)


def every_status():
    for code in grpc.StatusCode:
        number = code.value[0]
        if number == 0:
            continue
        text = f"100 % of « {number} »"
        request = Request(fail_code=number, text=text, data=b"\x09\x08")
        for run in (
            lambda: unary(request),
            lambda: list(expand(request)),
            lambda: collect(iter([request])),
            lambda: list(converse(iter([request]))),
        ):
            error = failure_of(run)
            assert error.code() == code, (error.code(), code)
            assert error.details() == text, error.details()
            assert b"\x09\x08" in dict(error.trailing_metadata())["grpc-status-details-bin"]


def deadline():
    request = Request(delay_ms=3000, count=1)
    for run in (
        lambda: unary(request, timeout=0.1),
        lambda: list(expand(request, timeout=0.1)),
        lambda: collect(held(request), timeout=0.1),
        lambda: list(converse(held(request), timeout=0.1)),
    ):
        assert failure_of(run).code() == grpc.StatusCode.DEADLINE_EXCEEDED


def cancellation():
    call = unary.future(Request(delay_ms=3000))
    threading.Timer(0.1, call.cancel).start()
    try:
        call.result()
        raise AssertionError("not cancelled")
    except grpc.FutureCancelledError:
        pass
    stream = expand(Request(delay_ms=3000, count=1))
    threading.Timer(0.1, stream.cancel).start()
    assert failure_of(lambda: list(stream)).code() == grpc.StatusCode.CANCELLED


def compression():
    text = "again and again " * 10_000
    assert unary(Request(text=text), compression=grpc.Compression.Gzip).text == text
    many = [Request(text=text[: i * 100]) for i in range(20)]
    assert [r.text for r in converse(iter(many), compression=grpc.Compression.Gzip)] == [r.text for r in many]


def unimplemented():
    for path in (f"/{messages.SERVICE}/Nothing", "/no.Service/Unary"):
        error = failure_of(lambda: channel.unary_unary(path)(b""))
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED


def limits():
    error = failure_of(lambda: unary(Request(data=bytes(9_000_000))))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
    # The client itself refuses an oversized message; the server continues.
    error = failure_of(lambda: unary(Request(data=bytes(5_000_000))))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert unary(Request(text="still there")).text == "still there"


def files():
    UploadRequest = types["UploadRequest"]
    block = bytes(range(256)) * 15_000  # 3.84 MB

    def requests():
        yield UploadRequest(header={"path": "a"})
        for i in range(20):
            yield UploadRequest(chunk={"offset": i * len(block), "crc32": 0, "data": block})

    reply = upload(requests())
    assert reply.bytes_written == 20 * len(block)
    assert reply.crc32 == zlib.crc32(block * 20)
    assert reply.messages == 21
    size = 50_000_000
    got = b"".join(r.chunk.data for r in download(types["DownloadRequest"](size=size, chunk_bytes=4_000_000)))
    assert got == b"\x07" * size


def reflection():
    assert messages.SERVICE in messages.listed_services(channel)
    assert messages.reflect(channel, version="v1alpha")
    assert messages.reflect(channel, service="no.Such") == []


def health():
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"") == b"\x08\x01"
    error = failure_of(lambda: check(messages.text_field(1, "unknown")))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(messages.text_field(1, "unknown"))
    assert next(watch) == b"\x08\x03"
    watch.cancel()


for scenario in (
    four_kinds,
    metadata,
    every_status,
    deadline,
    cancellation,
    compression,
    unimplemented,
    limits,
    files,
    reflection,
    health,
):
    scenario()
    print("passed", scenario.__name__, flush=True)
channel.close()
