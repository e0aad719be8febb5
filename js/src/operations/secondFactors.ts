// Operations on second factors: one-time codes and recovery codes.
import { Invalid } from "../errors.js";
import { spelledAuth } from "../format/derive.js";
import type { Call, Factor } from "../net/call.js";
import type { Enrolment, RecoveryCodes, SecondFactors } from "../net/decoders.js";
import * as requests from "../net/requests/secondFactors.js";
import type { Core } from "./core.js";
import { checkedPassword } from "./credentials.js";
import { type FactorSource, prove, readCode } from "./factors.js";

/** The second factors of the account, as the server says. */
export const status = (core: Core): Promise<SecondFactors> => core.session.send(requests.status());

async function withPassword<T>(
  core: Core,
  password: string,
  source: FactorSource,
  call: (auth: string, factor?: Factor) => Call<T>,
): Promise<T | undefined> {
  const { auth } = await checkedPassword(core, password);
  return prove(core.session, source, (factor) => core.session.sendOrDone(call(spelledAuth(auth), factor)));
}

/** Begin the enrolment of one-time codes. */
export const enrol = async (core: Core, password: string, source: FactorSource): Promise<Enrolment> =>
  (await withPassword(core, password, source, requests.enrol)) as Enrolment;

/** Confirm the enrolment by its first code; the recovery codes. */
export async function confirm(core: Core, code: string): Promise<RecoveryCodes> {
  const { code: typed } = readCode(code).sent;
  if (typeof typed !== "string") throw new Invalid({ code: "must be a one-time code of six digits" });
  return core.session.send(requests.confirm(typed));
}

/** Delete the one-time codes. */
export async function disable(core: Core, password: string, source: FactorSource): Promise<void> {
  await withPassword(core, password, source, requests.disable);
}

/** Replace the recovery codes by new ones. */
export const newRecoveryCodes = async (core: Core, password: string, source: FactorSource): Promise<RecoveryCodes> =>
  (await withPassword(core, password, source, requests.newRecoveryCodes)) as RecoveryCodes;
