// Serves a Thing by node-wot: a thermometer, a light and a brightness. A line on standard input is a change by
// somebody at the Thing: "light false".
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

console.warn = () => {} // ajv, about formats
const require = createRequire(import.meta.url)
const { Servient } = require('@node-wot/core')
const { HttpServer } = require('@node-wot/binding-http')

const port = Number(process.argv[2])
const servient = new Servient()
servient.addServer(new HttpServer({ port, address: '127.0.0.1', baseUri: `http://127.0.0.1:${port}` }))
const wot = await servient.start()
const state = { temperature: 21.5, light: false, brightness: 0 }
const thing = await wot.produce({
	title: 'lamp',
	securityDefinitions: { none: { scheme: 'nosec' } },
	security: 'none',
	properties: {
		temperature: { type: 'number', unit: 'celsius', readOnly: true },
		light: { type: 'boolean' },
		brightness: { type: 'integer', minimum: 0, maximum: 100, unit: 'percent' },
	},
})
for (const name of Object.keys(state)) {
	thing.setPropertyReadHandler(name, async () => state[name])
	if (name !== 'temperature') thing.setPropertyWriteHandler(name, async (v) => { state[name] = await v.value() })
}
await thing.expose()
console.log('ready')
createInterface({ input: process.stdin }).on('line', (line) => {
	const [name, value] = line.split(' ')
	state[name] = JSON.parse(value)
}).on('close', () => process.exit(0))
