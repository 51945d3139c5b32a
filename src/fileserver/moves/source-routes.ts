// The gRPC routes for the target of a move: rows, chunk files and the freeze, for a node that knows the move.
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";
import { judgeCertificate } from "#security/identity/certificate-rule.ts";
import type { MoveReceipt, RootMoveStorage } from "#storage/contract/root-move.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type { NodeMove, RootSource } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import type { KnownMoves } from "./known-moves.ts";
import type { MoveSource } from "./move-source.ts";

/** Bytes of rows that one round sends, unless a single bucket has more. */
export const ROUND_BYTES = 1_000_000;
/** Bytes of one message of rows or of a chunk. */
const PIECE_BYTES = 262_144;

/** Dependencies of the routes. */
export interface SourceRoutesDeps {
  readonly moves: RootMoveStorage;
  readonly known: KnownMoves;
  readonly source: MoveSource;
  /** Mock mode: nodes have no certificates, and the secret alone proves them. */
  readonly mock: boolean;
  readonly usedBytes: (owner: string) => Promise<number>;
  readonly clock: Clock;
}

interface Asked {
  readonly moveId: string;
  readonly secret: string;
}

/** Makes the handlers. */
export function sourceRoutes(deps: SourceRoutesDeps): ServiceHandlers<typeof RootSource> {
  const { moves, source } = deps;
  return {
    async beginExport(request, context) {
      const { moveId, owner } = await admitted(request, context, deps);
      // What this node has heard may be older than an operator's decision.
      const listed = await deps.known.ask();
      requireUnderWay(listed?.find((move) => move.moveId === moveId));
      if (request.afresh) await forgetArrived(moveId, deps);
      const { number } = await moves.beginExport({ moveId, owner });
      return { number, usedBytes: BigInt(await deps.usedBytes(owner)) };
    },

    async *pullRows(request, context) {
      const { moveId } = requireUnderWay(await admitted(request, context, deps));
      const receipts = request.receipts.map(
        ({ kind, a, b, changes, checksum, rows }): MoveReceipt => ({
          kind: kind === 1 ? 1 : kind === 2 ? 2 : 0,
          a: Number(a),
          b: Number(b),
          changes: Number(changes),
          checksum,
          rows,
        }),
      );
      const round = await moves.nextRound(moveId, receipts, ROUND_BYTES);
      const totals = round.buckets.length === 0 ? await moves.exportTotals(moveId) : undefined;
      yield* pieces(Buffer.from(JSON.stringify({ ...round, totals })), (piece) => ({ piece }));
    },

    async *pullChunk(request, context) {
      const { moveId } = requireUnderWay(await admitted(request, context, deps));
      const bytes = await moves.readChunk(moveId, request.name);
      if (bytes === undefined || bytes.length === 0) yield { found: bytes !== undefined };
      else yield* pieces(bytes, (data) => ({ found: true, data }));
    },

    async freezeRoot(request, context) {
      const move = requireUnderWay(await admitted(request, context, deps));
      const head = await source.freeze(move, request.attempt);
      return { head: Buffer.from(JSON.stringify(head)) };
    },

    async moveChanged(request, context) {
      await source.settle(await admitted(request, context, deps));
      return {};
    },
  };
}

/** Ends an export whose target has nothing of it: what it has noted as arrived would never be sent again. */
async function forgetArrived(moveId: string, { moves }: SourceRoutesDeps): Promise<void> {
  const begun = moves.list().find((one) => one.moveId === moveId);
  if (begun === undefined) return;
  if (begun.state !== "copying") {
    throw new GroveError("OVERLOADED", "the root is frozen for the attempt before; once more");
  }
  await moves.endExport(moveId);
}

function* pieces<Message>(bytes: Buffer, message: (piece: Buffer) => Message): Generator<Message> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield message(bytes.subarray(at, at + PIECE_BYTES));
}

/**
 * The move for which this node is the source and the caller the target. Throws CLIENT_CERT_REQUIRED for every
 * other caller, whether or not there is such a move.
 */
async function admitted(
  { moveId, secret }: Asked,
  context: Pick<CallContext, "peer">,
  { known, mock, clock }: SourceRoutesDeps,
): Promise<NodeMove> {
  const shown = context.peer.certificate;
  const verdict = judgeCertificate(
    { certificate: shown?.raw, authorized: shown?.authorized === true, problem: shown?.problem },
    clock.wallMs(),
  );
  if (!mock && !verdict.allowed) throw notTheTarget(verdict.reason ?? "is not allowed");
  // The target may have heard of the move before this node has.
  if (known.find(moveId) === undefined) await known.askTogether();
  const move = known.find(moveId);
  const isKnown = constantTimeEqual(secret, move?.secret ?? "");
  if (move === undefined || !isKnown || move.secret === "" || !known.isSource(move)) {
    throw notTheTarget("is not for this move");
  }
  if (verdict.nodeId !== undefined && verdict.nodeId !== move.target) {
    throw notTheTarget("speaks for another node");
  }
  return move;
}

/** Throws FENCED for a move that has ended: nothing of the root is given out any more. */
function requireUnderWay(move: NodeMove | undefined): NodeMove {
  if (move?.state === "copying" || move?.state === "frozen") return move;
  throw new GroveError("FENCED", `this move is over (${move?.state ?? "ended"})`);
}

function notTheTarget(reason: string): GroveError {
  return new GroveError(
    "CLIENT_CERT_REQUIRED",
    `a root is given to its next node alone, with a client certificate of this cluster; the one shown ${reason}`,
    { metadata: { certificate: reason } },
  );
}
