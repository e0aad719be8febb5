// A twin of the document endpoints on Hono and better-sqlite3, for the benchmark only: the same routes and payloads,
// the JWT middleware that Hono ships, WAL with synchronous=NORMAL as that stack is commonly run. No logging, no metrics.
import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import bcrypt from 'bcryptjs'
import Database from 'better-sqlite3'
import { Hono } from 'hono'
import { jwt, sign } from 'hono/jwt'

const SECRET = process.env.JWT_SECRET
const LIFETIME = 6 * 60 * 60
const ROUNDS = 10 // bcryptjs's own default

const db = new Database(process.env.DB_PATH)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = NORMAL')
db.pragma('foreign_keys = ON')
db.exec(`
  CREATE TABLE IF NOT EXISTS users (
    id TEXT PRIMARY KEY, email TEXT NOT NULL UNIQUE, password_hash TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS refresh_tokens (
    jti TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    expires_at INTEGER NOT NULL, created_at INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS vaults (
    uid TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE, name TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    UNIQUE (user_id, name));
  CREATE TABLE IF NOT EXISTS documents (
    uid TEXT PRIMARY KEY, vault_uid TEXT NOT NULL REFERENCES vaults (uid) ON DELETE CASCADE,
    collection TEXT NOT NULL, data TEXT NOT NULL, hmac TEXT, version INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER);
  CREATE INDEX IF NOT EXISTS documents_by_collection ON documents (vault_uid, collection);
  CREATE INDEX IF NOT EXISTS documents_by_time ON documents (vault_uid, updated_at);
`)

const COLUMNS = `uid, vault_uid AS vaultUid, collection, data, hmac, version, created_at AS createdAt,
  updated_at AS updatedAt, deleted_at AS deletedAt`
const q = {
  userByEmail: db.prepare('SELECT id, email, password_hash FROM users WHERE email = ?'),
  addUser: db.prepare('INSERT INTO users VALUES (?, ?, ?, ?, ?)'),
  addRefresh: db.prepare('INSERT INTO refresh_tokens VALUES (?, ?, ?, ?)'),
  addVault: db.prepare('INSERT INTO vaults VALUES (?, ?, ?, 1, ?, ?)'),
  vault: db.prepare('SELECT uid FROM vaults WHERE uid = ? AND user_id = ?'),
  get: db.prepare(`SELECT ${COLUMNS} FROM documents WHERE uid = ? AND vault_uid = ?`),
  insert: db.prepare('INSERT INTO documents VALUES (?, ?, ?, ?, ?, 1, ?, ?, NULL)'),
  update: db.prepare(`UPDATE documents SET data = ?, hmac = ?, version = version + 1, updated_at = ?
    WHERE uid = ? AND vault_uid = ? AND version = ? RETURNING ${COLUMNS}`),
  list: db.prepare(`SELECT ${COLUMNS} FROM documents WHERE vault_uid = ? AND deleted_at IS NULL ORDER BY updated_at`),
  since: db.prepare(`SELECT ${COLUMNS} FROM documents WHERE vault_uid = ? AND updated_at > ? ORDER BY updated_at`),
  page: db.prepare(`SELECT ${COLUMNS} FROM documents WHERE vault_uid = ? AND updated_at > ? ORDER BY updated_at
    LIMIT ?`)
}

const fail = (c, status, code) => c.json({ error: { code } }, status)
const isText = (value) => typeof value === 'string' && value.length > 0

async function tokens(user) {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: 'twin', sub: user.id, iat: now }
  const jti = randomUUID()
  q.addRefresh.run(jti, user.id, (now + 7 * 86400) * 1000, now * 1000)
  return {
    accessToken: await sign({ ...claims, typ: 'access', exp: now + LIFETIME }, SECRET),
    refreshToken: await sign({ ...claims, jti, typ: 'refresh', exp: now + 7 * 86400 }, SECRET),
    user: { id: user.id, email: user.email }
  }
}

const app = new Hono()

app.get('/health', (c) => c.json({ status: 'ok', timestamp: Date.now() }))

