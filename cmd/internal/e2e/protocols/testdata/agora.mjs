// Asks by Agora: documents by their hashes, both encodings of them, conversations.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'

const [url, token] = process.argv.slice(2)
const base = url + '/agora'
const authorization = `Bearer ${token}`
const post = async (at, body) => (await fetch(at, { method: 'POST', headers: { authorization, 'content-type': 'application/json' }, body: JSON.stringify(body) })).json()

assert.deepEqual(await (await fetch(base + '/wellknown')).json(), {})
const known = await (await fetch(base + '/wellknown', { headers: { authorization } })).json()
const documents = {}
for (const [hash, sources] of Object.entries(known)) {
	const text = decodeURIComponent(sources[0].slice('data:text/plain;charset=utf-8,'.length))
	assert.equal(createHash('sha1').update(text).digest('hex'), hash)
	assert.equal(await (await fetch(sources[1], { headers: { authorization } })).text(), text)
	const [, front, specification] = text.split('---\n')
	const meta = Object.fromEntries(front.trim().split('\n').map((line) => line.split(/: (.*)/)))
	assert(meta.name && meta.description && /^(true|false)$/.test(meta.multiround) && specification.length > 100)
	documents[meta.name] = { protocolHash: hash, sha1: createHash('sha1').update(text).digest('base64'), multiround: meta.multiround === 'true' }
}
assert.equal(Object.keys(documents).length, 9, Object.keys(documents))

const read = documents['Read points of a site']
const reading = await post(base, { protocolHash: read.protocolHash, body: { points: ['den/temperature'] } })
assert.equal(reading.status, 'success')
assert.equal(reading.body.readings[0].unit, 'Cel')

// Like the Python library: base64, sources, bodies that are texts, every field in follow-ups.
class Conversation {
	constructor(document) { this.document = document }
	async send(message) {
		const at = this.id ? `${base}/conversations/${this.id}` : base
		const query = { protocolHash: this.document?.sha1 ?? null, protocolSources: ['data:text/plain;charset=utf-8,'], body: message }
		if (this.document?.multiround) query.multiround = true
		const response = await post(at, query)
		assert('status' in response && 'body' in response, JSON.stringify(response))
		this.id ??= response.conversationId
		return response
	}
	async close() {
		const response = await fetch(`${base}/conversations/${this.id}`, { method: 'DELETE', headers: { authorization } })
		assert.equal(response.status, 200)
	}
}
const text = await new Conversation(read).send('{"points":["den/temperature"]}')
assert.equal(JSON.parse(text.body).readings[0].point, 'den/temperature')
const asked = new Conversation(documents['Ask an agent of a site for a task'])
const question = JSON.parse((await asked.send('{"agent":"light"}')).body)
assert.equal(question.state, 'input_required')
assert.deepEqual(question.question.options, ['yes', 'no'])
const done = JSON.parse((await asked.send('{"answer":"yes","wait_seconds":20}')).body)
assert.equal(done.state, 'completed', JSON.stringify(done))
await asked.close()
const lamp = await post(base, { protocolHash: read.protocolHash, body: { points: ['lamp/relay'] } })
assert.equal(lamp.body.readings[0].value, true)

const words = await new Conversation().send('How warm is it?')
assert.equal(words.status, 'failure')
assert(words.error && words.message === words.error)
const wrong = await post(base, { protocolHash: read.protocolHash, body: { point: 1 } })
assert.equal(wrong.status, 'success')
assert.equal(wrong.body.fault, 'invalid')
assert.equal((await post(base, { protocolHash: 'a'.repeat(40), body: {} })).error, 'Unsupported protocol')
assert.equal((await fetch(base, { method: 'POST', headers: { authorization }, body: '{' })).status, 400)
assert.equal((await fetch(base, { method: 'POST', body: '{}' })).status, 401)
console.log('done')
