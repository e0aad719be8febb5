import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import * as errors from "../src/errors.js";
import type { Call } from "../src/net/call.js";
import { EventParser, eventsOf } from "../src/net/events.js";
import { connect, type ConnectionOptions } from "../src/net/http.js";
import * as accounts from "../src/net/requests/accounts.js";
import * as documents from "../src/net/requests/documents.js";
import * as vaults from "../src/net/requests/vaults.js";
import { type RetryOptions, Session } from "../src/net/session.js";
import { openStream } from "../src/net/streams.js";

const BEARER = "bearer-of-this-test-that-nobody-may-see";
type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A server that answers as told, and a session with it. */
async function against(
  handle: Handle,
  use: (session: Session, seen: string[]) => Promise<void>,
  options: ConnectionOptions & RetryOptions = {},
): Promise<void> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      seen.push(`${request.method} ${request.url}`);
      handle(request, response, body);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const session = new Session(connect(`http://127.0.0.1:${port}`, options), options);
  session.useTokens(BEARER, "refresh-token");
  try {
    await use(session, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
};
const refuse = (response: ServerResponse, status: number, code: string, details?: unknown): void =>
  json(response, status, { error: { code, message: "No.", requestId: "x", details } });
const me = accounts.me();
const ME = { user: { id: "1", email: "a@b" } };
const met = async (run: Promise<unknown>): Promise<errors.Refusal> => {
  try {
    await run;
  } catch (error) {
    assert.ok(error instanceof errors.Refusal, inspect(error));
    return error;
  }
  throw new Error("nothing was refused");
};

test("an address must be https, or on this machine", () => {
  for (const url of ["https://a.example", "http://localhost:1", "http://127.0.0.1", "http://[::1]:80/path/"])
    connect(url);
  assert.equal(connect("https://a.example/base//").url, "https://a.example/base");
  const bad = [
    "http://a.example",
    "ftp://a.example",
    "a.example",
    "https://",
    "https://u:p@a.example",
    "https://a.example?x",
    "https://a.example/#x",
    "https://a b.example",
    "https://a.example:0",
    "https://a.example:99999",
    "http://127.0.0.1.a.example",
  ];
  for (const url of bad) assert.throws(() => connect(url), errors.Invalid, url);
  connect("http://a.example", { insecure: true });
  for (const timeout of [0, -1, NaN, Infinity])
    assert.throws(() => connect("https://a.example", { timeout }), errors.Invalid);
});

test("a redirect is not followed, and brings the bearer nowhere", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    await against(
      (_, response) => response.writeHead(status, { location: "/elsewhere" }).end(),
      async (session, seen) => {
        assert.ok((await met(session.send(me))) instanceof errors.WrongServer);
        assert.deepEqual(seen, ["GET /auth/me"]);
      },
    );
  }
});

test("a cookie is not kept, and no compression is asked for", async () => {
  const headers: IncomingMessage["headers"][] = [];
  await against(
    (request, response) => {
      headers.push(request.headers);
      json(response, 200, ME, { "set-cookie": "stolen=1; Path=/" });
    },
    async (session) => {
      await session.send(me);
      await session.send(me);
    },
  );
  assert.deepEqual(
    headers.map(({ cookie }) => cookie),
    [undefined, undefined],
  );
  assert.equal(headers[0]?.["accept-encoding"], "identity");
  assert.equal(headers[0]?.authorization, `Bearer ${BEARER}`);
});

test("an answer that is compressed, too long or not of this server is refused", async () => {
  const answers: [Handle, errors.RefusalClass][] = [
    [
      (_, response) =>
        response
          .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
          .end(gzipSync(JSON.stringify(ME))),
      errors.Tampered,
    ],
    [(_, response) => json(response, 200, { ...ME, filler: "x".repeat(1 << 21) }), errors.Tampered],
    [(_, response) => response.writeHead(200, { "content-type": "application/json" }).end('{"user"'), errors.Tampered],
    [
      (_, response) => response.writeHead(200, { "content-type": "application/json" }).end("[".repeat(1e6)),
      errors.Tampered,
    ],
    [
      (_, response) =>
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(Buffer.from('{"user":{"id":"\xff","email":"a"}}', "latin1")),
      errors.Tampered,
    ],
    [(_, response) => json(response, 200, { user: { id: 1, email: "a" } }), errors.Tampered],
    [(_, response) => json(response, 200, { user: { id: "\ud800", email: "a" } }), errors.Tampered],
    [(_, response) => json(response, 200, { ...ME, usage: { documents: -1, bytes: 0, kept: 0 } }), errors.Tampered],
    [
      (_, response) => json(response, 200, { ...ME, usage: { documents: 2 ** 63, bytes: 0, kept: 0 } }),
      errors.Tampered,
    ],
    [(_, response) => json(response, 200, { ...ME, usage: { documents: 1.5, bytes: 0, kept: 0 } }), errors.Tampered],
    [(_, response) => response.writeHead(204).end(), errors.Tampered],
    [(_, response) => response.writeHead(200, { "content-type": "text/html" }).end(" <html>"), errors.WrongServer],
    [(_, response) => response.writeHead(404, { "content-type": "text/html" }).end("<html>"), errors.WrongServer],
    [(_, response) => refuse(response, 418, "teapot"), errors.Tampered],
    [(_, response) => refuse(response, 400, "rolled_back"), errors.Invalid],
    [(_, response) => refuse(response, 599, "tampered"), errors.InternalError],
    [(_, response) => refuse(response, 404, "vault_not_found"), errors.VaultNotFound],
    [(_, response) => refuse(response, 403, "account_disabled"), errors.AccountDisabled],
    [(_, response) => response.writeHead(413).end(), errors.PayloadTooLarge],
  ];
  for (const [answer, kind] of answers) {
    await against(answer, async (session, seen) => {
      const refused = await met(session.send(me));
      assert.equal(refused.name, kind.prototype.name, inspect(refused));
      assert.equal(seen.length, 1);
    });
  }
});

