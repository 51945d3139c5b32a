// Tables and functions of the shared engine for people whose e-mail address has changed (D34).
import { COMMIT_BY_JSON } from "./commit-schema.ts";

/** States of a root on its way out. */
const LEAVING = "('copying', 'frozen')";

/**
 * `renamed_root` marks roots whose holder has rows of the time before. A process says by `renamed_up_to` that the
 * person has no session there any more; the first one that sees all say so renames, once for all.
 */
const MAKE = `
  CREATE TABLE renamed_user (version BIGINT NOT NULL);
  INSERT INTO renamed_user (version) VALUES (0);
  CREATE TABLE renamed_root (root_number BIGINT PRIMARY KEY);
  ALTER TABLE instance ADD COLUMN renamed_up_to BIGINT NOT NULL DEFAULT 0;
  CREATE INDEX inode_by_creator ON inode (created_by) WHERE created_by IS NOT NULL;

  -- The number of rows that had the name; negative: it waits for a process, both have a root, a root is on its way.
  CREATE FUNCTION rename_user(p_from TEXT, p_to TEXT, p_version BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $body$
  DECLARE
    affected BIGINT[];
    total BIGINT := 0;
    changed BIGINT;
  BEGIN
    PERFORM 1 FROM renamed_user FOR UPDATE;
    IF EXISTS (SELECT 1 FROM renamed_user WHERE version >= p_version) THEN RETURN 0; END IF;
    IF EXISTS (SELECT 1 FROM instance WHERE NOT is_ended AND renamed_up_to < p_version) THEN RETURN -1; END IF;
    IF EXISTS (SELECT 1 FROM root WHERE owner = p_from) AND EXISTS (SELECT 1 FROM root WHERE owner = p_to) THEN
      RETURN -2;
    END IF;
    IF EXISTS (SELECT 1 FROM departure d JOIN root r ON r.number = d.number
      WHERE r.owner = p_from AND d.state IN ${LEAVING}) THEN RETURN -3; END IF;
    SELECT array_agg(number ORDER BY number) INTO affected FROM (
      SELECT number FROM root WHERE owner = p_from
      UNION SELECT inode_id >> 32 FROM share_grant WHERE p_from IN (username, granted_by, owner)
      UNION SELECT root_number FROM trash WHERE trashed_by = p_from
      UNION SELECT root_number FROM trash_grant WHERE username = p_from
      UNION SELECT root_number FROM upload WHERE username = p_from
      UNION SELECT root_number FROM lock WHERE username = p_from
      UNION SELECT id >> 32 FROM inode WHERE created_by = p_from
    ) named;
    -- Commits of these roots come before all of it or after it.
    PERFORM 1 FROM holding WHERE root_number = ANY (affected) ORDER BY root_number FOR UPDATE;

    -- A grant to the new name at the same place stays where it is the stronger one.
    UPDATE share_grant t SET excluded = 0 FROM share_grant f
      WHERE f.username = p_from AND t.username = p_to AND t.inode_id = f.inode_id AND f.excluded = 0;
    -- An owner shares nothing with themselves.
    DELETE FROM share_grant WHERE owner IN (p_from, p_to) AND username IN (p_from, p_to);
    DELETE FROM share_grant f WHERE f.username = p_from
      AND EXISTS (SELECT 1 FROM share_grant t WHERE t.username = p_to AND t.inode_id = f.inode_id);
    UPDATE share_grant SET username = p_to WHERE username = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    UPDATE share_grant SET granted_by = p_to WHERE granted_by = p_from;
    UPDATE share_grant SET owner = p_to WHERE owner = p_from;
    UPDATE trash SET trashed_by = p_to WHERE trashed_by = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    DELETE FROM trash_grant f WHERE f.username = p_from AND EXISTS (SELECT 1 FROM trash_grant t WHERE
      t.username = p_to AND (t.root_number, t.trash_id, t.inode_id) = (f.root_number, f.trash_id, f.inode_id));
    UPDATE trash_grant SET username = p_to WHERE username = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    UPDATE upload SET username = p_to WHERE username = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    UPDATE lock SET username = p_to WHERE username = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    UPDATE inode SET created_by = p_to WHERE created_by = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    UPDATE root SET owner = p_to WHERE owner = p_from;
    GET DIAGNOSTICS changed = ROW_COUNT; total := total + changed;
    UPDATE root SET access_version = access_version + 1, lock_version = lock_version + 1,
      grant_count = (SELECT count(*) FROM share_grant g WHERE g.owner = root.owner)
      WHERE number = ANY (affected);
    IF EXISTS (SELECT 1 FROM quota WHERE username = p_from) THEN
      DELETE FROM quota WHERE username = p_to;
      UPDATE quota SET username = p_to WHERE username = p_from;
    END IF;
    INSERT INTO renamed_root SELECT unnest(affected) ON CONFLICT DO NOTHING;
    UPDATE renamed_user SET version = p_version;
    RETURN total;
  END $body$;
`;

/** What a database of the version before lacks. A commit is refused while its rows may be of the time before a rename. */
export const MAKE_RENAMES = `${MAKE} ${COMMIT_BY_JSON}`;
