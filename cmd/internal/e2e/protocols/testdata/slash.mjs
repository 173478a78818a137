// Reads by the SDK of MCP, in its versions 1 and 2, with a slash at the end of the URL and without. The
// metadata of the resource, which a client looks for after a refusal, is that of the URL.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { discoverOAuthProtectedResourceMetadata, extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js'
import * as second from '@modelcontextprotocol/client'

const [url, token] = process.argv.slice(2)
const requestInit = { headers: { authorization: `Bearer ${token}` } }
for (const path of ['/mcp', '/mcp/']) {
	for (const [C, Transport] of [[Client, StreamableHTTPClientTransport], [second.Client, second.StreamableHTTPClientTransport]]) {
		const client = new C({ name: 'test', version: '1' })
		await client.connect(new Transport(new URL(url + path), { requestInit }))
		const { structuredContent } = await client.callTool({ name: 'read_points', arguments: {} })
		assert(structuredContent.readings.length > 0)
		await client.close()
	}
	const refused = await fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
	assert.equal(refused.status, 401)
	const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused)
	const described = await discoverOAuthProtectedResourceMetadata(url + path, { resourceMetadataUrl })
	assert.equal(described.resource, url + path)
}
console.log('done')
