// A listener for /metrics and /health that nobody reaches: HTTP is outside of what is simulated.

/** Listens to nobody. */
export function serveStatus(
  _deps: unknown,
  address: { readonly port: number },
): Promise<{ readonly port: number; close(): Promise<void> }> {
  return Promise.resolve({ port: address.port, close: () => Promise.resolve() });
}
