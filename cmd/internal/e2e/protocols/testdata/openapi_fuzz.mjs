// Sends requests that it makes from a site's OpenAPI document, well formed and not, and holds every
// answer to the document.
import assert from 'node:assert/strict'
import http from 'node:http'
import Ajv from 'ajv/dist/2020.js'

const [url, token, count, seedText] = process.argv.slice(2)
let seed = Number(seedText)
const random = () => { // mulberry32
	seed = (seed + 0x6d2b79f5) | 0
	let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
	t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
	return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}
const chance = (p) => random() < p
const pick = (all) => all[Math.floor(random() * all.length)]

const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
const send = (method, path, headers = {}, body) => new Promise((done, fail) => {
	const request = http.request(url, { method, path, agent, headers: { authorization: `Bearer ${token}`, ...headers } }, (response) => {
		const parts = []
		const answer = () => done({ status: response.statusCode, type: response.headers['content-type'] ?? '', body: Buffer.concat(parts).toString() })
		response.on('data', (part) => { parts.push(part); if (response.headers['content-type'] === 'text/event-stream') { request.destroy(); answer() } })
		response.on('end', answer)
		response.on('error', () => answer())
	})
	request.on('error', fail)
	request.setTimeout(60_000, () => request.destroy(new Error('no answer in a minute')))
	request.end(body)
})

const document = JSON.parse((await send('GET', '/api/openapi.json')).body)
const ajv = new Ajv({ strict: false, allErrors: true })
ajv.addSchema({ $id: 'document', ...document })
const validators = new Map()
const validator = (ref) => {
	if (!validators.has(ref)) validators.set(ref, ajv.compile({ $ref: 'document' + ref }))
	return validators.get(ref)
}
const resolve = (o) => o.$ref ? o.$ref.slice(2).split('/').reduce((at, name) => at[name], document) : o

const strange = ['', '.', '..', '%', 'nothing', 'a b', '日本', 'x'.repeat(300), '%00', '"', "'; drop", '../../token', 'bystander', 'relay', '{device}', 'NaN', '-1', '1e999', 'true', 'null']
const numbers = [0, 1, -1, 0.5, 30, 100, 101, 1e9, -1e308, 1e-320]
// valueOf returns a value, and whether a schema allows it as far as the generator knows.
const valueOf = (schema) => {
	if (chance(0.15)) return { value: pick([...strange, ...numbers, true, null, [], {}, [[1]], { a: { b: 1 } }]), valid: undefined }
	if (schema.enum) return { value: pick(schema.enum), valid: true }
	const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type
	switch (type) {
	case 'number': case 'integer': {
		const low = schema.minimum ?? 0, high = Math.min(schema.maximum ?? 100, 100)
		return { value: low + random() * (high - low), valid: true }
	}
	case 'boolean': return { value: chance(0.5), valid: true }
	case 'null': return { value: null, valid: true }
	case 'array': return { value: Array.from({ length: 1 + Math.floor(random() * 2) }, () => valueOf(schema.items ?? {}).value), valid: undefined }
	case 'object': return { value: {}, valid: true }
	}
	return { value: pick(['hello', 'red', 'air', '2026-01-01T00:00:00Z', 'x'.repeat(600)]), valid: true }
}
const nested = (depth) => '['.repeat(depth) + ']'.repeat(depth)

