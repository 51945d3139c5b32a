// Compares shares in any sequence of grants, exclusions, moves, removals and restores with a plain model.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { BOB, BY, CAROL, share, sharedAt, unshare } from "./shares.fixture.ts";
import { assertSound, inodeAt, OWNER, openTestStorage } from "./store.fixture.ts";

/** Each user's own rows at a place. */
type Rows = Map<string, "grant" | "exclusion">;

interface Model {
  readonly places: Map<string, Rows>;
  /** The last item of the trash, with the rows that its restore brings back. */
  trashed: { id: string; from: string; places: Map<string, Rows> } | undefined;
}

interface Step {
  readonly kind: number;
  readonly one: number;
  readonly other: number;
  readonly user: string;
  readonly name: string;
}

const isAtOrBelow = (place: string, above: string): boolean =>
  above === "/" || place === above || place.startsWith(`${above}/`);

/** The nearest row at or above a place decides. */
function isLetIn(model: Model, place: string, user: string, isIncluded = true): boolean {
  const above = [...model.places]
    .filter(([at, rows]) => isAtOrBelow(place, at) && rows.has(user) && (isIncluded || at !== place))
    .toSorted(([a], [b]) => b.length - a.length);
  return above[0]?.[1].get(user) === "grant";
}

function effective(model: Model, place: string): string[] {
  return [BOB, CAROL].filter((user) => isLetIn(model, place, user)).toSorted();
}

test("any sequence of shares, moves, removals and restores leaves exactly what a plain model says (spec 4.5)", async (t) => {
  const step = fc.tuple(fc.nat(9), fc.nat(9), fc.nat(9), fc.nat(1));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const path = temporaryDirectory(t);
      const storage = await openTestStorage(path);
      await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
      const model: Model = { places: new Map([["/", new Map()]]), trashed: undefined };
      for (const [index, [kind, one, other, who]] of steps.entries()) {
        const user = who === 0 ? BOB : CAROL;
        await modelStep(storage, model, { kind, one, other, user, name: `n${index}` });
        assertAsModel(storage, model);
      }
      await storage.close();
      assertSound(path);
    }),
    { numRuns: 60 },
  );
});

const parentOf = (place: string): string => `/${namesOf(place).slice(0, -1).join("/")}`;
const namesOf = (place: string): string[] => (place === "/" ? [] : place.slice(1).split("/"));

function assertAsModel(storage: Storage, model: Model): void {
  for (const place of model.places.keys()) {
    const users = effective(model, place);
    assert.deepEqual(sharedAt(storage, ...namesOf(place)), users, place);
    assert.deepEqual(storage.shares.usersOf(inodeAt(storage, ...namesOf(place)).id), users, place);
  }
  for (const user of [BOB, CAROL]) {
    const pathsWith = (wanted: string): string[] =>
      [...model.places].flatMap(([place, rows]) => (rows.get(user) === wanted ? [place] : [])).toSorted();
    const { granted, excluded } = storage.shares.pathsOf(OWNER, user);
    assert.deepEqual([granted.toSorted(), excluded.toSorted()], [pathsWith("grant"), pathsWith("exclusion")]);
  }
}

async function modelStep(storage: Storage, model: Model, step: Step): Promise<void> {
  const places = [...model.places.keys()];
  const place = places[step.one % places.length] ?? "/";
  const target = places[step.other % places.length] ?? "/";
  const inodeOf = (path: string): InodeId => inodeAt(storage, ...namesOf(path)).id;
  const id = inodeOf(place);
  const child = target === "/" ? `/${step.name}` : `${target}/${step.name}`;
  switch (step.kind) {
    case 0:
    case 1:
      await storage.createDirectory({ ...BY, parentId: inodeOf(target), name: step.name });
      model.places.set(child, new Map());
      return;
    case 2:
    case 3:
      await share(storage, id, step.user);
      modelShare(model, place, step.user);
      return;
    case 4:
    case 5:
      await unshare(storage, id, step.user);
      modelUnshare(model, place, step.user);
      return;
    case 6:
      if (place === "/" || isAtOrBelow(target, place)) return;
      await storage.rename({
        ...BY,
        inodeId: id,
        parentId: inodeOf(target),
        name: step.name,
        onConflict: "fail",
      });
      for (const [at, rows] of takeBelow(model, place))
        model.places.set(`${child}${at.slice(place.length)}`, rows);
      return;
    case 7: {
      if (place === "/") return;
      const { item } = await storage.trash({ ...BY, inodeId: id });
      const kept = takeBelow(model, place).map(
        ([at, rows]) => [at, new Map([...rows].filter(([, row]) => row === "exclusion"))] as const,
      );
      model.trashed = { id: item.id, from: place, places: new Map(kept) };
      return;
    }
    case 8: {
      const isEmpty = places.every((other) => other === target || !isAtOrBelow(other, target));
      if (place === "/" || !isEmpty || isAtOrBelow(target, place)) return;
      const parentId = inodeOf(parentOf(target));
      const name = namesOf(target).at(-1) ?? "";
      await storage.rename({ ...BY, inodeId: id, parentId, name, onConflict: "replace" });
      const replaced = model.places.get(target);
      for (const [at, rows] of takeBelow(model, place))
        model.places.set(`${target}${at.slice(place.length)}`, rows);
      const there = model.places.get(target);
      for (const [who, row] of replaced ?? [])
        if (row === "exclusion" && !there?.has(who)) there?.set(who, row);
      return;
    }
    default: {
      const { trashed } = model;
      if (trashed === undefined) return;
      const names = namesOf(child);
      await storage.restore({ ...BY, trashId: trashed.id, names, onConflict: "fail" });
      for (const [at, rows] of trashed.places)
        model.places.set(`${child}${at.slice(trashed.from.length)}`, rows);
      model.trashed = undefined;
    }
  }
}

function takeBelow(model: Model, place: string): [string, Rows][] {
  const taken = [...model.places].filter(([at]) => isAtOrBelow(at, place));
  for (const [at] of taken) model.places.delete(at);
  return taken;
}

function modelShare(model: Model, place: string, user: string): void {
  const own = model.places.get(place);
  const wasExcluded = own?.get(user) === "exclusion";
  for (const [at, rows] of model.places) {
    if (isAtOrBelow(at, place) && rows.get(user) === "exclusion") rows.delete(user);
  }
  if (!(wasExcluded && isLetIn(model, place, user, false))) own?.set(user, "grant");
}

function modelUnshare(model: Model, place: string, user: string): void {
  const own = model.places.get(place);
  const isExcluded = own?.get(user) === "exclusion" || isLetIn(model, place, user, false);
  for (const [at, rows] of model.places) if (isAtOrBelow(at, place)) rows.delete(user);
  if (isExcluded) own?.set(user, "exclusion");
}
