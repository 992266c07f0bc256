import type { Browser, LaunchOptions } from "playwright-core";

export function launchChromium(options?: LaunchOptions): Promise<Browser>;
