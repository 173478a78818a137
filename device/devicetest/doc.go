// Package devicetest is the conformance suite that every device passes, real,
// played back or simulated. It holds a device to the contract that package device
// writes down, and to nothing else.
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, func(t *testing.T) device.Device { return openFake(t) })
//	}
//
// A driver of a device at the end of a network also passes the suite of device/lan/lantest.
package devicetest
