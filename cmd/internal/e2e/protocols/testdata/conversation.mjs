// Talks with a language model in three turns: by both bindings of A2A 1.0 and by A2A 0.3, each begun
// without a contextId, and by the AgentRequest that lmos-kotlin-sdk sends, in node-wot. The model answers
// with the number of the words that it was told before.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { randomUUID } from 'node:crypto'
import { Role, TaskState } from '@a2a-js/sdk'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client'
import { A2AClient as Legacy } from 'a2a-sdk-0.3/client'

const require = createRequire(import.meta.url)
console.warn = () => {} // ajv of node-wot, about formats
const { Servient } = require('@node-wot/core')
const { HttpClientFactory } = require('@node-wot/binding-http')

const [url, token] = process.argv.slice(2)
const authorized = (input, init = {}) => {
	const headers = new Headers(init.headers)
	headers.set('authorization', `Bearer ${token}`)
	return fetch(input, { ...init, headers })
}
const card = '/a2a/agents/gpt/.well-known/agent-card.json'
const texts = (artifacts, of) => artifacts.flatMap((a) => a.parts).map(of).filter((t) => t !== undefined)

for (const Factory of [JsonRpcTransportFactory, RestTransportFactory]) {
	const gpt = await new ClientFactory({
		transports: [new Factory({ fetchImpl: authorized })],
		cardResolver: new DefaultAgentCardResolver({ fetchImpl: authorized }),
	}).createFromUrl(url, card)
	let contextId = ''
	for (const turn of [1, 2, 3]) {
		const task = await gpt.sendMessage({
			tenant: '', metadata: undefined,
			message: {
				messageId: randomUUID(), contextId, taskId: '', role: Role.ROLE_USER, metadata: undefined, extensions: [], referenceTaskIds: [],
				parts: [{ content: { $case: 'text', value: `${Factory.name} ${turn}` }, metadata: undefined, filename: '', mediaType: '' }],
			},
			configuration: { acceptedOutputModes: ['text/plain'], taskPushNotificationConfig: undefined, historyLength: undefined, returnImmediately: false },
		})
		assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED)
		assert.deepEqual(texts(task.artifacts, (p) => (p.content.$case === 'text' ? p.content.value : undefined)), [`told ${turn}`])
		contextId = task.contextId
	}
}

const old = await Legacy.fromCardUrl(url + card, { fetchImpl: authorized })
let contextId
for (const turn of [1, 2, 3]) {
	const { result } = await old.sendMessage({
		message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text: `0.3 ${turn}` }], ...(contextId && { contextId }) },
	})
	assert.equal(result.status.state, 'completed', JSON.stringify(result))
	assert.deepEqual(texts(result.artifacts, (p) => p.text), [`told ${turn}`])
	contextId = result.contextId
}

// node-wot reads the description of a directory without a token: something before it adds one.
const proxy = createServer(async (req, res) => {
	const answer = await authorized(url + req.url, { headers: { accept: req.headers.accept ?? '*/*' } })
	res.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') })
	res.end((await answer.text()).replaceAll(url, `http://127.0.0.1:${proxy.address().port}`))
})
await new Promise((done) => proxy.listen(0, '127.0.0.1', done))
const servient = new Servient()
servient.addClientFactory(new HttpClientFactory())
const wot = await servient.start()
servient.addCredentials({ [(await (await authorized(url + '/.well-known/wot')).json()).id]: { token } })
const found = []
const search = await wot.exploreDirectory(`http://127.0.0.1:${proxy.address().port}/.well-known/wot`)
for await (const td of search) found.push(td)
assert(!search.error, search.error)
const td = found.find((t) => t.title === 'gpt')
assert(td, `no gpt among ${found.map((t) => t.title)}`)
proxy.close()
proxy.closeAllConnections()

const described = await (await authorized(url + '/things/agent:gpt')).json()
assert.deepEqual(Object.keys(described.actions), Object.keys(td.actions))
servient.addCredentials({ [described.id]: { token } })
const agent = await wot.consume(described)
for (const turn of [1, 2, 3]) {
	const answer = await (await agent.invokeAction('chat', {
		messages: [{ role: 'user', content: `lmos ${turn}`, format: 'text', turnId: null, binaryData: null, anonymizationEntities: [] }],
		informationContext: null,
		systemContext: null,
		userContext: null,
		conversationContext: { conversationId: 'c1', turnId: `${turn}`, anonymizationEntities: null },
	})).value()
	assert.deepEqual(answer.messages.map((m) => [m.role, m.content]), [['assistant', `told ${turn}`]])
}
await servient.shutdown()
console.log('done')
