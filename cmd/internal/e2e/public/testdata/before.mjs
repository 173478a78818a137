// Loaded before a client, it runs the command BEFORE_CALL, if there is one, once the client begins to call a tool.
import { execSync } from 'node:child_process'
const { fetch } = globalThis
let command = process.env.BEFORE_CALL
globalThis.fetch = (to, options) => {
  if (command && /"tools\/call"/.test(options?.body)) {
    execSync(command)
    command = ''
  }
  return fetch(to, options)
}