app.post('/auth/email/register', async (c) => {
  const { email, password } = await c.req.json()
  if (!isText(email) || !isText(password) || password.length < 8) return fail(c, 400, 'validation_error')
  if (q.userByEmail.get(email)) return fail(c, 409, 'email_already_exists')
  const user = { id: randomUUID(), email }
  const now = Date.now()
  q.addUser.run(user.id, email, await bcrypt.hash(password, ROUNDS), now, now)
  return c.json(await tokens(user), 201)
})

app.post('/auth/email/login', async (c) => {
  const { email, password } = await c.req.json()
  if (!isText(email) || !isText(password)) return fail(c, 400, 'validation_error')
  const user = q.userByEmail.get(email)
  if (!user || !(await bcrypt.compare(password, user.password_hash))) return fail(c, 401, 'invalid_credentials')
  return c.json(await tokens(user))
})

app.use('/vault/*', jwt({ secret: SECRET, alg: 'HS256' }))
app.use('/vaults/*', jwt({ secret: SECRET, alg: 'HS256' }))
app.use('/vaults/:vaultUid/*', async (c, next) => {
  const claims = c.get('jwtPayload')
  if (claims.typ !== 'access') return fail(c, 401, 'unauthorized')
  if (!q.vault.get(c.req.param('vaultUid'), claims.sub)) return fail(c, 404, 'vault_not_found')
  await next()
})

app.post('/vault', async (c) => {
  const { name } = await c.req.json()
  if (!isText(name)) return fail(c, 400, 'validation_error')
  const uid = randomUUID()
  const now = Date.now()
  q.addVault.run(uid, c.get('jwtPayload').sub, name, now, now)
  return c.json({ uid, name, version: 1, updatedAt: now }, 201)
})

app.post('/vaults/:vaultUid/documents', async (c) => {
  const { collection, data, hmac = null } = await c.req.json()
  if (!isText(collection) || !isText(data)) return fail(c, 400, 'validation_error')
  const uid = randomUUID()
  const vaultUid = c.req.param('vaultUid')
  const now = Date.now()
  q.insert.run(uid, vaultUid, collection, data, hmac, now, now)
  const rest = { version: 1, createdAt: now, updatedAt: now, deletedAt: null }
  return c.json({ uid, vaultUid, collection, data, hmac, ...rest }, 201)
})

app.get('/vaults/:vaultUid/documents', (c) => {
  const since = c.req.query('since')
  if (since === undefined) return c.json({ documents: q.list.all(c.req.param('vaultUid')) })
  if (!/^\d+$/.test(since)) return fail(c, 400, 'validation_error')
  const limit = c.req.query('limit')
  if (limit === undefined) return c.json({ documents: q.since.all(c.req.param('vaultUid'), Number(since)) })
  if (!/^\d+$/.test(limit)) return fail(c, 400, 'validation_error')
  return c.json({ documents: q.page.all(c.req.param('vaultUid'), Number(since), Number(limit)) })
})

app.get('/vaults/:vaultUid/documents/:uid', (c) => {
  const document = q.get.get(c.req.param('uid'), c.req.param('vaultUid'))
  return document ? c.json(document) : fail(c, 404, 'document_not_found')
})

app.put('/vaults/:vaultUid/documents/:uid', async (c) => {
  const { data, hmac = null, version } = await c.req.json()
  if (!isText(data) || !Number.isInteger(version)) return fail(c, 400, 'validation_error')
  const { vaultUid, uid } = c.req.param()
  const document = q.update.get(data, hmac, Date.now(), uid, vaultUid, version)
  if (document) return c.json(document)
  return q.get.get(uid, vaultUid) ? fail(c, 409, 'document_conflict') : fail(c, 404, 'document_not_found')
})

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (info) => {
  console.log(`twin listens on http://127.0.0.1:${info.port}`)
})
// Node drops a kept connection after 5 s, even where its own loop was too busy to read what came: be kinder
server.keepAliveTimeout = 75_000
process.on('SIGTERM', () => {
  server.closeAllConnections()
  server.close(() => {
    db.close()
    process.exit(0)
  })
})
