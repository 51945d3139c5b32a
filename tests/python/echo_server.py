"""EchoService on grpcio. usage: echo_server.py FILE_DESCRIPTOR_SET; prints its port and each cancelled call."""
import sys
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2

import messages

with open(sys.argv[1], "rb") as source:
    files = descriptor_pb2.FileDescriptorSet.FromString(source.read()).file
types = messages.classes([one.SerializeToString() for one in files])
Request, Response = types["EchoRequest"], types["EchoResponse"]
CODES = {code.value[0]: code for code in grpc.StatusCode}


def begin(context):
    """Sends the x- headers back, as headers and as trailers, and reports a cancellation."""
    own = [(key, value) for key, value in context.invocation_metadata() if key.startswith("x-")]
    context.send_initial_metadata(own)
    state = {"own": own, "done": False}

    def ended():
        if not state["done"]:
            print("cancelled", flush=True)

    context.add_callback(ended)
    context.set_trailing_metadata(own)
    return state


def obey(request, context, state):
    end = time.monotonic() + request.delay_ms / 1000
    while time.monotonic() < end and context.is_active():
        time.sleep(0.01)
    if request.fail_code:
        own = list(state["own"])
        if request.data:
            own.append(("grpc-status-details-bin", details(request)))
        context.set_trailing_metadata(own)
        state["done"] = True
        context.abort(CODES[request.fail_code], request.text)


def details(request):
    """A google.rpc.Status with one detail, written by hand."""
    detail = messages.text_field(1, "type.googleapis.com/test") + bytes([18, len(request.data)]) + request.data
    return bytes([8, request.fail_code, 26, len(detail)]) + detail


def answer(request, count=None):
    return Response(text=request.text, count=request.count if count is None else count, data=request.data)


def unary(request, context):
    state = begin(context)
    obey(request, context, state)
    state["done"] = context.is_active()
    return answer(request)


def expand(request, context):
    state = begin(context)
    if not request.fail_code:
        obey(request, context, state)
    for i in range(request.count):
        yield answer(request, i)
    if request.fail_code:
        obey(request, context, state)
    state["done"] = context.is_active()


def collect(requests, context):
    state = begin(context)
    texts = []
    for request in requests:
        obey(request, context, state)
        texts.append(request.text)
    state["done"] = context.is_active()
    return Response(text=",".join(texts), count=len(texts))


def converse(requests, context):
    state = begin(context)
    for request in requests:
        obey(request, context, state)
        yield answer(request)
    state["done"] = context.is_active()


def handler(make, behaviour):
    return make(behaviour, request_deserializer=Request.FromString, response_serializer=Response.SerializeToString)


server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
server.add_generic_rpc_handlers(
    (
        grpc.method_handlers_generic_handler(
            messages.SERVICE,
            {
                "Unary": handler(grpc.unary_unary_rpc_method_handler, unary),
                "Expand": handler(grpc.unary_stream_rpc_method_handler, expand),
                "Collect": handler(grpc.stream_unary_rpc_method_handler, collect),
                "Converse": handler(grpc.stream_stream_rpc_method_handler, converse),
            },
        ),
    )
)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
server.stop(0)
