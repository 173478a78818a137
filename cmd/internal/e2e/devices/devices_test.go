//go:build e2e

// Package devices tests a site with devices that are reached by a network, by radio or by a serial line: nodes of
// ESPHome, Bluetooth thermometers, Modbus, devices behind a broker, W3C Things and MCP servers elsewhere.
package devices
