// Asks by A2A with the protocol's own clients for JavaScript: of 1.0 in both bindings, of 0.3 in the
// compatibility part of that, and of 0.3 as it was released. Cards are verified by jose, over what
// canonicalize makes of them.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Role, TaskState, verifyAgentCardSignature } from '@a2a-js/sdk'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import { A2AClient as Legacy, ClientFactory as LegacyFactory, DefaultAgentCardResolver as LegacyResolver, RestTransportFactory as LegacyRest } from 'a2a-sdk-0.3/client'
import canonicalize from 'canonicalize'
import * as jose from 'jose'

const [url, token, did, hooks] = process.argv.slice(2)
console.debug = () => {} // of the library, for each signature that is not good
const authorized = (input, init = {}) => {
	const headers = new Headers(init.headers)
	headers.set('authorization', `Bearer ${token}`)
	return fetch(input, { ...init, headers })
}

// keyOf returns the public key of a did:key, whose multibase is base58btc.
const keyOf = (kid) => {
	assert.equal(kid, did)
	const digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
	let n = 0n
	for (const c of kid.slice('did:key:z'.length)) n = n * 58n + BigInt(digits.indexOf(c))
	const bytes = Buffer.from(n.toString(16).padStart(68, '0'), 'hex')
	assert.equal(bytes.subarray(0, 2).toString('hex'), 'ed01')
	return jose.importJWK({ kty: 'OKP', crv: 'Ed25519', x: bytes.subarray(2).toString('base64url') }, 'EdDSA')
}

