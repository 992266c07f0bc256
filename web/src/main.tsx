import "@fontsource-variable/inter/wght.css";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./style.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.js";
import { Entrance } from "./session/entrance.js";
import { styleNonce } from "./style_nonce.js";
import { theme } from "./theme.js";

const root = document.getElementById("app");
if (root === null) throw new Error("the page has no place for the app");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={styleNonce}>
      <Notifications position="bottom-right" limit={6} />
      <Entrance>
        <App />
      </Entrance>
    </MantineProvider>
  </StrictMode>,
);
