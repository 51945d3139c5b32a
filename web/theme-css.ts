// Builds the theme's CSS variables as a file: the Content-Security-Policy forbids an inline <style>.
import {
  convertCssVariables,
  DEFAULT_THEME,
  defaultCssVariablesResolver,
  mergeMantineTheme,
} from "@mantine/core";
import type { Plugin } from "vite";
import { theme } from "./theme.ts";

const NAME = "virtual:theme.css";

/** Resolves `virtual:theme.css`. */
export function themeCss(): Plugin {
  return {
    name: "theme-css",
    resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
    load: (id) =>
      id === `\0${NAME}`
        ? convertCssVariables(defaultCssVariablesResolver(mergeMantineTheme(DEFAULT_THEME, theme)), ":root")
        : undefined,
  };
}
