// The look: neutral greys, one green accent, system fonts, borders instead of shadows.
import { createTheme, type MantineColorsTuple } from "@mantine/core";

const green: MantineColorsTuple = [
  "#edf7f0",
  "#d9ece0",
  "#b2d8c0",
  "#88c39e",
  "#64b181",
  "#4da66f",
  "#409f65",
  "#318b55",
  "#277149",
  "#175c38",
];

/** Mantine's theme. Shade 8 has a contrast of 4.5 to 1 in light and dark. */
export const theme = createTheme({
  colors: { green },
  primaryColor: "green",
  primaryShade: { light: 8, dark: 8 },
  autoContrast: true,
  defaultRadius: 6,
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', monospace",
  fontSizes: { xs: "0.75rem", sm: "0.875rem", md: "0.875rem", lg: "1rem", xl: "1.25rem" },
  cursorType: "pointer",
  respectReducedMotion: true,
  // A menu holds only its items.
  components: { Menu: { defaultProps: { withInitialFocusPlaceholder: false } } },
});
