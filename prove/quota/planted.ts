// Planted bugs of quotas and their counters.
import type { PlantedBug } from "#prove/rig.ts";

const LEDGER = "src/quota/ledger.ts";
const UPLOAD = "src/fileserver/operations/upload.ts";

/** What the quota rig must find. */
export const quotaBugs: readonly PlantedBug[] = [
  {
    name: "groups-without-quota",
    is: "the root of a group may grow as it likes",
    rigs: ["quota"],
    edits: [
      {
        file: "src/fileserver/operations/file-service.ts",
        from: "    quotaBytes: (owner) => quotas.quotaBytes(owner),\n    inodeLimit",
        to: '    quotaBytes: (owner) => (owner.endsWith("@group") ? 2n ** 60n : quotas.quotaBytes(owner)),\n    inodeLimit',
      },
    ],
  },
  {
    name: "quota-counter-outside-transaction",
    is: "sizes and usage are written right after the commit, and not in it",
    rigs: ["quota"],
    edits: [
      {
        file: "src/storage/writer/writer.ts",
        from: "    this.#ledger.flush();\n    this.#commit.run();\n    this.#ledger.committed();\n    return replies;",
        to: "    this.#commit.run();\n    this.#ledger.flush();\n    this.#ledger.committed();\n    return replies;",
      },
    ],
  },
  {
    name: "engine-counts-behind-the-commit",
    is: "sizes and usage of a group go to the shared engine with the next one",
    rigs: ["quota-over-engine"],
    edits: [
      {
        file: "src/storage/shared/shared-writer.ts",
        from: "    const effects = this.#deps.cache.change(() => {\n",
        to: "    const effects = this.#deps.cache.change(() => {\n      this.#ledger.flush();\n",
      },
      {
        file: "src/storage/shared/shared-writer.ts",
        from: "        if (root !== undefined) roots.add(root);\n      }\n      this.#ledger.flush();\n",
        to: "        if (root !== undefined) roots.add(root);\n      }\n",
      },
    ],
  },
  {
    name: "quota-never-quite-full",
    is: "the last byte of a quota cannot be used",
    rigs: ["quota"],
    edits: [{ file: LEDGER, from: "|| bytes > availableBytes)", to: "|| bytes >= availableBytes)" }],
  },
  {
    name: "create-in-full-root",
    is: "a file or folder may be made in a root that is at its quota",
    rigs: ["quota"],
    edits: [
      {
        file: "src/quota/headroom.ts",
        from: "  return usedBytes < quotaBytes;",
        to: "  return usedBytes <= quotaBytes;",
      },
    ],
  },
  {
    name: "abort-keeps-reservation",
    is: "an upload that is broken off keeps what it has reserved",
    rigs: ["quota"],
    edits: [
      {
        file: UPLOAD,
        from: "    return await upload.commit();\n  } catch (error) {\n    await upload.abort(error);\n    throw error;\n  } finally {\n    upload.end();\n  }",
        to: "    const reply = await upload.commit();\n    upload.end();\n    return reply;\n  } catch (error) {\n    await upload.abort(error);\n    throw error;\n  }",
      },
    ],
  },
  {
    name: "trash-not-counted",
    is: "what lies in the trash is not counted as used",
    rigs: ["quota"],
    edits: [
      {
        file: LEDGER,
        from: "BigInt(liveBytes + trashBytes + stagingBytes)",
        to: "BigInt(liveBytes + stagingBytes)",
      },
    ],
  },
  {
    name: "reservations-of-others-ignored",
    is: "uploads at the same time each see the whole room that is left",
    rigs: ["quota"],
    edits: [
      {
        file: LEDGER,
        from: "headroomBytes(quotaBytes, account.usedBytes + account.reservedBytes)",
        to: "headroomBytes(quotaBytes, account.usedBytes)",
      },
    ],
  },
  {
    name: "unknown-size-not-reserved",
    is: "an upload of unknown size reserves nothing as it grows",
    rigs: ["quota"],
    edits: [
      {
        file: UPLOAD,
        from: "if (this.#sizeBytes === undefined) this.#holding.reserve(BigInt(payloadBytes));\n    else ",
        to: "",
      },
    ],
  },
  {
    name: "copy-costs-nothing",
    is: "a copy is not charged before it is made, since it shares what is stored",
    rigs: ["quota"],
    edits: [
      {
        file: "src/fileserver/operations/copy-operations.ts",
        from: "const claim = { creates: 1 + begun.below, addsBytes };",
        to: "const claim = { creates: 1 + begun.below, addsBytes: 0 };",
      },
    ],
  },
];
