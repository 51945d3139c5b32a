// Draws the room plan as an SVG: wings side by side, floors stacked, arrows for imports.
import type { Room } from "./rooms.ts";

/** The drawn part of the plan: names such as `storage/metadata`, whose first part is the wing. */
export type DrawnPlan = Readonly<Record<string, Pick<Room, "holds" | "imports">>>;

/** The group of rooms without a wing. */
const GROUND = "";
/** Test helpers are no part of the product. */
const NOT_DRAWN = "testing";

const BOX = { width: 98, height: 24, gap: 8 } as const;
const GUTTER = 36;
const LEFT = 60;
const PADDING = 13;
const HEAD = 38;
/** Stacked rooms of a wing on one floor; more of them need a second column. */
const STACKED = { beside: 5, alone: 2 } as const;

interface Box {
  readonly name: string;
  readonly wing: string;
  /** From the left, over all wings. */
  readonly column: number;
  readonly x: number;
  readonly y: number;
}

/** Floors from 1 up, by the longest chain of grants below each room; throws for a cycle of grants. */
export function floorsOf(plan: DrawnPlan): Map<string, number> {
  const floors = new Map<string, number>();
  const under = new Set<string>();
  const floorOf = (name: string): number => {
    const known = floors.get(name);
    if (known !== undefined) return known;
    if (under.has(name)) throw new Error(`grants run in a circle through ${name}`);
    under.add(name);
    const floor = 1 + Math.max(0, ...(plan[name]?.imports ?? []).map(floorOf));
    under.delete(name);
    floors.set(name, floor);
    return floor;
  };
  for (const name of Object.keys(plan)) floorOf(name);
  return floors;
}

/** Grants that no chain of other grants implies, as pairs of names. */
export function arrowsOf(plan: DrawnPlan): (readonly [from: string, to: string])[] {
  const below = new Map<string, Set<string>>();
  const reach = (name: string): Set<string> => {
    const known = below.get(name);
    if (known !== undefined) return known;
    const all = new Set<string>();
    below.set(name, all);
    for (const next of plan[name]?.imports ?? []) for (const far of [next, ...reach(next)]) all.add(far);
    return all;
  };
  return Object.entries(plan).flatMap(([from, { imports }]) =>
    imports
      .filter((to) => !imports.some((other) => other !== to && reach(other).has(to)))
      .map((to) => [from, to] as const),
  );
}

