// Holds the descriptions in a folder to the schema of the W3C and the checks of the playground.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const require = createRequire(import.meta.url)
console.warn = () => {} // ajv of the playground, about formats
const { tdValidator } = require('@thing-description-playground/core')

const [folder] = process.argv.slice(2)
const files = readdirSync(folder)
const validate = async (text) => {
	const said = []
	const { report } = await tdValidator(text, (line) => said.push(String(line)), { checkDefaults: false, checkJsonLd: false, checkTmConformance: false })
	return { passed: ['json', 'schema', 'additional'].every((what) => report[what] === 'passed'), said: said.join('\n') }
}
for (const file of files) {
	const text = readFileSync(join(folder, file), 'utf8')
	const { passed, said } = await validate(text)
	assert(passed, `${file}: ${said}\n${text}`)
	// The checks can fail.
	assert(!(await validate(text.replace('"forms":[{"op":', '"forms":[{"no":1,"op":7,"was":'))).passed, file)
}
console.log(`${files.length} descriptions`)
