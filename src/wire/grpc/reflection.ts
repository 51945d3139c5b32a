// The reflection service: serves our protocol files to clients without them.
import { create, type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type Clock, systemClock } from "#base/clock.ts";
import { inTime } from "#wire/framing/first-message.ts";
import { file_google_rpc_error_details } from "#wire/framing/gen/google/rpc/error_details_pb.ts";
import { file_google_rpc_status } from "#wire/framing/gen/google/rpc/status_pb.ts";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "#wire/framing/gen/grpc/reflection/v1/reflection_pb.ts";
import { SMALL_REQUEST } from "#wire/framing/limits.ts";
import { Code } from "#wire/framing/status.ts";
import type { GrpcServer } from "./server.ts";

/** Time limit of a stream's first question, since the caller is unproven before it. */
export const FIRST_QUESTION_MS = 10_000;

/** The older name of the same service, for older tools. */
const ALPHA_NAME = "grpc.reflection.v1alpha.ServerReflection";

/** The names under which reflection is served. */
export const REFLECTION_NAMES: readonly string[] = [ServerReflection.typeName, ALPHA_NAME];

type Answer = ServerReflectionResponse["messageResponse"];

const notFound = (what: string): Answer => ({
  case: "errorResponse",
  value: {
    $typeName: "grpc.reflection.v1.ErrorResponse",
    errorCode: Code.NOT_FOUND,
    errorMessage: `${what} not found`,
  },
});

/** The answers of reflection about a set of services. */
class Index {
  readonly #services: readonly DescService[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();

  constructor(services: readonly DescService[]) {
    this.#services = services;
    for (const service of services) this.#addFile(service.file);
    // No service names them, but every refusal carries them: tools need them to show its content.
    for (const file of [file_google_rpc_status, file_google_rpc_error_details]) this.#addFile(file);
  }

  answer(request: ServerReflectionRequest["messageRequest"]): Answer {
    switch (request.case) {
      case "listServices":
        return {
          case: "listServicesResponse",
          value: {
            $typeName: "grpc.reflection.v1.ListServiceResponse",
            service: this.#services.map(({ typeName }) => ({
              $typeName: "grpc.reflection.v1.ServiceResponse",
              name: typeName,
            })),
          },
        };
      case "fileByFilename":
        return this.#fileAnswer(this.#files.get(request.value), "file");
      case "fileContainingSymbol":
        return this.#fileAnswer(this.#symbols.get(request.value), "symbol");
      case "allExtensionNumbersOfType":
        if (!this.#symbols.has(request.value)) return notFound("type");
        return {
          case: "allExtensionNumbersResponse",
          value: {
            $typeName: "grpc.reflection.v1.ExtensionNumberResponse",
            baseTypeName: request.value,
            extensionNumber: [],
          },
        };
      case "fileContainingExtension":
        return notFound("extension");
      default:
        return {
          case: "errorResponse",
          value: {
            $typeName: "grpc.reflection.v1.ErrorResponse",
            errorCode: Code.INVALID_ARGUMENT,
            errorMessage: "nothing was asked",
          },
        };
    }
  }

  /** A file with everything it imports, so that one answer is enough. */
  #fileAnswer(file: DescFile | undefined, what: string): Answer {
    if (file === undefined) return notFound(what);
    const files = new Set<DescFile>();
    const collect = (one: DescFile): void => {
      if (files.has(one)) return;
      files.add(one);
      one.dependencies.forEach(collect);
    };
    collect(file);
    return {
      case: "fileDescriptorResponse",
      value: {
        $typeName: "grpc.reflection.v1.FileDescriptorResponse",
        fileDescriptorProto: [...files].map((one) => toBinary(FileDescriptorProtoSchema, one.proto)),
      },
    };
  }

  #addFile(file: DescFile): void {
    const { name } = file.proto;
    if (this.#files.has(name)) return;
    this.#files.set(name, file);
    file.dependencies.forEach((one) => this.#addFile(one));
    for (const service of file.services) {
      this.#symbols.set(service.typeName, file);
      for (const method of service.methods) this.#symbols.set(`${service.typeName}.${method.name}`, file);
    }
    const addTypes = (holder: Pick<DescFile, "messages" | "enums">): void => {
      for (const one of holder.enums) this.#symbols.set(one.typeName, file);
      for (const message of holder.messages) {
        this.#symbols.set(message.typeName, file);
        for (const field of message.fields) this.#symbols.set(`${message.typeName}.${field.name}`, file);
        addTypes({ messages: message.nestedMessages, enums: message.nestedEnums });
      }
    };
    addTypes(file);
  }
}

/** Passes requests on; the first must come in FIRST_QUESTION_MS. */
async function* startedInTime<T>(requests: AsyncIterable<T>, clock: Clock): AsyncGenerator<T> {
  const iterator = requests[Symbol.asyncIterator]();
  const limit = { clock, timeoutMs: FIRST_QUESTION_MS, what: "a question" };
  try {
    for (let next = await inTime(iterator.next(), limit); next.done !== true; next = await iterator.next()) {
      yield next.value;
    }
  } finally {
    // Not awaited: it would wait for the missing question.
    iterator.return?.().catch(() => undefined);
  }
}

/** Adds reflection over the given services, and over itself, to a server: v1, and v1alpha under its name. */
export const addReflection = (
  server: GrpcServer,
  services: readonly DescService[],
  clock: Clock = systemClock,
): void => {
  const index = new Index([...services, ServerReflection]);
  const handlers = {
    async *serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
      for await (const request of startedInTime(requests, clock)) {
        yield create(ServerReflectionResponseSchema, {
          validHost: request.host,
          originalRequest: request,
          messageResponse: index.answer(request.messageRequest),
        });
      }
    },
  };
  const requests = { serverReflectionInfo: SMALL_REQUEST };
  server.addService(ServerReflection, handlers, { requests });
  server.addService(ServerReflection, handlers, { requests, name: ALPHA_NAME });
};