/** The SVG text of the picture; deterministic for a plan. */
export function floorsPicture(whole: DrawnPlan): string {
  const plan = Object.fromEntries(Object.entries(whole).filter(([name]) => name !== NOT_DRAWN));
  const bearers = bearersOf(plan);
  const arrows = arrowsOf(plan).filter(([, to]) => !bearers.includes(to));
  const names = Object.keys(plan).filter((name) => !bearers.includes(name));
  const wings = orderedWings(names, arrows);
  const { boxes, bands, width, height } = placed(names, floorsOf(plan), wings, bearers);
  const byName = new Map(boxes.map((box) => [box.name, box]));
  const count = Object.keys(plan).length;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="t d" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif" font-size="13">`,
    "  <!-- Made by tools/floors-picture.ts from tools/rooms.ts: npm run generate -->",
    '  <title id="t">The rooms of Grove, floor by floor</title>',
    `  <desc id="d">${count} rooms on ${bands.length} floors. An arrow leads from a room to one that it may import, unless a chain of arrows leads there too. Bars are rooms that most others may import.</desc>`,
    STYLE,
    `  <rect class="bg" width="${width}" height="${height}" rx="10"/>`,
    ...bands.map((band) => floorBand(band, width)),
    ...bands.flatMap((band) => band.bars.map((name, index) => bar(name, plan, band, index, width))),
    ...wings.filter((wing) => wing !== GROUND).map((wing) => heading(wing, boxes)),
    ...arrows.map(([from, to]) => arrow(byName.get(from), byName.get(to))),
    ...boxes.map((box) => room(box, plan[box.name]?.holds ?? "")),
    "</svg>",
  ].join("\n")}\n`;
}

const STYLE = `  <style>
    .bg { fill: #fbfcfb } .band { fill: #f1f5f1 } .floor { fill: #5c6b61 } .wing { fill: #1d2b22; font-weight: 600 }
    .room { fill: #ffffff; stroke: #2f7d4f; stroke-width: 1.2 } .name { fill: #1d2b22; text-anchor: middle }
    .in { stroke: #2f7d4f; stroke-width: 1.5; fill: none } .across { stroke: #7d8ba0; stroke-width: 1; fill: none }
    .head-in { fill: #2f7d4f } .head-across { fill: #7d8ba0 }
    @media (prefers-color-scheme: dark) {
      .bg { fill: #141a16 } .band { fill: #1b231e } .floor { fill: #9db0a3 } .wing { fill: #e6efe9 }
      .room { fill: #223029; stroke: #5fb783 } .name { fill: #e6efe9 }
      .in { stroke: #5fb783 } .across { stroke: #8c9ab0 } .head-in { fill: #5fb783 } .head-across { fill: #8c9ab0 }
    }
  </style>
  <defs>
    <marker id="in" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="head-in" d="M0 0.5L8 4L0 7.5z"/></marker>
    <marker id="across" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="head-across" d="M0 0.5L8 4L0 7.5z"/></marker>
  </defs>`;

/** Rooms that more than half of all import and that import only such rooms: drawn as bars without arrows. */
function bearersOf(plan: DrawnPlan): string[] {
  const names = Object.keys(plan);
  const uses = (to: string): number => names.filter((name) => plan[name]?.imports.includes(to)).length;
  const found: string[] = [];
  const isBearer = (name: string): boolean =>
    !found.includes(name) &&
    uses(name) > names.length / 2 &&
    (plan[name]?.imports ?? []).every((below) => found.includes(below));
  for (let next = names.find(isBearer); next !== undefined; next = names.find(isBearer)) found.push(next);
  return found;
}

function wingOf(name: string): string {
  const slash = name.indexOf("/");
  return slash === -1 ? GROUND : name.slice(0, slash);
}

/** The order of wings with the shortest arrows; the first of equal ones, for a deterministic result. */
function orderedWings(names: readonly string[], arrows: readonly (readonly [string, string])[]): string[] {
  const wings = [...new Set(names.map(wingOf))].toSorted();
  const weights = wings.map((from) =>
    wings.map((to) => arrows.filter(([a, b]) => wingOf(a) === from && wingOf(b) === to).length),
  );
  let best: { order: readonly number[]; cost: number } = { order: wings.map((_, at) => at), cost: Infinity };
  const search = (order: readonly number[], cost: number): void => {
    if (cost >= best.cost) return;
    if (order.length === wings.length) best = { order, cost };
    for (let next = 0; next < wings.length; next++) {
      if (order.includes(next)) continue;
      const added = order.reduce((sum, at, place) => {
        const between = (weights[at]?.[next] ?? 0) + (weights[next]?.[at] ?? 0);
        return sum + between * (order.length - place);
      }, 0);
      search([...order, next], cost + added);
    }
  };
  search([], 0);
  return best.order.map((at) => wings[at] ?? GROUND);
}

interface Band {
  readonly floor: number;
  readonly y: number;
  readonly height: number;
  /** Rooms drawn over the whole width, below the others of the floor. */
  readonly bars: readonly string[];
}

function placed(
  names: readonly string[],
  floors: ReadonlyMap<string, number>,
  wings: readonly string[],
  bearers: readonly string[],
): { boxes: Box[]; bands: Band[]; width: number; height: number } {
  const on = (wing: string, floor: number): string[] =>
    names.filter((name) => wingOf(name) === wing && floors.get(name) === floor).toSorted();
  const levels = [...new Set(floors.values())].toSorted((a, b) => b - a);
  const stacked = wings.length > 1 ? STACKED.beside : STACKED.alone;
  const wide = new Map(
    wings.map((wing) => [
      wing,
      Math.max(...levels.map((floor) => Math.ceil(on(wing, floor).length / stacked))),
    ]),
  );
  const columnsOf = (wing: string): number => wide.get(wing) ?? 1;
  const pitch = BOX.height + BOX.gap;
  const boxes: Box[] = [];
  const bands: Band[] = [];
  let y = HEAD;
  for (const floor of levels) {
    const rows = Math.max(...wings.map((wing) => Math.ceil(on(wing, floor).length / columnsOf(wing))));
    const bars = bearers.filter((name) => floors.get(name) === floor);
    let first = 0;
    for (const wing of wings) {
      for (const [index, name] of on(wing, floor).entries()) {
        const column = first + (index % columnsOf(wing));
        const row = Math.floor(index / columnsOf(wing));
        const x = LEFT + GUTTER / 2 + column * (BOX.width + GUTTER);
        boxes.push({ name, wing, column, x, y: y + PADDING + row * pitch });
      }
      first += columnsOf(wing);
    }
    const height = (rows + bars.length) * pitch - BOX.gap + 2 * PADDING;
    bands.push({ floor, y, height, bars });
    y += height + 4;
  }
  const columns = wings.reduce((sum, wing) => sum + columnsOf(wing), 0);
  return { boxes, bands, width: LEFT + columns * (BOX.width + GUTTER) + 14, height: y + 4 };
}

function floorBand({ floor, y, height }: Band, width: number): string {
  return `  <rect class="band" x="8" y="${y}" width="${width - 16}" height="${height}" rx="6"/><text class="floor" x="18" y="${y + PADDING + 16.5}">floor ${floor}</text>`;
}

function bar(name: string, plan: DrawnPlan, band: Band, index: number, width: number): string {
  const others = Object.entries(plan).filter(([other]) => other !== name);
  const uses = others.filter(([, { imports }]) => imports.includes(name)).length;
  const y =
    band.y + band.height - PADDING - BOX.height - (band.bars.length - 1 - index) * (BOX.height + BOX.gap);
  const x = LEFT + GUTTER / 2;
  const right = width - 14 - GUTTER / 2;
  const label = `${name}, which ${uses} of the ${others.length} others may import`;
  return `  <g><title>${escaped(`${name}: ${plan[name]?.holds}`)}</title><rect class="room" x="${x}" y="${y}" width="${right - x}" height="${BOX.height}" rx="5"/><text class="name" x="${(x + right) / 2}" y="${y + 16.5}">${label}</text></g>`;
}

function heading(wing: string, boxes: readonly Box[]): string {
  const first = Math.min(...boxes.filter((box) => box.wing === wing).map(({ x }) => x));
  return `  <text class="wing" x="${first}" y="${HEAD - 14}">${wing}/</text>`;
}

function room(box: Box, holds: string): string {
  const label = box.name.slice(box.name.indexOf("/") + 1);
  return `  <g><title>${escaped(`${box.name}: ${holds}`)}</title><rect class="room" x="${box.x}" y="${box.y}" width="${BOX.width}" height="${BOX.height}" rx="5"/><text class="name" x="${box.x + BOX.width / 2}" y="${box.y + 16.5}">${label}</text></g>`;
}

/** A curve between the facing sides of two boxes; within one column it bends into the gutter. */
function arrow(from: Box | undefined, to: Box | undefined): string {
  if (from === undefined || to === undefined) return "";
  const kind = from.wing === to.wing && from.wing !== GROUND ? "in" : "across";
  const [y1, y2] = [from.y + BOX.height / 2, to.y + BOX.height / 2];
  const right = (box: Box): number => box.x + BOX.width;
  const [x1, x2, bend1, bend2] =
    from.column === to.column
      ? [right(from), right(to), 1, 1]
      : from.column < to.column
        ? [right(from), to.x, 1, -1]
        : [from.x, right(to), -1, 1];
  // Arrows of one room share a lane; those of stacked rooms do not.
  const lane = 10 + ((y1 / 8) % 3) * 8;
  const reach = from.column === to.column ? lane : lane + GUTTER / 2;
  return `  <path class="${kind}" d="M${x1} ${y1}C${x1 + bend1 * reach} ${y1} ${x2 + bend2 * reach} ${y2} ${x2} ${y2}" marker-end="url(#${kind})"/>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
