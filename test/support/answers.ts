/** Every answer that a test gets of a server is of the form that its method says. */
import { canonicalName, METHODS } from "../../src/server/methods.js";

const RESULTS = new Map(METHODS.map(({ name, result }) => [name, result]));

/** The reply; throws if its result is not of the form that `/openrpc.json` tells. */
export function checkedReply<Reply extends object>(method: string, reply: Reply): Reply {
  const schema = RESULTS.get(canonicalName(method));
  if (schema === undefined || !("result" in reply) || reply.result === undefined) return reply;
  const { error } = schema.safeParse(reply.result);
  if (error === undefined) return reply;
  throw new Error(`the answer of ${method} is not as described: ${error.message}\n${JSON.stringify(reply.result)}`);
}
