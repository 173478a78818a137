// Subscribes to an event by the AI SDK, whose receiver takes what the site sends, and reads each signature again by
// the library of Standard Webhooks. Then polls and streams by the TypeScript client.
import assert from 'node:assert/strict'
import http from 'node:http'
import { createMCPClient, experimental_createMCPEventWebhook as createWebhook } from '@ai-sdk/mcp'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Webhook } from 'standardwebhooks'

const [url, token, port, control, name, text] = process.argv.slice(2)
const headers = { authorization: `Bearer ${token}` }
const asked = { name, arguments: JSON.parse(text) }
const happen = (what) => fetch(`${control}/${what}`, { method: 'POST' })

// What comes is kept until somebody waits for it.
const queue = () => {
	const kept = []
	let wake = () => {}
	return {
		put: (v) => { kept.push(v); wake() },
		next: async (is) => {
			const late = setTimeout(() => { console.error('it did not come; there are', kept); process.exit(1) }, 30_000)
			for (;;) {
				const i = kept.findIndex(is)
				if (i >= 0) {
					clearTimeout(late)
					return kept.splice(i, 1)[0]
				}
				await new Promise((done) => { wake = done })
			}
		},
	}
}

// Webhooks.
const subscriptions = new Map()
const store = {
	get: async (key) => subscriptions.get(key),
	getById: async (id) => [...subscriptions.values()].find((s) => s.id === id),
	set: async (s) => { subscriptions.set(s.key, s) },
	update: async (key, patch) => { subscriptions.set(key, { ...subscriptions.get(key), ...patch }) },
	delete: async (key) => { subscriptions.delete(key) },
}
const got = queue()
const receive = createWebhook({
	store,
	onEvent: async ({ event }) => got.put({ event }),
	onGap: async ({ gap }) => got.put({ gap }),
	onTerminated: async ({ termination }) => got.put({ termination }),
	onError: (err) => console.error('the receiver:', err),
})
const callback = `http://127.0.0.1:${port}/hook`
let sealed = 0
const server = http.createServer(async (request, response) => {
	const parts = []
	for await (const part of request) parts.push(part)
	const body = Buffer.concat(parts)
	const subscription = subscriptions.get(new URL(request.url, callback).searchParams.get('mcp_event_subscription'))
	new Webhook(subscription.delivery.secret).verify(body, request.headers) // throws
	sealed++
	const answer = await receive(new Request(new URL(request.url, callback), { method: request.method, headers: request.headers, body }))
	response.writeHead(answer.status, Object.fromEntries(answer.headers))
	response.end(Buffer.from(await answer.arrayBuffer()))
}).listen(port, '127.0.0.1')

const connect = () => createMCPClient({ transport: { type: 'http', url, headers }, experimental_events: { store } })
let client = await connect()
const events = client.experimental_events
const listed = await events.list()
assert(listed.events.find((e) => e.name === name).delivery.includes('webhook'))
const delivery = { mode: 'webhook', url: callback, allowInsecureLocalhost: true }
const made = await events.subscribe({ ...asked, delivery, cursor: null })
assert(made.id.startsWith('sub_'), JSON.stringify(made))
assert.equal(sealed, 1)
await happen('event')
const first = await got.next((m) => m.event)
assert.equal(first.event.name, name)
assert(Date.parse(first.event.timestamp) > 0 && first.event.cursor)
const again = await events.refresh({ id: made.id })
assert.equal(again.id, made.id)
await assert.rejects(events.subscribe({ ...asked, delivery: { ...delivery, url: 'http://127.0.0.1:1/hook' } }))
await assert.rejects(events.subscribe({ name: 'no.such', delivery }))
await events.unsubscribe({ id: made.id })
assert.equal(await store.getById(made.id), undefined)
await client.close()
console.log('webhook:', sealed, 'signatures verified')

// Poll and stream.
const schema = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
for (const mode of ['auto', 'legacy']) {
	const ts = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
	const heard = queue()
	for (const what of ['active', 'event', 'terminated']) {
		ts.setNotificationHandler(`notifications/events/${what}`, { params: schema }, (params) => heard.put({ what, ...params }))
	}
	await ts.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
	const ask = (method, params, options) => ts.request({ method, params }, schema, options)
	const from = await ask('events/poll', { ...asked, cursor: null })
	assert.deepEqual(from.events, [])
	await happen('event')
	let page
	do {
		page = await ask('events/poll', { ...asked, cursor: from.cursor })
	} while (page.events.length === 0)
	assert.equal(page.events[0].name, name)
	await assert.rejects(ask('events/poll', { name: 'no.such' }), (err) => err.code === -32011)
	if (mode === 'auto') {
		const stop = new AbortController()
		const stream = ask('events/stream', { ...asked, cursor: from.cursor }, { signal: stop.signal, timeout: 60_000 }).catch(() => {})
		assert.equal((await heard.next((n) => n.what === 'active')).truncated, false)
		assert.equal((await heard.next((n) => n.what === 'event')).eventId, page.events[0].eventId)
		await happen('event')
		await heard.next((n) => n.what === 'event' && n.eventId !== page.events[0].eventId)
		stop.abort()
		await stream
	}
	await ts.close()
	console.log(mode, 'polled')
}

// The permission ends, and with it the subscription.
client = await connect()
await client.experimental_events.subscribe({ ...asked, delivery, cursor: null })
await happen('end')
const { termination } = await got.next((m) => m.termination)
assert.equal(termination.error.code, -32012)
await client.close()
server.close()
console.log('done:', sealed, 'signatures verified')