test("a code counts only with a status that it can have", async () => {
  const faults: [number, string, errors.RefusalClass][] = [
    [503, "document_not_found", errors.Unavailable],
    [500, "document_conflict", errors.InternalError],
    [404, "unavailable", errors.NotFound],
    [400, "keyring_conflict", errors.Invalid],
  ];
  for (const [status, code, kind] of faults) {
    await against(
      (_, response) => refuse(response, status, code),
      async (session) => assert.equal((await met(session.send(me))).name, kind.kind),
      { retries: 0 },
    );
  }
});

test("__proto__ in an answer is nothing but a member that nobody reads", async () => {
  const told =
    '{"user":{"id":"1","email":"a@b","__proto__":{"polluted":1}},"__proto__":{"polluted":1},"kdf":{"__proto__":{"polluted":1}}}';
  await against(
    (_, response) => response.writeHead(200, { "content-type": "application/json" }).end(told),
    async (session) => {
      const found = await session.send(me);
      assert.deepEqual(Object.keys(found.user), ["id", "email"]);
      const { kdf } = await session.send(accounts.prelogin("a@b"));
      assert.ok(!("polluted" in kdf) && !("polluted" in {}));
    },
  );
});

test("an answer that does not come, or comes too slowly, is not waited for", async () => {
  await against(
    () => undefined,
    async (session) => {
      const refused = await met(session.send(me));
      assert.ok(refused instanceof errors.Unreachable);
      assert.equal(refused.reason, "timeout");
    },
    { timeout: 0.2, retries: 0 },
  );
  const dripping: Handle = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const drip = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(drip));
  };
  await against(
    dripping,
    async (session) => {
      const refused = await met(session.send(me));
      assert.ok(refused instanceof errors.Unreachable);
      assert.equal(refused.reason, "timeout");
      assert.match(refused.message, /too slowly/);
    },
    { timeout: 3, retries: 0 }, // the head arrives in that time, however busy the machine is
  );
});

test("a server that is away is said to be so, with the reason", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.on("listening", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  const session = new Session(connect(`http://127.0.0.1:${port}`), { retries: 1 });
  session.useTokens(BEARER, "x");
  const refused = await met(session.send(me));
  assert.ok(refused instanceof errors.Unreachable && refused instanceof errors.Unavailable);
  assert.equal(refused.reason, "refused");
});

test("what is safe to repeat is repeated, and what is not is not", async () => {
  let count = 0;
  const lost: Handle = (request, response) => {
    count++;
    if (count <= 2) request.socket.destroy();
    else json(response, 200, { ...ME, uid: "1", key: "srk_x" });
  };
  await against(lost, async (session) => {
    await session.send(me);
    assert.equal(count, 3);
  });
  count = 0;
  await against(lost, async (session, seen) => {
    assert.ok((await met(session.send(accounts.makeKey("agent", {})))) instanceof errors.Unreachable);
    assert.equal(seen.length, 1);
  });
});

test("a refusal after a lost answer counts as done where it says that it is", async () => {
  let count = 0;
  const handle: Handle = (request, response) => {
    if (++count === 1) request.socket.destroy();
    else refuse(response, 404, "vault_not_found");
  };
  await against(handle, async (session) => {
    assert.equal(await session.sendOrDone(vaults.remove("x")), undefined);
    assert.ok((await met(session.sendOrDone(vaults.remove("x")))) instanceof errors.VaultNotFound);
  });
  count = 0;
  await against(handle, async (session) => {
    const [found, inDoubt] = await session.sendInDoubt(vaults.remove("x"));
    assert.ok(found instanceof errors.VaultNotFound && inDoubt);
  });
});

