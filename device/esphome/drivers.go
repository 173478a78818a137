package esphome

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver {
	return []driver.Driver{{
		Name: "esphome", Doc: "a node of ESPHome, by its native API",
		Also:  "esp32 esp8266",
		Entry: "{ driver: esphome, address: kitchen.local, key_file: kitchen.key }",
		Note: "The key is that of `api: encryption:` of the node. Without `inputs` and `outputs` its points are the sensors " +
			"and binary sensors that it has.",
		Lacks: map[string]string{
			"key":      "the key stands in a file of its own: write key_file",
			"password": "ESPHome has no passwords since 2026.1: give the node a key (api: encryption:) and write key_file",
			"host":     "write address",
		},
		Config: newConfig,
		Seek:   seek,
	}}
}
