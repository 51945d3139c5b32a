// A node with a wrong clock: its user, the operator and its own checks all name the clock.
import assert from "node:assert/strict";
import type { Job } from "./job.ts";

const AHEAD_HOURS = 3;

/** Environment for a process whose JavaScript reads a later time; the machine's clock, and TLS, stay. */
function laterBy(ms: number): Readonly<Record<string, string>> {
  const module = `const Right = Date;
globalThis.Date = class extends Right {
  constructor(...words) { words.length === 0 ? super(Right.now() + ${ms}) : super(...words); }
  static now() { return Right.now() + ${ms}; }
};`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}` };
}

/** The node serves on; a sign-in there fails with the wrong clock named, and no hint to sign in again. */
export const wrongClock: Job = {
  title:
    "a node whose clock is wrong is an alert that says by how much; its user reads that it is the server's clock, and doctor says what to do",
  async run(site) {
    const dave = site.person("dave");
    const node = site.node("n3");
    assert.equal(await node.stop(), 0);
    await node.start(/"event":"registered"/, laterBy(AHEAD_HOURS * 3_600_000));
    const signIn = await dave.signIn(0);
    assert.equal(signIn.code, 2, signIn.stderr);
    assert.ok(signIn.stderr.includes(`The server ${node.place.address} refuses your sign-in`), signIn.stderr);
    assert.match(signIn.stderr, /its clock is 3 hours ahead of this machine's/);
    assert.match(signIn.stderr, /Signing in once more does not help\. .*tell the administrator/);
    const alert = await site.alert("clock_skew:n3");
    assert.equal(alert.severity, "warning");
    assert.match(alert.message, /differs from the MetaServer's by .*check its time service/);
    const doctor = await site.operatorRefused("doctor", "-data", node.data, "-listen", node.place.address);
    assert.match(doctor, /10(?:7[5-9]|8[0-4])\d\.\d s behind .*\n?.*NTP/);
    assert.equal(await node.stop(), 0);
    await node.start(/"event":"registered"/);
    assert.equal((await dave.signIn()).code, 0);
    await dave.ok("ls");
    await site.noAlert("clock_skew:n3");
  },
};
