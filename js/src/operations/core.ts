// The state that the operations of one client share: the session, the keys, what the device has seen.
import { Invalid, Locked, Tampered } from "../errors.js";
import { type Descriptor, normalEmail } from "../format/descriptor.js";
import { checkedText, hasControl, lengthOf } from "../format/encoding.js";
import type { Keyring } from "../format/keyring.js";
import type { CollectionKeys, VaultKeys } from "../format/keys.js";
import { primitives } from "../format/primitives.js";
import type { Token } from "../format/tokens.js";
import type { SignedIn, User } from "../net/decoders.js";
import type { Session } from "../net/session.js";
import { Device } from "./device.js";
import type { TokenState } from "./tokenState.js";

const MAX_DEVICE_NAME = 128;

/** What the owner's list of sessions calls this device: a name, undefined for the default, "" for none. */
export function checkedDeviceName(name: string | undefined): string | undefined {
  if (name === undefined) return "strongroom JavaScript client";
  if (lengthOf(checkedText(name, "deviceName")) > MAX_DEVICE_NAME || hasControl(name)) {
    throw new Invalid({ deviceName: `must be at most ${MAX_DEVICE_NAME} characters without control characters` });
  }
  return name || undefined;
}

/** The state of one client. */
export class Core {
  readonly session: Session;
  readonly device = new Device();
  readonly deviceName: string | undefined;
  email: string | undefined;
  ring: Keyring | undefined;
  descriptor: Descriptor | undefined;
  /** The keyring as the server has it. */
  sealed: string | undefined;
  /** Whether the server has shown another keyring than this one that does not follow on it. */
  isForked = false;
  /** The token that is used instead of a session, and the keys in it. */
  token: { readonly token: Token; readonly keys: VaultKeys | CollectionKeys } | undefined;
  /** Where what is seen with the token is saved. */
  state: TokenState | undefined;
  /** Versions of keyrings that were taken over from too long after the last one seen. */
  readonly gaps = new Set<number>();
  /** What rotations have left as it was: reading it then was no belief. */
  readonly doubted = new Set<string>();
  /** Called when every key is forgotten. */
  onLock: (() => void)[] = [];
  /** Called when another keyring is in use. */
  onKeyring: (() => Promise<void>)[] = [];

  constructor(session: Session, deviceName?: string) {
    this.session = session;
    this.deviceName = checkedDeviceName(deviceName);
  }

  /** The opened keyring, if somebody has logged in. */
  keyring(): Keyring {
    if (!this.ring) throw new Locked();
    return this.ring;
  }

  /** Go on with a session, if it is of this email's account. */
  begin(email: string, opened: SignedIn): User {
    let theirs: string | undefined;
    try {
      theirs = normalEmail(opened.user.email);
    } catch {
      // Not the address of anybody: refused below.
    }
    if (theirs !== email) throw new Tampered("The server opened a session of another account.");
    this.session.begin(opened);
    this.email = email;
    return opened.user;
  }

  /** Forget every key. */
  lock(): void {
    this.session.end();
    const closing = this.onLock;
    this.onLock = [];
    this.onKeyring = [];
    for (const close of closing) close();
    this.isForked = false;
    this.email = this.ring = this.descriptor = this.sealed = this.token = this.state = undefined;
  }
}

/** A new uid: a UUID of version 7, 48 bits of time and 74 of randomness. */
export function newUid(now: number = Date.now()): string {
  const random = primitives().random(10);
  const digits = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const time = now.toString(16).padStart(12, "0");
  const variant = "89ab"[(random[9] ?? 0) & 3] ?? "8";
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(0, 3)}-${variant}${digits.slice(3, 6)}-${digits.slice(6, 18)}`;
}
