// Planted bugs for the rig of mutated requests.
import type { PlantedBug } from "#prove/rig.ts";

/** Each gives a wrong answer to a malformed request. */
export const mutationBugs: readonly PlantedBug[] = [
  {
    name: "malformed-is-internal",
    is: "what is no message is answered INTERNAL",
    rigs: ["mutations"],
    edits: [
      {
        file: "src/wire/grpc/server.ts",
        from: "    if (error instanceof MalformedMessageError) return error.asAnswer();\n",
        to: "",
      },
    ],
  },
  {
    name: "page-token-unchecked",
    is: "a page token that is no JSON is thrown to the top",
    rigs: ["mutations"],
    edits: [
      {
        file: "src/metaserver/process/user-routes.ts",
        from: "  } catch {\n    // It is told below.\n  }",
        to: "  } finally {\n  }",
      },
    ],
  },
  {
    name: "headers-are-kept",
    is: "what a call was asked with is kept after its end, by the server that heard it",
    rigs: ["mutations"],
    // Servers are judged once they are warm.
    goal: 200_000,
    edits: [
      {
        file: "src/wire/grpc/server-call.ts",
        from: "/** A call in progress. It hears",
        to: "const ended: unknown[] = [];\n\n/** A call in progress. It hears",
      },
      {
        file: "src/wire/grpc/server-call.ts",
        from: "    this.#connection.calls.remove(this.place);\n",
        to: "    this.#connection.calls.remove(this.place);\n    ended.push(this.metadata);\n",
      },
    ],
  },
];
