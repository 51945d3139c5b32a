// Tests the picture of the floors: every room on its floor, and an arrow for each grant that no others imply.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrowsOf, type DrawnPlan, floorsOf, floorsPicture } from "./floors-picture.ts";
import { ROOMS } from "./rooms.ts";

/** A plan from names and grants alone. */
function plan(grants: Readonly<Record<string, readonly string[]>>): DrawnPlan {
  return Object.fromEntries(
    Object.entries(grants).map(([name, imports]) => [name, { holds: `what <${name}> holds`, imports }]),
  );
}

const WINGS = plan({
  base: [],
  "storage/contract": [],
  "storage/chunks": ["base", "storage/contract"],
  "storage/local": ["base", "storage/contract", "storage/chunks"],
  "server/front": ["base"],
  "server/process": ["base", "server/front", "storage/local", "storage/chunks"],
  testing: ["base"],
});

test("a room's floor is the longest chain of grants below it", () => {
  assert.deepEqual(Object.fromEntries(floorsOf(WINGS)), {
    base: 1,
    "storage/contract": 1,
    "storage/chunks": 2,
    "storage/local": 3,
    "server/front": 2,
    "server/process": 4,
    testing: 2,
  });
});

test("a circle of grants has no floors", () => {
  assert.throws(() => floorsOf(plan({ a: ["b"], b: ["c"], c: ["a"] })), /circle/);
});

test("a grant that a chain of others implies has no arrow", () => {
  const arrows = arrowsOf(WINGS).map(([from, to]) => `${from} ${to}`);
  assert.ok(arrows.includes("server/process storage/local"));
  assert.ok(!arrows.includes("server/process storage/chunks"));
  assert.ok(!arrows.includes("storage/local storage/contract"));
});

for (const [title, drawn] of [
  ["a plan of wings", WINGS],
  ["the plan of this house", ROOMS],
] as const) {
  test(`${title} is drawn whole: every room but testing, and an arrow for each that is left`, () => {
    const svg = floorsPicture(drawn);
    for (const name of Object.keys(drawn).filter((room) => room !== "testing"))
      assert.ok(svg.includes(`<title>${name}: `), name);
    assert.doesNotMatch(svg, /<title>testing|NaN|Infinity|undefined|<path class="in" d=""/);
    const kept = Object.fromEntries(Object.entries(drawn).filter(([name]) => name !== "testing"));
    const bars = [...svg.matchAll(/>([\w/]+), which \d+ of the \d+ others may import</g)].map(
      ([, name]) => name,
    );
    const arrows = arrowsOf(kept).filter(([, to]) => !bars.includes(to));
    assert.equal([...svg.matchAll(/marker-end=/g)].length, arrows.length);
    assert.equal(floorsPicture(drawn), svg);
  });
}

test("wings have headings, arrows within one their own colour, and texts no markup", () => {
  const svg = floorsPicture(WINGS);
  assert.match(svg, /class="wing"[^>]*>storage\/</);
  assert.match(svg, /<path class="in"/);
  assert.match(svg, /<path class="across"/);
  assert.match(svg, /what &lt;server\/front&gt; holds/);
});
