// A user's trash beside the list: names for a reason that the user sees, and restores of one item.
import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { UserTrashItem } from "#wire/webapi/user-trash.ts";
import { lookAtTrash, restoreFromTrash, type UserTrashPage } from "../live/user-trash.ts";
import { bytesText, countText } from "../words/number.ts";
import { formatMoment } from "../words/time.ts";

const REASON_MAX_LENGTH = 200;

/** The part of a user's panel about the trash. */
export function UserTrash({ username }: { readonly username: string }): ReactNode {
  const [reason, setReason] = useState("");
  const [given, setGiven] = useState("");
  const [pages, setPages] = useState<readonly UserTrashPage[]>([]);
  const look = useMutation({
    mutationFn: ({ why, token }: { why: string; token: string }) => lookAtTrash(username, why, token),
    onSuccess: (page, { why, token }) => {
      setGiven(why);
      setPages((before) => (token === "" ? [page] : [...before, page]));
    },
  });
  const items = pages.flatMap((page) => page.items);
  const next = pages.at(-1)?.next_page_token ?? null;
  const why = reason.trim();
  return (
    <section className="stack">
      <h3>Trash</h3>
      <TextInput
        label="Reason to see the names"
        description="The user is shown it, and that an administrator has looked"
        maxLength={REASON_MAX_LENGTH}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <div className="button-row">
        <Button
          variant="default"
          disabled={why === ""}
          loading={look.isPending}
          onClick={() => look.mutate({ why, token: "" })}
        >
          Show what is in the trash
        </Button>
      </div>
      {look.error === null ? null : <p role="alert">{look.error.message}</p>}
      {pages.length === 0 ? null : (
        <>
          <p className="quiet" role="status">
            {items.length === 0
              ? "The trash is empty."
              : `${countText(items.length, "item")}${next === null ? "" : " and more"}, the newest first. What comes back replaces nothing.`}
          </p>
          <ul className="plain-list">
            {items.map((item) => (
              <Item key={item.trash_id} username={username} item={item} reason={given} />
            ))}
          </ul>
          {next === null ? null : (
            <div className="button-row">
              <Button
                variant="default"
                size="compact-sm"
                loading={look.isPending}
                onClick={() => look.mutate({ why: given, token: next })}
              >
                Show more
              </Button>
            </div>
          )}
        </>
      )}
    </section>
  );
}

function Item({
  username,
  item,
  reason,
}: {
  readonly username: string;
  readonly item: UserTrashItem;
  readonly reason: string;
}): ReactNode {
  const restore = useMutation({ mutationFn: () => restoreFromTrash(username, reason, item.trash_id) });
  const name = `${item.path}${item.kind === "directory" ? "/" : ""}`;
  const by = item.trashed_by === username ? "the user" : item.trashed_by;
  return (
    <li>
      <span className="trash-name">{name}</span>
      <span className="quiet">
        {bytesText(item.size)}
        {item.trashed_at === null ? "" : `, ${formatMoment(item.trashed_at)}`}, by {by}
        {item.expires_at === null ? "" : `; kept until ${formatMoment(item.expires_at)}`}
      </span>
      {restore.data === undefined ? (
        <span>
          <Button
            variant="default"
            size="compact-sm"
            aria-label={`Restore ${name}`}
            loading={restore.isPending}
            onClick={() => restore.mutate()}
          >
            Restore
          </Button>
        </span>
      ) : (
        <span role="status">
          Back at {restore.data}. The user is shown that an administrator did it, and why.
        </span>
      )}
      {restore.error === null ? null : <span role="alert">{restore.error.message}</span>}
    </li>
  );
}
