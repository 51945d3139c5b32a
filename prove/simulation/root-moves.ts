// A root that moves to another node while its user works, with a kill of either side at a drawn step.
import type { Directory } from "#metaserver/directory/directory.ts";
import type { RootMove, RootMoveState } from "#metaserver/directory/root-move.ts";
import { ownersOn } from "./checks.ts";
import { simulation } from "./scheduler.ts";
import type { SimulatedFileServer } from "./servers.ts";
import type { Heal, Victims } from "./victims.ts";

const CALL_LIMIT_MS = 30_000;
const LOOK_EVERY_MS = 25;
const MOVE_LIMIT_MS = 120_000;
const AWAY_MAX_MS = 20_000;
/** After the last kill a move ends within this time: two looks of each node, and a restart's registration. */
const ENDS_WITHIN_MS = 90_000;
const STATES: readonly RootMoveState[] = ["copying", "frozen", "switched", "confirmed", "undone"];

/** Begins a move, decides it, and kills a side on its way; the end waits until nothing of it is left. */
export async function moveRoot(victims: Victims): Promise<Heal> {
  const { meta, nodes, people, random, violation } = victims;
  const scheduler = simulation();
  const ask = async <T>(question: (directory: Directory) => Promise<T>): Promise<T | undefined> => {
    const { directory } = meta;
    if (directory === undefined) return undefined;
    return scheduler.runUntil(
      scheduler.within(meta.process, () => question(directory)),
      CALL_LIMIT_MS,
    );
  };
  const owner = random.pick(people).email;
  const source = nodes.find((node) => ownersOn(node).includes(owner));
  const others = nodes.filter((node) => node !== source && node.isUp);
  if (source === undefined || others.length === 0) return () => undefined;
  const target = random.pick(others);
  const killed = random.pick<SimulatedFileServer | undefined>([source, target, undefined]);
  const killAt = random.pick(STATES);
  const undoAt = random.pick<RootMoveState | undefined>(["copying", "frozen", undefined, undefined]);
  const awayMs = random.next() * AWAY_MAX_MS;
  scheduler.trace("move", `${owner} ${source.id} ${target.id}, ${killed?.id ?? "no"} kill at ${killAt}`);
  await ask((directory) => directory.beginMove({ owner, target: target.id }));
  const find = async (): Promise<RootMove | undefined> =>
    (await ask((directory) => directory.rootMoves()))?.find((move) => move.owner === owner);
  const decide = async (decision: "confirm" | "undo"): Promise<void> => {
    await ask((directory) => directory.decideMove(owner, decision).catch(() => undefined));
  };
  let killedAtMs: number | undefined;
  const endMs = scheduler.nowMs + MOVE_LIMIT_MS;
  while (scheduler.nowMs < endMs) {
    const move = await find();
    if (move === undefined) break;
    const isHit = move.state === killAt && killedAtMs === undefined;
    if (isHit && killed?.isUp === true) {
      scheduler.trace("move", `${killed.id} is killed in ${move.state}`);
      killed.kill(random.chance(0.4));
      victims.count("sides killed in a move");
      killedAtMs = scheduler.nowMs;
    }
    if (killed?.isUp === false && scheduler.nowMs - (killedAtMs ?? 0) > awayMs) await killed.start();
    if (move.state === undoAt) await decide("undo");
    if (move.state === "switched") await decide("confirm");
    await scheduler.run(LOOK_EVERY_MS);
  }
  return async () => {
    if (killed?.isUp === false) await killed.start();
    const lastMs = scheduler.nowMs + ENDS_WITHIN_MS;
    for (let move = await find(); move !== undefined; move = await find()) {
      if (move.state === "switched") await decide("confirm");
      if (scheduler.nowMs > lastMs) {
        return violation(
          `the move of ${owner} is ${move.state} long after the end of every fault: ${move.problem}`,
        );
      }
      await scheduler.run(1_000);
    }
    const isThere = ownersOn(target).includes(owner);
    victims.count(isThere ? "roots moved" : "roots that stayed, their move undone");
  };
}
