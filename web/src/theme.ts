import { Badge, createTheme, type MantineColorsTuple } from "@mantine/core";

/** From words to what is behind them: text, dimmed text, edges, then borders, what is pointed at, fields and the page. */
const DARK: MantineColorsTuple = [
  "#e4e5e8",
  "#b4b6bb",
  "#868990",
  "#6a6d74",
  "#41444b",
  "#34373d",
  "#2a2c31",
  "#1d1f23",
  "#17181b",
  "#111214",
];

export const theme = createTheme({
  colors: { dark: DARK },
  primaryColor: "indigo",
  primaryShade: { light: 7, dark: 8 },
  autoContrast: true,
  defaultRadius: "md",
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  respectReducedMotion: true,
  cursorType: "pointer",
  components: {
    Badge: Badge.extend({ styles: { root: { letterSpacing: 0 } } }),
  },
});
