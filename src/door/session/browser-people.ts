// What signing in at a door needs of the cluster, as an interface.

/** A browser's session that was opened. */
export interface OpenedSession {
  /** For the cookie. */
  readonly secret: string;
  readonly username: string;
  readonly endsMs: number;
}

/** Where somebody signs in. */
export interface SigningIn {
  /** Network address of the person. */
  readonly address: string;
  /** As the browser sends it; empty for none. */
  readonly userAgent: string;
}

/** Opens and ends sessions of browsers at a MetaServer. */
export interface SessionKeeper {
  /** Throws TOKEN_REJECTED, RATE_LIMITED, USER_DISABLED, CLIENT_ID_UNSET; IDP_UNAVAILABLE and others that pass. */
  openSession(idToken: string, browser: SigningIn): Promise<OpenedSession>;
  /** Ends a session, or all of its person's. Throws TOKEN_REJECTED for one that has ended or never was. */
  endSession(secret: string, everywhere: boolean, address: string): Promise<void>;
}
