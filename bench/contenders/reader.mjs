/** A client that is there for its user, by `tidings/client`, and may be stopped in the middle of it. */
import { TidingsClient } from "../../dist/client/index.js";

/** Tells when it is connected. Answers when it has been told so many notifications that came after that. */
export async function reader({ server, notifications }, tell) {
  const { url, token } = server;
  const first = await TidingsClient.connect({ url, token });
  const { journal_id, seq } = first.server;
  first.close();
  const client = await TidingsClient.connect({
    url,
    token,
    cursor: { journal_id, after_seq: seq },
    reconnect: { min_ms: 20, max_ms: 200 },
  });
  let connections = 1;
  client.onStatus((status) => {
    // Not when it is open: by then it may have been told everything.
    if (status === "connecting") connections += 1;
  });
  tell({ progress: { pid: process.pid } });
  const seen = new Set();
  let doubled = 0;
  let resets = 0;
  for await (const { method, params } of client.notifications({ buffer: 1_000_000 })) {
    if (method === "stream/reset") resets += 1;
    if (method !== "notification/created") continue;
    if (seen.has(params.notification.id)) doubled += 1;
    seen.add(params.notification.id);
    if (seen.size === notifications) break;
  }
  client.close();
  return { seen: seen.size, doubled, resets, connections };
}
