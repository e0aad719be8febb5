/** Server-sent events, read from a stream as they arrive. */

import { Tampered } from "../errors.js";
import type { Stream } from "./streams.js";

const LONGEST = 1 << 20; // characters of one event

/** An event: its name, and its timestamp, 0 if it has none. */
export interface StreamEvent {
  name: string;
  timestamp: number;
}

/** An incremental parser of server-sent events. */
export class EventParser {
  #rest = "";
  readonly #decoder = new TextDecoder();

  /** The events completed by these bytes. */
  feed(part: Uint8Array): StreamEvent[] {
    const whole = (this.#rest + this.#decoder.decode(part, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = whole.pop() ?? "";
    if (this.#rest.length > LONGEST) throw new Tampered("The server tells of a change without an end.");
    return whole.map(eventOf).filter((event) => event.name);
  }
}

const eventOf = (block: string): StreamEvent => {
  const event = { name: "", timestamp: 0 };
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^(event|id): ?(.*)$/.exec(line) ?? [];
    if (field === "event") event.name = value.slice(0, 32);
    else if (field === "id" && /^\d{1,16}$/.test(value) && Number.isSafeInteger(+value)) event.timestamp = +value;
  }
  return event;
};

/** The events of a stream, until it ends. The stream is closed when the loop over them is left. */
export async function* eventsOf(stream: Stream): AsyncGenerator<StreamEvent, void, undefined> {
  const parser = new EventParser();
  try {
    for (let part = await stream.read(); part; part = await stream.read()) yield* parser.feed(part);
  } finally {
    stream.close();
  }
}
