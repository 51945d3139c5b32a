// The short form of the model, against a node of the shared engine (F8).
import { lacksEngine } from "#prove/engine-flags.ts";
import { testShortForm } from "#prove/short-form.ts";
import { model } from "./rig.ts";

process.env["GROVE_RIG_ENGINE"] = "1";
// Each call waits for a commit of PostgreSQL.
testShortForm({ ...model, shortGoal: 600, lacks: lacksEngine });