test("a server that defers is obeyed, but not for longer than this client is patient", async () => {
  let count = 0;
  const busy =
    (after: string): Handle =>
    (_, response) => {
      if (++count === 1) json(response, 503, {}, { "retry-after": after });
      else json(response, 200, ME);
    };
  await against(busy("1"), async (session) => {
    const begun = Date.now();
    await session.send(me);
    assert.ok(Date.now() - begun >= 990);
  });
  count = 0;
  await against(
    (_, response) =>
      response
        .writeHead(429, { "content-type": "application/json", "retry-after": "4000" })
        .end('{"error":{"code":"rate_limited"}}'),
    async (session, seen) => {
      const refused = await met(session.send(me));
      assert.ok(refused instanceof errors.RateLimited);
      assert.equal(refused.retryAfter, 4000);
      assert.match(refused.message, /4,000 seconds/);
      assert.equal(seen.length, 1);
    },
  );
});

test("a token that has run out is exchanged once, however many requests notice", async () => {
  const handle: Handle = (request, response) => {
    if (request.url === "/auth/refresh") json(response, 200, { accessToken: "fresh", refreshToken: "next" });
    else if (request.headers.authorization === "Bearer fresh") json(response, 200, ME);
    else refuse(response, 401, "unauthorized");
  };
  await against(handle, async (session, seen) => {
    await Promise.all(Array.from({ length: 8 }, () => session.send(me)));
    assert.equal(seen.filter((one) => one === "POST /auth/refresh").length, 1);
    assert.deepEqual(await session.tokens(), ["fresh", "next"]);
  });
});

test("a session that has ended is not revived, and a fresh token must fit a header", async () => {
  await against(
    (request, response) =>
      refuse(response, 401, request.url === "/auth/refresh" ? "invalid_refresh_token" : "unauthorized"),
    async (session, seen) => {
      assert.ok((await met(session.send(me))) instanceof errors.InvalidRefreshToken);
      assert.ok((await met(session.send(me))) instanceof errors.Locked);
      assert.equal(seen.length, 2);
    },
  );
  await against(
    (request, response) =>
      request.url === "/auth/refresh"
        ? json(response, 200, { accessToken: "é\n", refreshToken: "x" })
        : refuse(response, 401, "unauthorized"),
    async (session) => assert.ok((await met(session.send(me))) instanceof errors.Tampered),
  );
});

test("no error and no session shows the bearer, whatever the server says", async () => {
  await against(
    (_, response) =>
      refuse(response, 400, "validation_error", {
        fields: { token: BEARER, [BEARER]: "x" },
        deep: [[[[[BEARER]]]]],
        long: "x".repeat(300),
      }),
    async (session) => {
      const refused = await met(session.send(me));
      for (const shown of [
        inspect(refused, { depth: 9 }),
        JSON.stringify(refused),
        String(refused),
        refused.stack,
        inspect(session, { depth: 9, showHidden: true }),
      ]) {
        assert.ok(!shown?.includes(BEARER), shown);
      }
    },
  );
});

test("queries and paths are spelled so that no name can change them", async () => {
  await against(
    (_, response) => json(response, 200, { documents: [], hasMore: false, next: 0 }),
    async (session, seen) => {
      await session.send(documents.listPage("a/../b?", { collection: "c&limit=9#", limit: 2, deleted: false }));
      assert.deepEqual(seen, [
        "GET /vaults/a%2F..%2Fb%3F/documents?limit=2&collection=c%26limit%3D9%23&includeDeleted=false",
      ]);
    },
  );
});

test("events are read as they come, in whatever pieces", async () => {
  const parser = new EventParser();
  const spelled = new TextEncoder().encode(
    ': hello\n\nevent: document\r\nid: 17\r\ndata: {"é": 1}\r\n\r\nevent:vault\nid: 99999999999999999999\n\nid: 3\n\nevent: cut',
  );
  const found = [...spelled].flatMap((byte) => parser.feed(Uint8Array.of(byte)));
  assert.deepEqual(found, [
    { name: "document", timestamp: 17 },
    { name: "vault", timestamp: 0 },
  ]);
  assert.throws(() => parser.feed(new Uint8Array((1 << 20) + 1).fill(65)), errors.Tampered);
  let closed = false;
  await against(
    (request, response) => {
      request.socket.on("close", () => (closed = true));
      response.writeHead(200, { "content-type": "text/event-stream" }).write("event: document\nid: 5\n\n");
    },
    async (session) => {
      for await (const event of eventsOf(await openStream(session, vaults.events(undefined, 0)))) {
        assert.deepEqual(event, { name: "document", timestamp: 5 });
        break;
      }
      while (!closed) await new Promise((done) => setTimeout(done, 5));
    },
  );
  const plain: Call<unknown> = vaults.events("x", 0);
  await against(
    (_, response) => json(response, 200, {}),
    async (session) => assert.ok((await met(openStream(session, plain))) instanceof errors.NotFound),
  );
});
