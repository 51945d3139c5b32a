// Ways between processes, the database and the store: requests arrive late or never, and so do answers.
import { create, type DescMessage, type DescService, type MessageInitShape } from "@bufbuild/protobuf";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import { mapError } from "#wire/proto/map-error.ts";
import type { ProcessClock } from "./world.ts";

const FAST_MS = 20;
const SLOW_MS = 3_000;
const CALL_MS = 30_000;

/** How a way is at a moment. */
export interface Way {
  isCut: boolean;
  isSlow: boolean;
}

/** Who asks, on which way, and for how long an answer is waited for. */
export interface Asking {
  readonly clock: ProcessClock;
  readonly way: Way;
  readonly random: SeededRandom;
  readonly answerMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** There and back; either way may be slow or cut, and a late request is still carried out. */
export function ask<T>(
  { clock, way, random, answerMs, signal }: Asking,
  run: () => T | Promise<T>,
): Promise<T> {
  const { world } = clock.machine;
  const delayMs = (): number => random.below(way.isSlow ? SLOW_MS : FAST_MS);
  return new Promise((resolve, reject) => {
    const late = clock.after(answerMs, () => reject(new Error("no answer")));
    signal?.addEventListener("abort", () => reject(new Error("given up")));
    const answer = (settle: () => void): void => {
      world.after(delayMs(), () => {
        if (way.isCut) return;
        // Even an answer waits until the machine runs again, and a process that has ended hears of none.
        clock.after(0, () => {
          late();
          settle();
        });
      });
    };
    world.after(delayMs(), () => {
      if (way.isCut) return;
      (async () => run())().then(
        (result) => answer(() => resolve(result)),
        (error: unknown) => answer(() => reject(error instanceof Error ? error : new Error(String(error)))),
      );
    });
  });
}

/** A process that answers calls. */
export interface Served {
  readonly clock: ProcessClock;
  readonly handlers: object;
}

interface Options {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const MOCK = { peer: { certificate: undefined, address: "10.0.0.1" } } as unknown as CallContext;

/**
 * A client of the service of whichever process `find` tells; calls to none get no answer. Messages pass as
 * they were made, refusals as gRPC has them.
 */
export function clientOf<Service extends DescService>(
  service: Service,
  asking: Omit<Asking, "answerMs">,
  find: () => Served | undefined,
): Client<Service> {
  const client: Record<string, unknown> = {};
  for (const method of service.methods) {
    const call = <T>(options: Options, handle: (handlers: Handlers) => Promise<T>): Promise<T> =>
      ask({ ...asking, answerMs: options.timeoutMs ?? CALL_MS, signal: options.signal }, () => {
        const served = find();
        return new Promise<T>((resolve, reject) => {
          served?.clock.after(0, () => {
            // A process that has ended meanwhile answers no more.
            const told = (tell: () => void): void => {
              if (!served.clock.isDead) tell();
            };
            handle(served.handlers as Handlers).then(
              (answer) => told(() => resolve(answer)),
              (error: unknown) => told(() => reject(mapError(error) ?? (error as Error))),
            );
          });
        });
      });
    const message = (request: object): object =>
      create(method.input, request as MessageInitShape<DescMessage>);
    const reply = (answer: object): object => create(method.output, answer as MessageInitShape<DescMessage>);
    if (method.methodKind === "unary") {
      client[method.localName] = (request: object, options: Options = {}) =>
        call(options, async (handlers) =>
          reply(await (handlers[method.localName] as Unary)(message(request), MOCK)),
        );
    } else {
      client[method.localName] = async function* (request: object, options: Options = {}) {
        yield* await call(options, async (handlers) => {
          const pieces: object[] = [];
          for await (const piece of (handlers[method.localName] as Streaming)(message(request), MOCK))
            pieces.push(reply(piece));
          return pieces;
        });
      };
    }
  }
  return client as Client<Service>;
}

type Unary = (request: object, context: CallContext) => object | Promise<object>;
type Streaming = (request: object, context: CallContext) => AsyncIterable<object>;
type Handlers = Readonly<Record<string, Unary | Streaming>>;
