// What a greedy user works with: connections of their own, a session, and loops that go on until their time is up, whatever they are refused.

import type { StrokeTime, Struck } from "#prove/attacks/orders.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Where they are. */
export interface GreedyPlace extends StrokeTime {
  readonly address: string;
  readonly metricsUrl: string;
  /** Whether it is the form of seconds. */
  readonly isShort: boolean;
}

/** The calls of one connection. */
export type Calls = Client<typeof FileServer>;

/** Somebody who takes all that they can get. */
export class Greedy {
  readonly connections: readonly Calls[];
  readonly metadata: { readonly authorization: string };
  readonly #place: GreedyPlace;
  readonly #channels: readonly GrpcChannel[];
  #strokes = 0;

  private constructor(
    place: GreedyPlace,
    channels: readonly GrpcChannel[],
    connections: readonly Calls[],
    token: string,
  ) {
    this.#place = place;
    this.#channels = channels;
    this.connections = connections;
    this.metadata = { authorization: `Bearer ${token}` };
  }

  /** Signs a new user in. */
  static async signIn(place: GreedyPlace, connections = 4): Promise<Greedy> {
    const email = `greedy${Math.floor(Math.random() * 1e9)}@example.com`;
    const channels = Array.from(
      { length: connections },
      () => new GrpcChannel({ addresses: [place.address] }),
    );
    const calls = channels.map((channel) => createClient(FileServer, channel));
    const metadata = { authorization: `Bearer mock-jwt.${email}` };
    const { sessionToken } = await (calls[0] as Calls).registerClient({}, { metadata, waitForReady: true });
    return new Greedy(place, channels, calls, sessionToken);
  }

  get strokes(): number {
    return this.#strokes;
  }

  /** A connection in turn. */
  calls(at: number): Calls {
    return this.connections[at % this.connections.length] as Calls;
  }

  /** Makes all of these, so many at once; whoever prepares must get them. */
  async all(count: number, atOnce: number, make: (at: number) => Promise<unknown>): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let at = next++; at < count; at = next++) await make(at);
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
  }

  /**
   * Does it again and again, so many at once, until the time is up, which begins to count when the first of each were answered; a refusal
   * is counted like an answer.
   */
  async insist(atOnce: number, once: (turn: number) => Promise<unknown>): Promise<Struck> {
    let turn = 0;
    const firsts = Promise.withResolvers<void>();
    this.#place.countFrom(firsts.promise);
    const lane = async (): Promise<void> => {
      while (!this.#place.isOver()) {
        // A refusal that costs nothing must not become a flood of the rig's own.
        await once(turn++).catch(() => new Promise((resolve) => setTimeout(resolve, 2)));
        if (++this.#strokes >= atOnce) firsts.resolve();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    this.close();
    return { strokes: this.#strokes };
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }
}

/** A way of being greedy. */
export type GreedyKind = (place: GreedyPlace) => Promise<Struck>;

/** Prepares, which the stroke's time does not count; then strikes. */
export const prepared =
  (
    connections: number,
    prepare: (greedy: Greedy, place: GreedyPlace) => Promise<unknown>,
    strike: (greedy: Greedy, place: GreedyPlace) => Promise<Struck>,
  ): GreedyKind =>
  async (place) => {
    const greedy = await Greedy.signIn(place, connections);
    const preparing = prepare(greedy, place);
    place.countFrom(preparing);
    await preparing;
    return strike(greedy, place);
  };
