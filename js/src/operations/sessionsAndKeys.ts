// Operations on sessions and API keys.
import { checkedText } from "../format/encoding.js";
import type { ApiKey, ListedSession } from "../net/decoders.js";
import * as requests from "../net/requests/accounts.js";
import type { Core } from "./core.js";

/** List the open sessions. */
export const sessions = async (core: Core): Promise<ListedSession[]> =>
  (await core.session.send(requests.sessions())).sessions;

/** End a session. */
export async function endSession(core: Core, id: string): Promise<void> {
  await core.session.sendOrDone(requests.endSession(checkedText(id, "sessionId")));
}

/** The API keys. */
export const apiKeys = async (core: Core): Promise<ApiKey[]> => (await core.session.send(requests.listKeys())).keys;

/** Revoke an API key. */
export async function revokeKey(core: Core, uid: string): Promise<void> {
  await core.session.sendOrDone(requests.revokeKey(checkedText(uid, "uid")));
}
