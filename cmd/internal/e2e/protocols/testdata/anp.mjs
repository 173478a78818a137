// Finds and calls a site by ANP; its documents are validated by the tools of OpenRPC.
import assert from 'node:assert/strict'
import utils from '@open-rpc/schema-utils-js'

const { validateOpenRPCDocument, dereferenceDocument, MethodCallValidator } = utils
const [url, token] = process.argv.slice(2)
const get = async (at, authorization = `Bearer ${token}`) => (await fetch(at, { headers: authorization ? { authorization } : {} })).json()

const strangers = await get(url + '/.well-known/agent-descriptions', '')
assert.equal(strangers['@type'], 'CollectionPage')
assert.equal(strangers.items[0].name, 'agentsite')
const page = await get(url + '/.well-known/agent-descriptions')
assert.equal(page.items[0]['@type'], 'ad:AgentDescription')
const ad = await get(page.items[0]['@id'])
assert.deepEqual([ad.protocolType, ad.protocolVersion, ad.type, ad.name], ['ANP', '1.0.0', 'AgentDescription', 'shed'])
assert(ad.securityDefinitions[ad.security] && ad.description)

// As the reference client: a structured interface by OpenRPC, and its first server.
const openrpc = ad.interfaces.filter((i) => i.type === 'StructuredInterface' && i.protocol === 'openrpc')
const valid = async (at, authorization) => {
	const document = await get(at, authorization)
	assert.equal(validateOpenRPCDocument(document), true)
	return dereferenceDocument(document)
}
await valid(openrpc[0].url, '')
const operations = await valid(openrpc.find((i) => !i.humanAuthorization).url)
const approved = await valid(openrpc.find((i) => i.humanAuthorization).url)
const outputsOf = (document, name) => document.methods.find((m) => m.name === name)?.params.find((p) => p.name === 'output').schema.enum
assert.deepEqual(outputsOf(operations, 'switch_output'), ['lamp/relay'])
assert.deepEqual(outputsOf(approved, 'switch_output'), ['gate/relay'])

const validator = new MethodCallValidator(operations)
const rpc = async (method, params) => {
	const response = await fetch(operations.servers[0].url, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) })
	assert.equal(response.status, 200)
	return response.json()
}
const call = async (method, params) => {
	assert.deepEqual(validator.validate(method, params), [])
	const { result, error } = await rpc(method, params)
	assert(!error, JSON.stringify(error))
	return result
}
assert.equal((await call('read_points', { points: ['den/temperature'] })).readings[0].unit, 'Cel')
assert.equal((await call('switch_output', { output: 'lamp/relay', on: true, for_seconds: 60, _meta: { 'agentsite/idempotency-key': 'k' } })).value, true)
assert.equal((await call('set_level', { output: 'dim/level', value: 40 })).value, 40)
assert.notDeepEqual(validator.validate('switch_output', { output: 'lamp/relay' }), [])
const { error } = await rpc('switch_output', { output: 'gate/relay', on: true })
assert.equal(error.data.humanAuthorization, true)
assert.equal((await rpc('read_points', { points: ['x/y'] })).error.data.fault, 'invalid')

// ANP-06
const meta = { profile: 'anp.meta.negotiation.v1', security_profile: 'transport-protected', content_type: 'application/json' }
const negotiation = ad.interfaces.find((i) => i.type === 'MetaProtocolInterface')
assert.equal(negotiation.url, operations.servers[0].url)
const capabilities = (await rpc('anp.get_capabilities', { meta: { ...meta, profile: 'anp.core.binding.v1' }, body: {} })).result
assert(capabilities.supported_profiles.includes(negotiation.profile))
const { result } = await rpc('anp.negotiate', { meta, body: { negotiation_id: 'n1', intent: { name: 'switch' }, constraints: { requiresHumanAuthorization: true }, candidateInterfaceRefs: ad.interfaces.map((i) => i.id) } })
assert.equal(result.negotiationId, 'n1')
assert.equal(result.status, 'accepted')
assert.equal(result.selected.url, openrpc.find((i) => i.id === result.selected.interface).url)
assert.equal(result.execution.requiresHumanAuthorization, true)
assert.equal((await rpc('anp.negotiate', { meta, body: { intent: { name: 'book_hotel_room' } } })).error.data.anp_code, 'meta.no_matching_interface')
console.log('done')
