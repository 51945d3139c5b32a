// Runs the action of a verb: makes its context, handles Ctrl-C, and maps failures to exit codes.
import { setMaxListeners } from "node:events";
import { ClientError, inWords, isClientError } from "#client/terminal/client-error.ts";
import { EXIT, exitCodeOf } from "#client/terminal/exit-codes.ts";
import { processTerminal, type Terminal } from "#client/terminal/terminal.ts";
import { terminalJson, terminalText } from "#client/terminal/terminal-text.ts";
import { ClientContext, makeSharedParts, type SharedParts } from "./client-context.ts";
import type { ClientFlags } from "./client-flags.ts";
import { errorJson, explain } from "./error-text.ts";
import { isUnexpected, requestIdOf } from "./request-trace.ts";

/** The action of a verb; a number is its exit code. */
export type Action = (context: ClientContext) => Promise<number | void>;

/** Runs verbs: each in a process of its own, or one after another in a shell. */
export interface CommandHost {
  /** Runs an action to its end. Never rejects: prints the failure and sets the exit code. */
  run(verb: string, flags: ClientFlags, action: Action): Promise<void>;
}

const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs one verb in this process. */
export class ProcessHost implements CommandHost {
  async run(verb: string, flags: ClientFlags, action: Action): Promise<void> {
    const terminal = processTerminal();
    const shared = await makeSharedParts(terminal.env);
    const code = await runAction({ verb, flags, terminal, shared }, action);
    await closeShared(shared);
    // Output that its reader does not take would keep an interrupted process.
    if (code === EXIT.interrupted && terminal.output.writableLength > 0) process.exit(code);
    // Never process.exit(): output still on its way would be lost.
    if (code !== 0) process.exitCode = code;
  }
}

/** Closes the connections of a run. */
export async function closeShared(shared: SharedParts): Promise<void> {
  try {
    (await shared.cluster)?.close();
  } catch {
    // The context was never made; that failure is printed already.
  }
}

/** One action to be run. */
export interface ActionRun {
  readonly verb: string;
  readonly flags: ClientFlags;
  readonly terminal: Terminal;
  readonly shared: SharedParts;
}

/** Runs an action and answers its exit code. A second Ctrl-C ends the process at once. */
export async function runAction(run: ActionRun, action: Action): Promise<number> {
  const { verb, flags, terminal, shared } = run;
  const controller = new AbortController();
  // Each of many transfers adds a listener.
  setMaxListeners(0, controller.signal);
  const outer = shared.signal;
  const isVerbOfShell = shared.hasPrompt === true;
  const onSignal = (name: NodeJS.Signals): void => {
    if (name === "SIGINT" && shared.hasPrompt === true && !isVerbOfShell) return;
    if (controller.signal.aborted) process.exit(EXIT.interrupted);
    controller.abort(new ClientError("CANCELLED", "interrupted"));
  };
  shared.signal = controller.signal;
  for (const signal of END_SIGNALS) process.on(signal, onSignal);
  try {
    return (await action(new ClientContext(terminal, flags, shared))) ?? EXIT.ok;
  } catch (error) {
    // An action's own error may describe the interruption better than the signal.
    const isToldBetter = !controller.signal.aborted || isClientError(error, "CANCELLED");
    const failure = inWords(isToldBetter ? error : controller.signal.reason);
    report(verb, failure, terminal, flags);
    return exitCodeOf(failure);
  } finally {
    shared.signal = outer;
    for (const signal of END_SIGNALS) process.off(signal, onSignal);
  }
}

/** Prints a failure: what happened and what to do, or the same as JSON (decisions D1, D24). */
export function report(
  verb: string,
  error: unknown,
  terminal: Terminal,
  flags: Pick<ClientFlags, "json" | "verbose">,
): void {
  if (terminal.env["GROVE_DEBUG"] && error instanceof Error) {
    terminal.error.write(`${terminalText(error.stack ?? "").replaceAll("\\x0a", "\n")}\n`);
  }
  if (flags.json === true) {
    terminal.error.write(`${terminalJson(JSON.stringify(errorJson(error)))}\n`);
    return;
  }
  const { what, todo } = explain(error);
  const id = requestIdOf(error);
  const request =
    id !== undefined && (flags.verbose === true || isUnexpected(error)) ? `(Request ${id}.)` : "";
  const text = [what, todo, request].filter((part) => part !== "").join(" ");
  terminal.error.write(`grove ${verb}: ${terminalText(text)}\n`);
}

/** The host that verbs use unless a shell gives them another. */
export function processHost(): CommandHost {
  return new ProcessHost();
}
