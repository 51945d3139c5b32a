// Opens an address in the user's browser, if a program for it exists.
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

/** Opens the address; true when a program for it was found, not that a window appeared. */
export function openBrowser(url: string, env: Env, platform: NodeJS.Platform = process.platform): boolean {
  const program = browserProgram(env, platform);
  if (program === undefined) return false;
  const child = spawn(program, [url], { detached: true, stdio: "ignore" });
  // The address has been printed too.
  child.on("error", () => undefined);
  child.unref();
  return true;
}

/** The program that opens addresses; undefined on a machine without a desktop. */
export function browserProgram(env: Env, platform: NodeJS.Platform): string | undefined {
  if (platform === "darwin") return findProgram("open", env);
  const hasDesktop = Boolean(env["DISPLAY"]) || Boolean(env["WAYLAND_DISPLAY"]);
  return platform === "linux" && hasDesktop ? findProgram("xdg-open", env) : undefined;
}

function findProgram(name: string, env: Env): string | undefined {
  for (const folder of (env["PATH"] ?? "").split(":")) {
    // An empty or relative entry means the current folder, from which nothing is run.
    if (!folder.startsWith("/")) continue;
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}
