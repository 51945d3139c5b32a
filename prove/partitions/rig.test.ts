// The short form of the partitions.
import { testShortForm } from "#prove/short-form.ts";
import { partitions } from "./rig.ts";

testShortForm(partitions);
