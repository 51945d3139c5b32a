// All of one's links: what is open to people without an account, and how to end that.
import { type ReactNode } from "react";
import { door } from "./api.ts";
import { LinkRow } from "./link-row.tsx";
import { goTo } from "./place-in-address.ts";
import { Problem } from "./problem.tsx";
import type { Message } from "./toast.tsx";
import { useLoaded } from "./use-loaded.ts";
import { useNow } from "./use-now.ts";
import { folderOf, nameOf } from "./words.ts";

const ALL = { root: "", path: "/" } as const;

/** Shows them. */
export function LinksPage({ say }: { readonly say: (message: Message) => void }): ReactNode {
  const nowMs = useNow();
  const links = useLoaded("", () => door.links(ALL));
  const all = links.value?.links;
  return (
    <>
      <h1>Links</h1>
      <p className="quiet">
        Each lets people without an account in. To make one, select a file or folder and press Share.
      </p>
      <Problem of={links.problem} />
      {all === undefined && links.problem === undefined && <p>Asking …</p>}
      {all?.length === 0 && <p className="empty">You have no links: nothing is open to strangers.</p>}
      <ul className="rows">
        {all?.map((link) => (
          <LinkRow
            key={link.id}
            link={link}
            nowMs={nowMs}
            onOpen={() => goTo(viewOfLink(link.path, link.drop))}
            onRevoke={() =>
              void links.run(async () => {
                await door.revokeLink("", link.id);
                say({ text: `Nobody gets in by the link to ${nameOf(link.path) || "all files"} any more.` });
              })
            }
          />
        ))}
      </ul>
    </>
  );
}

/** A drop folder itself; of other places the folder around them. */
function viewOfLink(path: string, isDrop: boolean): Parameters<typeof goTo>[0] {
  return { kind: "folder", root: "", path: isDrop ? path : folderOf(path) };
}
