// Package mqtt has the driver of devices behind an MQTT broker, such as those of Zigbee2MQTT, Tasmota, Shelly and
// Theengs. Devices of one broker share a connection. What a device says is believed while the broker is there and
// something shows that it is not old; a command has succeeded once the device has said so.
package mqtt

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver {
	all := newBrokers()
	return []driver.Driver{{
		Name: "mqtt", Doc: "a device behind an MQTT broker: Zigbee2MQTT, Tasmota, Shelly, Theengs, or any topics",
		Also: "zigbee2mqtt zigbee tasmota sonoff shelly theengs openmqttgateway",
		Entry: "{ driver: mqtt, broker: mqtt://192.168.1.5, kind: zigbee2mqtt, name: plug, outputs: { plug: { safe: off " +
			"} } }",
		Part:   productKind,
		Config: func() driver.Config { return &config{brokers: all} },
		Seek:   all.seek,
	}}
}

// productKind returns the key of a product's kind; Shellys that are sold now are of a later generation.
func productKind(product string) (key, value string) {
	switch product {
	case "zigbee2mqtt", "tasmota":
		return "kind", product
	case "zigbee":
		return "kind", "zigbee2mqtt"
	case "sonoff":
		return "kind", "tasmota"
	case "shelly":
		return "kind", "shelly2"
	}
	return "", ""
}
