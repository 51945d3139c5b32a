// The short form of the rig that kills at exact system calls.
import { testShortForm } from "#prove/short-form.ts";
import { syscalls } from "./rig.ts";

testShortForm(syscalls);
