// The second factor and the passkeys of an account. What they do is loaded when it is used.
import type { Enrolment, RecoveryCodes, SecondFactors } from "./net/decoders.js";
import type { Core } from "./operations/core.js";
import type { Authenticator, Code } from "./operations/factors.js";
import type { ListedPasskey, NewPasskey } from "./operations/passkeys.js";
import { passwords, rare } from "./lazyImports.js";

/** The second factor, where the server asks for one. */
export interface CodeOptions {
  /**
   * A one-time code, a recovery code, an authenticator with a passkey of the account, or a function that is asked for one
   * of them with the error that says why. A function is asked three times at the most.
   */
  code?: Code | undefined;
}

/** One-time codes (TOTP) as the second factor of the account, and the recovery codes that replace a lost phone. */
export class SecondFactor {
  readonly #core: Core;

  /** Made by `client.secondFactor`. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** Since when there are one-time codes, how many passkeys and recovery codes: all of it the server's word. */
  async status(): Promise<SecondFactors> {
    return (await rare()).secondFactors.status(this.#core);
  }

  /**
   * Begin the enrolment of one-time codes: a secret for an authenticator app, also as a URI for a QR code.
   *
   * Nothing changes until `confirm`. If the account has a second factor already, `code` is that of before; the new secret
   * then replaces the one of before.
   */
  async enrol(password: string, { code }: CodeOptions = {}): Promise<Enrolment> {
    const [{ secondFactors }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    return secondFactors.enrol(this.#core, password, new FactorSource(code));
  }

  /**
   * Confirm the enrolment by the app's first code. From now on a login asks for one; open sessions stay open.
   *
   * Returns ten recovery codes to print and keep, each good once in the place of a code. They are shown only here: if the
   * response is lost, call `newRecoveryCodes`.
   */
  async confirm(code: string): Promise<RecoveryCodes> {
    return (await rare()).secondFactors.confirm(this.#core, code);
  }

  /** Remove the one-time codes. If there is no other second factor, the password alone logs in again. */
  async disable(password: string, { code }: CodeOptions = {}): Promise<void> {
    const [{ secondFactors }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    await secondFactors.disable(this.#core, password, new FactorSource(code));
  }

  /** Ten new recovery codes. Those of before are good no more. */
  async newRecoveryCodes(password: string, { code }: CodeOptions = {}): Promise<RecoveryCodes> {
    const [{ secondFactors }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    return secondFactors.newRecoveryCodes(this.#core, password, new FactorSource(code));
  }
}

/** The passkeys of the account: each logs in and is a second factor, and one with PRF can open the account too. */
export class Passkeys {
  readonly #core: Core;

  /** Made by `client.passkeys`. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** All passkeys: those that the server knows, and those that open the account. */
  async list(): Promise<ListedPasskey[]> {
    return (await rare()).passkeys.listPasskeys(this.#core);
  }

  /**
   * Make a passkey and register it. It logs in, and from now on a login with the password needs a second factor.
   *
   * `code` is the second factor of before, if the account has one. If it has none, the new passkey comes with recovery
   * codes, which are shown only here. `enableUnlock` lets the passkey open the account, too.
   */
  async add(
    name: string,
    password: string,
    authenticator: Authenticator,
    { code }: CodeOptions = {},
  ): Promise<NewPasskey> {
    const [{ passkeys }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    return passkeys.add(this.#core, name, password, authenticator, new FactorSource(code));
  }

  /**
   * Let a passkey open the account's keys, so that `loginWithPasskey` needs no password.
   *
   * Its authenticator must have the PRF extension of WebAuthn; it is used once more for this. An account has eight ways
   * in at the most, the password and the recovery key included.
   */
  async enableUnlock(passkey: ListedPasskey, password: string, authenticator: Authenticator): Promise<void> {
    await (await rare()).passkeys.enableUnlock(this.#core, passkey, password, authenticator);
  }

  /** Let a passkey open the account no more; it still logs in. Whoever has had the keys by it still has them. */
  async disableUnlock(passkey: ListedPasskey, password: string, { code }: CodeOptions = {}): Promise<void> {
    const [{ passkeys }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    await passkeys.disableUnlock(this.#core, passkey, password, new FactorSource(code));
  }

  /** Give a passkey another name. The server can read it. */
  async rename(passkey: ListedPasskey, name: string): Promise<void> {
    await (await rare()).passkeys.rename(this.#core, passkey, name);
  }

  /**
   * Delete a passkey: it neither opens the account nor logs in.
   *
   * For one that opened the account two second factors are needed, and each code counts once: give a function, or an
   * authenticator. If it is lost, `rotateKeys` ends what whoever finds it could read.
   */
  async delete(passkey: ListedPasskey, password: string, { code }: CodeOptions = {}): Promise<void> {
    const [{ passkeys }, { FactorSource }] = await Promise.all([rare(), passwords()]);
    await passkeys.remove(this.#core, passkey, password, new FactorSource(code));
  }
}
