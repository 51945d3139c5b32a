// Records workloads, rebuilds what a power cut may leave at each acknowledgement and in between, and opens
// every such state.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compiledIn } from "#prove/launcher.ts";
import { SeededRandom } from "#prove/seeded-random.ts";
import { byCrc32, linesOf } from "#prove/store/folder-contents.ts";
import { FolderStates } from "#prove/store/folder-states.ts";
import { type CrashImage, drawImage, imageWithout, type Mixture, RANDOM_MIXTURES } from "./crash-mixture.ts";
import { DiskFile, DiskFolder, DiskModel } from "./disk-model.ts";
import type { ExplorerLine } from "./explorer-lines.ts";
import type { RecorderLine } from "./recorder-lines.ts";
import { Recording } from "./recording.ts";
import { StateChecks } from "./state-check.ts";
import { imageHash, StateFolder } from "./state-folder.ts";
import type { TraceEvent } from "./trace-events.ts";
import { allWorkloads, PREPARED, type Workload } from "./workloads.ts";

const [, , folder = "", partText = "", partsText = "", seedText = ""] = process.argv;
const BATCH = 6;
const SET_UP_STATES = 40;
/**
 * States per workload, by the number of operations; shorter workloads have shown what comes before the last
 * one.
 */
const STATES = [0, 9, 9, 5.4] as const;
/** Draws of a state until it is one not seen before. */
const TRIES = 4;

