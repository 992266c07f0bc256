import type { ServerResponse } from "node:http";

/** What a browser sees at `/`: that it runs, and how to go on. Nothing in it comes from outside. */
export function page(response: ServerResponse, version: string): void {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tidings</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif; }
  body { max-width: 42rem; margin: 4rem auto; padding: 0 1.5rem; }
  h1 { font-size: 1.5rem; }
  pre { padding: 1rem; overflow-x: auto; border-radius: .5rem; background: color-mix(in srgb, currentColor 8%, transparent); }
  small { opacity: .7; }
</style>
<h1>Tidings is running</h1>
<p>Send it an event from a terminal in the same folder:</p>
<pre>npx tidings emit cli.build.finished --message "All tests passed"
npx tidings inbox</pre>
<p>Programs use <code>POST /v1/events</code>, <code>POST /rpc</code> and the WebSocket at <code>/ws</code>, each with a token.</p>
<p><small>Version ${version}</small></p>
</html>
`;
  response.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-length": Buffer.byteLength(html),
    "cache-control": "no-store",
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  response.end(html);
}
