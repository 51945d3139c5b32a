// The frame: who is signed in, where things are, and the page that the address names.
import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import type { SignedIn } from "#wire/webapi/files.ts";
import { AccessPage } from "./access-page.tsx";
import { door, Refusal } from "./api.ts";
import { FolderPage } from "./folder-page.tsx";
import { LinksPage } from "./links-page.tsx";
import { forgetPerson, notePerson, useOnePerson } from "./one-person.ts";
import { goTo, searchOf, useSearch, type View, viewOf } from "./place-in-address.ts";
import { QuotaBar, type Space } from "./quota-bar.tsx";
import { SearchPage } from "./search-page.tsx";
import { SharedPage } from "./shared-page.tsx";
import { type Message, Toast, useMessage } from "./toast.tsx";
import { TrashPage } from "./trash-page.tsx";
import { UploadPanel } from "./upload-panel.tsx";
import { uploads } from "./uploads.ts";
import { useKeptFocus } from "./use-kept-focus.ts";

/** By the word in the address, which anybody may write: a record has what every object has. */
const WHY_BACK: ReadonlyMap<string, string> = new Map([
  ["away", "The sign-in service does not answer at the moment. Try again in a minute."],
  ["failed", "That sign-in did not work. Begin again."],
  ["limited", "Too many sign-ins came from your network. Wait five minutes and try again."],
  ["locked", "Your access is locked. Ask your administrator."],
  [
    "not_set_up",
    "Signing in with a browser is not set up here. Ask your administrator; WebDAV works without it.",
  ],
]);

const PLACES: readonly { readonly view: View; readonly text: string }[] = [
  { view: { kind: "folder", root: "", path: "/" }, text: "My files" },
  { view: { kind: "shared" }, text: "Shared with me" },
  { view: { kind: "links" }, text: "Links" },
  { view: { kind: "trash", root: "" }, text: "Trash" },
  { view: { kind: "access" }, text: "Programs" },
];

/** The whole page. */
export function App(): ReactNode {
  const [me, setMe] = useState<SignedIn | Refusal>();
  useEffect(() => {
    door.me().then((found) => {
      notePerson(found.username);
      setMe(found);
    }, setMe);
  }, []);
  if (me === undefined) return <p className="alone">Asking who you are …</p>;
  if (!(me instanceof Refusal)) return <SignedInApp me={me} />;
  return me.code === "SIGN_IN" ? <SignInPage /> : <AwayPage why={me.message} />;
}

function SignInPage(): ReactNode {
  const why = WHY_BACK.get(new URLSearchParams(location.search).get("refused") ?? "");
  const to = why === undefined ? location.pathname + location.search : "/";
  return (
    <main className="alone">
      <h1>Your files</h1>
      {why !== undefined && (
        <p className="problem" role="alert">
          ■ {why}
        </p>
      )}
      <p>Sign in to see, upload and share your files.</p>
      <a className="button main" href={`/sign-in?to=${encodeURIComponent(to)}`}>
        Sign in
      </a>
    </main>
  );
}

function AwayPage({ why }: { readonly why: string }): ReactNode {
  return (
    <main className="alone">
      <h1>Your files are not reachable</h1>
      <p role="alert">{why}</p>
      <button type="button" className="main" onClick={() => location.reload()}>
        Try again
      </button>
    </main>
  );
}

function SignedInApp({ me }: { readonly me: SignedIn }): ReactNode {
  const search = useSearch();
  const view = useMemo(() => viewOf(search), [search]);
  const { message, say } = useMessage();
  const [spaces, setSpaces] = useState<ReadonlyMap<string, Space>>(new Map());
  const root = "root" in view ? view.root : "";
  const readQuota = useCallback(() => {
    spaceOf(root).then(
      (space) => setSpaces((before) => new Map(before).set(root, space)),
      () => undefined,
    );
  }, [root]);
  useEffect(readQuota, [readQuota, view]);
  const [undone, setUndone] = useState(0);
  const onUndone = (): void => {
    setUndone((before) => before + 1);
    readQuota();
  };
  useKeptFocus();
  useOnePerson(me.username, () => {
    uploads.cancel();
    location.assign("/");
  });
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (uploads.view().items.some(({ state }) => state === "sending" || state === "waiting"))
        event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);
  const signOut = async (): Promise<void> => {
    try {
      await door.signOut();
      forgetPerson();
      location.assign("/");
    } catch (error) {
      say({ text: error instanceof Error ? error.message : String(error), isProblem: true });
    }
  };
  return (
    <div className="frame">
      <a className="skip-link" href="#main">
        To the files
      </a>
      <header className="frame-header">
        <span className="brand">Grove</span>
        <span className="who" title={me.username}>
          {me.username}
        </span>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <Places view={view} space={spaces.get(root)} owner={root} />
      <main id="main" className="frame-main" tabIndex={-1}>
        <Shown view={view} search={search} me={me} undone={undone} say={say} onChange={readQuota} />
      </main>
      <UploadPanel />
      <Toast message={message} say={say} onUndone={onUndone} />
    </div>
  );
}

/** The page that the address names. */
function Shown(props: {
  readonly view: View;
  readonly search: string;
  readonly me: SignedIn;
  /** How often something was taken back, which may have changed any place. */
  readonly undone: number;
  readonly say: (message: Message | undefined) => void;
  readonly onChange: () => void;
}): ReactNode {
  const { view, search, me, undone, say, onChange } = props;
  const here = view.kind === "folder" ? view : undefined;
  return (
    <>
      {here !== undefined && (
        <FolderPage
          key={`${here.root} ${here.path} ${here.show ?? ""}`}
          here={here}
          show={here.show}
          undone={undone}
          say={say}
          onChange={onChange}
        />
      )}
      {view.kind === "search" && (
        <SearchPage key={search} here={{ root: view.root, path: view.path }} text={view.text} />
      )}
      {view.kind === "shared" && <SharedPage />}
      {view.kind === "links" && <LinksPage say={say} />}
      {view.kind === "access" && <AccessPage me={me} say={say} />}
      {view.kind === "trash" && (
        <TrashPage key={`${undone} ${view.root}`} root={view.root} say={say} onChange={onChange} />
      )}
    </>
  );
}

/** How full a root is, and whether its trash is the person's to see: at its top, those who may delete. */
async function spaceOf(root: string): Promise<Space> {
  const mayDelete =
    root === "" ||
    door.stat({ root, path: "/" }).then(
      (top) => top.may_delete,
      () => false,
    );
  return { quota: await door.quota(root), mayDelete: await mayDelete };
}

function Places(props: {
  readonly view: View;
  readonly space: Space | undefined;
  readonly owner: string;
}): ReactNode {
  const { view, space, owner } = props;
  return (
    <nav className="frame-nav" aria-label="Places">
      {PLACES.map(({ view: to, text }) => (
        <a
          key={text}
          href={searchOf(to)}
          aria-current={isAt(view, to) ? "page" : undefined}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            goTo(to);
          }}
        >
          {text}
        </a>
      ))}
      <QuotaBar space={space} owner={owner} />
    </nav>
  );
}

function isAt(view: View, to: View): boolean {
  if ("root" in view && view.root !== "") return to.kind === "shared";
  return to.kind === (view.kind === "search" ? "folder" : view.kind);
}