function say(line: ExplorerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

interface Recorded {
  readonly events: readonly TraceEvent[];
  readonly workloads: readonly Workload[];
}

class Explorer {
  readonly #random = new SeededRandom(Number(seedText)).fork(`part ${partText}`);
  readonly #live = new StateFolder(join(folder, "live"));
  readonly #state = new StateFolder(join(folder, "state"));
  readonly #recording = new Recording(
    join(folder, "trace"),
    join(folder, "live"),
    compiledIn(join(folder, "cache")),
  );
  readonly #seen = new Set<string>();
  readonly #images = new Set<string>();
  readonly #checks = new StateChecks();
  readonly #lines = linesOf(PREPARED, byCrc32);
  #template: CrashImage = { folders: [], files: new Map() };
  #recorded: Promise<Recorded> | undefined;

  async setUp(): Promise<void> {
    const events = await this.#recording.order({
      order: "set up",
      directory: this.#live.path,
      folders: 1,
      workloads: [],
    });
    await this.#explore(events, [["set up"]]);
    this.#live.forget();
    await this.#recording.order({
      order: "prepare",
      directory: this.#live.path,
      folders: BATCH,
      workloads: [],
    });
    this.#template = readImage(this.#live.path);
  }

  /** Has a batch recorded, and meanwhile checks the batch recorded before. */
  async batch(workloads: readonly Workload[]): Promise<void> {
    const before = await this.#recorded;
    this.#live.forget();
    this.#live.become(this.#template);
    const order = { order: "work", directory: this.#live.path, folders: BATCH, workloads } as const;
    this.#recorded = this.#recording.order(order).then((events) => ({ events, workloads }));
    // It is awaited below, or with the next batch.
    this.#recorded.catch(() => undefined);
    if (before !== undefined) await this.#explore(before.events, before.workloads);
  }

  /** Checks the last batch too, unless the run is over. */
  async end(isWanted: boolean): Promise<void> {
    const last = isWanted ? await this.#recorded : undefined;
    if (last !== undefined) await this.#explore(last.events, last.workloads);
    await this.#recording.end();
  }

  async #explore(events: readonly TraceEvent[], workloads: readonly Workload[]): Promise<void> {
    const moments = this.#momentsOf(events, workloads);
    const disk = modelOf(this.#live.path, this.#template);
    const isSetUp = this.#template.files.size === 0;
    const states = new FolderStates();
    if (!isSetUp) for (let index = 0; index < BATCH; index++) states.know(`w${index}`, this.#lines);
    let workload = 0;
    let count = 0;
    let late = 0;
    for (const [index, event] of events.entries()) {
      const line = lineOf(event);
      if (line !== undefined) {
        if (line.event === "workload") workload = line.index;
        else if (line.event === "begin") states.begin(line.folder, line.lines);
        else if (line.event === "done") states.done(line.folder);
      }
      const images: [Mixture | "late", CrashImage][] = [...this.#latest(event, disk, states)];
      if (event.kind !== "said") disk.apply(event);
      for (const mixture of moments.get(index) ?? []) {
        const image = this.#newImage(disk.root, mixture, states);
        if (image !== undefined) images.push([mixture, image]);
      }
      for (const [kind, image] of images) {
        if (isSetUp) this.#state.forget();
        const problem = await this.#check(image, states);
        count++;
        if (kind === "late") late++;
        if (problem === undefined) continue;
        const where = `${(workloads[workload] ?? []).join(", ")}; after call ${index} of ${events.length} (${kind})`;
        say({ violation: `${where}: ${problem}` });
      }
    }
    say({
      states: count,
      workloads: workloads.length,
      acknowledged: states.acknowledged,
      distinct: this.#images.size,
      looked: this.#checks.forget(),
      late,
    });
  }

  /**
   * For each workload the worst state at its last acknowledgement, and random ones of its last operation and
   * of what follows it.
   */
  #momentsOf(events: readonly TraceEvent[], workloads: readonly Workload[]): Map<number, Mixture[]> {
    const moments = new Map<number, Mixture[]>();
    const add = (after: number, mixture: Mixture): void => {
      moments.set(after, [...(moments.get(after) ?? []), mixture]);
    };
    const begins: number[] = [];
    for (const [index, event] of events.entries())
      if (lineOf(event)?.event === "workload") begins.push(index);
    for (const [number, begin] of begins.entries()) {
      const end = begins[number + 1] ?? events.length;
      const own = events.slice(begin, end).map(lineOf);
      const acknowledged = own.findLastIndex((line) => line?.event === "done");
      const before = own.slice(0, Math.max(0, acknowledged)).findLastIndex((line) => line?.event === "done");
      if (acknowledged >= 0) add(begin + acknowledged, "least");
      const isSetUp = this.#template.files.size === 0;
      const count = isSetUp ? SET_UP_STATES : (STATES[workloads[number]?.length ?? 0] ?? 0);
      // A set-up prints nothing on the way.
      const first = begin + Math.max(0, isSetUp ? 0 : before);
      for (let left = count - 1 + this.#random.next(); left >= 1; left--) {
        add(this.#random.between(first, end - 1), this.#random.pick(RANDOM_MIXTURES));
      }
    }
    return moments;
  }

  /**
   * Before a flush ends while others wait: everything is on disk but one of those that wait, each in its
   * turn.
   */
  *#latest(
    event: TraceEvent,
    { root, unflushed }: DiskModel,
    states: FolderStates,
  ): Generator<["late", CrashImage]> {
    if (event.kind !== "flush ended" || unflushed.size < 2) return;
    for (const node of unflushed) {
      const image = imageWithout(root, node);
      if (this.#isNew(image, states)) yield ["late", image];
    }
  }

  #newImage(root: DiskFolder, mixture: Mixture, states: FolderStates): CrashImage | undefined {
    for (let tries = 0; tries < TRIES; tries++) {
      const image = drawImage(root, tries === 0 ? mixture : this.#random.pick(RANDOM_MIXTURES), this.#random);
      if (this.#isNew(image, states)) return image;
    }
    return undefined;
  }

  #isNew(image: CrashImage, states: FolderStates): boolean {
    const hash = imageHash(image);
    const key = `${hash} ${states.key}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    this.#images.add(hash);
    return true;
  }

  async #check(image: CrashImage, states: FolderStates): Promise<string | undefined> {
    this.#state.become(image);
    try {
      const { folders, problems } = await this.#checks.recovered(this.#state.path, image);
      const all = [...problems, ...states.compare(folders)];
      return all.length === 0 ? undefined : all.slice(0, 3).join("; ");
    } catch (error) {
      return error instanceof Error ? `it cannot be used: ${error.message}` : String(error);
    }
  }
}

function lineOf(event: TraceEvent): RecorderLine | undefined {
  return event.kind === "said" ? (JSON.parse(event.text) as RecorderLine) : undefined;
}

function modelOf(path: string, { folders, files }: CrashImage): DiskModel {
  const model = new DiskModel(path);
  const nodes = new Map<string, DiskFolder>([["", model.root]]);
  const put = (name: string, node: DiskFile | DiskFolder): void => {
    const slash = name.lastIndexOf("/");
    nodes.get(slash < 0 ? "" : name.slice(0, slash))?.addDurable(name.slice(slash + 1), node);
  };
  for (const name of folders) {
    const node = new DiskFolder();
    put(name, node);
    nodes.set(name, node);
  }
  for (const [name, bytes] of files) put(name, new DiskFile(bytes));
  return model;
}

function readImage(path: string): CrashImage {
  const folders: string[] = [];
  const files = new Map<string, Buffer>();
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    const name = join(entry.parentPath, entry.name).slice(path.length + 1);
    if (entry.isDirectory()) folders.push(name);
    else files.set(name, readFileSync(join(path, name)));
  }
  return { folders: folders.toSorted(), files };
}

function* ownWorkloads(): Generator<Workload> {
  let index = 0;
  for (const workload of allWorkloads(Number(seedText))) {
    if (index++ % Number(partsText) === Number(partText)) yield workload;
  }
}

const stopped = new AbortController();
process.stdin.on("end", () => stopped.abort());
process.stdin.resume();
mkdirSync(folder, { recursive: true });
const explorer = new Explorer();
await explorer.setUp();
let batch: Workload[] = [];
for (const workload of ownWorkloads()) {
  batch.push(workload);
  if (batch.length < BATCH) continue;
  await explorer.batch(batch);
  batch = [];
  if (stopped.signal.aborted) break;
}
if (batch.length > 0) await explorer.batch(batch);
await explorer.end(!stopped.signal.aborted);
