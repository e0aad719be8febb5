// Names the cause where there is no response, in runtimes that say it: the code of the system, or of TLS.
import { Unreachable } from "../errors.js";

const CAUSES: [RegExp, string, string][] = [
  [/^(ENOTFOUND|EAI_)/, "dns", "No address is known for the host {}; check its name and the network."],
  [
    /^ECONNREFUSED/,
    "refused",
    "The server {} refused the connection: nothing listens there, or a firewall is in between.",
  ],
  [/^E(NET|HOST)(UNREACH|DOWN)/, "no_route", "There is no route to the server {} from here."],
  [/^UND_ERR_CONNECT_TIMEOUT|^ETIMEDOUT/, "connect_timeout", "The server {} did not accept the connection in time."],
  [
    /^CERT_HAS_EXPIRED/,
    "certificate_expired",
    "The certificate of {} has expired; its operator has to renew it. Check this machine's clock too.",
  ],
  [
    /^CERT_NOT_YET_VALID/,
    "certificate_not_yet_valid",
    "The certificate of {} is not valid yet; check this machine's clock.",
  ],
  [
    /^ERR_TLS_CERT_ALTNAME/,
    "certificate_name",
    "The certificate that was shown for {} is for another name; use the name that is in it.",
  ],
  [
    /^DEPTH_ZERO_SELF/,
    "certificate_self_signed",
    "The certificate of {} is self-signed, so nothing shows that it is the server's. If it is your own, let this runtime trust it (in Node, by NODE_EXTRA_CA_CERTS).",
  ],
  [
    /^(SELF_SIGNED|UNABLE_TO)/,
    "certificate_untrusted",
    "The certificate of {} is signed by an authority that this machine does not trust. If it is your own, let this runtime trust it (in Node, by NODE_EXTRA_CA_CERTS).",
  ],
  [/^ERR_(SSL|TLS)|^EPROTO/, "tls", "No TLS connection to {} could be made; check the port."],
];

/** The error for these codes, of which the first that is known counts; and whether to try again may help. */
export function explained(
  codes: readonly string[],
  host: string,
): { error: Unreachable; sent: boolean; retry: boolean } {
  for (const [pattern, reason, sentence] of CAUSES) {
    if (!codes.some((code) => pattern.test(code))) continue;
    const error = new Unreachable(sentence.replace("{}", host), reason, { host });
    return { error, sent: false, retry: !reason.startsWith("certificate") };
  }
  const told = `The server ${host} closed the connection without a whole response.`;
  return { error: new Unreachable(told, "disconnected", { host }), sent: true, retry: true };
}
