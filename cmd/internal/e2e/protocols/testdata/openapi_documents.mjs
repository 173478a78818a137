// Holds the documents of each reader to the tools of others: OpenAPI by Redocly, agents.json by its
// own package and by its JSON Schema. Then that package executes flows.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { registerHooks } from 'node:module'
import { writeFileSync } from 'node:fs'
import Ajv from 'ajv'

const [url, schema, ...tokens] = process.argv.slice(2)
const readers = { owner: tokens[0], small: tokens[1], stranger: '' }
const get = async (path, token) => {
	const response = await fetch(url + path, { headers: token ? { authorization: `Bearer ${token}` } : {} })
	assert.equal(response.status, 200)
	return response.text()
}

// The published schema names the draft that Ajv has, and words that it does not know.
const isAgentsJson = new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(schema))

// The package calls the operations of a source by a module that it imports by the source's name,
// and would find none here. This one has no knowledge of the site but its OpenAPI document.
const integration = `
	import { RestApiHandler } from 'agentsjson'
	export const createIntegration = async (bundle) => ({
		mapType: 'restapihandler',
		map: Object.fromEntries(Object.entries(bundle.operations).map(([id, o]) => [id, (token, parameters, body) => {
			const rest = { ...parameters }, inPath = {}
			for (const p of o.parameters ?? []) if (p.in === 'path') { inPath[p.name] = rest[p.name]; delete rest[p.name] }
			const handler = new RestApiHandler({ baseURL: bundle.baseURL, headers: { Authorization: 'Bearer ' + token } })
			return handler.request({ method: o.method, path: o.path.replace(/{(\\w+)}/g, ':$1'), pathParams: inPath, parameters: rest, requestBody: body })
		}])),
	})`
writeFileSync('integration.mjs', integration)
registerHooks({
	resolve: (specifier, context, next) => specifier.startsWith('agentsjson/integrations/')
		? { url: new URL('integration.mjs', import.meta.url).href, format: 'module', shortCircuit: true }
		: next(specifier, context),
})
const { AgentsJsonSchema, execute, loadAgentsJson } = await import('agentsjson')

const flowsOf = {}
for (const [name, token] of Object.entries(readers)) {
	const document = await get('/api/openapi.json', token)
	writeFileSync(`${name}.json`, document)
	const lint = spawnSync(process.execPath, ['node_modules/@redocly/cli/bin/cli.js', 'lint', `${name}.json`, '--extends=recommended', '--format=json'], { encoding: 'utf8', env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' } })
	const { totals, problems } = JSON.parse(lint.stdout.slice(lint.stdout.indexOf('{')))
	assert.deepEqual([totals.errors, totals.warnings], [0, 0], `${name}: ${JSON.stringify(problems)}`)
	const operations = [...document.matchAll(/"operationId":"(\w+)"/g)].map((m) => m[1])
	assert.equal(new Set(operations).size, operations.length)

	const flows = JSON.parse(await get('/.well-known/agents.json', token))
	AgentsJsonSchema.parse(flows)
	assert(isAgentsJson(flows), JSON.stringify(isAgentsJson.errors))
	for (const f of flows.flows) {
		assert.match(f.id, /^[a-z]+(_[a-z]+)*$/)
		for (const a of f.actions) assert(operations.includes(a.operationId), a.operationId)
		for (const { origin, target } of f.links) for (const e of [origin, target]) assert([f.id, ...f.actions.map((a) => a.id)].includes(e.actionId), e.actionId)
	}
	flowsOf[name] = flows.flows.map((f) => f.id)
	console.log(`${name}: ${document.length} bytes, ${operations.length} operations, ${flows.flows.length} flows`)
}
assert.equal(flowsOf.stranger.length, 0)
assert(!flowsOf.small.includes('emergency_stop') && !flowsOf.small.includes('ask_agent'))

// A reader's bundle is loaded with its token, and executed as it says.
const plainFetch = globalThis.fetch
globalThis.fetch = (at, options) => plainFetch(at, { ...options, headers: { authorization: `Bearer ${readers.owner}` } })
const bundle = await loadAgentsJson(url + '/.well-known/agents.json')
globalThis.fetch = plainFetch
const run = (id, parameters, body = {}) => execute(bundle, bundle.agentsJson.flows.find((f) => f.id === id), { type: 'bearer', token: readers.owner }, parameters, body)
const vent = { device: 'greenhouse', point: 'vent' }

assert.equal((await run('read_point', { device: 'greenhouse', point: 'temperature' })).success.unit, 'Cel')
assert((await run('list_points', {})).success.points.length > 5)
assert.equal((await run('move_output', vent, { value: 30, for: 20 })).success.value, 30)
const kept = (await run('keep_output', vent, { for: 200 })).success
assert(kept.value === 30 && kept.seconds_left > 100, JSON.stringify(kept))
assert.equal((await run('release_output', vent)).success.value, 0)
const asked = (await run('ask_and_wait', { agent: 'airing', wait_seconds: 20 }, {})).success
assert.equal(asked.state, 'completed', JSON.stringify(asked))
console.error = () => {} // where the package writes what it throws
await assert.rejects(run('move_output', vent, { value: 300 }), /400/)
console.log('executed')
