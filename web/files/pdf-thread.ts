// Starts pdf.js' worker: its address is the bundler's, and pages run scripts by named addresses alone.
// oxlint-disable-next-line import/default -- the bundler makes an address of it
import address from "pdfjs-dist/build/pdf.worker.min.mjs?url";

interface ScriptAddresses {
  createScriptURL(text: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: ScriptAddresses): ScriptAddresses;
}

let policy: ScriptAddresses | undefined;

/** A new worker. */
export function startPdfWorker(): Worker {
  const rules: ScriptAddresses = { createScriptURL: () => address };
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  policy ??= trustedTypes?.createPolicy("grove-pdf", rules) ?? rules;
  return new Worker(policy.createScriptURL(""), { type: "module" });
}
