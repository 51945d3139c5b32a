// The short form of the rig that fills quotas, against a node of the shared engine (F10).
import { testShortForm } from "#prove/short-form.ts";
import { quotaOverEngine } from "./rig.ts";

testShortForm(quotaOverEngine);
