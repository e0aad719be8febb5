// Waiting for changes: server-sent events, else long polling, else polling; and changes of this device.
import { InsufficientScope, MethodNotAllowed, NotFound, Unavailable } from "../errors.js";
import { eventsOf, type StreamEvent } from "../net/events.js";
import { openStream, type Stream } from "../net/streams.js";
import { listPage } from "../net/requests/documents.js";
import { events } from "../net/requests/vaults.js";
import type { Local } from "./local.js";
import type { Report } from "./report.js";

const LONG_POLL = 25; // seconds

/** Sync whenever that is worthwhile; the reports of syncs that changed something. One tab does so, the others wait. */
export async function* watch(
  local: Local,
  sync: () => Promise<Report>,
  every: number,
  signal: AbortSignal | undefined,
  failed: (fault: unknown) => void,
): AsyncGenerator<Report, void, undefined> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  signal?.addEventListener("abort", end);
  const { store } = local;
  const stop = store.listen(() => void (store.isClosed && end()));
  if (signal?.aborted) end();
  const isOver = (): boolean => ended.signal.aborted || store.isClosed;
  let release = (): void => undefined;
  let watching: Watch | undefined;
  try {
    release = await store.open().lead(ended.signal);
    watching = new Watch(local, every, ended.signal);
    while (!isOver()) {
      try {
        const report = await sync();
        if (report.changed) yield report;
      } catch (refusal) {
        if (isOver()) return;
        if (!(refusal instanceof Unavailable)) throw refusal;
        await watching.backOff();
        continue;
      }
      if (!isOver()) await watching.wait();
    }
  } catch (fault) {
    if (isOver()) return;
    failed(fault);
    throw fault;
  } finally {
    watching?.close();
    release();
    stop();
    signal?.removeEventListener("abort", end);
  }
}

/** Waits until a sync is worthwhile. */
class Watch {
  readonly #local: Local;
  readonly #every: number;
  readonly #signal: AbortSignal;
  readonly #unlisten: () => void;
  #useEvents = true;
  #stream: Stream | undefined;
  #events: AsyncGenerator<StreamEvent, void, undefined> | undefined;
  #next: Promise<IteratorResult<StreamEvent, void>> | undefined;
  #failures = 0;
  #isOnline = false; // the browser has reported a network since the last sync
  #wake: () => void = () => undefined;
  #woken: Promise<void> | undefined;

  constructor(local: Local, every: number, signal: AbortSignal) {
    this.#local = local;
    this.#every = every;
    this.#signal = signal;
    this.#rest();
    const wake = (): void => this.#wake();
    const online = (): void => {
      this.#isOnline = true;
      wake();
    };
    const stop = local.store.listen(wake);
    signal.addEventListener("abort", wake);
    globalThis.addEventListener?.("online", online); // browsers have it
    this.#unlisten = () => {
      stop();
      signal.removeEventListener("abort", wake);
      globalThis.removeEventListener?.("online", online);
    };
  }

  #rest(): void {
    this.#woken = new Promise((wake) => (this.#wake = wake));
  }

  get #isEnded(): boolean {
    return this.#signal.aborted || this.#local.store.isClosed;
  }

  /** Wait until a sync is worthwhile. */
  async wait(): Promise<void> {
    if (this.#useEvents) {
      try {
        await this.#readEvents(this.#local.timestamp);
        this.#failures = 0;
      } catch (refusal) {
        if (refusal instanceof Unavailable) return this.backOff();
        const isWithout = [NotFound, MethodNotAllowed, InsufficientScope].some((kind) => refusal instanceof kind);
        if (!isWithout) throw refusal;
        this.#useEvents = false;
      }
    }
    if (!this.#useEvents) await this.#poll();
  }

  /** Wait before the next attempt to reach the server, with exponential backoff. */
  async backOff(): Promise<void> {
    this.#failures += 1;
    await this.#sleep(Math.min(this.#every, 0.25 * 2 ** Math.min(this.#failures, 8)), false);
  }

  /** Close the stream, and listen no more. */
  close(): void {
    this.#unlisten();
    this.#stream?.close(); // the generator would do so only after the next event
    this.#stream = this.#events = undefined;
  }

  /** Whether the watching has ended, there is a network again or, if that counts, something written here can be sent. */
  async #isWorthwhile(written: boolean): Promise<boolean> {
    const isOnline = this.#isOnline;
    this.#isOnline = false;
    if (isOnline) this.#failures = 0;
    return this.#isEnded || isOnline || (written && (await this.#local.store.countSendable()) > 0);
  }

  async #readEvents(timestamp: number): Promise<void> {
    const { core } = this.#local;
    if (!this.#events) {
      this.#stream = await openStream(core.session, events(core.token?.keys.vault, timestamp));
      this.#events = eventsOf(this.#stream);
      this.#next = undefined;
    }
    while (!this.#isEnded) {
      this.#next ??= this.#events.next();
      const found = await Promise.race([this.#next, this.#woken]);
      if (!found) {
        this.#rest();
        if (await this.#isWorthwhile(true)) return;
        continue;
      }
      this.#next = undefined;
      if (found.done) {
        this.#events = undefined; // it has ended; continue from the same timestamp
        return;
      }
      const { name, timestamp: at } = found.value;
      if ((name === "document" || name === "vault") && at > timestamp) return;
    }
  }

  async #poll(): Promise<void> {
    const { core, store } = this.#local;
    const [only, ...more] = await store.vaults();
    if (!only || more.length) return this.#sleep(this.#every, true);
    try {
      const call = listPage(only.uid, { since: only.cursor, limit: 1, wait: LONG_POLL });
      const { documents } = await core.session.send(call);
      // A server that knows no waiting has answered at once.
      if (!documents.length) await this.#sleep(Math.min(this.#every, 1), true);
    } catch (refusal) {
      if (!(refusal instanceof Unavailable)) throw refusal;
      await this.backOff();
    }
  }

  async #sleep(seconds: number, written: boolean): Promise<void> {
    let isDue = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const due = new Promise<void>((go) => {
      timer = setTimeout(() => {
        isDue = true;
        go();
      }, seconds * 1000);
    });
    while (!isDue && !this.#isEnded) {
      await Promise.race([due, this.#woken]);
      if (isDue) break;
      this.#rest();
      if (await this.#isWorthwhile(written)) break;
    }
    clearTimeout(timer);
  }
}
