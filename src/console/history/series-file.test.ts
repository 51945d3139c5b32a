// Tests of series files: cut, damaged, of a newer version, killed between two steps (A-10, D24, T18).
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { parseSeries, type SeriesForm, type SeriesRows, seriesText } from "./series-format.ts";
import type { SeriesLoaded } from "./series-messages.ts";
import { loadSeries, NewerSchema } from "./series-reader.ts";
import { appendJournal, writeWhole } from "./series-writer.ts";

const NOW_MS = 1_790_000_000_000;
const FORM: SeriesForm = {
  list: "nodes",
  columns: [
    { name: "mbps", decimals: 3 },
    { name: "count", decimals: 0 },
  ],
  rowsMax: 4,
};

let folder: string;
let path: string;
let journal: string;

beforeEach(() => {
  folder = scratchFolder("grove-series-");
  path = join(folder, "figures.json");
  journal = join(folder, "figures.journal");
});

function rows(id: string, firstSlot: number, ...values: readonly number[]): SeriesRows {
  return { id, firstSlot, values: new Float32Array(values) };
}

async function load(): Promise<SeriesLoaded & { readonly series: readonly SeriesRows[] }> {
  let series: SeriesRows[] = [];
  const loaded = await loadSeries(path, FORM, NOW_MS, {
    take: (one) => series.push(one),
    reset: () => {
      series = [];
    },
  });
  return { ...loaded, series };
}

async function save(
  mode: "whole" | "journal",
  generation: number,
  ...series: readonly SeriesRows[]
): Promise<number> {
  const head = { generation, savedAtUnix: 1 };
  const write = mode === "whole" ? writeWhole(path, FORM, head) : await appendJournal(path, FORM, head);
  for (const one of series) await write.add([one]);
  return await write.end();
}

const idsOf = ({ series }: { series: readonly SeriesRows[] }): string[] => series.map(({ id }) => id);
const names = (): string[] => readdirSync(folder).sort();

describe("one series as text", () => {
  it("reads back as it was, unknown figures and strange names included", () => {
    const figure = fc.oneof(
      fc.constant(Number.NaN),
      fc.integer({ min: 0, max: 1e6 }).map((n) => n / 1_000),
      fc.nat(),
    );
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", minLength: 1, maxLength: 40 }),
        fc.nat(),
        fc.array(fc.tuple(figure, figure), { maxLength: 4 }),
        (id, firstSlot, cells) => {
          const values = [...cells.map(([mbps]) => mbps), ...cells.map(([, count]) => Math.round(count))];
          const before = rows(id, firstSlot, ...values);
          const text = seriesText(FORM, before);
          assert.equal(text.includes("\n"), false);
          assert.deepEqual(parseSeries(FORM, text), before);
        },
      ),
    );
  });
});

describe("whole file and journal", () => {
  it("a whole file is JSON, only its owner's, and reads back", async () => {
    const bytes = await save("whole", 3, rows("a", 10, 1.5, 2, 3, 4), rows("b", 11, Number.NaN, 7));
    assert.equal(bytes, statSync(path).size);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), {
      schema: 1,
      generation: 3,
      saved_at: 1,
      columns: ["mbps", "count"],
      nodes: [
        {
          id: "a",
          first_slot: 10,
          values: [
            [1.5, 2],
            [3, 4],
          ],
        },
        { id: "b", first_slot: 11, values: [[null], [7]] },
      ],
    });
    const loaded = await load();
    assert.deepEqual(loaded.series, [rows("a", 10, 1.5, 2, 3, 4), rows("b", 11, Number.NaN, 7)]);
    assert.deepEqual(loaded.damaged, []);
    assert.equal(loaded.generation, 3);
  });

  it("a file without series reads back as none, and no file as none", async () => {
    assert.deepEqual(await load(), { series: [], generation: 0, damaged: [] });
    await save("whole", 1);
    assert.deepEqual(await load(), { series: [], generation: 1, damaged: [] });
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")).nodes, []);
  });

  it("the journal's series come after those of the whole file that it continues", async () => {
    await save("whole", 2, rows("a", 1, 1, 1));
    await save("journal", 2, rows("b", 2, 1, 1));
    await save("journal", 2, rows("c", 3, 1, 1));
    assert.deepEqual(idsOf(await load()), ["a", "b", "c"]);
    assert.equal(statSync(journal).mode & 0o777, 0o600);
  });

  it("killed between a new whole file and the end of the old journal, the journal says nothing twice", async () => {
    await save("whole", 1, rows("a", 1, 1, 1));
    await save("journal", 1, rows("b", 2, 1, 1));
    const old = readFileSync(journal);
    await save("whole", 2, rows("a", 1, 1, 1), rows("b", 2, 1, 1));
    assert.deepEqual(names(), ["figures.json"]);
    writeFileSync(journal, old);
    assert.deepEqual(idsOf(await load()), ["a", "b"]);
  });

  it("killed while it was written, the old whole file stays, and what was begun is cleared away", async () => {
    await save("whole", 1, rows("a", 1, 1, 1));
    writeFileSync(join(folder, ".figures.json.0123456789abcdef.tmp"), "{");
    assert.deepEqual(idsOf(await load()), ["a"]);
    assert.deepEqual(names(), ["figures.json"]);
  });

  it("a journal torn at any byte gives the lines before and is no damage", async () => {
    await save("whole", 1, rows("a", 1, 1, 1));
    await save("journal", 1, rows("b", 2, 1, 1));
    const whole = readFileSync(journal).length;
    await save("journal", 1, rows("c", 3, 1, 1));
    const content = readFileSync(journal);
    for (let length = 0; length < content.length; length++) {
      writeFileSync(journal, content.subarray(0, length));
      const loaded = await load();
      assert.deepEqual(loaded.damaged, []);
      assert.deepEqual(idsOf(loaded), length >= whole ? ["a", "b"] : ["a"]);
    }
  });

  it("a journal of zeros behind its last line, as a power cut leaves it, is no damage", async () => {
    await save("whole", 1, rows("a", 1, 1, 1));
    await save("journal", 1, rows("b", 2, 1, 1));
    writeFileSync(journal, Buffer.concat([readFileSync(journal), Buffer.alloc(4_096)]));
    assert.deepEqual(await load().then(idsOf), ["a", "b"]);
  });

  it("a journal that is damaged before its end is set aside; what stands before the damage counts", async () => {
    await save("whole", 1, rows("a", 1, 1, 1));
    await save("journal", 1, rows("b", 2, 1, 1), rows("c", 3, 1, 1), rows("d", 3, 1, 1));
    writeFileSync(journal, readFileSync(journal, "utf8").replace('{"id":"c"', '{"id":c'));
    const loaded = await load();
    assert.deepEqual(idsOf(loaded), ["a", "b"]);
    assert.equal(loaded.damaged.length, 1);
    assert.deepEqual(names(), ["figures.journal.corrupt-1790000000", "figures.json"]);
  });
});

