// Package device defines the vocabulary of physical things: devices, their points, readings,
// values, and faults of hardware calls.
//
// Chips, pins and buses are in the packages below it. It knows no agent, protocol or
// person, and imports the standard library only.
package device
