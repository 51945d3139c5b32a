// Checks the shared engine's database and bucket, as a FileServer uses them.
import { systemClock } from "#base/clock.ts";
import { errorText } from "#base/log.ts";
import { systemFraction, systemRandom } from "#base/random.ts";
import { probeBucket, probeDatabase, probedAddresses } from "#storage/engine/engine-probe.ts";
import type { EngineSettings } from "#storage/engine/engine-settings.ts";
import { clockFinding } from "./clock-finding.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";

/** Checks database and bucket together, since each names the other. URLs are not shown: they may hold secrets. */
export function engineChecks(
  settings: EngineSettings | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Check[] {
  if (settings === undefined) return [];
  const clock = systemClock;
  return [
    {
      name: "shared engine",
      async run() {
        const [database, bucket] = await Promise.allSettled([
          probeDatabase(probedAddresses(settings, env), clock),
          probeBucket(settings.store, { clock, random: systemRandom, fraction: systemFraction }),
        ]);
        return [
          ...databaseFindings(database),
          ...bucketFindings(bucket),
          ...togetherFindings(database, bucket),
        ];
      },
    },
  ];
}

type Outcome<Probe extends (...words: never[]) => Promise<unknown>> = PromiseSettledResult<
  Awaited<ReturnType<Probe>>
>;

function databaseFindings(probe: Outcome<typeof probeDatabase>): Finding[] {
  const name = "engine's database";
  if (probe.status === "rejected") {
    const todo = "See that PostgreSQL runs, that -engine names it, and that its user may write there.";
    return [failed(name, errorText(probe.reason), todo)];
  }
  const { engine, waitsForStandby, skewMs } = probe.value;
  const what =
    engine === undefined
      ? "answers, and has no tables yet: the first FileServer makes them"
      : `answers and takes changes; ${engine.servers} FileServers under a lease, ${engine.roots} roots`;
  const standby = waitsForStandby
    ? ok(`${name}: standby`, "commits wait for a synchronous standby")
    : warning(
        `${name}: standby`,
        "commits wait for no standby: if its machine is lost, so are all files",
        "Set up a synchronous standby (synchronous_standby_names), or back the database up and know what is lost.",
      );
  return [ok(name, what), standby, clockFinding(`clock of the ${name}`, skewMs)];
}

function bucketFindings(probe: Outcome<typeof probeBucket>): Finding[] {
  const name = "engine's bucket";
  if (probe.status === "rejected") {
    const todo =
      "See that the store runs, and that -store names a bucket and credentials that may write there.";
    return [failed(name, errorText(probe.reason), todo)];
  }
  const { checksBytes, skewMs } = probe.value;
  const checks = checksBytes
    ? "it refuses bytes that do not match their checksum"
    : "it does not check bytes itself; Grove does when it reads";
  const findings = [ok(name, `an object was written, read and removed; ${checks}`)];
  return skewMs === undefined ? findings : [...findings, clockFinding(`clock of the ${name}`, skewMs)];
}

function togetherFindings(
  database: Outcome<typeof probeDatabase>,
  bucket: Outcome<typeof probeBucket>,
): Finding[] {
  if (database.status === "rejected" || bucket.status === "rejected") return [];
  const [own, named] = [database.value.engine?.incarnation, bucket.value.incarnation];
  const name = "database and bucket";
  if (named === own) return [ok(name, own === undefined ? "both are new" : "belong together")];
  const todo = "Name another prefix, or the database whose chunks lie there.";
  if (own === undefined) return [failed(name, "this prefix of the bucket belongs to another database", todo)];
  return named === undefined
    ? [failed(name, "the bucket has no chunks of this database", todo)]
    : [
        failed(
          name,
          "this prefix of the bucket belongs to another database, of which this one may be a copy",
          todo,
        ),
      ];
}