describe("a damaged whole file (A-10, D24)", () => {
  it("cut at any byte it is set aside with its journal, and the start is empty", async () => {
    await save("whole", 1, rows("a", 1, 1, 1), rows("b", 2, 1, 1));
    await save("journal", 1, rows("c", 2, 1, 1));
    const content = readFileSync(path);
    const lines = readFileSync(journal);
    for (let length = 0; length < content.length; length++) {
      writeFileSync(path, content.subarray(0, length));
      writeFileSync(journal, lines);
      const loaded = await load();
      assert.deepEqual(idsOf(loaded), []);
      assert.equal(loaded.damaged.length, 1, `at ${length}`);
      assert.deepEqual(names(), ["figures.journal.corrupt-1790000000", "figures.json.corrupt-1790000000"]);
      rmSync(`${journal}.corrupt-1790000000`);
    }
  });

  it("of whatever content it is never fatal", async () => {
    const contents = [
      "",
      "{}",
      "null",
      "[]\n",
      "\0".repeat(5_000),
      "[".repeat(100_000),
      '{"schema":1}\n',
      '{"schema":1,"generation":1,"saved_at":1,"columns":["other"],"nodes":[\n]}\n',
      '{"schema":1,"generation":-1,"saved_at":1,"columns":["mbps","count"],"nodes":[\n]}\n',
      '{"schema":1,"generation":1,"saved_at":1,"columns":["mbps","count"],"nodes":[\n{"__proto__":1}\n]}\n',
      '{"schema":1,"generation":1,"saved_at":1,"columns":["mbps","count"],"nodes":[\n]}\n{}\n',
      ...["1.5", "-1", '"1"', "1e99"].map((slot) =>
        withSeries(`{"id":"a","first_slot":${slot},"values":[[1],[1]]}`),
      ),
      ...["[[1]]", "[[1],[1,2]]", "[[1],[true]]", "[1,2]", "{}", "[[1,2,3,4,5],[1,2,3,4,5]]"].map((values) =>
        withSeries(`{"id":"a","first_slot":1,"values":${values}}`),
      ),
      withSeries(`{"id":"${"x".repeat(400)}","first_slot":1,"values":[[1],[1]]}`),
    ];
    for (const content of contents) {
      writeFileSync(path, content);
      const loaded = await load();
      assert.equal(loaded.damaged.length, 1, content.slice(0, 120));
      assert.deepEqual(loaded.series, []);
    }
    assert.ok(names().length <= 3, "of damaged files only few are kept");
  });

  it("a folder in its place is set aside too", async () => {
    const { mkdirSync } = await import("node:fs");
    mkdirSync(path);
    assert.equal((await load()).damaged.length, 1);
    assert.deepEqual(names(), ["figures.json.corrupt-1790000000"]);
  });

  it("of a newer version it is refused and left alone, however it is laid out (D18)", async () => {
    for (const content of ['{"schema":2,"whatever":1}\n', '{\n  "schema": 17,\n "x": []\n}']) {
      writeFileSync(path, content);
      await assert.rejects(load(), (error) => error instanceof NewerSchema);
      assert.equal(readFileSync(path, "utf8"), content);
    }
    await save("whole", 1);
    writeFileSync(journal, '{"schema":2}\n');
    await assert.rejects(load(), (error) => error instanceof NewerSchema);
  });
});

function withSeries(line: string): string {
  return `{"schema":1,"generation":1,"saved_at":1,"columns":["mbps","count"],"nodes":[\n${line}\n]}\n`;
}
