// The account's usage and its log, as the server says: nothing of this can be proven.
import { InsufficientScope, Tampered } from "../errors.js";
import type { Event } from "../net/decoders.js";
import * as requests from "../net/requests/accounts.js";
import type { Core } from "./core.js";

const ORDER = "The server's log of the account is not in order, or shows an entry twice.";

/** What the account uses and may use, as the server says. A limit of null does not limit. */
export interface Usage {
  /** How many documents are not deleted. */
  readonly documents: number;
  /** Their bytes. */
  readonly bytes: number;
  /** The bytes of trash and history. */
  readonly kept: number;
  readonly maxDocuments: number | null;
  readonly maxBytes: number | null;
}

/** The account's usage and limits. */
export async function usage(core: Core): Promise<Usage> {
  const me = await core.session.send(requests.me());
  if (core.token && !me.usage) {
    throw new InsufficientScope("A token for one vault or collection does not see the account's usage.");
  }
  if (!me.usage || !me.limits) throw new Tampered("The server does not say what the account uses.");
  return { ...me.usage, maxDocuments: me.limits.documents, maxBytes: me.limits.bytes };
}

/** The account's log, newest first. */
export async function* log(core: Core): AsyncGenerator<Event, void, undefined> {
  let before: string | undefined;
  for (let more = true; more; ) {
    const page = await core.session.send(requests.log(before));
    if (page.hasMore && !page.events.length) throw new Tampered(ORDER);
    for (const { id } of page.events) {
      if (before !== undefined && id >= before) throw new Tampered(ORDER);
      before = id;
    }
    yield* page.events;
    more = page.hasMore;
  }
}
