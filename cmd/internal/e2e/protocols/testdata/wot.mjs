// Uses every kind of point of a site by node-wot, and holds each description to the schema of
// the W3C and the checks of the playground.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { writeFileSync } from 'node:fs'

const require = createRequire(import.meta.url)
console.warn = () => {} // ajv of the playground, about formats
const { Servient } = require('@node-wot/core')
const { HttpClientFactory } = require('@node-wot/binding-http')
const { tdValidator } = require('@thing-description-playground/core')

const [url, token, pressed] = process.argv.slice(2)
const headers = { authorization: `Bearer ${token}` }
const get = (path, more) => fetch(url + path, { headers: { ...headers, ...more } })

// Each description is valid, and is the same alone as in the list.
const list = await (await get('/things')).json()
assert.deepEqual(list.map((t) => t.title).sort(), ['alarm', 'beds', 'greenhouse', 'shed'])
for (const td of [...list, await (await fetch(url + '/.well-known/wot')).json()]) {
	const { report } = await tdValidator(JSON.stringify(td), () => {}, { checkDefaults: false, checkJsonLd: false, checkTmConformance: false })
	assert.deepEqual([report.json, report.schema, report.additional], ['passed', 'passed', 'passed'], td.title)
	if (!td.id) continue
	assert.deepEqual(await (await get('/things/' + td.id.split('/things/')[1])).json(), td)
}

const servient = new Servient()
servient.addClientFactory(new HttpClientFactory())
for (const td of list) servient.addCredentials({ [td.id]: { token } })
const wot = await servient.start()
const things = {}
for (const td of list) things[td.title] = await wot.consume(td)
const { greenhouse, shed, beds, alarm } = things
const read = async (name) => (await greenhouse.readProperty(name)).value()
const eventually = async (what, is) => {
	for (let i = 0; i < 200; i++) {
		if (await is().catch(() => false)) return
		await new Promise((done) => setTimeout(done, 100))
	}
	assert.fail(`${what} did not happen`)
}

// Measurements, and a state.
await eventually('a reading', async () => typeof (await read('temperature')) === 'number')
assert.equal(await (await alarm.readProperty('pressed')).value(), false)
const all = await greenhouse.readAllProperties()
assert.equal(typeof (await all.get('humidity').value()), 'number')
assert.equal((await (await shed.readProperty('status')).value()).emergency_stop, false)

// A write is a move with a lease, which ends by itself.
await eventually('a move', async () => (await greenhouse.writeProperty('heater', true, { uriVariables: { for: 2 } }), true))
assert.equal(await read('heater'), true)
await eventually('the end of a lease', async () => (await read('heater')) === false)
await greenhouse.writeProperty('vent', 45.5)
assert.equal(await read('vent'), 45.5)
await greenhouse.invokeAction('release.vent')
await eventually('a release', async () => (await read('vent')) === 0)
await assert.rejects(greenhouse.writeProperty('vent', 500))
await assert.rejects(greenhouse.writeProperty('vent', 50, { uriVariables: { for: 100000 } }))
await assert.rejects(greenhouse.writeProperty('temperature', 20))

// A display and a camera.
await greenhouse.invokeAction('show.message', 'hello')
const picture = await (await greenhouse.invokeAction('capture.camera')).value()
assert.match(picture.mime_type, /^image\//)
assert(Buffer.from(picture.data, 'base64').length > 100)

// node-wot polls, as it sends no token with server-sent events.
let seen = []
const observing = await greenhouse.observeProperty('vent', async (out) => seen.push(await out.value()))
await new Promise((done) => setTimeout(done, 300))
await greenhouse.writeProperty('vent', 30)
await eventually('an observation', async () => seen.includes(30))
await observing.stop()
const presses = []
const subscribed = await greenhouse.subscribeEvent('button', async (out) => presses.push(await out.value()))
await eventually('a press', async () => presses.length > 1)
await subscribed.stop()
assert(presses.every((v) => typeof v === 'boolean'), presses)

// Server-sent events begin with the value.
const stream = await get('/things/greenhouse/properties/vent/observe', { accept: 'text/event-stream' })
const chunks = stream.body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
assert.equal((await chunks.next()).value, 'data: 30\n\n')
await greenhouse.invokeAction('release.vent')
assert.equal((await chunks.next()).value, 'data: 0\n\n')
await chunks.return()

// An agent's skill, its question and its end.
const asked = await (await beds.invokeAction('run')).value()
assert.equal(asked.state, 'input_required')
assert.equal(asked.question.text, 'Is the tank full?')
await assert.rejects(beds.invokeAction('answerTask', { task: asked.id, answer: 'perhaps' }))
await beds.invokeAction('answerTask', { task: asked.id, answer: 'yes' })
await eventually('the end of the task', async () => (await (await get(`/things/agent:beds/actions/run/${asked.id}`)).json()).state === 'completed')
const other = await get('/things/agent:beds/actions/run', {})
assert.equal(other.status, 405)
const again = await (await beds.invokeAction('run', undefined, { uriVariables: { wait: 0 } })).value()
assert.equal((await fetch(`${url}/things/agent:beds/actions/run/${again.id}`, { method: 'DELETE', headers })).status, 204)
await eventually('a cancellation', async () => (await (await get(`/things/agent:beds/actions/run/${again.id}`)).json()).state === 'canceled')

// The same call with the same key moves once; an emergency stop, and what it says then.
const key = { 'idempotency-key': 'wot-1' }
const put = async (value) => (await fetch(url + '/things/greenhouse/properties/vent', { method: 'PUT', headers: { ...headers, ...key }, body: value })).status
assert.deepEqual([await put('20'), await put('20'), await put('21')], [204, 204, 400])
const states = []
await alarm.observeProperty('pressed', async (out) => states.push(await out.value()))
await new Promise((done) => setTimeout(done, 300))
writeFileSync(pressed, '')
await eventually('a state', async () => states.includes(true))
await shed.invokeAction('stop')
await assert.rejects(greenhouse.writeProperty('vent', 10))
assert.equal(await read('vent'), 0)
console.log('done')
process.exit(0)
