// The MetaServer's routes about moving roots: nodes ask for their moves and take steps.
import { GroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import type { NodeCaller } from "#metaserver/directory/node-caller.ts";
import type { RootSizesPage, MoveStep as Step } from "#metaserver/directory/root-move.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import {
  type AdvanceMoveRequest,
  type ListMovesRequest,
  MoveStep,
  type RootMoves,
} from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { type NodeSpeakerDeps, speakerFor } from "./node-speaker.ts";
import { epochOf, label } from "./registration-message.ts";

/** Characters of a problem that a node tells. */
const PROBLEM_MAX_LENGTH = 200;

/** Dependencies of the routes. */
export interface RootMoveRoutesDeps extends NodeSpeakerDeps {
  readonly directory: Pick<Directory, "advanceMove" | "movesOf" | "noteRootSizes" | "sizesWanted">;
}

/** Makes the handlers. Each first proves its caller. */
export function rootMoveRoutes(deps: RootMoveRoutesDeps): ServiceHandlers<typeof RootMoves> {
  const { directory, log } = deps;
  const callerOf = (
    { fsId, epoch }: { readonly fsId: string; readonly epoch: bigint },
    context: CallContext,
  ): NodeCaller => ({ fsId, epoch: epochOf(epoch), speaker: speakerFor(fsId, context, deps) });
  return {
    async listMoves(request, context) {
      const caller = callerOf(request, context);
      if (request.sizesOf > 0n) await directory.noteRootSizes(caller, sizesOf(request));
      const moves = await directory.movesOf(caller);
      return {
        sizesWanted: BigInt(await directory.sizesWanted()),
        moves: moves.map(
          ({ moveId, owner, source, target, state, attempt, number, secret, otherAddress }) => ({
            moveId,
            owner,
            source,
            target,
            state,
            attempt,
            number,
            secret,
            otherAddress,
          }),
        ),
      };
    },

    async advanceMove(request, context) {
      const caller = callerOf(request, context);
      const step = stepOf(request);
      const moveId = label("move_id", request.moveId);
      const { state, attempt, owner } = await directory.advanceMove(caller, moveId, step);
      // A root stays frozen for a lost move until the lists have come, for which its node asks again and again.
      const isNews = step.step !== "progress" && !(step.step === "thaw" && state === "frozen");
      if (isNews) {
        log.info("root_move", { owner, node: caller.fsId, step: step.step, state, attempt });
      }
      return { state, attempt };
    },
  };
}

function sizesOf({ sizesOf: question, sizesPage, sizesLast, sizes }: ListMovesRequest): RootSizesPage {
  return {
    question: Number(BigInt.asUintN(53, question)),
    page: sizesPage,
    isLast: sizesLast,
    sizes: sizes.map(({ owner, bytes }) => ({
      owner: canonicalUsername(owner),
      bytes: Number(BigInt.asUintN(53, bytes)),
    })),
  };
}

function stepOf(request: AdvanceMoveRequest): Step {
  const { attempt } = request;
  switch (request.step) {
    case MoveStep.PROGRESS: {
      const [bytes, rows, left] = [request.bytes, request.rows, request.left].map((count) =>
        Number(BigInt.asUintN(53, count)),
      );
      const problem = request.problem.slice(0, PROBLEM_MAX_LENGTH).toWellFormed().replaceAll("\0", "");
      return { step: "progress", bytes: bytes ?? 0, rows: rows ?? 0, left: left ?? 0, problem };
    }
    case MoveStep.FREEZE:
      return { step: "freeze" };
    case MoveStep.THAW:
      return { step: "thaw", attempt };
    case MoveStep.SWITCH:
      return { step: "switch", attempt };
    case MoveStep.RECALL:
      return { step: "recall", owner: canonicalUsername(request.owner), isArriving: request.arriving };
    case MoveStep.END:
      return { step: "end" };
    case MoveStep.ADOPT:
      return { step: "adopt" };
    default:
      throw new GroveError("BAD_ARGUMENT", "step has a value that this server does not know", {
        metadata: { field: "step" },
      });
  }
}
