// The frame around every page: title, search, connection, session and navigation.
import { Button, Menu, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useSignInAddress } from "../live/address-search.ts";
import { useUnresolvedCount } from "../live/alerts.ts";
import { noteSignedIn, signOut, signOutEverywhere, useSession } from "../live/session.ts";
import { CommandPalette } from "./command-palette.tsx";
import { LiveMark } from "./live-mark.tsx";
import { PLACES, type Place } from "./places.ts";
import { SessionNotice } from "./session-notice.tsx";
import { Shortcuts } from "./shortcuts.tsx";

/** The frame with a page in it. */
export function Frame({ children }: { readonly children: ReactNode }): ReactNode {
  const [path] = useLocation();
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  // A new page starts at its top, also for screen readers.
  useEffect(() => {
    document.title = `${PLACES.find((place) => isAt(path, place.path))?.label ?? "Grove"} · Grove`;
    if (isFirst.current) isFirst.current = false;
    else main.current?.focus();
  }, [path]);
  return (
    <div className="frame">
      <a className="skip-link" href="#main">
        Go to the content
      </a>
      <header className="frame-header">
        <Link href="/" className="frame-title">
          Grove
        </Link>
        <div className="frame-header-end">
          <CommandPalette />
          <LiveMark />
          <ColorSchemeButton />
          <Operator />
        </div>
      </header>
      <Places path={path} />
      <Shortcuts />
      <main className="frame-main" id="main" ref={main} tabIndex={-1} style={{ outline: "none" }}>
        <SessionNotice />
        {children}
      </main>
    </div>
  );
}

function isAt(path: string, place: string): boolean {
  return place === "/" ? path === "/" : path === place || path.startsWith(`${place}/`);
}

function Places({ path }: { readonly path: string }): ReactNode {
  const session = useSession();
  const unresolved = useUnresolvedCount();
  const shown = PLACES.filter((place) => place.operator !== true || session?.authenticated === true);
  return (
    <nav className="frame-nav" aria-label="Pages">
      {shown.map((place) => (
        <Link key={place.path} href={place.path} aria-current={isAt(path, place.path) ? "page" : undefined}>
          {place.label}
          {place.path === "/alerts" && unresolved > 0 ? (
            <span className="number" role="img" aria-label={`${unresolved} unresolved`}>
              {unresolved}
            </span>
          ) : null}
        </Link>
      ))}
      {shown.length > NARROW_PLACES ? <MorePlaces places={shown.slice(NARROW_PLACES)} /> : null}
    </nav>
  );
}

/** Places that fit below a page on a narrow screen, beside "More". */
const NARROW_PLACES = 4;

function MorePlaces({ places }: { readonly places: readonly Place[] }): ReactNode {
  const { setColorScheme } = useMantineColorScheme();
  const next = useComputedColorScheme("light") === "light" ? "dark" : "light";
  return (
    <Menu position="top-end">
      <Menu.Target>
        <button type="button" className="frame-more narrow-only">
          More
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {places.map((place) => (
          <Menu.Item key={place.path} component={Link} href={place.path}>
            {place.label}
          </Menu.Item>
        ))}
        <Menu.Item onClick={() => setColorScheme(next)}>Switch to {next} colours</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function ColorSchemeButton(): ReactNode {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const next = scheme === "light" ? "dark" : "light";
  return (
    <Button
      variant="subtle"
      color="gray"
      size="compact-sm"
      className="wide-only"
      aria-label={`Switch to ${next} colours`}
      onClick={() => setColorScheme(next)}
    >
      ◐
    </Button>
  );
}

function Operator(): ReactNode {
  const session = useSession();
  const signInAddress = useSignInAddress();
  if (session === undefined) return null;
  if (!session.authenticated) {
    return (
      <Button component={Link} href={signInAddress} variant="default" size="compact-sm">
        Sign in
      </Button>
    );
  }
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="compact-sm">
          Operator ▾
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component={Link} href="/settings">
          Settings and sessions
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut().catch(noteSignedIn)}>Sign out</Menu.Item>
        <Menu.Item onClick={() => void signOutEverywhere().catch(noteSignedIn)}>
          Sign out everywhere
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
