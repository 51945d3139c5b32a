"""The messages of EchoService, made from descriptors: those a server reflects, or those in a file."""
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "grove.test.v1"
SERVICE = PACKAGE + ".EchoService"


def fields(data):
    """Yields (number, bytes) for every length-delimited field of a message, skipping the others."""
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
        kind = tag & 7
        if kind == 0:
            varint()
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4
        else:
            size = varint()
            yield tag >> 3, data[at : at + size]
            at += size


def text_field(number, text):
    """Encodes one string field of fewer than 128 bytes."""
    data = text.encode()
    return bytes([number << 3 | 2, len(data)]) + data


def reflect(channel, service=SERVICE, version="v1"):
    """Asks a server for the files that define a service, as serialized FileDescriptorProtos."""
    call = channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
    answers = list(call(iter([text_field(4, service)]), timeout=10))
    return [proto for number, part in fields(answers[0]) if number == 4 for _, proto in fields(part)]


def listed_services(channel):
    """Asks a server which services it has."""
    call = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    answer = list(call(iter([text_field(7, "*")]), timeout=10))[0]
    return [
        name.decode()
        for number, part in fields(answer)
        if number == 6
        for _, one in fields(part)
        for _, name in fields(one)
    ]


def classes(files):
    """Makes message classes by their short names out of serialized FileDescriptorProtos."""
    pool = descriptor_pool.DescriptorPool()
    protos = {}
    for data in files:
        proto = descriptor_pb2.FileDescriptorProto.FromString(data)
        protos[proto.name] = proto

    def add(proto):
        for dependency in proto.dependency:
            if dependency in protos:
                add(protos.pop(dependency))
        pool.Add(proto)

    while protos:
        add(protos.pop(next(iter(protos))))
    names = ["EchoRequest", "EchoResponse", "UploadRequest", "UploadResponse", "DownloadRequest", "DownloadResponse"]
    return {name: make_class(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names}


def make_class(descriptor):
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory().GetPrototype(descriptor)