const tasks = [] // that were asked for
const requestOf = (path, method, operation) => {
	let target = path, bad = false // surely not what the document allows
	const query = [], headers = {}
	for (const p of (operation.parameters ?? []).map(resolve)) {
		if (p.in === 'path') {
			const known = p.schema.enum ?? tasks
			const value = known.length && chance(0.85) ? pick(known) : pick(strange.slice(1)) // an empty one asks for another path
			target = target.replace(`{${p.name}}`, chance(0.9) ? encodeURIComponent(value) : value.replace(/[^\x21-\x7e]/g, '') || '-')
			if (p.schema.enum && !p.schema.enum.includes(value)) bad = true
		} else if (p.in === 'query' && (p.required ? chance(0.95) : chance(0.4))) {
			for (let n = chance(0.1) ? 2 : 1; n > 0; n--) {
				const { value } = valueOf(p.schema)
				for (const v of [value].flat(9)) query.push(`${p.name}=${encodeURIComponent(String(v))}`)
			}
		} else if (p.in === 'header' && chance(0.2)) {
			headers[p.name] = String(valueOf(p.schema).value).replace(/[^\x20-\x7e]/g, '?')
		}
	}
	if (chance(0.05)) { query.push('unknown=1'); bad = true }
	let body
	if (operation.requestBody) {
		const { schema } = operation.requestBody.content['application/json']
		const { properties, required = [] } = resolve(schema)
		const value = {}
		for (const [name, s] of Object.entries(properties)) if (required.includes(name) || chance(0.7)) value[name] = valueOf(s).value
		if (chance(0.05)) value.unknown = 1
		body = JSON.stringify(value)
		const said = Object.fromEntries(Object.entries(value).filter(([, v]) => v !== null)) // a null is taken for left out
		if (!validator(schema.$ref)(said)) bad = true
		if (chance(0.1)) {
			body = pick([body.slice(0, -1), nested(5000), '', 'null', '[]', '"text"', '\u0000', '{"value":1e999}', `{"text":"${'x'.repeat(100_000)}"}`, '{"value":1,"value":2}', body + body])
			bad = body !== '' && !(body === 'null') // which say nothing, as an empty object does
		}
		headers['content-type'] = pick(['application/json', 'application/x-www-form-urlencoded', 'text/plain'])
	}
	if (query.length) target += '?' + query.join('&')
	return { method: method.toUpperCase(), target, headers, body, bad }
}

const all = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
assert(all.length > 12, 'too little is described')
const statuses = {}, done = {}
const one = async () => {
	const { path, method, operation } = pick(all)
	const asked = requestOf(path, method, operation)
	const answer = await send(asked.method, asked.target, asked.headers, asked.body)
	const what = `${asked.method} ${asked.target.slice(0, 200)} ${JSON.stringify(asked.headers)} ${asked.body?.slice(0, 200)}: ${answer.status} ${answer.type} ${answer.body.slice(0, 300)}`
	statuses[answer.status] = (statuses[answer.status] ?? 0) + 1
	assert(answer.status < 500, what)
	if (answer.status >= 300 && answer.status < 400) return // net/http tidies a path
	if (answer.status >= 400) {
		if (answer.type === 'text/plain; charset=utf-8') { // no route has such a path
			assert([400, 404, 405].includes(answer.status), what)
			return
		}
		assert(answer.type in document.components.responses.Refused.content, what)
		const check = validator(`#/components/responses/Refused/content/${answer.type.replaceAll('/', '~1')}/schema`)
		assert(check(JSON.parse(answer.body)), what + JSON.stringify(check.errors))
		return
	}
	assert(!asked.bad, 'done, though it is not as the document says: ' + what)
	done[operation.operationId] = (done[operation.operationId] ?? 0) + 1
	const described = operation.responses[answer.status]
	assert(described, what)
	const [[type, { schema }]] = Object.entries(described.content)
	assert(type === answer.type || type === 'image/*' && answer.type.startsWith('image/'), what)
	if (schema) {
		const check = validator(schema.$ref)
		assert(check(JSON.parse(answer.body)), what + JSON.stringify(check.errors))
	}
	if (operation.operationId === 'askAgent') tasks.push(JSON.parse(answer.body).id)
}
let left = Number(count)
await Promise.all(Array.from({ length: 8 }, async () => { while (left-- > 0) await one() }))
agent.destroy()
console.log(JSON.stringify({ statuses, done }))
for (const { operation } of all) assert(done[operation.operationId] > 0 || operation.operationId === 'answerTask', `${operation.operationId} was never done`)
