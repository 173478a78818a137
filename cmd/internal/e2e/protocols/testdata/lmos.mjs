// Uses a site by the WebSocket sub-protocol of LMOS, as its descriptions say.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const WebSocket = require('ws')

const [url, token] = process.argv.slice(2)
const headers = { authorization: `Bearer ${token}` }
const things = await (await fetch(url + '/things', { headers })).json()
const greenhouse = things.find((t) => t.title === 'greenhouse')
const beds = things.find((t) => t.title === 'beds')
const form = greenhouse.properties.vent.forms.find((f) => f.subprotocol === 'lmosprotocol')
assert.deepEqual(form.op.sort(), ['observeproperty', 'readproperty', 'unobserveproperty', 'writeproperty'])
assert.deepEqual(beds['@type'], 'lmos:Agent')

await assert.rejects(new Promise((done, failed) => new WebSocket(form.href, 'lmosprotocol').on('open', done).on('error', failed)), /401/)

const socket = new WebSocket(form.href, 'lmosprotocol', { headers })
const heard = []
socket.on('message', (text) => heard.push(JSON.parse(text)))
await new Promise((done, failed) => socket.on('open', done).on('error', failed))
assert.equal(socket.protocol, 'lmosprotocol')
const send = (thing, messageType, more) => {
	const messageId = randomUUID()
	socket.send(JSON.stringify({ thingId: thing.id, messageId, messageType, ...more }))
	return messageId
}
// until returns the first message that is an answer to that one.
const until = async (correlationId, is = () => true) => {
	for (let i = 0; i < 400; i++) {
		const found = heard.find((m) => m.correlationId === correlationId && is(m))
		if (found) return found
		await new Promise((done) => setTimeout(done, 50))
	}
	assert.fail(`no answer to ${correlationId} in ${JSON.stringify(heard)}`)
}
const ask = (...message) => until(send(...message))

for (;;) {
	const m = await ask(greenhouse, 'readProperty', { name: 'temperature' })
	if (m.messageType === 'propertyReading' && typeof m.value === 'number') break
	await new Promise((done) => setTimeout(done, 100))
}
const observing = send(greenhouse, 'observeProperty', { name: 'vent' })
await until(observing)
let moved
do moved = await ask(greenhouse, 'writeProperty', { name: 'vent', data: 35, for: 60 })
while (moved.messageType === 'error' && moved.status === '409') // it rests after the start
assert.equal(moved.value, 35, JSON.stringify(moved))
await until(observing, (m) => m.value === 35)
assert.equal((await ask(greenhouse, 'invokeAction', { action: 'release.vent' })).status, 'completed')
await until(observing, (m) => m.value === 0 && heard.indexOf(m) > heard.findIndex((o) => o.value === 35))

const subscribed = send(greenhouse, 'subscribeevent', { event: 'button' }) // as an implementation spells it
await until(subscribed, (m) => m.messageType === 'event' && typeof m.data === 'boolean')

const refused = await ask(greenhouse, 'writeProperty', { name: 'vent', data: 1000 })
assert.deepEqual([refused.messageType, refused.status, refused.type], ['error', '400', 'urn:agentsite:fault:invalid'])
assert.equal((await ask({ id: greenhouse.id + 'x' }, 'readProperty', { name: 'vent' })).status, '404')

const invoked = send(beds, 'invokeAction', { action: 'run' })
const { output } = await until(invoked, (m) => m.output?.state === 'input_required')
send(beds, 'invokeAction', { action: 'answerTask', input: { task: output.id, answer: 'yes' } })
await until(invoked, (m) => m.status === 'completed')
const other = send(beds, 'invokeAction', { action: 'run' })
await until(other, (m) => m.output?.state === 'input_required')
send(beds, 'cancelAction', { action: 'run' })
await until(other, (m) => m.status === 'failed' && m.output.state === 'canceled')
socket.close()
console.log('done')
