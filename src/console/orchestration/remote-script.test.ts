// Tests of the script that ends an action on a busy node, where each of its looks takes seconds.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { afterScript, runScript, type ScriptSubject } from "./remote-script.ts";

const folder = scratchFolder("remote-script-");
const children: ChildProcess[] = [];

after(() => {
  for (const child of children) child.kill("SIGKILL");
});

/** A shell of its own session, as sshd starts one, and what it has said once it has ended. */
function shell(script: string): { readonly child: ChildProcess; readonly said: () => string } {
  const env = {
    HOME: folder,
    PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
    USER: "svc",
    LOGNAME: "svc",
  };
  const child = spawn("sh", ["-s"], { env, detached: true, stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  let said = "";
  child.stdout?.on("data", (bytes: Buffer) => {
    said += bytes.toString("utf8");
  });
  child.stdin?.write(script);
  return { child, said: () => said };
}

for (const [clock, secondsPerLook, looksMost] of [
  ["a clock", 4, 8],
  ["a clock, and one look takes longer than all graces", 40, 8],
  ["no clock", 0, 60],
] as const) {
  test(`what does not heed TERM is killed when its grace is over, not after so many looks: ${clock} (D7)`, {
    skip: process.platform !== "linux",
  }, async () => {
    const uptimeFile = join(folder, `uptime-${secondsPerLook}`);
    const looks = join(folder, `looks-${secondsPerLook}`);
    writeFileSync(looks, "");
    if (secondsPerLook > 0) writeFileSync(uptimeFile, "0.08 5.00\n");
    mkdirSync(join(folder, "bin"), { recursive: true });
    // Each look asks grep for processes that have left the session.
    const tick =
      secondsPerLook > 0 ? `echo "$(($(wc -l <${looks}) * ${secondsPerLook})).09 5.00" >${uptimeFile}` : ":";
    writeFileSync(join(folder, "bin/grep"), `#!/bin/sh\necho >>${looks}\n${tick}\nexec /bin/grep "$@"\n`);
    chmodSync(join(folder, "bin/grep"), 0o755);
    // Without a clock its pauses are the time: they are none here.
    writeFileSync(join(folder, "bin/sleep"), "#!/bin/sh\nexec /bin/sleep 0.01\n");
    chmodSync(join(folder, "bin/sleep"), 0o755);
    const subject: ScriptSubject = {
      actionId: `deaf-${secondsPerLook}`,
      nodeId: "n1",
      secret: "0123456789abcdef0123456789abcdef",
      bootIdFile: "/proc/sys/kernel/random/boot_id",
      uptimeFile,
    };
    const line = `trap "" TERM; echo deaf; while :; do sleep 9; done`;
    const action = shell(runScript(subject, [{ argv: ["sh", "-c", line] }]));
    while (!action.said().includes("deaf")) await once(action.child.stdout ?? action.child, "data");
    const end = shell(afterScript(subject, "end"));
    end.child.stdin?.end();
    await once(end.child, "close");
    // Its shell may still say how it ended, or be killed before.
    assert.match(end.said(), /^.\w+ (?:none|ended 0 137)$/m);
    const count = readFileSync(looks, "utf8").length;
    assert.ok(count > 2 && count <= looksMost, `${count} looks`);
  });
}
