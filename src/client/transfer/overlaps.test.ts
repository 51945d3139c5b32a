// Tests of overlapping places, where one source's files would count as another's surplus.
import assert from "node:assert/strict";
import { test } from "node:test";
import { refuseOverlaps } from "./overlaps.ts";

test("folders beside one another pass, whatever their names begin with", () => {
  refuseOverlaps([]);
  refuseOverlaps(["/backup"]);
  refuseOverlaps(["/backup/photos", "/backup/photos 2", "/backup/photos-2", "/backup/videos"]);
});

for (const [what, places] of [
  ["one place for two", ["/backup/photos", "/backup/music", "/backup/photos"]],
  ["one inside another", ["/backup/videos", "/backup", "/else"]],
  ["names that differ in case", ["/a/Photos", "/a/photos"]],
] as const) {
  test(`refused: ${what}`, () => {
    assert.throws(
      () => refuseOverlaps(places),
      (error) => error instanceof Error && /two sources/.test(error.message),
    );
  });
}
