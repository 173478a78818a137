// Reads and moves in plain HTTP.
import assert from 'node:assert/strict'

const [url, token] = process.argv.slice(2)
const call = async (path, body) => {
	const headers = { authorization: `Bearer ${token}` }
	const response = await fetch(url + path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) })
	return { status: response.status, ...(await response.json()) }
}
const { points } = await call('/api/points')
assert(points.some((p) => p.point === 'greenhouse/vent'))
assert.equal((await call('/api/points/greenhouse/temperature')).unit, 'Cel')
assert.equal((await call('/api/points/greenhouse/nothing')).status, 404)
const moved = await call('/api/outputs/greenhouse/vent', { value: 30, for: 60 })
assert.equal(moved.status, 200, JSON.stringify(moved))
assert.equal((await call('/api/outputs/greenhouse/vent', { value: 'much' })).status, 400)
assert.equal((await call('/api/outputs/greenhouse/vent', { valeu: 30 })).status, 400)
assert.equal((await call('/api/outputs/greenhouse/vent', {})).status, 200)
console.log('done')
