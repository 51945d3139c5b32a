// One loop as the main thread sees it: its connections, its calls, and the messages of both.
import { networkOf } from "#base/network.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallContext, Peer } from "#wire/grpc/call-context.ts";
import type { CallGate, CallHead } from "#wire/grpc/call-gate.ts";
import { type CallLane, type CallScheduler, costOf } from "#wire/grpc/call-scheduler.ts";
import type { ConnectionStanding } from "#wire/grpc/connection-table.ts";
import type { ComingConnection, Doorkeeper } from "#wire/grpc/doorkeeper.ts";
import { ReplyScheduler } from "#wire/grpc/reply-scheduler.ts";
import type { ServedMethod } from "#wire/grpc/served-method.ts";
import type { UnprovenLoad } from "#wire/grpc/unproven-load.ts";
import type { BatchedPort } from "./batched-port.ts";
import type { JudgeMessage, LoopMessage, ToLoop } from "./loop-messages.ts";
import type { OverloadCount } from "./overload-count.ts";
import { packStatus, unpackPeer, unpackStatus } from "./packed-status.ts";
import { RemoteCall, type RemoteCallDeps } from "./remote-call.ts";

/** Shared by all loops of a server. */
export interface LoopLinkDeps {
  readonly gate: CallGate;
  readonly door: Doorkeeper<RemoteConnection>;
  readonly load: UnprovenLoad;
  readonly turns: CallScheduler;
  readonly methods: ReadonlyMap<string, ServedMethod>;
  readonly callDeps: RemoteCallDeps;
  readonly toStatus: (error: unknown, call: Pick<CallContext, "method" | "peer">) => StatusError;
  /** Connections that were not let in, or gave way. */
  readonly turnedAway: Pick<OverloadCount, "add">;
}

/** A connection that a loop serves. */
export class RemoteConnection implements ComingConnection {
  readonly key: string;
  readonly address: string;
  readonly network: string;
  readonly lane: CallLane;
  readonly turns: ReplyScheduler = new ReplyScheduler();
  peer: Peer;
  #standing: ConnectionStanding = "unproven";
  readonly #evict: () => void;

  /** `evict` closes it in its loop. */
  constructor({ key, address }: { readonly key: string; readonly address: string }, evict: () => void) {
    this.key = key;
    this.address = address;
    this.network = networkOf(address);
    // Its loop bounds how many calls wait here: those of the connection's places.
    const nothing = (): void => undefined;
    this.lane = { pause: nothing, resume: nothing, isProven: false, waiting: [], cost: 0, turn: 0 };
    this.peer = { address, port: 0, encrypted: false, certificate: undefined };
    this.#evict = evict;
  }

  get standing(): ConnectionStanding {
    return this.#standing;
  }

  set standing(standing: ConnectionStanding) {
    this.#standing = standing;
    this.lane.isProven = standing !== "unproven";
  }

  evict(): void {
    this.#evict();
  }
}

type Of<O extends LoopMessage["op"]> = Extract<LoopMessage, { readonly op: O }>;

/** One loop. Numbers of connections and calls are the loop's own. */
export class LoopLink {
  readonly #deps: LoopLinkDeps;
  readonly #port: BatchedPort<ToLoop>;
  readonly #connections = new Map<number, RemoteConnection>();
  readonly #calls = new Map<number, RemoteCall>();
  /** Calls that wait for their turn. */
  readonly #waiting = new Map<number, JudgeMessage>();

  constructor(deps: LoopLinkDeps, port: BatchedPort<ToLoop>) {
    this.#deps = deps;
    this.#port = port;
  }

  /** Open connections. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Calls in progress. */
  get callCount(): number {
    return this.#calls.size;
  }

  /** Takes a message about connections and calls; false for any other. */
  take(message: LoopMessage): boolean {
    switch (message.op) {
      case "open":
        this.#open(message);
        return true;
      case "met":
        this.#met(message);
        return true;
      case "closed":
        this.#closed(message.connection);
        return true;
      case "judge":
        this.#judgeInTurn(message);
        return true;
      case "turnedAway":
        this.#turnedAway(message);
        return true;
      case "load":
        this.#deps.load.charge(message.network, message.bytes);
        return true;
      default:
        return this.#takeOfCall(message);
    }
  }

  /** The loop's half of a call has ended. */
  gone(id: number): void {
    this.#waiting.delete(id);
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    call?.gone();
  }

