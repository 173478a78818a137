// Package device is the vocabulary of physical things: what a device is, which
// points it has, what a reading and a value are, and how a hardware call fails.
//
// Chips, pins and buses live in the rooms below it; nothing that knows an agent,
// a protocol or a person may enter. Standard library only.
package device
