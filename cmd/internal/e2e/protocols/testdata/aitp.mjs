// Holds threads of AITP, and checks every payload by the published schemas.
import assert from 'node:assert/strict'
import Ajv from 'ajv'
import Ajv2020 from 'ajv/dist/2020.js'

const [url, token, decisions, data] = process.argv.slice(2)
const options = { strict: false, formats: { uri: (text) => URL.canParse(text), 'date-time': true } }
const openAPI = JSON.parse(decisions)
const isDecision = new Ajv(options).compile({ ...openAPI, $ref: '#/components/schemas/DecisionProtocol' })
const isData = new Ajv2020(options).compile(JSON.parse(data))
const check = (valid, payload) => { assert(valid(payload), JSON.stringify([payload, valid.errors])); return payload }

const call = async (path, body) => {
	const headers = { authorization: `Bearer ${token}` }
	const response = await fetch(url + '/aitp/v1' + path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) })
	assert.equal(response.status, 200, await response.clone().text())
	return response.json()
}
const capability = (name) => `https://aitp.dev/capabilities/aitp-${name}/v1.0.0/schema.json`
const thread = await call('/threads', { messages: [], metadata: { actors: [{ id: 'tester', client_id: 'e2e', capabilities: [capability('02-decisions')] }] } })
assert.deepEqual(thread.metadata.actors.map((actor) => actor.id), ['tester', 'shed'])

let seen = 0
let payloads = { decision: 0, data: 0 }
// say sends a text, and returns the answers: texts, and payloads by their schemas.
const say = async (text) => {
	await call(`/threads/${thread.id}/messages`, { role: 'user', content: [text], metadata: { actor: 'tester' } })
	const { data } = await call(`/threads/${thread.id}/messages`)
	const answers = data.slice(seen + 1)
	seen = data.length
	return answers.flatMap((m) => { assert.equal(m.role, 'assistant'); return m.content }).map((text) => {
		if (!text.startsWith('{')) return text
		const value = JSON.parse(text)
		if (value.request_decision) { payloads.decision++; check(isDecision, value) }
		if (value.request_data) { payloads.data++; check(isData, value) }
		return value
	})
}
const decide = (request, id) => say(JSON.stringify(check(isDecision, { $schema: capability('02-decisions'), decision: { request_decision_id: request.request_decision.id, options: [{ id }] } })))
const fill = (request, values) => say(JSON.stringify(check(isData, { $schema: capability('03-data-request'), data: { request_data_id: request.request_data.id, fields: Object.entries(values).map(([id, value]) => ({ id, value })) } })))

const choice = (await say('Switch the lamp on, please.'))[1]
assert.equal(choice.request_decision.type, 'radio')
const form = (await decide(choice, 'switch_output'))[1]
const fields = Object.fromEntries(form.request_data.form.fields.map((f) => [f.id, f]))
assert(fields.output.options.includes('lamp/relay') && fields.on.required && fields.for_seconds.type === 'number')
const [moved] = await fill(form, { output: 'lamp/relay', on: 'true', for_seconds: '60' })
assert.equal(moved.value, true)
await say(JSON.stringify({ operation: 'release_output', arguments: { output: 'lamp/relay' } }))

const confirmation = (await say(JSON.stringify({ operation: 'switch_output', arguments: { output: 'gate/relay', on: true } })))[1]
assert.equal(confirmation.request_decision.type, 'confirmation')
const still = (await decide(confirmation, 'again'))[1]
assert.equal(still.request_decision.type, 'confirmation')
assert.deepEqual(await decide(still, 'cancel'), ['It is not done.'])

const [waiting, , question] = await say(JSON.stringify({ operation: 'ask_agent', arguments: { agent: 'light' } }))
assert.equal(waiting.state, 'input_required')
assert.deepEqual(question.request_decision.options, [{ id: 'yes' }, { id: 'no' }])
const who = (await decide(question, 'yes')).at(-1)
const [done] = await fill(who, { answer: 'me' })
assert.equal(done.state, 'completed', JSON.stringify(done))

const [readings] = await say('read_points')
const value = (point) => readings.readings.find((r) => r.point === point).value
assert.equal(value('lamp/relay'), true)
assert.equal(value('gate/relay'), false)
assert.deepEqual((await call(`/threads/${thread.id}`, {})).messages, (await call(`/thread/${thread.id}`)).messages)
assert(payloads.decision >= 4 && payloads.data >= 2, JSON.stringify(payloads))
assert.equal((await fetch(url + '/aitp/v1/threads', { method: 'POST', body: '{}' })).status, 401)
console.log('done', payloads)
