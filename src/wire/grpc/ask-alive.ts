// Asks the other end of a connection for a sign of life, also after GOAWAY.
import type { Http2Session } from "node:http2";

/**
 * Calls `answered` when the peer has answered. Calls may go on for long after GOAWAY, when Node sends no PING any
 * more: SETTINGS without a setting are answered just as well. Throws for a destroyed session.
 */
export function askAlive(session: Http2Session, answered: () => void): void {
  const heard = (error: Error | null): void => {
    if (error === null) answered();
  };
  if (session.closed) session.settings({}, heard);
  else session.ping(heard);
}