// verifyAsItCame counts the signatures that are good over the card without them.
const verifyAsItCame = async ({ signatures, ...card }) => {
	let good = 0
	for (const s of signatures) {
		const key = await keyOf(jose.decodeProtectedHeader(s).kid)
		try {
			await jose.flattenedVerify({ ...s, payload: Buffer.from(canonicalize(card)).toString('base64url') }, key)
			good++
		} catch (e) {
			assert.equal(e.code, 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED')
		}
	}
	return good
}

const things = '/.well-known/agent-card.json'
const of = (agent) => `/a2a/agents/${agent}/.well-known/agent-card.json`
for (const version of ['1.0', '0.3', '']) {
	for (const path of [things, of('beds')]) {
		const card = await (await authorized(url + path, { headers: version ? { 'a2a-version': version } : {} })).json()
		assert.equal(await verifyAsItCame(card), 1, path)
		assert.equal(card.signatures.length, version === '1.0' ? 1 : 2)
		await verifyAgentCardSignature(keyOf)(card) // which drops what 1.0 does not have
		card.description += '!'
		assert.equal(await verifyAsItCame(card), 0)
		await assert.rejects(verifyAgentCardSignature(keyOf)(card))
	}
}
const stranger = await (await fetch(url + things)).json()
assert.equal(await verifyAsItCame(stranger), 1)
assert(!JSON.stringify(stranger).includes('greenhouse'))
assert.equal((await fetch(url + of('beds'))).status, 401)

const data = (value) => ({ content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: '' })
const text = (value) => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' })
const message = (parts, more = {}, configuration) => ({
	tenant: '',
	message: { messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, parts, metadata: undefined, extensions: [], referenceTaskIds: [], ...more },
	configuration, metadata: undefined,
})
const first = (answer) => answer.parts[0].content.value
const rejects = async (promise, name) => {
	try {
		await promise
	} catch (e) {
		assert(e.name.endsWith(name), `${e.name}, ${e.message}; want ${name}`)
		return
	}
	assert.fail(`no ${name}`)
}
// all returns the events of a stream. begun is awaited after the first.
const all = async (stream, begun = async () => {}) => {
	const events = []
	for await (const e of stream) if (events.push(e) === 1) await begun()
	return events
}

for (const Factory of [JsonRpcTransportFactory, RestTransportFactory]) {
	const factory = new ClientFactory({
		transports: [new Factory({ fetchImpl: authorized })],
		cardResolver: new DefaultAgentCardResolver({ fetchImpl: authorized }),
	})
	const site = await factory.createFromUrl(url)
	assert.equal(site.protocolVersion, '1.0')
	const card = await site.getAgentCard()
	assert(card.skills.some((s) => s.id === 'move'), JSON.stringify(card.skills))

	// The things.
	const read = await site.sendMessage(message([data({ operation: 'read', points: ['greenhouse/temperature'] })]))
	assert.equal(first(read).readings[0].unit, 'Cel')
	const moved = await site.sendMessage(message([data({ operation: 'move', output: 'greenhouse/vent', value: 30, for: 60 })]))
	assert.equal(first(moved).value, 30)
	await site.sendMessage(message([data({ operation: 'move', output: 'greenhouse/vent' })]))
	assert(first(await site.sendMessage(message([text('hello')]))).includes('"operation"'))
	const events = await all(site.sendMessageStream(message([data({ operation: 'status' })])))
	assert.deepEqual(events.map((e) => e.payload.$case), ['message'])
	await rejects(site.getTask({ id: 'nothing', tenant: '' }), 'TaskNotFoundError')
	await rejects(site.sendMessage(message([{ ...text('x'), content: { $case: 'url', value: 'http://x' } }])), 'ContentTypeNotSupportedError')
	await rejects(site.createTaskPushNotificationConfig({ tenant: '', id: '', taskId: 'x', url: `${hooks}/x`, token: '', authentication: undefined }), 'TaskNotFoundError')

	// An agent with its tasks.
	const beds = await factory.createFromUrl(url, of('beds'))
	const question = await beds.sendMessage(message([data({ skill: 'run' })]))
	assert.equal(question.status.state, TaskState.TASK_STATE_INPUT_REQUIRED)
	const answered = await beds.sendMessage(message([text('yes')], { taskId: question.id, contextId: question.contextId }))
	assert.equal(answered.status.state, TaskState.TASK_STATE_COMPLETED)
	assert.equal((await beds.getTask({ id: question.id, tenant: '', historyLength: undefined })).artifacts.length, 1)
	await rejects(beds.sendMessage(message([text('yes')], { taskId: question.id })), 'UnsupportedOperationError')

	const flush = await factory.createFromUrl(url, of('flush'))
	const request = message([data({ skill: 'run' })], {}, { acceptedOutputModes: [], taskPushNotificationConfig: undefined, historyLength: undefined, returnImmediately: true })
	const running = await flush.sendMessage(request)
	assert.equal((await flush.sendMessage(request)).id, running.id)

	// Push notifications. What they tell is looked at by the test.
	const hook = { tenant: '', id: 'mine', taskId: running.id, url: `${hooks}/1.0/${Factory.name}`, token: 'own', authentication: { scheme: 'Bearer', credentials: 'secret' } }
	assert.equal((await flush.createTaskPushNotificationConfig(hook)).id, 'mine')
	assert.equal((await flush.getTaskPushNotificationConfig({ tenant: '', taskId: running.id, id: 'mine' })).url, hook.url)
	await flush.createTaskPushNotificationConfig({ ...hook, id: 'other' })
	await flush.deleteTaskPushNotificationConfig({ tenant: '', taskId: running.id, id: 'other' })
	assert.deepEqual((await flush.listTaskPushNotificationConfig({ tenant: '', taskId: running.id, pageSize: 0, pageToken: '' })).configs.map((c) => c.id), ['mine'])
	await assert.rejects(flush.createTaskPushNotificationConfig({ ...hook, url: 'https://127.0.0.1/' }))
	const seen = await all(flush.resubscribeTask({ id: running.id, tenant: '' }), async () => {
		const canceled = await flush.cancelTask({ id: running.id, tenant: '', metadata: undefined })
		assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED)
	})
	assert.equal(seen[0].payload.$case, 'task')
	assert.equal(seen.at(-1).payload.value.status.state, TaskState.TASK_STATE_CANCELED)
	await rejects(flush.cancelTask({ id: running.id, tenant: '', metadata: undefined }), 'TaskNotCancelableError')
	await rejects(all(flush.resubscribeTask({ id: running.id, tenant: '' })), 'UnsupportedOperationError')
	const list = await flush.listTasks({ tenant: '', contextId: running.contextId, status: 0, pageToken: '' })
	assert.deepEqual(list.tasks.map((t) => t.id), [running.id])

	const warming = await factory.createFromUrl(url, of('warming'))
	const told = await all(warming.sendMessageStream(message([data({ skill: 'run' })], { contextId: randomUUID() })))
	assert.equal(told[0].payload.$case, 'task')
	assert.equal(told.at(-1).payload.value.status.state, TaskState.TASK_STATE_COMPLETED)
}

