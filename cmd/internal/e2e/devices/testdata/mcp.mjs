// An MCP server by the official TypeScript SDK: a fan whose speed a tool tells and another sets.
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

let speed = 0
const build = () => {
	const server = new McpServer({ name: 'fan', version: '1' })
	server.registerTool('get_fan', { outputSchema: { speed: z.number() } }, async () => ({
		structuredContent: { speed }, content: [{ type: 'text', text: JSON.stringify({ speed }) }],
	}))
	server.registerTool('set_fan', { inputSchema: { speed: z.number() } }, async (to) => {
		speed = to.speed
		return { content: [{ type: 'text', text: 'the fan turns' }] }
	})
	return server
}
createServer(async (req, res) => {
	if (req.headers.authorization !== 'Bearer s3cret') return res.writeHead(401).end()
	const server = build()
	const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
	res.on('close', () => { transport.close(); server.close() })
	await server.connect(transport)
	await transport.handleRequest(req, res)
}).listen(Number(process.argv[2]), '127.0.0.1', () => console.log('ready'))
process.stdin.resume().on('close', () => process.exit(0)).on('end', () => process.exit(0))