  /** The thread has ended: so have its connections and calls. */
  lost(): void {
    this.#port.close();
    this.#waiting.clear();
    for (const id of this.#calls.keys()) this.gone(id);
    for (const id of this.#connections.keys()) this.#closed(id);
  }

  #takeOfCall(message: LoopMessage): boolean {
    if (!("call" in message)) return false;
    const call = this.#calls.get(message.call);
    if (call === undefined) return this.#takeOfWaiting(message);
    if (message.op === "request") call.request(message.body);
    else if (message.op === "message") call.message(message.body, message.payloadBytes);
    else if (message.op === "end") call.endOfMessages();
    else if (message.op === "broken") call.brokenOff(unpackStatus(message.status));
    else if (message.op === "tell") call.told(message.message);
    else if (message.op === "cancel") call.endedThere(unpackStatus(message.status));
    return true;
  }

  #takeOfWaiting(message: Extract<LoopMessage, { readonly call: number }>): true {
    const waiting = this.#waiting.get(message.call);
    if (waiting === undefined) return true;
    if (message.op === "request") waiting.body = message.body;
    else if (message.op === "cancel") {
      this.#waiting.delete(message.call);
      this.#refuse(waiting, unpackStatus(message.status), []);
    }
    return true;
  }

  #open({ connection: id, key, address, unasked }: Of<"open">): void {
    this.#deps.turnedAway.add(unasked);
    const connection = new RemoteConnection({ key, address }, () =>
      this.#port.post({ op: "evict", connection: id }),
    );
    const { isTaken, evicted } = this.#deps.door.admit(connection);
    evicted?.evict();
    if (!isTaken || evicted !== undefined) this.#deps.turnedAway.add();
    if (isTaken) this.#connections.set(id, connection);
    this.#port.post({ op: "opened", connection: id, isTaken });
  }

  #met({ connection: id, peer }: Of<"met">): void {
    const connection = this.#connections.get(id);
    if (connection === undefined) return;
    connection.peer = unpackPeer(peer);
    if (!this.#deps.door.greeted(connection, this.#deps.gate.isNode(connection.peer))) connection.evict();
  }

  #closed(id: number): void {
    const connection = this.#connections.get(id);
    if (connection === undefined) return;
    this.#connections.delete(id);
    this.#deps.door.remove(connection);
  }

  #judgeInTurn(request: Of<"judge">): void {
    const connection = this.#connections.get(request.connection);
    if (connection === undefined) return this.#refuseUnjudged(request);
    const { turns, methods } = this.#deps;
    const cost = costOf(request.headers) * (methods.get(request.path)?.cost ?? 1);
    const judge = (): void => this.#judge(request, connection);
    if (turns.mayBegin(connection.lane, cost)) return judge();
    this.#waiting.set(request.call, request);
    return turns.wait(connection.lane, cost, () => {
      // It may have been given up.
      if (this.#waiting.delete(request.call)) judge();
    });
  }

  #judge(request: Of<"judge">, connection: RemoteConnection): void {
    const { call: id, path, headers, timeoutMs, isAssumed, body } = request;
    const { gate, door, methods, callDeps, toStatus } = this.#deps;
    const served = methods.get(path);
    // The connection, or its loop, may have ended while the call waited for its turn.
    const isOpen = this.#connections.get(request.connection) === connection;
    if (served === undefined || !isOpen) return this.#refuseUnjudged(request);
    const head: CallHead = {
      method: served.called,
      metadata: Metadata.fromRaw(headers),
      peer: connection.peer,
    };
    try {
      const standing = gate.judge(head);
      if (standing instanceof Promise) throw new TypeError("a gate of the main thread judges at once");
      const call = new RemoteCall(callDeps, {
        ...head,
        id,
        port: this.#port,
        served,
        standing,
        timeoutMs,
        turns: connection.turns,
      });
      callDeps.places.expect(call);
      this.#calls.set(id, call);
      door.proved(connection, standing);
      if (!isAssumed) {
        const { kind, party } = standing;
        const provesConnection = connection.standing !== "unproven";
        this.#port.post({ op: "standing", call: id, kind, party, provesConnection });
      }
      call.start();
      if (body !== undefined) call.request(body);
    } catch (error) {
      const status = toStatus(error, head);
      this.#refuse(request, status, gate.refused(head, status));
    }
  }

  #refuse({ call, isAssumed }: Of<"judge">, refusal: StatusError, extra: readonly string[]): void {
    const status = packStatus(refusal);
    if (!isAssumed) this.#port.post({ op: "refused", call, status, extra });
    else this.#port.post({ op: "answer", call, status, headers: [], trailers: extra, body: undefined });
  }

  /** Answers a call that needs no judgement: the loop must not wait for one. */
  #refuseUnjudged(request: Of<"judge">): void {
    this.#refuse(request, new StatusError(Code.UNAVAILABLE, "the connection has ended"), []);
  }

  #turnedAway({ connection: id, path, headers, status }: Of<"turnedAway">): void {
    const { gate, methods } = this.#deps;
    const served = methods.get(path);
    const peer = this.#connections.get(id)?.peer;
    if (served === undefined || peer === undefined) return;
    gate.refused({ method: served.called, metadata: Metadata.fromRaw(headers), peer }, unpackStatus(status));
  }
}
