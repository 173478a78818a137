// Package device is the vocabulary of physical things: what a device is, which
// points it has, what a reading and a value are, and how a hardware call fails.
//
// Chips, pins and buses are in the packages below it. It knows no agent, protocol or
// person, and imports the standard library only.
package device
