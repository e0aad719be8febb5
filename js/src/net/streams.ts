// Streams: the body of a response, read as it arrives.
import type { Call } from "./call.js";
import { type Answer, type Connection, open, read } from "./http.js";
import type { Session } from "./session.js";

/** The body of a response, as it arrives. */
export interface Stream {
  /** The next bytes; undefined at the end, also where the connection was lost. */
  read(): Promise<Uint8Array | undefined>;
  /** Close the stream, whether it has ended or not. */
  close(): void;
}

/** Open a stream of what the call accepts. It is not reopened when it ends. */
export const openStream = (session: Session, call: Call<unknown>): Promise<Stream> =>
  session.open(call, (bearer) => opened(session.connection, call, bearer));

/** The stream; any other response is returned as such. */
const opened = async (
  connection: Connection,
  call: Call<unknown>,
  bearer: string | undefined,
): Promise<Stream | Answer> => {
  const { response, deadline } = await open(connection, call, bearer);
  const type = response.headers.get("content-type") ?? "";
  if (response.status !== 200) return read(connection, call, response, deadline);
  const reader = response.body?.getReader();
  if (!reader || !type.startsWith(call.accept ?? "")) {
    deadline.clear();
    reader?.cancel().catch(() => undefined);
    return { status: 404, body: new Uint8Array(), retryAfter: undefined, isJson: true };
  }
  return {
    read: async () => {
      deadline.within(connection.timeout + (call.wait ?? 0));
      try {
        return (await reader.read()).value;
      } catch {
        return undefined;
      } finally {
        deadline.clear();
      }
    },
    close: () => {
      deadline.clear();
      reader.cancel().catch(() => undefined);
    },
  };
};