// 0.3 as it was released, and the compatibility part of the client of 1.0.
const part = (value) => ({ kind: 'data', data: value })
const older = (parts, more = {}, configuration) => ({ message: { kind: 'message', messageId: randomUUID(), role: 'user', parts, ...more }, configuration })
const legacy = await Legacy.fromCardUrl(url + things, { fetchImpl: authorized })
const reading = await legacy.sendMessage(older([part({ operation: 'read', points: ['greenhouse/temperature'] })]))
assert.equal(reading.result?.kind, 'message', JSON.stringify(reading))
assert.equal(reading.result.parts[0].data.readings[0].unit, 'Cel')
assert.equal((await legacy.getTask({ id: 'nothing' })).error.code, -32001)
const beds = await Legacy.fromCardUrl(url + of('beds'), { fetchImpl: authorized })
const asked = (await beds.sendMessage(older([part({ skill: 'run' })]))).result
assert.deepEqual([asked.kind, asked.status.state], ['task', 'input-required'])
const no = (await beds.sendMessage(older([{ kind: 'text', text: 'no' }], { taskId: asked.id, contextId: asked.contextId }))).result
assert.equal(no.status.state, 'completed', JSON.stringify(no))
const flush = await Legacy.fromCardUrl(url + of('flush'), { fetchImpl: authorized })
const running = (await flush.sendMessage(older([part({ skill: 'run' })], {}, { blocking: false }))).result
const set = (await flush.setTaskPushNotificationConfig({ taskId: running.id, pushNotificationConfig: { id: 'mine', url: `${hooks}/0.3`, token: 'own', authentication: { schemes: ['Bearer'], credentials: 'secret' } } })).result
assert.deepEqual([set.taskId, set.pushNotificationConfig.id], [running.id, 'mine'])
assert.equal((await flush.getTaskPushNotificationConfig({ id: running.id })).result.pushNotificationConfig.url, `${hooks}/0.3`)
const updates = await all(flush.resubscribeTask({ id: running.id }), async () => {
	assert.equal((await flush.cancelTask({ id: running.id })).result.status.state, 'canceled')
})
const last = updates.at(-1)
assert.deepEqual([last.kind, last.status.state, last.final], ['status-update', 'canceled', true])
assert.equal((await flush.cancelTask({ id: running.id })).error.code, -32002)
const warming = await Legacy.fromCardUrl(url + of('warming'), { fetchImpl: authorized })
const kinds = []
for await (const e of warming.sendMessageStream(older([part({ skill: 'run' })]))) kinds.push(e.kind)
assert.equal(kinds[0], 'task')

// 0.3 over HTTP with JSON, and its extended card.
const rest = new LegacyFactory({ transports: [new LegacyRest({ fetchImpl: authorized })], cardResolver: new LegacyResolver({ fetchImpl: authorized }) })
const site = await rest.createFromUrl(url)
assert((await site.getAgentCard()).skills.some((s) => s.id === 'move'))
assert((await site.transport.getExtendedAgentCard()).skills.some((s) => s.id === 'move'))
const over = await site.sendMessage(older([part({ operation: 'read', points: ['greenhouse/temperature'] })]))
assert.deepEqual([over.kind, over.parts[0].data.readings[0].unit], ['message', 'Cel'])
await rejects(site.getTask({ id: 'nothing' }), 'TaskNotFoundError')
assert.deepEqual((await all(site.sendMessageStream(older([part({ operation: 'status' })])))).map((e) => e.kind), ['message'])
const restBeds = await rest.createFromUrl(url, of('beds'))
const restAsked = await restBeds.sendMessage(older([part({ skill: 'run' })]))
assert.deepEqual([restAsked.kind, restAsked.status.state], ['task', 'input-required'])
const restNo = await restBeds.sendMessage(older([{ kind: 'text', text: 'no' }], { taskId: restAsked.id, contextId: restAsked.contextId }))
assert.equal(restNo.status.state, 'completed')
const restFlush = await rest.createFromUrl(url, of('flush'))
const restRunning = await restFlush.sendMessage(older([part({ skill: 'run' })], {}, { blocking: false }))
const restHook = { taskId: restRunning.id, pushNotificationConfig: { id: 'mine', url: `${hooks}/0.3/rest`, token: 'own', authentication: { schemes: ['Bearer'], credentials: 'secret' } } }
assert.deepEqual((await restFlush.setTaskPushNotificationConfig(restHook)).taskId, restRunning.id)
assert.equal((await restFlush.getTaskPushNotificationConfig({ id: restRunning.id, pushNotificationConfigId: 'mine' })).pushNotificationConfig.url, `${hooks}/0.3/rest`)
const restUpdates = await all(restFlush.resubscribeTask({ id: restRunning.id }), async () => {
	assert.equal((await restFlush.cancelTask({ id: restRunning.id })).status.state, 'canceled')
})
const restLast = restUpdates.at(-1)
assert.deepEqual([restUpdates[0].kind, restLast.kind, restLast.status.state, restLast.final], ['task', 'status-update', 'canceled', true])
await rejects(restFlush.cancelTask({ id: restRunning.id }), 'TaskNotCancelableError')

const { supportedInterfaces, ...old } = await (await authorized(url + things)).json()
const compatible = await new ClientFactory({
	transports: [new JsonRpcTransportFactory({ fetchImpl: authorized, legacyCompat: { enabled: true } })],
	cardResolver: new DefaultAgentCardResolver({ fetchImpl: authorized, legacyCompat: { enabled: true } }),
}).createFromAgentCard(old)
assert.equal(compatible.protocolVersion.slice(0, 3), '0.3')
assert.equal(first(await compatible.sendMessage(message([data({ operation: 'read', points: ['greenhouse/temperature'] })]))).readings[0].unit, 'Cel')
console.log('done')
