//go:build e2e

// Package home tests a site with what people have at home: an MQTT broker, Home Assistant, Prometheus,
// Node-RED, and receivers of notifications.
package home
