// Bugs for the rig of mutated requests.
import type { PlantedBug } from "#prove/rig.ts";

/** Each answers something wrong to something wrong. */
export const mutationBugs: readonly PlantedBug[] = [
  {
    name: "malformed-is-internal",
    is: "what is no message is answered INTERNAL",
    rigs: ["mutations"],
    edits: [
      {
        file: "src/grpc/server.ts",
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
        file: "src/metaserver/user-routes.ts",
        from: "  } catch {\n    // It is told below.\n  }",
        to: "  } finally {\n  }",
      },
    ],
  },
];
