// Package fake has a stand-in for any device: it has the points of a description, and values that are set from
// outside in place of measured ones. It touches no hardware, has no clock and starts no goroutine.
//
//	d := fake.New(description, nil)
//	err := d.Push("temperature", device.Number(31))
//
// Drivers replaces the devices of a list of drivers, for a site that is simulated.
package fake
