// A client by the TypeScript SDK, of the major version that is the first argument, or for "ai" by the AI SDK, which signs
// in at the URL that is the second. It takes a command a line: "call TOOL ARGUMENTS", "break" (its access token), "changed" (waits for the list
// of tools to change, which it listens to where the fourth argument is "listen"), "close". It prints "OPEN URL" for its
// user's browser, and an answer to each command.
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import readline from 'node:readline'
import { pathToFileURL } from 'node:url'

const [major, url, modules, listen] = process.argv.slice(2)
const load = name => import(pathToFileURL(createRequire(path.join(modules, 'x.js')).resolve(name)))
const from = async names => Object.assign({}, ...await Promise.all(names.map(load)))
const sdk = await from({
  1: ['@modelcontextprotocol/sdk/client/index.js', '@modelcontextprotocol/sdk/client/streamableHttp.js'],
  2: ['@modelcontextprotocol/client'],
  ai: ['@ai-sdk/mcp'],
}[major])

let arrived
const server = http.createServer((req, res) => {
  const to = new URL(req.url, 'http://localhost')
  res.end('back')
  if (to.pathname === '/callback') arrived(to.searchParams)
})
await new Promise(done => server.listen(0, '127.0.0.1', done))

const kept = {}
const provider = {
  redirectUrl: `http://127.0.0.1:${server.address().port}/callback`,
  get clientMetadata() {
    return {
      client_name: `SDK ${major}`, redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    }
  },
  state: () => 'some state',
  clientInformation: () => kept.client,
  saveClientInformation: v => { kept.client = v },
  tokens: () => kept.tokens,
  saveTokens: v => { kept.tokens = v },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: v => { kept.verifier = v },
  discoveryState: () => kept.discovery,
  saveDiscoveryState: v => { kept.discovery = v },
  invalidateCredentials: what => {
    if (what === 'all' || what === 'tokens') delete kept.tokens
    if (what === 'all' || what === 'client') delete kept.client
  },
  redirectToAuthorization: to => {
    kept.back = new Promise(done => { arrived = done })
    console.log(`OPEN ${to}`)
  },
}

// names are those of tools, with a question mark where its user has to allow it first.
const names = tools => tools.map(t => /Not allowed yet/.test(t.description) ? t.name + '?' : t.name)
const lists = []
let heard = () => {}
const listChanged = { tools: { onChanged: (failed, tools) => { lists.push(failed ?? names(tools)); heard() } } }

let client, transport
const signIn = async () => {
  const params = await kept.back
  if (params.get('error')) throw new Error(`refused: ${params.get('error')}`)
  if (params.get('state') !== 'some state') throw new Error('another state')
  if (major === 'ai') {
    await sdk.auth(provider, {
      serverUrl: url, authorizationCode: params.get('code'), callbackState: params.get('state'), callbackIssuer: params.get('iss'),
    })
    return
  }
  await transport.finishAuth(major === '1' ? params.get('code') : params)
}
const connect = async () => {
  if (major === 'ai') {
    client = await sdk.createMCPClient({ transport: { type: 'http', url, authProvider: provider } })
    return
  }
  transport = new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
  client = new sdk.Client({ name: 'e2e', version: '1' }, {
    versionNegotiation: { mode: 'auto' }, // 1.x knows one revision
    ...(listen && { listChanged }),
  })
  await client.connect(transport)
}
// again does something, once more after a sign-in where that is needed.
const again = async what => {
  try {
    return await what()
  } catch (e) {
    if (!/Unauthorized/.test(e.name + e.constructor.name + e.message + e.cause?.name) || !kept.back) throw e
    await signIn()
    delete kept.back
    await connect()
    return await what()
  }
}
const commands = {
  connect: () => again(async () => { if (!client || !transport?._abortController) await connect(); return { ok: true } }),
  list: () => again(async () => ({ tools: names((await client.listTools()).tools) })),
  call: (tool, args) => again(() => client.callTool({ name: tool, arguments: JSON.parse(args) })),
  break: async () => { kept.tokens = { ...kept.tokens, access_token: 'asa_' + '0'.repeat(64) }; return kept.tokens },
  tokens: async () => kept.tokens,
  changed: async () => {
    if (lists.length === 0) await new Promise(done => { heard = done })
    return { tools: lists.shift() }
  },
}
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [what, tool, ...rest] = line.split(' ')
  if (what === 'close') process.exit(0)
  try {
    console.log('RESULT ' + JSON.stringify(await commands[what](tool, rest.join(' '))))
  } catch (e) {
    console.log('ERROR ' + String(e.message).replaceAll('\n', ' '))
  }
}
