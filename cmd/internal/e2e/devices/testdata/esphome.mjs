// Prints what an independent client sees of a node of ESPHome, moves its outputs, and prints what they say then.
// Arguments: the folder of npm's packages, a host, a port, and a key or "".
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, host, port, psk] = process.argv.slice(2);
const { openEspHomeClient } = await import(pathToFileURL(join(modules, "esphome-client/dist/index.js")));
const quiet = () => {};
const client = await openEspHomeClient({
  host, port: Number(port), psk: psk || null, reconnect: false,
  logger: { debug: quiet, info: quiet, warn: console.error, error: console.error },
});
const entities = client.getEntitiesWithIds().map((e) => ({ ...e }));
const deadline = Date.now() + 20000;
while (client.snapshot().size < entities.length && Date.now() < deadline) await new Promise((done) => setTimeout(done, 20));
const before = Object.fromEntries(client.snapshot());
const moved = {
  switch: await client.commandAndAwait("switch-heater", { state: true }),
  number: await client.commandAndAwait("number-target", { state: 12.5 }),
  light: await client.commandAndAwait("light-lamp", { state: true, brightness: 0.4 }),
  valve: await client.commandAndAwait("valve-water", { position: 1 }),
};
console.log(JSON.stringify({ entities, before, moved, encrypted: client.health().encrypted },
  (_, v) => (typeof v === "bigint" ? Number(v) : v)));
await client.disconnectAsync();
