// Signs requests to a site by RFC 9421, and verifies one that the site's own client signed.
import assert from 'node:assert/strict'
import { createHash, createPrivateKey, createPublicKey, randomUUID } from 'node:crypto'
import { createSigner, createVerifier, httpbis } from 'http-message-signatures'

const [url, pem, did, theirs] = process.argv.slice(2)
const privateKey = createPrivateKey(pem)
const rpc = url + '/anp/rpc'
const reading = (point) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'read_points', params: { points: [point] } })
const digest = (body) => `sha-256=:${createHash('sha256').update(body).digest('base64')}:`

const all = ['@method', '@target-uri', '@authority', 'content-digest']
const sign = (body, { fields = all, params = ['created', 'expires', 'nonce', 'keyid', 'alg'], at = rpc, values = {}, headers = {} } = {}) => {
	const message = { method: 'POST', url: at, headers: { 'content-digest': digest(body), 'content-type': 'application/json', ...headers } }
	const now = Date.now() + 1000 // a site takes none of the second in which it started
	return httpbis.signMessage({
		key: createSigner(privateKey, 'ed25519', did), name: 'sig1', fields, params,
		paramValues: { created: new Date(now), expires: new Date(now + 60_000), nonce: randomUUID(), ...values },
	}, message)
}
const send = async (message, body, at = rpc) => {
	const response = await fetch(at, { method: 'POST', headers: message.headers, body })
	return { status: response.status, challenge: response.headers.get('www-authenticate') ?? '', text: await response.text() }
}
let tried = 0
const expect = async (what, { status, challenge, text }, want, says) => {
	tried++
	assert.equal(status, want, `${what}: ${status} ${challenge} ${text}`)
	assert((challenge + text).includes(says), `${what}: ${challenge} ${text}`)
}

const body = reading('den/temperature')
const first = await sign(body)
await expect('signed', await send(first, body), 200, '"unit":"Cel"')
await expect('replayed', await send(first, body), 401, 'invalid_nonce')
await expect('without alg', await send(await sign(body, { params: ['created', 'expires', 'nonce', 'keyid'] }), body), 200, '"unit":"Cel"')
await expect('with a header field', await send(await sign(body, { fields: [...all, 'content-type'] }), body), 200, '"unit":"Cel"')
await expect('not permitted', await send(await sign(reading('lamp/relay')), reading('lamp/relay')), 200, '"fault":"denied"')
await expect('another body', await send(await sign(body), reading('den/humidity')), 401, 'invalid_content_digest')
const forged = await sign(body)
forged.headers['content-digest'] = digest(reading('den/humidity'))
await expect('another body and digest', await send(forged, reading('den/humidity')), 401, 'invalid_signature')
await expect('another target', await send(await sign(body, { at: url + '/anp/rpc?a=b' }), body), 401, 'invalid_signature')
await expect('another host', await send(await sign(body, { at: 'https://garden.example.org/anp/rpc' }), body), 401, 'invalid_signature')
await expect('expired', await send(await sign(body, { values: { created: new Date(Date.now() - 120_000), expires: new Date(Date.now() - 60_000) } }), body), 401, 'invalid_timestamp')
await expect('too long', await send(await sign(body, { values: { expires: new Date(Date.now() + 3600_000) } }), body), 401, 'invalid_timestamp')
for (const field of all) {
	await expect('without ' + field, await send(await sign(body, { fields: all.filter((f) => f !== field) }), body), 401, 'invalid_request')
}
for (const param of ['created', 'expires', 'nonce', 'keyid']) {
	await expect('without ' + param, await send(await sign(body, { params: ['created', 'expires', 'nonce', 'keyid'].filter((p) => p !== param) }), body), 401, 'invalid_request')
}
await expect('another algorithm', await send(await sign(body, { values: { alg: 'rsa-pss-sha512' } }), body), 401, 'invalid_request')
await expect('a name that nobody listed', await send(await sign(body, { values: { keyid: 'did:wba:example.com#key-1' } }), body), 401, 'invalid_did')

// The site's own client.
const request = JSON.parse(theirs)
assert.equal(request.headers['Content-Digest'], digest(request.body))
const publicKey = createPublicKey(privateKey)
const config = (message) => httpbis.verifyMessage({
	keyLookup: async ({ keyid }) => ({ id: keyid, algs: ['ed25519'], verify: createVerifier(publicKey, 'ed25519') }),
	requiredParams: ['created', 'expires', 'nonce', 'keyid'], requiredFields: all, tolerance: 5,
}, message)
assert.equal(await config({ method: 'POST', url: request.url, headers: request.headers }), true)
assert.equal(await config({ method: 'POST', url: request.url + '/', headers: request.headers }), false)
console.log(`${tried} signed requests, and one of the site's client`)
